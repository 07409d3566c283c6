"""What pictures have in common: colours, marks, axes and legends."""

from ..lazy import numpy, plt
from ..libraries import OURS

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
        ncols=min(len(found), 5, max(1, round(figure.get_figwidth() / 1.8))),
    )
