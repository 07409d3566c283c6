"""The page docs/benchmarks.md: one table a question, of the runs of the plan `page` alone, in
Markdown."""

import textwrap
import time

from . import analysis, facts, html, plan, plots, report, trust
from .libraries import OURS
from .words import NETWORK, networks

PLAN = "page"
PICTURE = "pictures/benchmarks.png"  # beside the page
LONGEST = 190  # lines of the page
WIDTH = 100
MOST_BEHIND = 25  # cells that are listed

HEAD = """# Kittiwake beside its peers

This page is written by `kwlab run page && kwlab page`; do not edit it. Everything on it is of one
run of that plan:

{facts}
Every figure is the median of {rounds} rounds in which the libraries take turns. Compare within a
row: figures move from machine to machine and from hour to hour. The last column is below 1 where we
are ahead, and has the range over the rounds behind it. A dash: the library has no figure there
("What went wrong", below). What *slants* counts for nothing: it was measured while others used the
machine, in every round, or the ratios of its rounds are further apart than {disagree:g} : 1. The
programs are `bench/*.c`; [lab.md](lab.md) says how they measure,
[decisions.md](decisions.md) has the measurements behind decisions.
"""


def book_of(store):
    """What the page tells: runs of the plan as it is now, not of cells that it had before."""
    return report.Book(store, PLAN, {cell.key() for cell in plan.cells(plan.load(PLAN))})


def write(book, page, note=""):
    """Writes the page, with a note on how it was made if there is one. Raises ValueError if the
    runs have no figures of Kittiwake."""
    parts = [
        HEAD.format(
            facts=provenance(book) + (item(note) if note else ""),
            rounds=book.runs["round"].nunique(),
            disagree=trust.DISAGREE,
        )
    ]
    parts += [f"## {title}\n\n{text}" for title, make in SECTIONS if (text := make(book))]
    if len(parts) < 3:
        raise ValueError(
            f"the runs of {PLAN} have too few figures for a page; "
            "`kwlab status` says what went wrong"
        )
    if panels := beside(book):
        picture = page.parent / PICTURE
        picture.parent.mkdir(exist_ok=True)
        picture.write_bytes(
            html.png(plots.dots(panels, "time over the quickest's", "Messages and collectives"))
        )
        parts.insert(1, f"![Time over the quickest library's]({PICTURE})\n")
    page.write_text("\n".join(parts))
    return page


def beside(book):
    """What the picture shows: of each network, by kind of message and collective, a library's time
    over the quickest's."""
    panels, one_way, whole = {}, book.medians("p2p"), book.medians("coll")
    for (net, _, _, _, n), of in analysis.by_cell(one_way[one_way.op == "pingpong"]):
        panels.setdefault(NETWORK[net], {})[f"message {plots.size_label(n)}"] = (
            analysis.beside_best(of)[0]
        )
    groups = {}
    for (net, _, op, _, _), of in analysis.by_cell(whole):
        groups.setdefault((net, op), []).append(of)
    for (net, op), some in groups.items():
        panels.setdefault(NETWORK[net], {})[op] = analysis.means(some)[0]
    return {net: rows for net, rows in panels.items() if len(rows) > 1}


def provenance(book):
    """Machine, day and libraries, as a list."""
    begin, end = (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(t))
        for t in (book.runs["at"].min(), book.runs["at"].max())
    )
    versions = book.runs[book.runs.version != ""].drop_duplicates("library")
    lines = [
        f"machine: {facts.sentence(book.facts)}",
        f"measured: {begin} to {end}, {len(book.runs)} runs, load {book.runs.load.median():.1f}",
    ]
    return "".join(
        map(item, lines + [f"{row.library}: {row.version}" for row in versions.itertuples()])
    )


def paragraph(words):
    """Words as lines of the page."""
    return textwrap.fill(words, WIDTH) + "\n\n"


def item(words):
    """A line of a list."""
    return textwrap.fill(words, WIDTH, initial_indent="- ", subsequent_indent="  ") + "\n"


def table(what, who, rows, last="ours : best peer"):
    """A table of (name, {library: figure}, ratio or None); without a `last` column where that is
    None."""
    head = [what, *who, *([last] if last else [])]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for name, of, ratio in rows:
        lines.append(
            [name, *(figure(of.get(w)) for w in who), *([with_range(ratio)] if last else [])]
        )
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def with_range(found):
    """A ratio (`trust.Against`), and its range over the rounds where that is worth a word."""
    if not found:
        return "–"
    low, high = (
        f"{one:.2f}"
        for one in (min(found.rounds, default=found.ratio), max(found.rounds, default=found.ratio))
    )
    words = f"{found.ratio:.2f}" + (f" ({low} to {high})" if low != high else "")
    return f"*{words}*" if found.grey else words


def figure(value):
    """Three digits; slanting when it counts for nothing."""
    if value is None:
        return "–"
    digits = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"*{digits}*" if trust.grey(value) else digits


def less_is_better(of):
    """Ours over the best peer's."""
    return analysis.beside_best(of)[1]


def more_is_better(of):
    """The best peer's over ours."""
    peers = [value for who, value in of.items() if who != OURS]
    return trust.against(max(peers), of[OURS]) if peers and of.get(OURS) else None


def messages(book, op, what, value, ratio, last="ours : best peer"):
    """A table of one kind of message by network and size; `value` makes the figure of bytes and
    microseconds."""
    found = book.medians("p2p")
    rows = []
    for (net, _, _, _, n), of in analysis.by_cell(found[found.op == op]):
        figures = {who: us.map(lambda one, n=n: value(n, one)) for who, us in of.items()}
        rows.append((f"{NETWORK[net]}, {plots.size_label(n)}", figures, ratio(figures)))
    return rows and table(what, analysis.names(found), rows, last)


def latency(book):
    return messages(
        book, "pingpong", "microseconds one way, 2 ranks", lambda n, us: us, less_is_better
    )


def bandwidth(book):
    return messages(
        book,
        "stream",
        "MB/s of a stream of messages, 2 ranks",
        lambda n, us: n / us,
        more_is_better,
        "best peer : ours",
    )


def overlap(book):
    found = book.medians("overlap", "overlap")
    rows = [
        (
            f"{op}, {plots.size_label(n)}",
            {who: share.map(lambda one: 100 * one) for who, share in of.items()},
            None,
        )
        for (_, _, op, _, n), of in analysis.by_cell(found)
    ]
    text = (
        "100 % when a transfer costs nothing beside computation, 0 when it does not begin before "
        "the wait; two ranks on hosts joined by 1 Gb/s, a processor each. The copies of TCP "
        "itself run on the processor that computes."
    )
    return rows and paragraph(text) + table("per cent", analysis.names(found), rows, None)


def collectives(book):
    found, groups = book.medians("coll"), {}
    for (net, _, op, _, _), of in analysis.by_cell(found):
        for name in (op, "all"):
            groups.setdefault((net, name), []).append(of)
    if not groups:
        return ""
    last = sorted(
        groups, key=lambda group: (networks(found.network).index(group[0]), group[1] == "all")
    )
    rows = [(f"{op}, {NETWORK[net]}", *analysis.means(groups[net, op])) for net, op in last]
    sizes = ", ".join(plots.size_label(n) for n in sorted(set(found.bytes)) if n)
    ranks = ", ".join(map(str, sorted(set(found.ranks))))
    text = (
        f"Geometric means over sizes ({sizes}) and ranks ({ranks}, on {book.facts['cores']} "
        "cores) of a library's time over the quickest library's: 1 is the quickest everywhere. "
        "A library without a figure in a cell counts in the others."
    )
    return (
        paragraph(text)
        + table("time over the quickest's", analysis.names(found), rows)
        + behind(book)
    )


def behind(book):
    """Where a peer is ahead in every round."""
    cells = [one for one in analysis.behind(book.data, "coll") if one.always]
    if not cells:
        return "\nNo cell is more than a tenth behind the best peer in every round.\n"
    places = {}
    for one in cells[:MOST_BEHIND]:
        net, ranks, op, _, n = one.cell
        place = places.setdefault(f"{NETWORK[net]}, {ranks} ranks", [])
        place.append(
            f"{op} {plots.size_label(n)} {one.ratio:.2f} ({figure(one.ours)} us, "
            f"{one.peer} {figure(one.best)})"
        )
    count = f"{len(cells)} of {len(analysis.by_cell(book.medians('coll')))} cells"
    more = item(f"and {len(cells) - MOST_BEHIND} more") if len(cells) > MOST_BEHIND else ""
    lines = "".join(item(f"{place}: {'; '.join(some)}") for place, some in places.items())
    return f"\nMore than a tenth behind the best peer in every round ({count}):\n\n{lines}{more}"


def by_ranks(what, values):
    """A table of ranks -> {library: figure}."""
    who = sorted(
        {name for of in values.values() for name in of}, key=lambda name: (name != OURS, name)
    )
    return values and table(
        what,
        who,
        [(f"{n} rank{'s' * (n > 1)}", of, less_is_better(of)) for n, of in sorted(values.items())],
    )


def start(book):
    return by_ranks("seconds from mpiexec to its end", analysis.walls(book.runs, "hello"))


def memory(book):
    """The resident set has pages of libraries in it, which are in memory once a host."""
    tables = [
        by_ranks(f"{what}, MB", megabytes(book, metric))
        for metric, what in (
            ("resident_kb", "largest resident set of a rank"),
            ("anonymous_kb", "of it no file's"),
        )
    ]
    return "\n".join(filter(None, tables))


def megabytes(book, metric):
    """ranks -> {library: MB}, of those whose system says it."""
    cells = analysis.by_cell(book.medians("hello", metric))
    found = {
        ranks: {who: kb.map(lambda one: one / 1024) for who, kb in of.items() if kb >= 0}
        for (_, ranks, _, _, _), of in cells
    }
    return {ranks: of for ranks, of in found.items() if of}


def files(book):
    found = book.medians("io", "us")
    rows = [
        (
            f"{op}, {ranks} ranks",
            {who: us.map(lambda one: one / 1000) for who, us in of.items()},
            less_is_better(of),
        )
        for (_, ranks, op, _, _), of in sorted(analysis.by_cell(found), key=lambda cell: cell[0][1])
    ]
    text = (
        "Each rank moves 16 MB of one file in the page cache: in pieces of 1 MB of its own part "
        "(write_at, read_at), or all at once (write_at_all, read_at_all), or in one collective "
        "call in blocks of 64 bytes (1 MB in all), 1 KB or 64 KB that take turns with those of the "
        "other ranks. pwrite and pread are the system's calls alone, under each library's "
        "mpiexec. open: MPI_File_open and MPI_File_close; shared: 1,000 writes of 64 bytes at the "
        "shared pointer; ordered: 100 of MPI_File_write_ordered. Two processors: with 4 ranks a "
        "rank's time leaves out what others did before it had left the barrier, except in the "
        "collective calls, and in write_at_apart and read_at_apart: write_at and read_at with a "
        "barrier behind, which is in the time."
    )
    return rows and (
        paragraph(text)
        + table("milliseconds", analysis.names(found), rows)
        + beside_computation(book)
    )


def beside_computation(book):
    """How much of a nonblocking collective write passes while the program computes."""
    found = book.medians("io", "overlap")
    shares = [
        f"{who} {100 * share:.0f} %"
        for _, of in analysis.by_cell(found)
        for who, share in of.items()
    ]
    text = (
        "Of an MPI_File_iwrite_at_all of 64 MB this much passes while the program computes, on one "
        f"rank beside a processor that is free: {', '.join(shares)}."
    )
    return shares and "\n" + textwrap.fill(text, WIDTH) + "\n" or ""


def waiting(book):
    found = book.medians("idle", "cpu_percent")
    return (not found.empty) and table(
        "per cent of a processor",
        analysis.names(found),
        [
            ("a rank that waits in MPI_Recv", of, less_is_better(of))
            for _, of in analysis.by_cell(found)
        ],
    )


def failed(book):
    rows = merged(analysis.failures(book.runs))
    text = (
        "A run that takes longer than the plan allows is ended: "
        "slow if it was still printing, hung if it had stopped, late if it had printed nothing. "
        "What it had measured counts."
    )
    return rows and paragraph(text) + "".join(
        item(f"{who} {how}: {program}, {ranks} ranks, {NETWORK[net]}, {runs} runs")
        for who, how, program, net, ranks, runs in rows
    )


def merged(rows):
    """Failures that differ in their words only, as one."""
    found = {}
    for *key, words, runs in rows:
        found[tuple(key)] = found.get(tuple(key), 0) + runs
    return [(*key, runs) for key, runs in found.items()]


SECTIONS = [
    ("How long does a message take?", latency),
    ("How much goes through?", bandwidth),
    ("How much of a transfer passes while the program computes?", overlap),
    ("How quick are collectives?", collectives),
    ("How long does a job take to start and end?", start),
    ("How much memory does a rank take?", memory),
    ("What does waiting cost?", waiting),
    ("Files", files),
    ("What went wrong", failed),
]
