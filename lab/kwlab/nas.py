"""The papers' tables of the NAS benchmarks beside today's kernels of apps/nas: MPI/MBCF's Tables 2
to 9 (plan seed000-npb), the thesis' Figure 4.12 and Table 3.1 (plan seed001-nas)."""

from . import plots, programs, trust
from .html import Ratio, folded, paragraph, table
from .libraries import OURS
from .papers import UDP, WITHOUT, seed
from .words import NETWORK, change, networks, per_cent

WRITE, NO_WRITE, SHORT = (f"{OURS} ({variant})" for variant in ("write", "no write", "short eager"))


def mbcf(book):
    """Tables 2 to 9 of MPI/MBCF."""
    found = programs.cells(book, "seed000-npb")
    if not found:
        return ""
    paper = seed("000")["npb"]
    return (
        paragraph(
            f"{paper['source']}. Today: the kernels of apps/nas, not NASA's programs; "
            "their class W is the paper's problem. SR is with remote write (`KW_WRITE=yes`), "
            "NSR without. Today most messages of a program are short enough to be sent eagerly, "
            "straight into a receive that is posted already, and nothing is announced; "
            "`short eager` is SR with that limit at 1 KB. The paper's MG and LU ask for messages "
            "from any source, which forbids remote write; ours name the source. FT, which it "
            "could not compile, has rows of today only."
        )
        + "<h3>Table 2: what the programs do</h3>"
        + characteristics(book, found, paper)
        + "<h3>Tables 3 to 9: seconds, and the speed-up over one process</h3>"
        + times(found, paper)
    )


def times(found, paper):
    """A row a program, network and library."""
    counts = sorted(
        {p for one in paper["program"] for p in one["processes"]} | {ranks for *_, ranks in found}
    )
    rows = []
    for name in programs_of(found, paper):
        for one in paper["program"]:
            if one["name"] == name:
                rows += [
                    (
                        name,
                        f"the paper, Table {one['table']}",
                        who,
                        *with_speed_up(
                            {
                                p: programs.Figure({0: s}, {})
                                for p, s in zip(one["processes"], seconds)
                            },
                            counts,
                        ),
                    )
                    for who, seconds in zip(paper["columns"], one["seconds"])
                ]
        for net in networks(net for _, _, net, _ in found):
            here = {
                ranks: of
                for (op, _, at, ranks), of in found.items()
                if op.upper() == name and at == net
            }
            rows += [
                (
                    name,
                    f"today, {NETWORK[net]}",
                    who,
                    *with_speed_up(
                        {ranks: of[who] for ranks, of in here.items() if who in of}, counts
                    ),
                )
                for who in programs.who(here)
            ]
    return table(
        [
            "Program",
            "When and where",
            "Library",
            *(f"{p} processes" if p > 1 else "1 process" for p in counts),
        ],
        rows,
    )


def programs_of(found, paper):
    """The names in the paper's order, then ours that it has not."""
    return list(
        dict.fromkeys(
            [*(one["name"] for one in paper["program"]), *(op.upper() for op, *_ in found)]
        )
    )


def with_speed_up(figures, counts):
    """A cell for each number of processes."""
    alone = figures.get(1)
    return [None if p not in figures else speed_up(figures[p], alone) for p in counts]


def speed_up(figure, alone):
    """Seconds, and the speed-up where both count and their rounds agree; with the ranges of the
    rounds."""
    told = figure.words(figure.seconds)
    if not figure.counts or not alone or not alone.counts:
        return told
    found = trust.against(alone.measured, figure.measured)
    return (
        f"{told} [rounds disagree]"
        if found.grey
        else f"{told} [{programs.said(measured(found), '{:.2f}'.format)}]"
    )


def measured(found):
    """A ratio (`trust.Against`) as a figure with rounds."""
    return trust.Measured(found.ratio, dict(enumerate(found.rounds)), found.grey)


def characteristics(book, found, paper):
    """Table 2: the paper's, and today's at the most ranks."""
    head = [
        "Program",
        "When and where",
        "Processes",
        "MB/s sent",
        "Messages a second",
        "Availability of remote write",
        "with short eager",
        "MPICH : ours, of times",
        "NSR : SR, of times",
    ]
    rows = []
    for name in programs_of(found, paper):
        rows += [
            (
                name,
                "the paper, Table 2",
                16,
                one["megabytes"],
                float(one["messages"]),
                per_cent(one["written"] / 100, 2),
                None,
                one["beside_mpich"],
                one["beside_nsr"],
            )
            for one in paper["program"]
            if one["name"] == name
        ]
        for net in networks(net for _, _, net, _ in found):
            most = max(
                (ranks for op, _, at, ranks in found if op.upper() == name and at == net), default=0
            )
            rows += [
                (
                    name,
                    f"today, {NETWORK[net]}",
                    ranks,
                    *sent(book, (op, net, ranks), of),
                    over(of, "mpich", OURS),
                    over(of, NO_WRITE, WRITE),
                )
                for (op, _, at, ranks), of in found.items()
                if op.upper() == name and at == net and ranks == most
            ]
    return table(head, rows)


def over(of, one, other):
    """The ratio of two libraries' times and its range, where both count; faint where rounds
    disagree."""
    if one not in of or other not in of or not of[one].counts or not of[other].counts:
        return None
    return programs.said(
        measured(trust.against(of[one].measured, of[other].measured)), "{:.2f}".format
    )


def sent(book, cell, of):
    """MB and messages a second, and the shares of the bytes that were written into announced
    receives, as it is and with short eager."""
    total, short = counted(book, cell, "write"), counted(book, cell, "short eager")
    many, much = (programs.sent(total, what) for what in ("sent", "bytes"))
    seconds = of[WRITE].measured if WRITE in of and of[WRITE].counts else None
    return (
        much / 1e6 / seconds if seconds else None,
        many / seconds if seconds else None,
        written(total),
        written(short),
    )


def counted(book, cell, variant):
    """The counters of a variant, medians over the rounds."""
    data = book.data[
        (book.data.plan == "seed000-npb")
        & (book.data.bench == "counters")
        & (book.data.variant == variant)
    ]
    data = data[(data.op == cell[0]) & (data.network == cell[1]) & (data.ranks == cell[2])]
    return data.groupby("metric")["median"].median().to_dict()


def written(total):
    """The share of the bytes."""
    return per_cent(programs.written(total, "bytes"), 2)


def thesis(book):
    """Tables 2.2 and 3.1 and Figure 4.12 of the thesis."""
    found, paper = programs.cells(book, "seed001-nas"), seed("001")["nas"]
    gains = [
        (title(cell), NETWORK[cell[2]], cell[3], of[OURS], of[WITHOUT])
        for cell, of in found.items()
        if OURS in of and WITHOUT in of
    ]
    both = [
        (title(cell), NETWORK[cell[2]], cell[3], of[OURS], of[UDP])
        for cell, of in found.items()
        if OURS in of and UDP in of
    ]
    if not gains and not both:
        return ""
    parts = [
        paragraph(f"{paper['source']}. {paper['words']}"),
        normalised(book, gains, paper["gains"]),
        compared(["with, s", "without, s", "with : without"], gains),
    ]
    udp = paper["udp"]
    rows = [
        (
            name,
            f"{udp_s} {unit}",
            f"{tcp_s} {unit}",
            tcp_s / udp_s if unit == "s" else udp_s / tcp_s,
        )
        for name, udp_s, tcp_s, unit in udp["rows"]
    ]
    parts.append(
        "<h3>Over UDP and over TCP</h3>"
        + paragraph(
            f"{udp['source']}. Ratios are of times, those of HPL of its inverse rates. "
            "Today HPL is not among the programs."
        )
        + table(["Program", *udp["columns"], "TCP : UDP"], rows)
        + compared(["TCP, s", "UDP, s", "TCP : UDP"], both)
    )
    return "".join(parts) + messages(book, paper["messages"])


def title(cell):
    """As the papers call it."""
    return f"{cell[0].upper()} class {cell[1]}"


def normalised(book, pairs, paper):
    """Figure 4.12 as bars: of every program the thesis' bars that its text tells, and today's."""
    groups = {}
    for name in dict.fromkeys(
        [*(one["program"] for one in paper), *(pair[0].split()[0] for pair in pairs)]
    ):
        for one in (one for one in paper if one["program"] == name):
            groups[f"{name}\n{one['what']}"] = {THESIS: reach(one["ratio"])}
        for which, net, ranks, one, other in (pair for pair in pairs if pair[0].split()[0] == name):
            if one.counts and other.counts:
                where = "" if net == NETWORK["gigabit"] else f" {net}"
                group = f"{name}\n{which.split()[-1]}, {ranks}{where}"
                groups[group] = {OURS: measured(trust.against(one.measured, other.measured))}
    if not any(OURS in of for of in groups.values()):
        return paragraph(
            "Today no pair of runs with and without the event thread counts.", note=True
        )
    parts = []
    for part, some in enumerate(rows_of(groups, 12)):
        parts.append(
            book.picture(
                f"nas-event-thread-{part}",
                plots.bars(
                    some,
                    "time with : without",
                    "NAS programs with an event thread over without",
                    floor(groups),
                    None,
                    one=True,
                ),
                "Time of NAS programs with the event thread over the time without, "
                "the thesis' and today's",
            )
        )
    return paragraph(
        "Figure 4.12 as bars, below 1 the thread saves time; under each name the class and the "
        "number of ranks. Of the thesis' 15 bars the text gives two, the means of IS and of all, "
        "and the range of the other programs' means (a line); the rest is only a picture in the "
        "thesis.",
        note=True,
    ) + "".join(parts)


THESIS = "the thesis"


def reach(ratio):
    """A bar of the thesis, or a line where its text gives a range."""
    return (
        ratio if isinstance(ratio, float) else trust.Measured(float("nan"), dict(enumerate(ratio)))
    )


def rows_of(groups, most):
    """Rows of at most this many groups, which are about equally full."""
    names, count = list(groups), -(-len(groups) // most)
    each = -(-len(names) // count)
    return [
        {name: groups[name] for name in names[i : i + each]} for i in range(0, len(names), each)
    ]


def floor(groups):
    """Where the axis of bars about 1 begins."""
    least = min(one.span[0] for of in groups.values() for who, one in of.items() if who == OURS)
    return max(0.0, min(0.8, least - 0.05))


def messages(book, paper):
    """Table 2.2: what the programs send."""
    rows = [
        (name, ranks, "the thesis", sent, megabytes, largest)
        for name, ranks, sent, megabytes, largest in paper["rows"]
    ]
    counters = book.data[
        (book.data.bench == "counters")
        & book.data.op.isin(list({name.split()[0].lower() for name, *_ in paper["rows"]}))
    ]
    for (op, mode, ranks, net), some in counters.groupby(
        ["op", "mode", "ranks", "network"], sort=False
    ):
        total = (
            some[some.variant == some.variant.iloc[0]]
            .groupby("metric")["median"]
            .median()
            .to_dict()
        )
        many, much = (programs.sent(total, what) for what in ("sent", "bytes"))
        rows.append(
            (title((op, mode)), ranks, f"today, {NETWORK[net]}", int(many), much / 1e6, None)
        )
    missing = (
        ""
        if len(rows) > len(paper["rows"])
        else " Nothing was counted today: plan `seed000-npb` does."
    )
    return (
        "<h3>Table 2.2: what the programs send</h3>"
        + paragraph(f"{paper['source']}. {paper['words']}{missing}")
        + folded(
            f"{len(rows)} rows",
            table(
                ["Program", "Ranks", "When and where", "Messages", "MB", "Largest message, bytes"],
                sorted(rows, key=lambda row: row[0].split()[0]),
            ),
        )
    )


def compared(head, pairs):
    """A row a pair of figures, with the ratio of what counts, and the mean of the changes."""
    rows, ratios = [], []
    for name, net, ranks, one, other in pairs:
        ratio = trust.against(one.measured, other.measured) if one.counts and other.counts else None
        rows.append(
            (
                name,
                net,
                ranks,
                one.words(one.seconds),
                other.words(other.seconds),
                Ratio(ratio.ratio, grey=ratio.grey) if ratio else None,
                programs.span(ratio),
            )
        )
        ratios += [ratio] if ratio and not ratio.grey else []
    return table(["Program", "Network", "Ranks", *head, "in the rounds"], rows) + paragraph(
        mean_of(ratios), note=True
    )


def mean_of(ratios):
    """The mean of the changes, of all rounds and of each, in a sentence."""
    if not ratios:
        return "No pair counts."
    mean = lambda values: sum(values) / len(values)
    rounds = [mean(each) for each in zip(*(one.rounds for one in ratios))]
    return (
        f"Mean of {len(ratios)}: {change(mean([one.ratio for one in ratios]))}"
        + (
            f" ({change(min(rounds))} to {change(max(rounds))} in the rounds)"
            if len(rounds) > 1
            else ""
        )
        + "."
    )
