"""Messages and collectives cell by cell: ratios, who is quickest, and absolute times."""

from .. import analysis, papers, plots
from ..html import Ratio, folded, paragraph, table
from ..libraries import RATES
from ..plan import RANDOM
from ..words import NETWORK, networks, size


def name(bench, mode, n):
    """The rest of a cell's name: a message may have 0 bytes, a barrier has none."""
    return f"{mode} {plots.size_label(n)}" if bench == "p2p" else size(n)


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
