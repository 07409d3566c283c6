"""Pictures, as matplotlib figures. Lines carry their names at their ends, ratios are coloured about 1, axes say their units."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
from matplotlib.colors import TwoSlopeNorm

from . import analysis

COLOURS = {"kittiwake": "#0b6e99", "mpich": "#c2571a", "openmpi": "#6a8f2f", "impi": "#8a4f9e"}
GREY = "#777777"


def colour(who):
    return COLOURS.get(who.split(" ")[0], GREY)


def style(who):
    return dict(color=colour(who), linestyle="--" if "(" in who else "-", linewidth=2.2 if who == analysis.OURS else 1.4)


def size_label(n):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if n >= unit:
            return f"{n / unit:g} {name}B"
    return f"{n:g} B"


def sizes_axis(axis, sizes):
    axis.set_xscale("log", base=2)
    axis.set_xticks(sizes, [size_label(n) for n in sizes], rotation=45, fontsize=8)
    axis.minorticks_off()
    axis.grid(True, color="#e4e4e4", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)


def latency_and_bandwidth(curves, fits, title):
    """One way times and bandwidths by size; dots are measured, lines are the fitted models. `curves` and `fits` by library."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    every = sorted({n for curve in curves.values() for n in curve if n > 0})
    fine = numpy.geomspace(every[0], every[-1], 200)
    for who, curve in curves.items():
        sizes = numpy.array(sorted(n for n in curve if n > 0))
        times = numpy.array([curve[n] for n in sizes])
        left.plot(sizes, times, "o", color=colour(who), markersize=4)
        right.plot(sizes, sizes / times, "o", color=colour(who), markersize=4)
        if who in fits:
            left.plot(fine, fits[who].time(fine), label=who, **style(who))
            right.plot(fine, fine / fits[who].time(fine), label=who, **style(who))
        else:
            left.plot(sizes, times, label=who, **style(who))
            right.plot(sizes, sizes / times, label=who, **style(who))
    left.set_yscale("log")
    left.set_ylabel("time, us")
    right.set_ylabel("bandwidth, MB/s")
    for axis in (left, right):
        sizes_axis(axis, every)
    left.legend(frameon=False, fontsize=9)
    figure.suptitle(title)
    return figure


def heat_map(ratios, title):
    """Ratio of our time to the best peer's, collectives by size, one panel a process count."""
    counts = sorted({r["ranks"] for r in ratios})
    figure, axes = plt.subplots(1, len(counts), figsize=(2.2 + 2.6 * len(counts), 4), layout="constrained", squeeze=False)
    ops = list(dict.fromkeys(r["op"] for r in ratios))
    shade = None
    for axis, ranks in zip(axes[0], counts):
        some = [r for r in ratios if r["ranks"] == ranks]
        sizes = sorted({r["bytes"] for r in some})
        grid = numpy.full((len(ops), len(sizes)), numpy.nan)
        for r in some:
            grid[ops.index(r["op"]), sizes.index(r["bytes"])] = r["ratio"]
        shade = axis.imshow(numpy.log2(grid), cmap="RdBu_r", norm=TwoSlopeNorm(0, -2, 2), aspect="auto")
        for (i, j), value in numpy.ndenumerate(grid):
            if not numpy.isnan(value):
                axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if abs(numpy.log2(value)) > 1.3 else "black")
        axis.set_xticks(range(len(sizes)), [size_label(n) if n else "–" for n in sizes], rotation=45, fontsize=8)
        axis.set_yticks(range(len(ops)), ops if axis is axes[0][0] else [])
        axis.set_title(f"{ranks} ranks", fontsize=10)
    bar = figure.colorbar(shade, ax=axes[0].tolist(), ticks=[-2, -1, 0, 1, 2], shrink=0.8)
    bar.ax.set_yticklabels(["¼", "½", "1", "2", "4"])
    bar.set_label("our time : best peer's")
    figure.suptitle(title)
    return figure


def bars(groups, unit, title):
    """Values by library within groups: {group: {who: value}}."""
    figure, axis = plt.subplots(figsize=(max(6, 1.6 * len(groups) + 2), 3.8), layout="constrained")
    who = list(dict.fromkeys(w for values in groups.values() for w in values))
    width = 0.8 / max(len(who), 1)
    for k, name in enumerate(who):
        heights = [values.get(name, numpy.nan) for values in groups.values()]
        axis.bar(numpy.arange(len(groups)) + (k - (len(who) - 1) / 2) * width, heights, width, color=colour(name), label=name,
                 hatch="//" if "(" in name else None, edgecolor="white")
    axis.axhline(0, color="#444444", linewidth=0.8)
    axis.set_xticks(range(len(groups)), groups, fontsize=9)
    axis.set_ylabel(unit)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=9, ncols=min(len(who), 4))
    figure.suptitle(title)
    return figure
