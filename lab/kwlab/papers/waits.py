"""Waiting after computing, from *High Performance MPI Libraries for Ethernet*."""

from ..libraries import OURS
from ..words import networks
from .common import WITHOUT, seed, show

METRICS = {"wait_us": "wait time", "total_us": "total receive time"}


def waiting(book):
    """Figure 4.9 of the thesis, and what it measures: Figures 4.10 and 4.11."""
    parts, times = "", {metric: book.medians("wait", metric) for metric in METRICS}
    for net in networks(times["wait_us"].network):
        for metric, what in METRICS.items():
            found, panels = times[metric], {}
            for row in found[found.network == net].sort_values("bytes").itertuples():
                curve = panels.setdefault(increments(row.mode), {}).setdefault(row.who, {})
                curve[row.bytes] = row.measured.map(lambda us: max(us, 0.01))
            words = {
                "what": what.capitalize(),
                "unit": f"{what}, us",
                "file": f"wait-{net}-{metric}",
            }
            parts += show("001", "wait", book=book, panels=panels, net=net, **words)
        parts += improvement(book, net, times)
    return parts and show("001", "waiting") + parts


def increments(mode):
    """The amount of computation."""
    return f"{mode.removesuffix('M')} million increments"


def improvement(book, net, times):
    """Figures 4.10 and 4.11: by how much the event thread shortens wait and whole receive."""
    panels = {}
    for metric, what in METRICS.items():
        found = times[metric][times[metric].network == net]
        of = {(row.who, row.mode, row.bytes): row.value for row in found[~found.grey].itertuples()}
        for (who, mode, n), value in sorted(of.items(), key=lambda cell: cell[0][2]):
            without = of.get((WITHOUT, mode, n), 0)
            if who == OURS and without > 0 and mode != "0M":
                curves = panels.setdefault(f"{what}, {increments(mode)}", {})
                curves.setdefault(OURS, {})[n] = 100 * (1 - value / without)
    if not panels:
        return ""
    paper = seed("001")["wait"]
    how = {"figures": paper["figures"], "words": paper["words"], "told": paper["told"]}
    return show("001", "improvement", book=book, panels=panels, net=net, **how)
