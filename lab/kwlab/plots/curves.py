"""Values by size or by number of ranks."""

from ..lazy import numpy
from ..libraries import OURS
from .common import (
    COLOURS,
    colour,
    grid,
    legend_below,
    mark,
    plain,
    sizes_axis,
    spans,
    style,
    whiskers,
)

WAYS = {"bcast": "#0b6e99", "send": "#c2571a", "isend": "#6a8f2f"}


def by_ranks(panels, unit, title, along="ranks"):
    """Times by number of ranks, or `along` something else: {panel: {way of sending: {ranks:
    value}}}, as many panels a row as there are libraries; a row shares its axis of times."""
    columns = len({name.split(",")[0] for name in panels})
    figure, axes = grid(panels, columns, title, sharey="row")
    for number, (axis, (name, curves)) in enumerate(zip(axes, panels.items())):
        for way, curve in curves.items():
            axis.plot(
                list(curve),
                list(curve.values()),
                label=way,
                color=WAYS[way],
                marker="o",
                markersize=3.5,
            )
            spans(axis, list(curve), curve.values(), WAYS[way])
        axis.set_title(name, fontsize=10)
        axis.set_xticks(sorted({p for curve in curves.values() for p in curve}))
        axis.set_xlabel(along, fontsize=9)
        if number % columns == 0:
            axis.set_ylabel(unit, fontsize=9)
        plain(axis)
    # after all are drawn: a row grows together until its limits are set
    for axis in axes[: len(panels)]:
        axis.set_ylim(bottom=0)
    legend_below(figure, axes[: len(panels)])
    return figure


def lines(panels, unit, title, zero=False, told=()):
    """Values by size: {panel: {who: {bytes: value}}}; all panels share their axis of values, no
    more than three stand in a row. `told`: what a paper says of sizes, rows of panel, bytes and
    words."""
    columns = len(panels) if len(panels) < 4 else 2
    figure, axes = grid(panels, columns, title, width=4.2, height=3.2, sharey=True)
    for axis, (name, curves) in zip(axes, panels.items()):
        for who, curve in curves.items():
            axis.plot(
                list(curve),
                list(curve.values()),
                label=who,
                **style(who),
                **{k: v for k, v in mark(who).items() if k != "color"},
            )
            spans(axis, list(curve), curve.values(), colour(who))
        for at, words in ((at, words) for panel, at, words in told if panel == name):
            axis.axvline(at, color="#222222", linestyle=":", linewidth=1)
            axis.text(
                at,
                0.02,
                f" the thesis: {words}",
                transform=axis.get_xaxis_transform(),
                fontsize=7,
                rotation=90,
                ha="right",
                va="bottom",
            )
        sizes_axis(axis, [n for curve in curves.values() for n in curve])
        axis.set_title(name, fontsize=10)
        if zero:
            axis.axhline(0, color="#444444", linewidth=0.8)
        else:
            axis.set_yscale("log")
    figure.supylabel(unit, fontsize=10)
    legend_below(figure, axes[: len(panels)])
    return figure


def gains(panels, unit, title, of_bytes=False):
    """Values by size beside a paper's: {panel: ({who: {size: value}}, {size: the paper's})}; sizes
    in bytes, or in KB."""
    figure, axes = grid(panels, 3, title, width=3.6)
    for axis, (name, (today, paper)) in zip(axes, panels.items()):
        for who, curve in today.items():
            axis.plot(
                [*curve],
                [*curve.values()],
                label=who,
                **style(who),
                **{k: v for k, v in mark(who).items() if k != "color"},
            )
            spans(axis, [*curve], curve.values(), colour(who))
        axis.plot(
            [*paper],
            [*paper.values()],
            linestyle="none" if of_bytes else ":",
            label="the paper, as its text says",
            color="#222222",
            marker="*",
            markersize=9,
        )
        axis.axhline(0, color="#444444", linewidth=0.8)
        if of_bytes:
            sizes_axis(axis, [*paper, *(n for curve in today.values() for n in curve)])
        else:
            axis.set_xlabel("KB", fontsize=9)
            plain(axis)
        axis.set_title(name, fontsize=10)
    legend_below(figure, axes[: len(panels)])
    figure.supylabel(unit, fontsize=10)
    return figure


def changes(panels, title):
    """By how much something grows, per cent, by size: {panel: ({bytes: trust.Against} of today,
    {bytes: change} of a paper)}."""
    figure, axes = grid(panels, 2, title, width=4.2)
    for axis, (name, (today, paper)) in zip(axes, panels.items()):
        sizes = [*today]
        axis.plot(
            sizes,
            [100 * (today[n].ratio - 1) for n in sizes],
            label="today",
            color=COLOURS[OURS],
            marker="o",
            markersize=4,
        )
        low, high = (
            [100 * (which(today[n].rounds or (today[n].ratio,)) - 1) for n in sizes]
            for which in (min, max)
        )
        whiskers(axis, sizes, numpy.array(low), numpy.array(high), COLOURS[OURS])
        for at, ends in ((at, change) for at, change in paper.items() if isinstance(change, list)):
            axis.vlines(at, 100 * ends[0], 100 * ends[1], color="#222222", linewidth=4)
        axis.plot(
            [*paper],
            [100 * numpy.mean(change) for change in paper.values()],
            linestyle="none",
            label="the thesis, as its text says",
            color="#222222",
            marker="*",
            markersize=9,
        )
        axis.axhline(0, color="#444444", linewidth=0.8)
        sizes_axis(axis, [*sizes, *paper])
        axis.set_title(name, fontsize=10)
    legend_below(figure, axes[: len(panels)])
    figure.supylabel("change, %", fontsize=10)
    return figure
