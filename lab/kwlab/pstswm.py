"""The figures of the paper on PSTSWM beside today's (plan seed003-pstswm): how long, how much of it
in messages, and what the default protocol, MPI and its collectives cost. The paper's measure is
degradation: 100 (time - best time) / best time, of the whole program."""

from . import plots, programs, trust
from .html import Faint, Ratio, paragraph, table
from .papers import seed
from .words import NETWORK

PLAN = "seed003-pstswm"
BELOW = {"native": "rings in shared memory", "sockets": "TCP connections"}
DEFAULT = "sendrecv"
HAND = ("halving", "ring")
ORDERS = ("row", "column", "cart")


def section(book):
    """The report's section."""
    found = [
        (options(mode), net, ranks, of)
        for (_, mode, net, ranks), of in programs.cells(book, PLAN).items()
    ]
    if not found:
        return ""
    paper = seed("003")
    large = [one for one in found if one[0].get("truncation") == "85"]
    every = [one for one in found if one not in large]
    small = [one for one in every if "order" not in one[0]]
    parts = [
        paragraph(
            f"{paper['source']}. The paper has graphs without numbers. Today: "
            "apps/pstswm, 16 levels, on few ranks; steps and meshes as in the plan."
        )
    ]
    parts.append(
        "<h3>Figures 1 and 2: time, and how much of it in messages (T85)</h3>"
        + paragraph(paper["runtime"], note=True)
        + pictures(book, "runtime", "Figure 1: time (T85)", large)
        + pictures(book, "messages", "Figure 2: how much of the time goes into messages", large)
        + table(*runtimes(large))
    )
    for title, words, rows in FIGURES:
        parts.append(
            f"<h3>{title}</h3>"
            + paragraph(paper[words], note=True)
            + pictures(book, words, title, small)
            + table(*rows(small))
        )
    return "".join(parts) + ordered(every)


def ordered(found):
    """Whether it matters which rank stands where in the mesh, where that was measured."""
    head, rows = orders(found)
    if not rows:
        return ""
    return (
        "<h3>Which rank stands where in the mesh (T42)</h3>"
        + paragraph(
            "No figure of the paper. Ranks by rows, by columns, or as MPI_Cart_create puts them "
            "(`order=`); ratios are of times, below 1 the other order is quicker.",
            note=True,
        )
        + table(head, rows)
    )


def orders(found):
    """Head and rows: the time by rows, and the other orders' with their ratio to it."""
    by_options = {}
    for given, net, ranks, of in found:
        same, order = way(given, ("order", "steps")), given.get("order", ORDERS[0])
        for who, one in of.items():
            if one.counts:
                by_options.setdefault((same, net, ranks, who), {})[order] = one.measured
    rows = []
    for (same, net, ranks, who), times in by_options.items():
        if len(times) > 1:
            first, *others = (times.get(order) for order in ORDERS)
            ratios = [
                Ratio.of(trust.against(one, first)) if one and first else None for one in others
            ]
            seconds = [one and programs.said(one) for one in (first, *others)]
            rows.append((same, NETWORK[net], ranks, who, *seconds, *ratios))
    return [
        "Options",
        "Network",
        "Ranks",
        "Library",
        *(f"{order}, s" for order in ORDERS),
        *(f"{order} : row" for order in ORDERS[1:]),
    ], rows


def pictures(book, name, title, found):
    """A figure as bars, a picture a network."""
    parts = []
    for net in dict.fromkeys(net for _, net, _, _ in found):
        unit, bars = BARS[name]
        here = bars([one for one in found if one[1] == net])
        groups = {group: of for group, of in here.items() if of}
        for at in range(0, len(groups), 7):
            some = dict([*groups.items()][at : at + 7])
            parts.append(
                book.picture(
                    f"pstswm-{name}-{net}-{at // 7}",
                    plots.bars(some, unit, f"{title.split(':')[0]}, {NETWORK[net]}"),
                    f"{title}, {NETWORK[net]}",
                )
            )
    return "".join(parts)


def short(words):
    """Under a bar, in lines."""
    return words.replace(" ", "\n")


def mesh(given):
    """The mesh of a large run, and its further options."""
    return f"{given.get('mesh', '')} {way(given)}".replace(" as it is", "")


def runtime_bars(found):
    """Seconds by algorithm, ranks and options."""
    return {
        short(f"{algorithm(given)} {ranks} {mesh(given)}"): {
            who: one.measured for who, one in of.items() if one.counts
        }
        for given, _, ranks, of in found
    }


def message_bars(found):
    """The per cent of the time that went into messages, of several ranks."""
    return {
        short(f"{algorithm(given)} {ranks} {mesh(given)}"): {
            who: one.middle(one.messages) for who, one in of.items() if one.counts and one.messages
        }
        for given, _, ranks, of in found
        if ranks > 1
    }


def grouped(found, choose):
    """{group: {who: degradation}} of what `choose` makes of the runs of a place: (group, one,
    best)."""
    groups = {}
    for (name, _, _, who), some in by_place(found).items():
        for group, one, best in choose(name, some):
            ratio = trust.against(one.measured, best.measured)
            groups.setdefault(short(group), {})[who] = trust.Measured(
                100 * (ratio.ratio - 1),
                {at: 100 * (of - 1) for at, of in enumerate(ratio.rounds)},
                ratio.grey,
            )
    return groups


def protocol_bars(found):
    """Every protocol by hand over the quickest."""
    without = ("steps", "mesh", "algorithm", "truncation", "transpose", "sum")
    return grouped(
        found,
        lambda name, some: [
            (
                f"{name} {way(given, without)}".replace("protocol=", ""),
                one,
                quickest(by_hand(some))[1],
            )
            for given, one in by_hand(some)
        ],
    )


def native_bars(found):
    """The quickest of MPI over what lies below it."""
    return grouped(
        found,
        lambda name, some: [
            (f"{name} over {given['protocol']}", quickest(by_hand(some))[1], one)
            for given, one in some
            if by_hand(some) and given.get("protocol") in BELOW
        ],
    )


def collective_bars(found):
    """Collectives over the quickest by hand, of MPI and of all."""
    return grouped(
        found,
        lambda name, some: [
            (f"{way(given)} over {words}", one, best[1])
            for given, one in some
            if name == "TN" and not is_hand(given)
            for words, best in (
                ("MPI", quickest(by_hand(some))),
                ("all", quickest([pair for pair in some if is_hand(pair[0])])),
            )
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


def way(given, without=("steps", "mesh", "algorithm", "truncation")):
    """What makes one command another."""
    return (
        " ".join(f"{name}={value}" for name, value in given.items() if name not in without)
        or "as it is"
    )


def runtimes(found):
    """Head and rows: seconds, speed-up over one rank, per cent in messages."""
    alone = {
        who: one.measured
        for given, _, ranks, of in found
        if ranks == 1
        for who, one in of.items()
        if one.counts
    }
    rows = []
    for given, net, ranks, of in found:
        for who, one in of.items():
            up = trust.against(alone[who], one.measured) if one.counts and who in alone else None
            rows.append(
                (
                    algorithm(given),
                    mesh(given),
                    NETWORK[net],
                    ranks,
                    who,
                    one.words(one.seconds),
                    None
                    if up is None
                    else Faint(f"{up.ratio:.2f}")
                    if up.grey
                    else f"{up.ratio:.2f}",
                    one.words(one.messages),
                )
            )
    return [
        "Algorithm",
        "Mesh, options",
        "Network",
        "Ranks",
        "Library",
        "s",
        "Speed-up",
        "% in messages",
    ], rows


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
    words = f"{100 * (found.ratio - 1):.1f} %" + (
        f" ({100 * (min(found.rounds) - 1):.1f} to {100 * (max(found.rounds) - 1):.1f})"
        if len(found.rounds) > 1
        else ""
    )
    return Faint(words) if found.grey else words


def by_hand(some):
    """Of these, what is written by hand, by MPI."""
    return [
        (given, one)
        for given, one in some
        if is_hand(given) and given.get("protocol", DEFAULT) not in BELOW
    ]


def defaults(found):
    """Head and rows of Figure 3."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        hand = by_hand(some)
        of = [one for given, one in hand if given.get("protocol", DEFAULT) == DEFAULT]
        best = quickest(hand)
        if of and len(hand) > 1:
            rows.append(
                (
                    name,
                    NETWORK[net],
                    ranks,
                    who,
                    programs.said(of[0].measured),
                    programs.said(best[1].measured),
                    way(best[0], ("steps", "mesh", "algorithm", "transpose", "sum")),
                    degradation(of[0], best[1]),
                )
            )
    return [
        "Algorithm",
        "Network",
        "Ranks",
        "Library",
        "MPI_Sendrecv, s",
        "the quickest, s",
        "which",
        "Degradation",
    ], rows


def natives(found):
    """Head and rows of Figure 4."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        best = quickest(by_hand(some))
        rows += [
            (
                name,
                NETWORK[net],
                ranks,
                who,
                programs.said(best[1].measured),
                BELOW[given["protocol"]],
                programs.said(one.measured),
                degradation(best[1], one),
            )
            for given, one in some
            if best and given.get("protocol") in BELOW
        ]
    return [
        "Algorithm",
        "Network",
        "Ranks",
        "Library",
        "the quickest protocol of MPI, s",
        "Below MPI",
        "s",
        "Degradation",
    ], rows


def collectives(found):
    """Head and rows of Figure 5."""
    rows = []
    for (name, net, ranks, who), some in by_place(found).items():
        best, every = quickest(by_hand(some)), quickest([pair for pair in some if is_hand(pair[0])])
        rows += [
            (
                NETWORK[net],
                ranks,
                who,
                way(given),
                programs.said(one.measured),
                programs.said(best[1].measured),
                degradation(one, best[1]),
                programs.said(every[1].measured),
                degradation(one, every[1]),
            )
            for given, one in some
            if name == "TN" and best and not is_hand(given)
        ]
    return [
        "Network",
        "Ranks",
        "Library",
        "Collectives",
        "s",
        "the quickest by hand, s",
        "Degradation",
        "the quickest by hand or below MPI, s",
        "Degradation",
    ], rows


FIGURES = (
    ("Figure 3: what the default protocol costs (T42)", "protocol", defaults),
    ("Figure 4: what MPI costs beside what lies below it (T42)", "native", natives),
    (
        "Figure 5: what the collectives cost beside what is written by hand (TN, T42)",
        "collectives",
        collectives,
    ),
)
