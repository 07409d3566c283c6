"""Waiting after computing, from *High Performance MPI Libraries for Ethernet*."""

from .. import plots
from ..html import paragraph
from ..libraries import OURS
from ..words import NETWORK, networks
from .common import WITHOUT, seed


def waiting(book):
    """Figure 4.9 of the thesis, and what it measures: Figures 4.10 and 4.11."""
    parts, times = [], {metric: book.medians("wait", metric) for metric in ("wait_us", "total_us")}
    for net in networks(times["wait_us"].network):
        for metric, what in (("wait_us", "Wait time"), ("total_us", "Total receive time")):
            found, panels = times[metric], {}
            for row in found[found.network == net].sort_values("bytes").itertuples():
                panels.setdefault(increments(row.mode), {}).setdefault(row.who, {})[row.bytes] = (
                    row.measured.map(lambda us: max(us, 0.01))
                )
            parts.append(
                book.picture(
                    f"wait-{net}-{metric}",
                    plots.lines(
                        panels, f"{what.lower()}, us", f"{what} after computing, {NETWORK[net]}"
                    ),
                    f"{what} by size and computation, {NETWORK[net]}",
                )
            )
        parts.append(improvement(book, net, times))
    return parts and paragraph(
        "The program of Figure 4.9 of High Performance MPI Libraries for Ethernet (section "
        "4.4.1): post a receive, compute, wait. A library that receives while the program "
        "computes has nothing left to wait for."
    ) + "".join(parts)


def increments(mode):
    """The amount of computation."""
    return f"{mode.removesuffix('M')} million increments"


def improvement(book, net, times):
    """Figures 4.10 and 4.11: by how much the event thread shortens wait and whole receive."""
    panels = {}
    for metric, what in (("wait_us", "wait time"), ("total_us", "total receive time")):
        found = times[metric][times[metric].network == net]
        of = {(row.who, row.mode, row.bytes): row.value for row in found[~found.grey].itertuples()}
        for (who, mode, n), value in sorted(of.items(), key=lambda cell: cell[0][2]):
            if who == OURS and of.get((WITHOUT, mode, n), 0) > 0 and mode != "0M":
                panels.setdefault(f"{what}, {increments(mode)}", {}).setdefault(OURS, {})[n] = (
                    100 * (1 - value / of[WITHOUT, mode, n])
                )
    if not panels:
        return ""
    paper = seed("001")["wait"]
    return paragraph(
        f"Figures {paper['figures']} of the thesis show by how many per cent its event thread "
        f"shortened both. {paper['words']} Below, Kittiwake with its event thread against "
        "Kittiwake without."
    ) + book.picture(
        f"improvement-{net}",
        plots.lines(
            panels,
            "improvement, %",
            f"What the event thread saves, {NETWORK[net]}",
            zero=True,
            told=paper["told"],
        ),
        f"Improvement of wait time and total receive time, {NETWORK[net]}",
    )
