"""The figures of the paper on PSTSWM beside today's (plan seed003-pstswm): how long, how much of it in
messages, and what the default protocol, MPI and its collectives cost. The paper's measure is
degradation: 100 (time - best time) / best time, of the whole program."""
from . import programs, trust
from .html import Faint, paragraph, table
from .papers import seed
from .words import NETWORK

PLAN, BELOW, DEFAULT = "seed003-pstswm", {"native": "rings in shared memory", "sockets": "TCP connections"}, "sendrecv"
HAND = ("halving", "ring")


def section(book):
    """The report's section."""
    found = [(options(mode), net, ranks, of) for (_, mode, net, ranks), of in programs.cells(book, PLAN).items()]
    if not found:
        return ""
    paper = seed("003")
    large, small = ([one for one in found if (one[0].get("truncation") == "85") == is_large] for is_large in (True, False))
    parts = [paragraph(f"{paper['source']}. The paper has graphs without numbers. Today: apps/pstswm, 16 levels, on few ranks; steps and meshes as in the plan.")]
    for title, words, of in (("Figures 1 and 2: time, and how much of it in messages (T85)", "runtime", runtimes(large, shares(book))),
                             ("Figure 3: what the default protocol costs (T42)", "protocol", defaults(small)),
                             ("Figure 4: what MPI costs beside what lies below it (T42)", "native", natives(small)),
                             ("Figure 5: what the collectives cost beside what is written by hand (TN, T42)", "collectives", collectives(small))):
        parts.append(f"<h3>{title}</h3>" + paragraph(paper[words], note=True) + table(*of))
    return "".join(parts)


def options(mode):
    """A command's words by name."""
    return dict(word.split("=", 1) for word in mode.split() if "=" in word)


def algorithm(given):
    return given.get("algorithm", "TN")


def is_hand(given):
    """Is all communication of the two transforms written by hand?"""
    return algorithm(given) != "TN" or (given.get("transpose") == "hand" and given.get("sum") in HAND)


def way(given, without=("steps", "mesh", "algorithm", "truncation")):
    """What makes one command another."""
    return " ".join(f"{name}={value}" for name, value in given.items() if name not in without) or "as it is"


def shares(book):
    """(options, network, ranks, who) -> per cent of the time in messages, medians."""
    data = book.data[(book.data.plan == PLAN) & (book.data.metric == "messages") & (book.data.library != "")]
    return {(mode, net, ranks, library): some["median"].median() for (mode, net, ranks, library), some in data.groupby(["mode", "network", "ranks", "library"])}


def runtimes(found, share):
    """Head and rows: seconds, speed-up over one rank, per cent in messages."""
    alone = {who: one.measured for given, _, ranks, of in found if ranks == 1 for who, one in of.items() if one.counts}
    rows = []
    for given, net, ranks, of in found:
        for who, one in of.items():
            up = trust.against(alone[who], one.measured) if one.counts and who in alone else None
            in_messages = share.get((" ".join(f"{name}={value}" for name, value in given.items()), net, ranks, who))
            rows.append((algorithm(given), f"{given.get('mesh', '')} {way(given)}".replace(" as it is", ""), NETWORK[net], ranks, who, one.words(one.seconds),
                         None if up is None else Faint(f"{up.ratio:.2f}") if up.grey else f"{up.ratio:.2f}", in_messages))
    return ["Algorithm", "Mesh, options", "Network", "Ranks", "Library", "s", "Speed-up", "% in messages"], rows


def by_place(found):
    """(algorithm, network, ranks, library) -> [(options, figure)] of what counts."""
    places = {}
    for given, net, ranks, of in found:
        for who, one in of.items():
            if one.counts:
                places.setdefault((algorithm(given), net, ranks, who), []).append((given, one))
    return places


def quickest(some):
    return min(some, key=lambda pair: pair[1].measured, default=None)


def degradation(one, best):
    """In per cent."""
    found = trust.against(one.measured, best.measured)
    words = f"{100 * (found.ratio - 1):.1f} %"
    return Faint(words) if found.grey else words


def by_hand(some):
    """Of these, what is written by hand, by MPI."""
    return [(given, one) for given, one in some if is_hand(given) and given.get("protocol", DEFAULT) not in BELOW]


def defaults(found):
    """Head and rows of Figure 3."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        hand = by_hand(some)
        of, best = [one for given, one in hand if given.get("protocol", DEFAULT) == DEFAULT], quickest(hand)
        if of and len(hand) > 1:
            rows.append((name, NETWORK[net], ranks, who, of[0].measured, best[1].measured, way(best[0], ("steps", "mesh", "algorithm", "transpose", "sum")), degradation(of[0], best[1])))
    return ["Algorithm", "Network", "Ranks", "Library", "MPI_Sendrecv, s", "the quickest, s", "which", "Degradation"], rows


def natives(found):
    """Head and rows of Figure 4."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        best = quickest(by_hand(some))
        rows += [(name, NETWORK[net], ranks, who, best[1].measured, BELOW[given["protocol"]], one.measured, degradation(best[1], one))
                 for given, one in some if best and given.get("protocol") in BELOW]
    return ["Algorithm", "Network", "Ranks", "Library", "the quickest protocol of MPI, s", "Below MPI", "s", "Degradation"], rows


def collectives(found):
    """Head and rows of Figure 5."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        best = quickest(by_hand(some))
        rows += [(NETWORK[net], ranks, who, way(given), one.measured, best[1].measured, degradation(one, best[1]))
                 for given, one in some if name == "TN" and best and not is_hand(given)]
    return ["Network", "Ranks", "Library", "Collectives", "s", "the quickest by hand, s", "Degradation"], rows
