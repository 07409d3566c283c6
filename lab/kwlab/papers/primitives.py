"""*A Comparative Study of the MPI Communication Primitives*: broadcast or a loop of sends."""

from .. import analysis, plots, trust
from ..html import Faint, paragraph, table
from ..words import NETWORK, networks, per_cent
from .common import ours_to_best, seed


def giving(book):
    """One block to all, and the matrix product: the quicker of broadcast and isend, by size and
    processes."""
    paper, parts, data = seed("004"), [], book.medians("give")
    for op, what in (("give", "a block to all"), ("product", "the matrix product")):
        some = data[data.op == op]
        for net in networks(some.network):
            parts.append(
                f"<h3>{what.capitalize()}, {NETWORK[net]}</h3>"
                + given(book, some[some.network == net], f"give-{op}-{net}", what, paper)
            )
    if not parts:
        return ""
    return paragraph(
        f"{paper['source']}: the quicker of broadcast and a loop of isend, "
        f"and how much less time it takes (same: within 2 %). {paper['words']}"
    ) + "".join(parts)


def given(book, here, name, what, paper):
    """Ratios to the best peer, who wins in each library and won in the paper, and times by ranks as
    in its Figures 4, 5, 7 and 8."""
    counts = sorted(set(here.ranks))
    sizes = sorted(set(here.bytes))
    ways = list(dict.fromkeys(here["mode"]))
    head = [f"{p} ranks" for p in counts]
    of = {(row.mode, row.bytes, row.ranks, row.who): row.measured for row in here.itertuples()}
    at = lambda way, n, p: {
        who: value for (w, b, r, who), value in of.items() if (w, b, r) == (way, n, p)
    }
    ratios = [
        (f"{way} {n / 1000:g} KB", *(ours_to_best(at(way, n, p)) for p in counts))
        for way in ways
        for n in sizes
    ]
    then = paper_rows(paper, counts) if "product" in name else []
    today = [
        (
            who,
            f"{n / 1000:g} KB",
            *(
                winner({way: of[way, n, p, who] for way in ways if (way, n, p, who) in of})
                for p in counts
            ),
        )
        for who in analysis.names(here)
        for n in sizes
    ]
    panels = {
        f"{who}, {n / 1000:g} KB": {
            way: {
                p: of[way, n, p, who].map(lambda us: us / 1000)
                for p in counts
                if (way, n, p, who) in of
            }
            for way in ways
        }
        for n in dict.fromkeys((sizes[0], sizes[-1]))
        for who in analysis.names(here)
    }
    return (
        paragraph("Our time over the best peer's, of each way:", note=True)
        + table(["Way", *head], ratios)
        + paragraph("The quicker way:", note=True)
        + table(["Library", "Block", *head], then + today)
        + book.picture(
            name,
            plots.by_ranks(panels, "time, ms", what.capitalize()),
            f"{what}: time by ranks of broadcast and loops",
        )
        + (by_size(book, here, of, name) if "product" in name else "")
    )


def by_size(book, here, of, name):
    """The paper's Figures 9 and 10: completion by size of the block, on 5 and 10 ranks (or on the
    fewest and the most that were measured)."""
    counts = sorted(set(here.ranks))
    shown = [p for p in (5, 10) if p in counts] or [*dict.fromkeys((counts[0], counts[-1]))]
    panels = {
        f"{who}, {p} ranks": {
            way: {
                n / 1000: of[way, n, p, who].map(lambda us: us / 1000)
                for n in sorted(set(here.bytes))
                if (way, n, p, who) in of
            }
            for way in dict.fromkeys(here["mode"])
        }
        for p in shown
        for who in analysis.names(here)
    }
    return (
        paragraph(
            "Completion by the size of the matrix, as in the paper's Figures 9 (5 processes) and "
            "10 (10 processes):",
            note=True,
        )
        + book.picture(
            f"{name}-sizes",
            plots.by_ranks(panels, "time, ms", "The matrix product", "KB"),
            "The matrix product: time by size of broadcast and loops",
        )
        + gains(book, here, of, name)
    )


def gains(book, here, of, name):
    """What Table 1 has of Figures 9 and 10, and of the other numbers of processes: the gain by
    size, the paper's and today's."""
    paper, panels = seed("004"), {}
    for p, best, shares in zip(paper["processes"], paper["best"], paper["gain_percent"]):
        today = {
            who: curve
            for who in analysis.names(here)
            if (
                curve := {
                    n / 1000: saved(of["bcast", n, p, who], of["isend", n, p, who])
                    for n in sorted(set(here.bytes))
                    if ("bcast", n, p, who) in of and ("isend", n, p, who) in of
                }
            )
        }
        if today:
            panels[f"{p} processes"] = (
                today,
                dict(
                    zip(
                        paper["sizes_kb"],
                        shares if best == "bcast" else (-share for share in shares),
                    )
                ),
            )
    if not panels:
        return paragraph(
            "Gains by size are not drawn: none of the paper's numbers of processes was measured "
            "with both ways.",
            note=True,
        )
    return paragraph(
        "How much less time broadcast takes than the loop of isend (below 0: the loop takes "
        "less), by the size of the matrix; the paper's from its Table 1. The curves of its "
        "Figures 9 and 10 are only pictures in the paper.",
        note=True,
    ) + book.picture(
        f"{name}-gains",
        plots.gains(
            panels, "saved by broadcast, %", "Gain by size of the matrix, the paper's and today's"
        ),
        "Gain of broadcast over isend by size, the paper's and today's",
    )


def saved(bcast, isend):
    """By how many per cent broadcast takes less than isend; negative where isend takes less, by how
    much that is."""
    found = trust.against(bcast, isend)
    share = lambda ratio: 100 * (1 - ratio) if ratio <= 1 else -100 * (1 - 1 / ratio)
    return trust.Measured(
        share(found.ratio), {at: share(ratio) for at, ratio in enumerate(found.rounds)}, found.grey
    )


def paper_rows(paper, counts):
    """Table 1 of the paper, for these numbers of ranks."""
    at = {p: k for k, p in enumerate(paper["processes"])}
    return [
        (
            "the paper, MPICH 1.2.6",
            f"{kb:g} KB",
            *(
                f"{paper['best'][at[p]]} {paper['gain_percent'][at[p]][row]:.0f} %"
                if p in at
                else None
                for p in counts
            ),
        )
        for row, kb in enumerate(paper["sizes_kb"])
    ]


def winner(times):
    """bcast or isend, whichever is quicker, and its gain."""
    if not {"bcast", "isend"} <= set(times):
        return None
    best, other = sorted(("bcast", "isend"), key=times.get)
    found = trust.against(times[best], times[other])
    words = f"{best} {per_cent(1 - found.ratio, 0)}" if found.ratio < 0.98 else "same"
    return Faint(words) if found.grey else words
