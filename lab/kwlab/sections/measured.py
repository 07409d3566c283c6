"""What the other programs of bench/ measure: overlap, forms of calls, tails, rates, datatypes,
start-up."""

from .. import analysis, papers, plots, trust
from ..html import Ratio, folded, paragraph, table
from ..libraries import OURS
from ..words import NETWORK, networks, size
from .cells import mean_ratio

SIZES_OF_A_CURVE = 4  # with fewer, bars say it all

# what other sections show
SHOWN = (
    "p2p",
    "coll",
    "overlap",
    "wait",
    "give",
    "forms",
    "hello",
    "idle",
    "counters",
    "application",
    "tails",
    "rate",
    "layouts",
    "choice",
)


def others(book):
    """The figures of programs that have no section of their own."""
    parts = []
    for bench in dict.fromkeys(book.data.bench):
        if bench in SHOWN:
            continue
        tables = {
            metric: book.medians(bench, metric)
            for metric in dict.fromkeys(book.data[book.data.bench == bench].metric)
        }
        who = list(dict.fromkeys(name for one in tables.values() for name in analysis.names(one)))
        rows = [
            (
                f"{op} {mode} {size(n)}",
                NETWORK[net],
                ranks,
                metric.replace("_", " "),
                *(analysis.of(cell).get(name) for name in who),
            )
            for metric, one in tables.items()
            for (net, ranks, op, mode, n), cell in one.groupby(list(analysis.KEY), sort=False)
        ]
        parts.append(
            folded(
                f"{bench} ({len(rows)} figures)",
                table(["What", "Network", "Ranks", "Figure", *who], rows),
            )
        )
    return parts and paragraph(
        "What the figures of a program mean is said at the top of its source in bench/."
    ) + "".join(parts)


def by_size(book, metric, scale):
    """{panel: {who: {bytes: value}}} of the operations that were measured with several sizes; a
    panel is an operation on n ranks of a network."""
    panels = {}
    for row in book.medians("overlap", metric).itertuples():
        panel = f"{row.op}, {row.ranks} ranks, {NETWORK[row.network]}"
        value = row.measured.map(lambda one: scale * one)
        panels.setdefault(panel, {}).setdefault(row.who, {})[row.bytes] = value
    sorted_by_size = {
        panel: {who: dict(sorted(curve.items())) for who, curve in curves.items()}
        for panel, curves in panels.items()
    }
    return {
        panel: curves
        for panel, curves in sorted_by_size.items()
        if max(len(curve) for curve in curves.values()) >= SIZES_OF_A_CURVE
    }


def overlap_curves(book):
    """Time and overlap over message size, as the thesis shows them."""
    times, shares = by_size(book, "total_us", 1e-3), by_size(book, "overlap", 100)
    if not times:
        return ""
    return book.picture(
        "overlap-time",
        plots.lines(times, "ms", "A transfer and the computation beside it, together"),
        "Time of a transfer with a computation of 1.5 times its length, by size",
    ) + book.picture(
        "overlap-by-size",
        plots.lines(shares, "overlap, %", "Overlap with computation", zero=True),
        "Overlap by size",
    )


def overlap(book):
    found = book.medians("overlap", "overlap")
    parts = [overlap_curves(book)]
    for net in networks(found.network):
        for ranks in sorted(set(found[found.network == net].ranks)):
            some = found[(found.network == net) & (found.ranks == ranks)]
            groups = {}
            for row in some.itertuples():
                groups.setdefault(f"{row.op}\n{size(row.bytes)}", {})[row.who] = row.measured.map(
                    lambda share: 100 * share
                )
            for part, chunk in enumerate(chunks(groups, 6)):
                parts.append(
                    book.picture(
                        f"overlap-{net}-{ranks}-{part}",
                        plots.bars(
                            chunk,
                            "overlap, %",
                            f"Overlap with computation, {ranks} ranks, {NETWORK[net]}",
                            -50,
                            110,
                        ),
                        f"Overlap by operation and size, {NETWORK[net]}",
                    )
                )
    return len(parts) > 1 and paragraph(
        "1 - (total - computation) / communication alone: 100 % when communication costs nothing "
        "beside computation, 0 when it does not begin before the wait, below when both together "
        "take longer than one after the other. Bars are cut off at -50 and 110 %."
    ) + "".join(parts)


FORMS = {"blocking_us": "blocking", "nonblocking_us": "non-blocking", "persistent_us": "persistent"}


def forms(book):
    """The three forms of collective calls: ours over the best peer's, and what a form costs over
    the blocking one."""
    tables = {name: book.medians("forms", metric) for metric, name in FORMS.items()}
    if all(one.empty for one in tables.values()):
        return ""
    return (
        paragraph(
            "The same operation as a blocking call, as a non-blocking one with its wait at once, "
            "and as a start of a persistent one with its wait at once."
        )
        + form_means(tables)
        + form_cells(tables)
    )


def form_means(tables):
    """Geometric means by form and network, over all operations, sizes and numbers of ranks."""
    shown = networks(net for one in tables.values() for net in one.network)
    rows = [
        (name, *(mean_ratio(one[one.network == net]) for net in shown))
        for name, one in tables.items()
    ]
    return table(["Form, geometric mean of ours : best peer's", *map(NETWORK.get, shown)], rows)


def form_cells(tables):
    """Every cell of each library: the blocking time, and the others over it."""
    of = {
        name: {(r.network, r.ranks, r.op, r.bytes, r.who): r.measured for r in one.itertuples()}
        for name, one in tables.items()
    }
    rows = [
        (
            f"{op} {size(n)}",
            NETWORK[net],
            ranks,
            who,
            us,
            *(
                Ratio.of(trust.against(value, us))
                if (value := of[name].get((net, ranks, op, n, who)))
                else None
                for name in list(FORMS.values())[1:]
            ),
        )
        for (net, ranks, op, n, who), us in of["blocking"].items()
    ]
    return folded(
        f"all {len(rows)} cells",
        table(
            [
                "Cell",
                "Network",
                "Ranks",
                "Library",
                "blocking, us",
                "non-blocking : blocking",
                "persistent : blocking",
            ],
            rows,
        ),
    )


SHARES = {"p50_us": "half", "p99_us": "99 %", "p999_us": "99.9 %", "most_us": "all"}


def tails(book):
    """The times that a given fraction of the operations does not exceed."""
    parts = [beside(book, "tails", metric, f"{share} of them") for metric, share in SHARES.items()]
    return "".join(parts) and paragraph(
        "Every operation timed by itself: microseconds that a share of them does not exceed. "
        "What the machine takes from a rank is in them, "
        "so a difference counts only when rounds agree."
    ) + "".join(parts)


def rates(book):
    """Several pairs and threads at once."""
    part = beside(book, "rate", "per_second", "all cells")
    return (
        part
        and paragraph(
            "Messages a second of all pairs of ranks and all their threads together, "
            "64 in flight for each. Ratios are of the times of a message: "
            "below 1 more of Kittiwake's pass."
        )
        + beside(book, "rate", "us", "ratios of times")
        + part
    )


def beside(book, bench, metric, title):
    """A folded table of one figure of a program: each library's, and of times ours over the best
    peer's."""
    found, rows = book.medians(bench, metric), []
    timed = metric.endswith("us")
    for (net, ranks, op, mode, n), cell in found.groupby(list(analysis.KEY), sort=False):
        of = analysis.of(cell)
        rows.append(
            (
                f"{op} {mode} {size(n)}".replace("  ", " ").strip(),
                NETWORK[net],
                ranks,
                *([papers.ours_to_best(of)] if timed else []),
                *(of.get(who) for who in analysis.names(found)),
            )
        )
    head = [
        "Cell",
        "Network",
        "Ranks",
        *(["Ours : best peer"] if timed else []),
        *analysis.names(found),
    ]
    return folded(f"{title} ({len(rows)} cells)", table(head, rows)) if rows else ""


def layouts(book):
    """Datatypes beside copying by hand."""
    found = book.medians("layouts")
    who = analysis.names(found)
    of = {
        (row.network, row.op, row.bytes, row.mode, row.who): row.measured
        for row in found.itertuples()
    }
    rows = [
        (
            f"{op} {size(n)}",
            NETWORK[net],
            *(
                Ratio.of(trust.against(of[net, op, n, "type", one], of[net, op, n, "hand", one]))
                if (net, op, n, "type", one) in of and (net, op, n, "hand", one) in of
                else None
                for one in who
            ),
        )
        for net, op, n in dict.fromkeys(
            (net, op, n) for net, op, n, mode, _ in of if mode == "hand"
        )
    ]
    return rows and paragraph(
        "A message that does not lie in one piece, by its datatype, "
        "over the same message copied into one piece by the program: "
        "above 1 who writes loops gains."
    ) + table(["Layout", "Network", *who], rows) + beside(book, "layouts", "us", "microseconds")


def chunks(groups, most):
    names = list(groups)
    return [
        {name: groups[name] for name in names[i : i + most]} for i in range(0, len(names), most)
    ]


def start(book):
    """Start-up, memory, waiting."""
    walls = analysis.walls(book.runs, "hello")
    idle = book.medians("idle", "cpu_percent")
    if not walls and idle.empty:
        return ""
    who = sorted(
        {name for of in walls.values() for name in of} | set(idle.who), key=lambda w: (w != OURS, w)
    )
    lines = [(f"start and end of {number(p)}, s", of) for p, of in sorted(walls.items())]
    for metric, what in (
        ("resident_kb", "largest resident set of a rank"),
        ("anonymous_kb", "of it no file's"),
    ):
        for p, some in book.medians("hello", metric).groupby("ranks"):
            lines.append(
                (
                    f"{what}, {number(p)}, MB",
                    {
                        r.who: r.measured.map(lambda kb: kb / 1024)
                        for r in some.itertuples()
                        if r.value >= 0
                    },
                )
            )
    bound = [
        (number(p), {who: bounds(book, who, p) for who in sorted(set(some.who))})
        for p, some in book.medians("hello", "cpus_most").groupby("ranks")
    ]
    if not idle.empty:
        lines.append(("processor used by a rank that waits in MPI_Recv, %", analysis.of(idle)))
    return table(
        ["What", "Ours : best peer", *who],
        [(what, papers.ours_to_best(of), *(of.get(w) for w in who)) for what, of in lines]
        + [
            (f"processors that a rank may run on, {ranks}", None, *(of.get(w) for w in who))
            for ranks, of in bound
        ],
    )


def bounds(book, who, ranks):
    """On how many processors a rank of a library may run: one, or from the fewest to the most."""
    least, most = (
        next(
            float(row.value)
            for row in book.medians("hello", metric).itertuples()
            if (row.who, row.ranks) == (who, ranks)
        )
        for metric in ("cpus_least", "cpus_most")
    )
    return f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"


def number(p):
    return f"{p} rank" if p == 1 else f"{p} ranks"
