"""Measured times with the models that were fitted to them."""

from ..lazy import numpy, plt
from ..libraries import OURS
from .common import COLOURS, GREY, colour, grid, legend_below, mark, sizes_axis, style, whiskers


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
