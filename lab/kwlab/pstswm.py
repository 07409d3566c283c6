"""The figures of the paper on PSTSWM beside today's (plan seed003-pstswm): how long, how much of it
in messages, and what the default protocol, MPI and its collectives cost. The paper's measure is
degradation: 100 (time - best time) / best time, of the whole program."""

from . import plots, programs, trust
from .html import Faint, Ratio
from .papers import seed, show
from .words import NETWORK

PLAN = "seed003-pstswm"
BELOW = {"native": "rings in shared memory", "sockets": "TCP connections"}
DEFAULT = "sendrecv"
HAND = ("halving", "ring")
ORDERS = ("row", "column", "cart")
WHOLE = ("steps", "mesh", "algorithm", "truncation")  # options of a command as a whole


def section(book):
    """The report's section."""
    found = [
        (options(mode), net, ranks, of)
        for (_, mode, net, ranks), of in programs.cells(book, PLAN).items()
    ]
    if not found:
        return ""
    large = [one for one in found if one[0].get("truncation") == "85"]
    every = [one for one in found if one not in large]
    small = [one for one in every if "order" not in one[0]]
    moved = orders(every)
    return (
        show("003", "paper")
        + show("003", "runtime", inner=pictures(book, "runtime", large))
        + show("003", "messages", runtimes(large), inner=pictures(book, "messages", large))
        + "".join(
            show("003", name, rows(small), inner=pictures(book, name, small))
            for name, rows in FIGURES.items()
        )
        + (show("003", "orders", moved) if moved else "")
    )


def orders(found):
    """The time by rows, and the other orders' with their ratio to it."""
    by_options = {}
    for given, net, ranks, of in found:
        same, order = way(given, ("order", "steps")), given.get("order", ORDERS[0])
        for who, one in of.items():
            if one.counts:
                place = same, NETWORK[net], ranks, who
                by_options.setdefault(place, {})[order] = one.measured
    rows = []
    for place, times in by_options.items():
        if len(times) > 1:
            first, *others = (times.get(order) for order in ORDERS)
            seconds = [one and programs.said(one) for one in (first, *others)]
            both = [one and first and trust.against(one, first) for one in others]
            rows.append((*place, *seconds, *map(Ratio.of, both)))
    return rows


def pictures(book, name, found):
    """A figure as bars, a picture a network."""
    (unit, bars), one, parts = BARS[name], seed("003")["shown"][name], ""
    for net in dict.fromkeys(net for _, net, _, _ in found):
        here = [*bars([one for one in found if one[1] == net]).items()]
        groups = [(group, of) for group, of in here if of]
        for at in range(0, len(groups), 7):
            title = f"{one['figure'].split(':')[0]}, {NETWORK[net]}"
            drawn = plots.bars(dict(groups[at : at + 7]), unit, title)
            file = f"pstswm-{name}-{net}-{at // 7}"
            parts += book.picture(file, drawn, f"{one['figure']}, {NETWORK[net]}")
    return parts


def short(words):
    """Under a bar, in lines."""
    return words.replace(" ", "\n")


def mesh(given):
    """The mesh of a large run, and its further options."""
    return f"{given.get('mesh', '')} {way(given)}".replace(" as it is", "")


def large_bars(found, value):
    """By algorithm, ranks and options: a value of every library that has one."""
    return {
        short(f"{algorithm(given)} {ranks} {mesh(given)}"): {
            who: value(one) for who, one in of.items() if one.counts and value(one)
        }
        for given, _, ranks, of in found
    }


def runtime_bars(found):
    """Seconds."""
    return large_bars(found, lambda one: one.measured)


def message_bars(found):
    """The per cent of the time that went into messages, of several ranks."""
    several = [one for one in found if one[2] > 1]
    return large_bars(several, lambda one: one.messages and one.middle(one.messages))


def grouped(found, choose):
    """{group: {who: degradation}} of what `choose` makes of the runs of a place: (group, one,
    best)."""
    groups = {}
    for (name, *_, who), some in by_place(found).items():
        for group, one, best in choose(name, some):
            ratio = trust.against(one.measured, best.measured)
            rounds = {at: 100 * (of - 1) for at, of in enumerate(ratio.rounds)}
            degraded = trust.Measured(100 * (ratio.ratio - 1), rounds, ratio.grey)
            groups.setdefault(short(group), {})[who] = degraded
    return groups


def protocol_bars(found):
    """Every protocol by hand over the quickest."""
    name_of = lambda given: way(given, (*WHOLE, "transpose", "sum")).replace("protocol=", "")
    return grouped(
        found,
        lambda name, some: [
            (f"{name} {name_of(given)}", one, quickest(by_hand(some))[1])
            for given, one in by_hand(some)
        ],
    )


def native_bars(found):
    """The quickest of MPI over what lies below it."""
    return grouped(
        found,
        lambda name, some: [
            (f"{name} over {given['protocol']}", best[1], one) for best, given, one in below(some)
        ],
    )


def below(some):
    """The quickest of MPI, and options and figure of what lies below it."""
    best = quickest(by_hand(some))
    return [(best, *one) for one in some if best and one[0].get("protocol") in BELOW]


def collective_bars(found):
    """Collectives over the quickest by hand, of MPI and of all."""
    return grouped(
        found,
        lambda name, some: [
            (f"{way(given)} over {words}", one, best[1])
            for given, one in some
            if name == "TN" and not is_hand(given)
            for words, best in (("MPI", quickest(by_hand(some))), ("all", quickest_hand(some)))
            if best
        ],
    )


# The unit of a picture's axis, and what makes its bars.
BARS = {
    "runtime": ("s", runtime_bars),
    "messages": ("in messages, %", message_bars),
    "protocol": ("degradation, %", protocol_bars),
    "native": ("degradation, %", native_bars),
    "collectives": ("degradation, %", collective_bars),
}


def options(mode):
    """A command's words by name."""
    return dict(word.split("=", 1) for word in mode.split() if "=" in word)


def algorithm(given):
    return given.get("algorithm", "TN")


def is_hand(given):
    """Is all communication of the two transforms written by hand?"""
    return algorithm(given) != "TN" or (
        given.get("transpose") == "hand" and given.get("sum") in HAND
    )


def way(given, without=WHOLE):
    """What makes one command another."""
    return (
        " ".join(f"{name}={value}" for name, value in given.items() if name not in without)
        or "as it is"
    )


def runtimes(found):
    """Seconds, speed-up over one rank, per cent in messages."""
    alone = {
        who: one.measured
        for _, _, ranks, of in found
        if ranks == 1
        for who, one in of.items()
        if one.counts
    }
    rows = []
    for given, net, ranks, of in found:
        place = algorithm(given), mesh(given), NETWORK[net], ranks
        for who, one in of.items():
            up = None
            if one.counts and who in alone:
                ratio = trust.against(alone[who], one.measured)
                up = (Faint if ratio.grey else str)(f"{ratio.ratio:.2f}")
            rows.append((*place, who, one.words(one.seconds), up, one.words(one.messages)))
    return rows


def by_place(found):
    """(algorithm, network, ranks, library) -> [(options, figure)] of what counts."""
    places = {}
    for given, net, ranks, of in found:
        for who, one in of.items():
            if one.counts:
                place = algorithm(given), NETWORK[net], ranks, who
                places.setdefault(place, []).append((given, one))
    return places


def quickest(some):
    return min(some, key=lambda pair: pair[1].measured, default=None)


def quickest_hand(some):
    """The quickest by hand, of MPI or below it."""
    return quickest([pair for pair in some if is_hand(pair[0])])


def seconds(one):
    return programs.said(one.measured)


def degradation(one, best):
    """In per cent."""
    found = trust.against(one.measured, best.measured)
    low, high = (100 * (end(found.rounds, default=1) - 1) for end in (min, max))
    span = f" ({low:.1f} to {high:.1f})" if len(found.rounds) > 1 else ""
    return (Faint if found.grey else str)(f"{100 * (found.ratio - 1):.1f} %{span}")


def by_hand(some):
    """Of these, what is written by hand, by MPI."""
    return [
        (given, one)
        for given, one in some
        if is_hand(given) and given.get("protocol", DEFAULT) not in BELOW
    ]


def defaults(found):
    """Figure 3."""
    rows, without = [], ("steps", "mesh", "algorithm", "transpose", "sum")
    for place, some in by_place(found).items():
        hand = by_hand(some)
        of = [one for given, one in hand if given.get("protocol", DEFAULT) == DEFAULT]
        if of and len(hand) > 1:
            given, best = quickest(hand)
            times = seconds(of[0]), seconds(best), way(given, without)
            rows.append((*place, *times, degradation(of[0], best)))
    return rows


def natives(found):
    """Figure 4."""
    return [
        (*place, seconds(best), BELOW[given["protocol"]], seconds(one), degradation(best, one))
        for place, some in by_place(found).items()
        for (_, best), given, one in below(some)
    ]


def collectives(found):
    """Figure 5."""
    rows = []
    for (name, *place), some in by_place(found).items():
        bests = quickest(by_hand(some)), quickest_hand(some)
        for given, one in some:
            if name == "TN" and bests[0] and not is_hand(given):
                over = [
                    cell for _, best in bests for cell in (seconds(best), degradation(one, best))
                ]
                rows.append((*place, way(given), seconds(one), *over))
    return rows


# Rows of the figures of the small problem.
FIGURES = {"protocol": defaults, "native": natives, "collectives": collectives}
