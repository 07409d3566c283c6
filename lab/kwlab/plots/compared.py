"""Cells side by side: heat maps, bars, marks along an axis."""

import itertools

from ..lazy import colors, numpy, plt
from ..libraries import OURS
from ..trust import grey
from .common import colour, grid, legend_below, mark, plain, size_label, sizes_axis, spans


def heat_map(ratios, title, label="our time : best peer's"):
    """Ratio of our time to the best peer's or to another, collectives by size, one panel a process
    count, three panels a row."""
    counts, ops = sorted({r["ranks"] for r in ratios}), list(dict.fromkeys(r["op"] for r in ratios))
    columns, rows = min(3, len(counts)), -(-len(counts) // 3)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(2.4 + 2.3 * columns, rows * (1.3 + 0.36 * len(ops)) + 0.5),
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.flat[len(counts) :]:
        axis.set_axis_off()
    for number, (axis, ranks) in enumerate(zip(axes.flat, counts)):
        shade = heat_panel(axis, [r for r in ratios if r["ranks"] == ranks], ops)
        axis.set_yticks(
            range(len(ops)), ops if number % columns == 0 else [""] * len(ops), fontsize=9
        )
        axis.set_title(f"{ranks} ranks", fontsize=10)
    bar = figure.colorbar(
        shade, ax=axes.ravel().tolist(), ticks=[-2, -1, 0, 1, 2], shrink=0.9 / rows
    )
    bar.ax.set_yticklabels(["¼", "½", "1", "2", "4"])
    bar.set_label(label, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def heat_panel(axis, ratios, ops):
    sizes = sorted({r["bytes"] for r in ratios})
    grid = numpy.full((len(ops), len(sizes)), numpy.nan)
    for r in ratios:
        if r["against"].grey:
            at = sizes.index(r["bytes"]), ops.index(r["op"])
            axis.add_patch(
                plt.Rectangle((at[0] - 0.5, at[1] - 0.5), 1, 1, color="#e4e4e4", zorder=0)
            )
            axis.text(
                *at, f"{r['ratio']:.2f}", ha="center", va="center", fontsize=8, color="#9a9a9a"
            )
        else:
            grid[ops.index(r["op"]), sizes.index(r["bytes"])] = r["ratio"]
    shade = axis.imshow(
        numpy.log2(grid), cmap="RdBu_r", norm=colors.TwoSlopeNorm(0, -2, 2), aspect="auto"
    )
    for (i, j), value in numpy.ndenumerate(grid):
        if not numpy.isnan(value):
            axis.text(
                j,
                i,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if abs(numpy.log2(value)) > 1.3 else "black",
            )
    axis.set_xticks(
        range(len(sizes)), [size_label(n) if n else "none" for n in sizes], rotation=45, fontsize=8
    )
    return shade


def side_by_side(panels, unit, title):
    """Values of one library by size on several machines: {panel: {machine: {bytes: value}}}."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    colours = dict(zip(names, itertools.cycle(plt.colormaps["tab10"].colors)))
    figure, axes = grid(panels, min(len(panels), 2), title, width=4.6, height=3.4)
    for axis, (panel, curves) in zip(axes, panels.items()):
        for name, curve in curves.items():
            at = sorted(curve)
            axis.plot(
                at,
                [curve[n] for n in at],
                label=name,
                color=colours[name],
                marker="o",
                markersize=4,
                linewidth=1.6,
            )
            spans(axis, at, [curve[n] for n in at], colours[name])
        sizes_axis(axis, [n for curve in curves.values() for n in curve])
        axis.set_yscale("log")
        axis.set_title(panel, fontsize=10)
    figure.supylabel(unit, fontsize=10)
    legend_below(figure, axes[: len(panels)])
    return figure


def bars(groups, unit, title, low=None, high=None, one=False):
    """Values by library within groups: {group: {who: value}}; the axis is cut off at `low` and
    `high`; `one`: a line at 1."""
    figure, axis = plt.subplots(
        figsize=(max(5.5, 1.25 * len(groups) + 2.5), 3.8), layout="constrained"
    )
    who = list(dict.fromkeys(w for values in groups.values() for w in values))
    width = 0.8 / max(len(who), 1)
    for k, name in enumerate(who):
        heights = [values.get(name, numpy.nan) for values in groups.values()]
        at = numpy.arange(len(groups)) + (k - (len(who) - 1) / 2) * width
        drawn = axis.bar(
            at,
            heights,
            width,
            color=colour(name),
            label=name,
            hatch="//" if "(" in name else None,
            edgecolor="white",
        )
        for bar, height in zip(drawn, heights):
            bar.set_alpha(0.3 if grey(height) else 1)
        spans(axis, at, heights, "#222222")
    axis.axhline(1 if one else 0, color="#444444", linewidth=0.8)
    axis.set_xticks(range(len(groups)), groups, fontsize=8)
    axis.set_ylabel(unit)
    axis.set_ylim(low, high)
    plain(axis)
    axis.grid(False, axis="x")
    legend_below(figure, [axis])
    figure.suptitle(title, fontsize=11)
    return figure


# Steps of an axis of ratios, by how many times the least the greatest is at most.
STEPS = {
    1.5: [k / 20 for k in range(10, 41)],
    4: (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3),
}


FAR = [2.0**k for k in range(-10, 11)]


def ratios(panels, unit, title):
    """Ratios with the range of their rounds, a mark for each library, and a line at 1: {panel:
    {row: {who: trust.Measured}}}. The libraries of a row stand below each other."""
    who = list(dict.fromkeys(w for rows in panels.values() for of in rows.values() for w in of))
    rows = max(len(values) for values in panels.values())
    size = (1.5 + 4.2 * len(panels), 1.3 + (0.2 + 0.11 * len(who)) * rows)
    figure, axes = plt.subplots(
        1, len(panels), figsize=size, layout="constrained", squeeze=False, sharex=True
    )
    for axis, (panel, values) in zip(axes[0], panels.items()):
        for k, name in enumerate(who):
            below = 0.7 * ((k + 0.5) / len(who) - 0.5)
            drawn = {row + below: of[name] for row, of in enumerate(values.values()) if name in of}
            low, high = ([one.span[end] for one in drawn.values()] for end in (0, 1))
            axis.hlines([*drawn], low, high, color=colour(name), linewidth=1, alpha=0.6)
            axis.plot([*drawn.values()], [*drawn], linestyle="", label=name, zorder=3, **mark(name))
        axis.set_yticks(range(len(values)), values, fontsize=8)
        axis.set_ylim(rows - 0.5, -0.5)
        axis.axvline(1, color="#444444", linewidth=0.8)
        axis.set_xlabel(unit, fontsize=9)
        axis.tick_params(axis="x", labelsize=8)
        axis.set_title(panel, fontsize=10)
        plain(axis)
        axis.grid(False, axis="y")
        for row in range(1, rows):
            axis.axhline(row - 0.5, color="#e4e4e4", linewidth=0.7)
    every = [one for values in panels.values() for of in values.values() for one in of.values()]
    ratio_axis(axes[0][0], [end for one in every for end in one.span])
    legend_below(figure, axes[0])
    figure.suptitle(title, fontsize=11)
    return figure


def ratio_axis(axis, values):
    """A logarithmic axis of ratios about 1."""
    low, high = 0.97 * min(*values, 0.95), 1.03 * max(*values, 1.05)
    steps = next((steps for most, steps in STEPS.items() if high < most * low), FAR)
    ticks = [step for step in steps if low <= step <= high]
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    axis.set_xticks(ticks, [f"{step:.3g}" for step in ticks])
    axis.minorticks_off()


def dots(panels, unit, title):
    """Values on a logarithmic axis, a mark for each library: {panel: {row: {who: value}}}."""
    rows = max(len(values) for values in panels.values())
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(1.5 + 4.2 * len(panels), 1.2 + 0.27 * rows),
        layout="constrained",
        squeeze=False,
        sharex=True,
    )
    for axis, (name, values) in zip(axes[0], panels.items()):
        for who in dict.fromkeys(w for of in values.values() for w in of):
            at = [(of[who], -k) for k, of in enumerate(values.values()) if of.get(who)]
            axis.plot(
                *zip(*at),
                linestyle="",
                label=who,
                zorder=3 if who == OURS else 2,
                **mark(who) | dict(markersize=8 if who == OURS else 6),
            )
        axis.set_yticks([-k for k in range(len(values))], values, fontsize=9)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel(unit)
        axis.set_title(name, fontsize=10)
        plain(axis)
    legend_below(figure, axes[0])
    figure.suptitle(title, fontsize=11)
    return figure
