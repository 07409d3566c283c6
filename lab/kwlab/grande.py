"""The kernels of Java Grande in C and Java (plan seed002-grande) beside the paper's Figure 5 and
Tables 6 and 7: speed-ups on hosts with one process or several, and what several change."""

from . import plots, programs, trust
from .html import Ratio, paragraph, table
from .libraries import PER_HOST
from .papers import seed

PLAN = "seed002-grande"
HOSTS = 2  # of the figure
SINGLE, DUAL = "gigabit", "gigabit2"  # hosts with one process each, and with two


def section(book):
    """The report's section."""
    found = programs.cells(book, PLAN)
    if not found:
        return ""
    paper = seed("002")["grande"]
    return (
        paragraph(
            f"{paper['source']}. Today: the kernels of apps/grande, on pretended hosts that share "
            "the processors of this machine: a speed-up cannot exceed their number."
        )
        + "".join(picture(book, found, kernel) for kernel in kernels(found))
        + "<h3>Tables 6 and 7: ratios of times</h3>"
        + paragraph(
            "Table 6: the same processes, one on each host over two on each. Table 7: the same "
            "hosts, with one process over two. Above 1, two processes on a host are worth it."
        )
        + table(
            ["Today", "Class", "Library", "Table 6, 4 processes", f"Table 7, {HOSTS} hosts"],
            today(found),
        )
        + table(
            ["The paper", "Table", "Library", *paper["columns"]],
            [
                (kernel, number, library, *map(Ratio, values))
                for number in ("6", "7")
                for library, rows in paper[f"table{number}"].items()
                for kernel, values in rows.items()
            ],
        )
    )


def kernels(found):
    """Those that were run, in their order."""
    return list(dict.fromkeys(op for op, *_ in found))


def per_host(network):
    """How many processes a host has."""
    return PER_HOST.get(network, 1)


def over(one, other):
    """A figure's seconds over another's; None where one is missing."""
    if not (one and other and one.seconds and other.seconds):
        return None
    ratio = trust.against(one.measured, other.measured)
    return trust.Measured(ratio.ratio, enumerate(ratio.rounds), ratio.grey)


def speed_ups(found, kernel):
    """{class and processes on each host: {who: speed-up over its one process}}, as the labels of
    Figure 5."""
    groups = {}
    for (op, mode, network, ranks), of in found.items():
        if op == kernel and network != "shm" and ranks == HOSTS * per_host(network):
            alone = found.get((op, mode, "shm", 1), {})
            values = {who: over(alone.get(who), one) for who, one in of.items()}
            groups[f"{mode}{per_host(network)}"] = {
                who: value for who, value in values.items() if value is not None
            }
    return {label: groups[label] for label in sorted(groups) if groups[label]}


def picture(book, found, kernel):
    """Figure 5 of one kernel."""
    groups = speed_ups(found, kernel)
    if not groups:
        return ""
    title = f"{kernel} on {HOSTS} hosts: class, and processes on each"
    return book.picture(f"grande-{kernel}", plots.bars(groups, "speed-up", title, one=True), title)


def today(found):
    """Rows of both tables."""
    rows = []
    for op, mode in dict.fromkeys((op, mode) for op, mode, *_ in found):
        at = lambda network, ranks: found.get((op, mode, network, ranks), {})
        single, dual = at(SINGLE, 2 * HOSTS), at(DUAL, 2 * HOSTS)
        for library in programs.who({0: dual}):
            values = (
                over(single.get(library), dual[library]),
                over(at(SINGLE, HOSTS).get(library), dual[library]),
            )
            rows.append(
                (
                    op,
                    mode,
                    library,
                    *(programs.said(v, "{:.2f}".format) if v else None for v in values),
                )
            )
    return rows
