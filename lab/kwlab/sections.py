"""What the report tells, in this order: the machine, how to read, ratios first, then models,
pictures by size, the papers' tables beside today's, absolute times, and what went wrong. Each
section takes the book and gives HTML, or nothing where nothing was measured."""

import time

from . import (
    analysis,
    facts,
    fitted,
    nas,
    papers,
    plots,
    programs,
    pstswm,
    regret,
    timelines,
    trust,
)
from .html import Ratio, folded, items, paragraph, table
from .libraries import OURS, RATES
from .plan import RANDOM
from .words import NETWORK, networks, per_cent, size


def name(bench, mode, n):
    """The rest of a cell's name: a message may have 0 bytes, a barrier has none."""
    return f"{mode} {plots.size_label(n)}" if bench == "p2p" else size(n)


def machine(book):
    runs = book.runs
    when = [
        time.strftime("%Y-%m-%d %H:%M", time.localtime(t))
        for t in (runs["at"].min(), runs["at"].max())
    ]
    versions = runs[runs.version != ""].drop_duplicates("library")
    rows = [
        ("machine", facts.sentence(book.facts)),
        ("measured", f"{when[0]} to {when[1]}"),
        ("plans", ", ".join(sorted(set(runs.plan)))),
        ("runs", f"{len(runs)}, of which {int((runs.status != 'ok').sum())} went wrong"),
        (
            "load of the machine",
            (
                f"{runs.load.median():.1f} runnable in the middle, {runs.load.max():.1f} at most, "
                f"on {book.facts['cores']} cores"
            ),
        ),
        ("disturbed", disturbed(runs)),
    ]
    rows += [(row.library, row.version) for row in versions.itertuples()]
    rows += [
        (name.replace("_", " "), value)
        for name, value in book.facts.items()
        if name in ("hosts", "governor", "ptrace_scope", "virtual") and value != "unknown"
    ]
    return table(["What", "Value"], rows) + started(book)


def disturbed(runs):
    """In how many runs others used the machine."""
    watched = runs[runs.others.notna()]
    return (
        f"{int((watched.others > trust.DISTURBED).sum())} of {len(watched)} runs, "
        f"during which others used more than {per_cent(trust.DISTURBED, 0)} of the processors"
    )


def started(book):
    """How each library was started: the first command on each network."""
    runs = book.runs[book.runs.command != ""].drop_duplicates(["library", "variant", "network"])
    rows = [
        (analysis.called(run), NETWORK[run.network], run.ranks, f"`{run.command}`")
        for run in runs.itertuples()
    ]
    return (
        rows
        and folded(
            f"how the libraries were started ({len(rows)} commands)",
            table(["Library", "Network", "Ranks", "Command"], rows),
        )
        or ""
    )


def reading(book):
    return items(
        [
            "A ratio is our time over the best peer's in the same cell: "
            "below 1 Kittiwake takes less time. Compare within a row; "
            "absolute times move from machine to machine and from hour to hour.",
            "A time is the median over the rounds of the plan; in a round it is the median of "
            "batches, each as long as its slowest rank. There is no mean after a barrier: "
            "a mean hides what the slowest did, and a barrier lets ranks go at different times.",
            "In every round the libraries take turns on each cell, "
            "so that a machine whose speed drifts treats them alike. "
            "All programs are compiled from the same source with the same flags.",
            "Behind a ratio stands its range over the rounds that both libraries have. "
            f"A round during which others used more than {per_cent(trust.DISTURBED, 0)} of the "
            "processors counts only where a cell has no other.",
            "Grey counts for nothing, in no mean and in no list: the cell was disturbed in every "
            f"round, or the ratios of its rounds lie further apart than {trust.DISAGREE:g} : 1. "
            "`kwlab compare A B` says with its confidence whether a difference is one.",
            "Marks in a picture are measured, bars at them go from the least to the greatest "
            "round (of a model's marks, which are of one round: over the middle half of its "
            "batches), lines are fitted models. Dashed lines and hatched bars are Kittiwake with "
            "a knob set.",
        ]
    )


def ratio_tables(book):
    """Geometric means by operation, then the cells."""
    parts = []
    for bench, what in (("p2p", "one message"), ("coll", "collectives")):
        rows = [r for r in analysis.ratios(book.medians(bench)) if r["bytes"] not in RANDOM]
        if not rows:
            continue
        shown = networks(r["network"] for r in rows)
        means = []
        for op in dict.fromkeys(r["op"] for r in rows):
            of = {
                net: [r["against"] for r in rows if r["op"] == op and r["network"] == net]
                for net in shown
            }
            means.append((op, *(Ratio.of(analysis.mean_of(some)) for some in of.values())))
        parts.append(
            f"<h3>{what.capitalize()}: geometric mean of our time over the best peer's</h3>"
            + table(["Operation", *map(NETWORK.get, shown)], means)
        )
        cells = [
            (
                f"{r['op']} {name(bench, r['mode'], r['bytes'])}",
                NETWORK[r["network"]],
                r["ranks"],
                Ratio.of(r["against"]),
                r["peer"],
                r["ours"],
                r["best"],
            )
            for r in rows
        ]
        ignored = sum(r["against"].grey for r in rows)
        parts.append(
            folded(
                f"all {len(cells)} cells"
                + (f", of which {ignored} are grey and count for nothing" if ignored else ""),
                table(
                    [
                        "Cell",
                        "Network",
                        "Ranks",
                        "Ratio",
                        "Best peer",
                        "Ours, us",
                        "Best peer's, us",
                    ],
                    cells,
                ),
            )
        )
    return "".join(parts)


def behind(book):
    """Where a peer is ahead in every round."""
    rows = [
        (
            f"{op} {name(bench, mode, n)}",
            NETWORK[net],
            ranks,
            Ratio(one.ratio),
            f" {min(one.rounds):.2f} to {max(one.rounds):.2f}",
            one.peer,
            one.ours,
            one.best,
        )
        for bench in ("p2p", "coll")
        for one in analysis.behind(book.data, bench)
        if one.always
        for net, ranks, op, mode, n in [one.cell]
    ]
    if analysis.ratios(book.medians("p2p")) or analysis.ratios(book.medians("coll")):
        return (
            table(
                [
                    "Cell",
                    "Network",
                    "Ranks",
                    "Ratio",
                    "in the rounds",
                    "Peer",
                    "Ours, us",
                    "Best peer's, us",
                ],
                rows,
            )
            if rows
            else paragraph("Nowhere by more than a tenth.")
        )
    return ""


def streams(book):
    """Streams and ping-pongs between hosts in MB/s, of the quickest round, beside plain TCP with
    the same bytes."""
    found = book.medians("p2p")
    found = found[found.network.isin(RATES) & (found.ranks == 2) & (found.bytes > 0)]
    cells = {}
    for row in found.itertuples():
        raw = row.op.startswith("raw-")
        cells.setdefault((row.network, row.op.removeprefix("raw-"), row.bytes), {})[
            "plain TCP" if raw else f"{row.who} {row.mode}"
        ] = row.bytes / row.low
    who = list(dict.fromkeys(name for of in cells.values() for name in of))
    rows = [
        (f"{op} {size(n)}", NETWORK[net], *(of.get(name) for name in who))
        for (net, op, n), of in cells.items()
    ]
    return rows and paragraph(
        "MB/s, of the round that was quickest: a machine with two speeds shows both to everybody "
        "only in enough rounds. Plain TCP is a loop over send and recv."
    ) + folded(f"all {len(rows)} cells", table(["Message", "Network", *who], rows))


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


def heat_maps(book):
    rows = [r for r in analysis.ratios(book.medians("coll")) if r["bytes"] not in RANDOM]
    return "".join(
        book.picture(
            f"collectives-{net}",
            plots.heat_map(
                [r for r in rows if r["network"] == net], f"Collectives over {NETWORK[net]}"
            ),
            f"Ratio of our time to the best peer's for collectives by size, {NETWORK[net]}",
        )
        for net in networks(r["network"] for r in rows)
    )


def regrets(book):
    """What was chosen beside the best of all algorithms."""
    found = book.regret()
    if not found:
        return ""
    parts = [
        paragraph(
            "Time of what was chosen over the best of all algorithms, each forced by `KW_COLL` "
            "and measured in the same turn: 1 is the best choice everywhere. Wanted: "
            f"a mean of {regret.LIMITS[0]:.2f}, and no stable cell (two rounds that agree) above "
            f"{regret.LIMITS[1]:.2f}."
        ),
        table(*regret_table(found, lambda net: NETWORK[net])),
    ]
    for (net,), some in regret.by(found, "network").items():
        parts.append(
            book.picture(
                f"regret-{net}",
                plots.heat_map(
                    regret.ratios(some), f"Regret over {NETWORK[net]}", "chosen : best algorithm"
                ),
                f"Time of the chosen algorithm over the best one's by size, {NETWORK[net]}",
            )
        )
    return "".join(parts) + folded(
        "the worst cells", table(*worst_table(found, lambda net: NETWORK[net]))
    )


def regret_table(found, words=str):
    """A row a network and number of ranks, and one of all; head and rows."""
    rows = [
        (words(net), ranks, *regret_row(some))
        for (net, ranks), some in sorted(
            regret.by(found, "network", "ranks").items(),
            key=lambda one: (one[0][0] != "shm", one[0]),
        )
    ]
    return ["Network", "Ranks", "Cells", "that count", "stable", "Mean", "Worst stable", "Where"], [
        *rows,
        ("all", None, *regret_row(found)),
    ]


def regret_row(some):
    one = regret.summed(some)
    where = (
        f"{one.worst.op} {size(one.worst.bytes)}, {one.worst.ranks} ranks" if one.worst else None
    )
    return one.cells, one.counting, one.stable, one.mean, one.worst and one.worst.regret, where


def worst_table(found, words=str, most=20):
    """The stable cells with the largest regret; head and rows."""
    worst = sorted((one for one in found if one.stable), key=lambda one: -one.regret)[:most]
    return ["Collective", "Network", "Ranks", "Regret", "Chosen, us", "Best, us", "which is"], [
        (
            f"{one.op} {size(one.bytes)}".strip(),
            words(one.network),
            one.ranks,
            Ratio.of(one.against),
            one.chosen,
            one.best,
            one.algorithm,
        )
        for one in worst
        if one.regret > 1
    ]


def which(book):
    """The quickest library for each collective and size, where more than one was measured."""
    data = book.medians("coll")
    data = data[~data.who.str.contains("(", regex=False) & ~data.bytes.isin(RANDOM) & ~data.grey]
    data = data[data.groupby(list(analysis.KEY)).who.transform("nunique") > 1]
    parts = []
    for net in networks(data.network):
        some = data[data.network == net]
        counts = sorted(set(some.ranks))
        rows = [
            (f"{op} {size(n)}", *(quickest(cell[cell.ranks == p]) for p in counts))
            for (op, n), cell in some.groupby(["op", "bytes"], sort=False)
        ]
        inner = table(["Operation", *(f"{p} ranks" for p in counts)], rows)
        parts.append(
            f"<h3>{NETWORK[net][0].upper() + NETWORK[net][1:]}</h3>"
            + (inner if len(rows) <= 20 else folded(f"all {len(rows)} cells", inner))
        )
    return parts and paragraph(
        "The library with the least time, and those within 5 % of it.", note=True
    ) + "".join(parts)


def quickest(cell):
    if cell.empty:
        return None
    best = cell.value.min()
    return ", ".join(cell[cell.value <= 1.05 * best].sort_values("value").who)


def overlap(book):
    found = book.medians("overlap", "overlap")
    parts = []
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
    return parts and paragraph(
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
    """The times that so many of the operations do not exceed."""
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
            "below 1 more of ours pass."
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


def connections(book):
    data = book.medians("p2p")
    data = data[(data.op == "pingpong") & (data["mode"] == "send")]
    if data.ranks.nunique() < 2:
        return ""
    counts = sorted(set(data.ranks))
    some = data[data.bytes.isin(data[data.ranks > 2].bytes)]
    rows = []
    for (who, net, n), cell in some.groupby(["who", "network", "bytes"], sort=False):
        of = dict(zip(cell.ranks, cell.measured))
        if len(of) < 2:
            continue
        rows.append((who, NETWORK[net], size(n), *(of.get(p) for p in counts)))
    return paragraph(
        "Time of a message, us, between two ranks while the others hold a connection to both and "
        "wait."
    ) + table(["Library", "Network", "Bytes", *(f"{p} ranks" for p in counts)], rows)


def modes(book):
    """Every send mode, as ratios to the best peer's and to our own send."""
    data = book.medians("p2p")
    data = data[
        (data.ranks == 2) & ~data.who.str.contains("(", regex=False) & ~data.bytes.isin(RANDOM)
    ]
    if data["mode"].nunique() < 3:
        return ""
    parts = []
    for net in networks(data.network):
        rows, who = [], analysis.names(data)
        for (op, mode, n), cell in data[data.network == net].groupby(
            ["op", "mode", "bytes"], sort=False
        ):
            of = analysis.of(cell)
            rows.append(
                (
                    f"{op} {mode} {plots.size_label(n)}",
                    papers.ours_to_best(of),
                    *(of.get(w) for w in who),
                )
            )
        parts.append(
            folded(
                f"{NETWORK[net]} ({len(rows)} cells)",
                table(["Cell", "Ours : best peer", *(f"{w}, us" for w in who)], rows),
            )
        )
    means = [
        (
            mode,
            *(
                mean_ratio(data[(data["mode"] == mode) & (data.network == net)])
                for net in networks(data.network)
            ),
        )
        for mode in dict.fromkeys(data["mode"])
    ]
    return table(
        ["Mode, geometric mean of ours : best peer's", *map(NETWORK.get, networks(data.network))],
        means,
    ) + "".join(parts)


def mean_ratio(data):
    """Over the cells of both that count."""
    return Ratio.of(analysis.mean_of([r["against"] for r in analysis.ratios(data)]))


def absolute(book):
    """Absolute times of everything, folded."""
    parts = []
    for bench in ("p2p", "coll"):
        data = book.medians(bench)
        data = data[~data.bytes.isin(RANDOM)]
        if data.empty:
            continue
        who, rows = analysis.names(data), []
        for (net, ranks, op, mode, n), cell in data.groupby(
            ["network", "ranks", "op", "mode", "bytes"], sort=False
        ):
            of = analysis.of(cell)
            rows.append(
                (f"{op} {name(bench, mode, n)}", NETWORK[net], ranks, *(of.get(w) for w in who))
            )
        parts.append(
            folded(
                f"{'messages' if bench == 'p2p' else 'collectives'}, us ({len(rows)} cells)",
                table(["Cell", "Network", "Ranks", *who], rows),
            )
        )
    return "".join(parts)


def failed(book):
    rows = analysis.failures(book.runs)
    if not rows:
        return paragraph("Nothing: every run came to its end and printed what it should.")
    return table(
        ["Library", "How it ended", "Program", "Network", "Ranks", "What was said", "Runs"],
        [(*row[:3], NETWORK[row[3]], *row[4:]) for row in rows],
    )


SECTIONS = [
    ("machine", "Machine", machine),
    ("reading", "How to read this", reading),
    ("ratios", "Ratios", ratio_tables),
    ("applications", "Whole programs", programs.section),
    ("behind", "Where a peer is ahead", behind),
    ("heat", "Collectives at a glance", heat_maps),
    ("regret", "Regret: what is chosen beside every algorithm", regrets),
    ("which", "Which library is quickest", which),
    ("messages", "Latency and bandwidth", fitted.messages),
    ("fits", "Collectives and their models", fitted.collectives),
    ("models", "Models", fitted.models_section),
    ("forms", "Blocking, non-blocking, persistent", forms),
    ("tails", "How long the slow ones take", tails),
    ("rates", "Several pairs and threads at once", rates),
    ("layouts", "Datatypes", layouts),
    ("overlap", "Overlap", overlap),
    ("waiting", "Waiting after computing", papers.waiting),
    ("receives", "Expected and unexpected receives", papers.receives),
    ("events", "With and without an event thread", papers.events),
    ("udp", "UDP beside TCP", papers.udp),
    ("mbcf", "MPI/MBCF, Table 1", papers.mbcf),
    ("npb", "MPI/MBCF, Tables 2 to 9: NAS kernels", nas.mbcf),
    ("nas", "NAS kernels with and without an event thread", nas.thesis),
    ("pstswm", "PSTSWM: protocols, what lies below MPI, collectives", pstswm.section),
    ("give", "Broadcast or a loop of sends", papers.giving),
    ("timelines", "Time lines", timelines.section),
    ("modes", "Send modes", modes),
    ("start", "Start-up, memory, waiting", start),
    ("connections", "Latency with other peers connected", connections),
    ("streams", "Between hosts", streams),
    ("others", "Other programs", others),
    ("absolute", "Absolute times", absolute),
    ("failed", "What went wrong", failed),
]
