"""*A Comparative Study of the MPI Communication Primitives*: broadcast or a loop of sends."""

from .. import analysis, trust
from ..html import Faint
from ..words import networks, per_cent
from .common import ours_to_best, seed, show

WHAT = {"give": "a block to all", "product": "the matrix product"}


def giving(book):
    """One block to all, and the matrix product: the quicker of broadcast and isend, by size and
    processes."""
    parts, data = "", book.medians("give")
    for op in WHAT:
        some = data[data.op == op]
        for net in networks(some.network):
            parts += given(book, some[some.network == net], op, net)
    return parts and show("004", "giving") + parts


def given(book, here, op, net):
    """Ratios to the best peer, who wins in each library and won in the paper, and times by ranks as
    in its Figures 4, 5, 7 and 8."""
    counts, sizes = sorted(set(here.ranks)), sorted(set(here.bytes))
    ways, who = list(dict.fromkeys(here["mode"])), analysis.names(here)
    of = {(row.mode, row.bytes, row.ranks, row.who): row.measured for row in here.itertuples()}
    at = lambda way, n, p: {w: of[way, n, p, w] for w in who if (way, n, p, w) in of}
    ratios = [
        (f"{way} {n / 1000:g} KB", *(ours_to_best(at(way, n, p)) for p in counts))
        for way in ways
        for n in sizes
    ]
    winners = paper_rows(seed("004"), counts) if op == "product" else []
    for w in who:
        for n in sizes:
            times = [
                {way: of[way, n, p, w] for way in ways if (way, n, p, w) in of} for p in counts
            ]
            winners.append((w, f"{n / 1000:g} KB", *map(winner, times)))
    panels = {
        f"{w}, {n / 1000:g} KB": {
            way: {p: of[way, n, p, w].map(ms) for p in counts if (way, n, p, w) in of}
            for way in ways
        }
        for n in dict.fromkeys((sizes[0], sizes[-1]))
        for w in who
    }
    cells = counts, sizes, ways, who
    heads, what = [f"{p} ranks" for p in counts], WHAT[op]
    how = {"book": book, "panels": panels, "net": net, "what": what, "title": what.capitalize()}
    return (
        show("004", "ratios", ratios, heads, net=net, title=what.capitalize())
        + show("004", "winners", winners, heads)
        + show("004", "times", **how, file=f"give-{op}-{net}")
        + (by_size(book, of, cells, f"give-{op}-{net}") if op == "product" else "")
    )


def ms(us):
    return us / 1000


def by_size(book, of, cells, name):
    """The paper's Figures 9 and 10: completion by size of the block, on 5 and 10 ranks (or on the
    fewest and the most that were measured)."""
    counts, sizes, ways, who = cells
    shown = [p for p in (5, 10) if p in counts] or [*dict.fromkeys((counts[0], counts[-1]))]
    panels = {
        f"{w}, {p} ranks": {
            way: {n / 1000: of[way, n, p, w].map(ms) for n in sizes if (way, n, p, w) in of}
            for way in ways
        }
        for p in shown
        for w in who
    }
    sized = show("004", "sizes", book=book, panels=panels, file=f"{name}-sizes")
    return sized + gains(book, of, sizes, who, name)


def gains(book, of, sizes, who, name):
    """What Table 1 has of Figures 9 and 10, and of the other numbers of processes: the gain by
    size, the paper's and today's."""
    paper, panels = seed("004"), {}
    for p, best, shares in zip(paper["processes"], paper["best"], paper["gain_percent"]):
        today = {}
        for w in who:
            for n in sizes:
                both = [of.get((way, n, p, w)) for way in ("bcast", "isend")]
                if None not in both:
                    today.setdefault(w, {})[n / 1000] = saved(*both)
        if today:
            then = shares if best == "bcast" else [-share for share in shares]
            panels[f"{p} processes"] = today, dict(zip(paper["sizes_kb"], then))
    if not panels:
        return show("004", "no-gains")
    return show("004", "gains", book=book, panels=panels, file=f"{name}-gains")


def saved(bcast, isend):
    """By how many per cent broadcast takes less than isend; negative where isend takes less, by how
    much that is."""
    found = trust.against(bcast, isend)
    share = lambda ratio: 100 * (1 - ratio) if ratio <= 1 else -100 * (1 - 1 / ratio)
    rounds = {at: share(ratio) for at, ratio in enumerate(found.rounds)}
    return trust.Measured(share(found.ratio), rounds, found.grey)


def paper_rows(paper, counts):
    """Table 1 of the paper, for these numbers of ranks."""
    told = dict(zip(paper["processes"], zip(paper["best"], paper["gain_percent"])))
    cell = lambda best, gains, row: f"{best} {gains[row]:.0f} %"
    return [
        (
            "the paper, MPICH 1.2.6",
            f"{kb:g} KB",
            *(cell(*told[p], row) if p in told else None for p in counts),
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
