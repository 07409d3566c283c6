"""Pictures, as matplotlib figures. A library has one colour everywhere; ratios are coloured about
1; axes say their units."""

import itertools

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
from matplotlib.colors import TwoSlopeNorm

from .libraries import OURS
from .trust import grey

COLOURS = {OURS: "#0b6e99", "mpich": "#c2571a", "openmpi": "#6a8f2f", "impi": "#8a4f9e"}
GREY = "#777777"
MARKS = {OURS: "o", "mpich": "s", "openmpi": "^", "impi": "D"}
# Of libraries that plans describe.
FURTHER = (("#b59a00", "v"), ("#c23a6b", "P"), ("#2a8f86", "X"), ("#5b4bb5", "*"))


def adopt(libraries):
    """Gives libraries that have no colour yet one of their own, and a mark, while there are any."""
    used = set(COLOURS.values())
    free = [pair for pair in FURTHER if pair[0] not in used]
    for name, (color, sign) in zip(sorted(set(libraries) - COLOURS.keys()), free):
        COLOURS[name], MARKS[name] = color, sign


def colour(who):
    return COLOURS.get(who.split(" ")[0], GREY)


def style(who):
    """Of a line: ours is thick, variants are dashed."""
    return dict(
        color=colour(who),
        linestyle="--" if "(" in who else "-",
        linewidth=2.2 if who == OURS else 1.4,
    )


def mark(who):
    return dict(
        color=colour(who),
        marker=MARKS.get(who.split(" ")[0], "x"),
        markersize=4.5,
        markerfacecolor="white" if "(" in who else None,
    )


def size_label(n):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if n >= unit:
            return f"{n / unit:.3g} {name}B"
    return f"{n:g} B"


def sizes_axis(axis, sizes):
    """A logarithmic axis of bytes, labelled at powers of four."""
    low, high = int(numpy.floor(numpy.log2(min(sizes)))), int(numpy.ceil(numpy.log2(max(sizes))))
    ticks = [2**k for k in range(low, high + 1, 2 if high - low > 6 else 1)]
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [size_label(n) for n in ticks], rotation=45, fontsize=8)
    axis.minorticks_off()
    plain(axis)


def plain(axis):
    axis.grid(True, color="#e4e4e4", linewidth=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def latency_and_bandwidth(found, title):
    """One way times and bandwidths by size: marks are measured, lines the three-parameter model.
    `found`: analysis.Judged by library."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for axis, of in ((left, lambda n, t: t), (right, lambda n, t: n / t)):
        measured_and_modelled(axis, found, of)
    left.set_ylabel("time, us")
    right.set_ylabel("bandwidth, MB/s")
    left.legend(frameon=False, fontsize=9)
    figure.suptitle(title)
    return figure


def measured_and_modelled(axis, found, of):
    """of(bytes, us) by size; where one library stands alone, its `pieces` too, dotted."""
    every = sorted({n for one in found.values() for n in one.curve})
    for one in found.values() if len(found) == 1 else ():
        fine = numpy.geomspace(every[0], every[-1], 400)
        axis.plot(
            fine,
            of(fine, one.models["pieces"].time(fine)),
            color="#222222",
            linestyle=":",
            linewidth=1.2,
            zorder=5,
            label="pieces",
        )
    for who, one in found.items():
        sizes = numpy.array(sorted(one.curve))
        times = numpy.array([one.curve[n] for n in sizes])
        fine = numpy.geomspace(sizes[0], sizes[-1], 200)
        axis.plot(sizes, of(sizes, times), linestyle="none", **mark(who))
        whiskers(
            axis,
            sizes,
            of(sizes, times),
            of(sizes, numpy.array([one.upper.get(n, one.curve[n]) for n in sorted(one.curve)])),
            colour(who),
        )
        axis.plot(fine, of(fine, one.three.time(fine)), label=who, **style(who))
    axis.set_yscale("log")
    sizes_axis(axis, every)


def whiskers(axis, at, one, other, color):
    """Bars between two values at each mark."""
    axis.vlines(
        at,
        numpy.minimum(one, other),
        numpy.maximum(one, other),
        color=color,
        linewidth=1,
        alpha=0.6,
    )


def spans(axis, at, values, color):
    """Bars from the least to the greatest round of figures (`trust.Measured`)."""
    low, high = zip(*(getattr(value, "span", (value, value)) for value in values))
    whiskers(axis, at, numpy.array(low), numpy.array(high), color)


def bandwidths(panels, title):
    """Bandwidth by size, measured and modelled: {panel: {who: analysis.Judged}}, three panels a
    row."""
    figure, axes = grid(panels, 3, title)
    for axis, (name, found) in zip(axes, panels.items()):
        measured_and_modelled(axis, found, lambda n, t: n / t)
        axis.set_title(name, fontsize=10)
    legend_below(figure, axes[: len(panels)])
    figure.supylabel("bandwidth, MB/s", fontsize=10)
    return figure


def two_models(panels, title):
    """Bandwidth by size, by two models and measured: {panel: (curve, three parameters,
    Hockney)}."""
    figure, axes = grid(panels, 2, title, width=4.2)
    for axis, (name, (curve, three, hockney)) in zip(axes, panels.items()):
        sizes = sorted(curve) if len(curve) > 1 else [8, 1 << 20]
        fine = numpy.geomspace(sizes[0], sizes[-1], 200)
        if curve:
            axis.plot(
                [*curve],
                [n / us for n, us in curve.items()],
                linestyle="none",
                label="measured",
                **mark(OURS),
            )
        axis.plot(
            fine,
            fine / three.time(fine),
            label="three parameters",
            color=COLOURS[OURS],
            linewidth=2,
        )
        axis.plot(fine, fine / hockney.time(fine), label="Hockney", color=GREY, linestyle="--")
        axis.set_title(name, fontsize=10)
        sizes_axis(axis, sizes)
    legend_below(figure, axes[: len(panels)])
    figure.supylabel("bandwidth, MB/s", fontsize=10)
    return figure


# libraries of a paper: dotted lines
PAPERS = {
    "MPICH-GM": "#c2571a",
    "ScaMPI": "#c2571a",
    "SCI-MPICH": "#6a8f2f",
    "mpiJava": "#b59a00",
    "MPJ/Ibis": "#8a4f9e",
}
TODAY = ("#0b6e99", "#222222", "#5fb3d4", "#777777", "#003f5c")  # ours on several networks


def models_beside(panels, title):
    """Time by size, log-log: {panel: ({"the paper: who": model}, {"today: where":
    analysis.Judged})}; the paper's models are dotted, today's drawn with what was measured."""
    figure, axes = grid(panels, 3, title)
    places = list(dict.fromkeys(name for _, today in panels.values() for name in today))
    for axis, (name, (paper, today)) in zip(axes, panels.items()):
        sizes = sorted({n for one in today.values() for n in one.curve})
        fine = numpy.geomspace(sizes[0], sizes[-1], 200)
        for who, model in paper.items():
            axis.plot(
                fine,
                model.time(fine),
                label=who,
                color=PAPERS[who.removeprefix("the paper: ")],
                linestyle=":",
                linewidth=1.8,
            )
        for where, one in today.items():
            color = TODAY[places.index(where) % len(TODAY)]
            own = numpy.geomspace(min(one.curve), max(one.curve), 200)
            axis.plot(own, one.three.time(own), label=where, color=color, linewidth=1.5)
            axis.plot(
                [*one.curve],
                [*one.curve.values()],
                linestyle="none",
                color=color,
                marker="o",
                markersize=2.5,
            )
        axis.set_yscale("log")
        axis.set_title(name, fontsize=10)
        sizes_axis(axis, sizes)
    legend_below(figure, axes[: len(panels)])
    figure.supylabel("time, us", fontsize=10)
    return figure


def grid(panels, columns, title, width=3.2, height=2.9, sharey=False):
    """A figure with an axis a panel, and the rest of the last row empty."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    size = (1 + width * columns, 0.9 + height * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=sharey
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.suptitle(title, fontsize=11)
    return figure, list(axes.flat)


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
    shade = axis.imshow(numpy.log2(grid), cmap="RdBu_r", norm=TwoSlopeNorm(0, -2, 2), aspect="auto")
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


def legend_below(figure, axes):
    """One legend for all panels, where it hides nothing."""
    found = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    figure.legend(
        found.values(),
        found,
        loc="outside lower center",
        frameon=False,
        fontsize=8,
        ncols=min(len(found), 5),
    )


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
