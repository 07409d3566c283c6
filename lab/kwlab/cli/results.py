"""Commands that show what was measured: `model`, `report`, `check`, `page`, `show`, `export`."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from .. import (
    analysis,
    check,
    fitted,
    html,
    libraries,
    machine,
    machines,
    page,
    papers,
    plots,
    programs,
    report,
    substitute,
)
from .. import export as exports
from .common import (
    DATA,
    DIST,
    Data,
    Dist,
    PlanName,
    app,
    console,
    existing,
    plan_names,
    say_timeline,
    show,
    wanted,
)


@app.command()
def model(
    data: Data = DATA,
    rows: Annotated[
        Optional[Path],
        typer.Option(help="Write Kittiwake's substitutions as rows for KW_COLL=@FILE."),
    ] = None,
):
    """Fits the models and shows them: parameters, errors beside the paper's, and where two
    collectives beat one (Table 5)."""
    book = report.Book(existing(data))
    send, coll = book.message_fits(), book.collective_fits()
    send |= book.window_fits()
    if not send and not coll:
        raise ValueError(
            "no curve with three sizes is in the dataset; "
            "`kwlab run quick` or `kwlab run seed002-models` measures some"
        )
    show(
        "Errors of the models on 20 random sizes that they did not see: "
        "mean (range over the curves)",
        *fitted.accuracy_rows({**send, **coll}, book.facts["cores"]),
    )
    console.print(f"{fitted.PAPER_ERRORS} {fitted.ROUNDS}", highlight=False)
    show("Parameters", *fitted.model_rows({**send, **coll}))
    show("LogGP of a message", *fitted.loggp_rows(book))
    show("Parameters as functions of the processes", *fitted.law_rows(analysis.collectives(coll)))
    found = analysis.findings(coll)
    for finding in (f for place in found.values() for f in place):
        console.print(finding.sentence(), highlight=False)
    show(
        "Where a longer message takes less time: the worst size of each curve",
        *fitted.detour_rows({**send, **coll}),
    )
    if rows:
        rows.write_text("".join(f"{line}\n" for line in table_rows(found)))
        console.print(f"rows for KW_COLL=@{rows}")


def table_rows(found):
    """Kittiwake's substitutions as rows of its selection table."""
    return [
        line
        for (who, network), some in found.items()
        if who == libraries.OURS
        for line in substitute.rows(some, "shm" if network == "shm" else "net")
    ]


Files = Annotated[
    list[Path], typer.Argument(help="Files of `kwlab run machine`, from here or from others.")
]


@app.command("report")
def make_report(
    files: Annotated[
        Optional[list[Path]],
        typer.Argument(
            help=(
                "Files of `kwlab run machine`: several machines side by side, "
                "in place of the dataset."
            )
        ),
    ] = None,
    data: Data = DATA,
    out: Annotated[
        Path, typer.Option(help="The directory for the page and its pictures.")
    ] = libraries.MADE / "lab/report",
):
    """Writes one HTML page that opens without a network, and its pictures beside it."""
    page = (
        machines.write(machine.read_all(files), out) if files else report.write(existing(data), out)
    )
    console.print(f"{page}", soft_wrap=True)


@app.command("check")
def check_files(
    files: Files,
    dist: Dist = DIST,
    points: Annotated[
        bool,
        typer.Option(
            "--points", help="Also print every point that the simulator is compared with."
        ),
    ] = False,
):
    """Compares the library's built-in values, the simulator's descriptions and the simulator with
    measured machines."""
    libraries.tool(dist, "kwinfo")
    library, described, kwsim = machine.starting(dist), check.described(), dist / "bin/kwsim"
    for one in machine.read_all(files):
        console.rule(one.name)
        show(
            "Starting values: factor is what is assumed over what was measured",
            ["Figure", "Assumed", "Measured", "Factor"],
            check.starts(one, library),
        )
        show(
            "Prices of collectives that figures make: nanoseconds here, "
            "and factors of what is assumed",
            ["Price", "Measured", "starting value", *described],
            check.prices(one, library, described),
        )
        if not kwsim.exists():
            console.print(
                f"{kwsim} is not there: the simulator is not held against the measurements",
                soft_wrap=True,
            )
            continue
        console.print(
            "The simulator, by a description of the machine's own prices, "
            "beside its measured collectives (docs/install.md#calibrating):"
        )
        print(check.simulated(one, kwsim, points))


@app.command("page")
def make_page(
    data: Data = DATA,
    out: Annotated[Path, typer.Option(help="The page.")] = libraries.ROOT / "docs/benchmarks.md",
    note: Annotated[
        str, typer.Option(help="A note about this run: build profile, other load.")
    ] = "",
):
    """Writes docs/benchmarks.md from the runs of the plan `page`: one table a question."""
    console.print(f"{page.write(page.book_of(existing(data)), out, note)}", soft_wrap=True)


@app.command("show")
def show_plan(plan: PlanName = "", data: Data = DATA):
    """Shows a plan's figures: medians over the rounds, ratios, where a peer is ahead, what went
    wrong."""
    name = Path(wanted("show", plan)).stem
    book = report.Book(existing(data), name)
    shown = {"application"}
    if found := programs.cells(book, name):
        counted = programs.counters(book, name)
        if set(book.data[book.data.bench == "counters"].op) <= {op for op, *_ in found}:
            shown.add("counters")
        show("Whole programs: seconds", *programs.seconds_table(found, counted))
        show(
            "Whole programs: what Kittiwake sent, and how much of it could be written",
            *programs.sent_table(counted),
        )
        show("Whole programs: rates", *programs.rate_table(found))
        show("Whole programs: geometric means", *programs.mean_table(found))
    for bench in dict.fromkeys(bench for bench in book.data.bench if bench not in shown):
        show(bench, *figure_rows(book, bench))
        show(
            f"{bench}: more than a tenth behind the best peer",
            *behind_rows(analysis.behind(book.data, bench)),
        )
        show(
            f"{bench}: geometric means of our time over the best peer's",
            *mean_rows(book.medians(bench)),
        )
    for _, label, _, outcome in book.timelines:
        say_timeline(label, outcome)
    show(
        "What went wrong",
        ["Library", "How", "Program", "Network", "Ranks", "What was said", "Runs"],
        analysis.failures(book.runs),
    )


def figure_rows(book, bench):
    """A row a cell and metric; of a bench that gives times ("us") only those, and ours over the
    best peer's."""
    some = book.data[book.data.bench == bench]
    metrics = ["us"] if "us" in set(some.metric) else [*dict.fromkeys(some.metric)]
    tables = {metric: book.medians(bench, metric) for metric in metrics}
    who = list(dict.fromkeys(name for table in tables.values() for name in analysis.names(table)))
    rows = []
    for metric, table in tables.items():
        for (net, ranks, op, mode, n), cell in table.groupby(list(analysis.KEY), sort=False):
            of = analysis.of(cell)
            ratio = papers.ours_to_best(of) if metric.endswith("us") else None
            rows.append(
                (
                    f"{op} {mode}".strip(),
                    plots.size_label(n),
                    net,
                    ranks,
                    metric,
                    *(of.get(name) for name in who),
                    ratio,
                )
            )
    return ["What", "Bytes", "Network", "Ranks", "Metric", *who, "Ours : best peer"], rows


def behind_rows(cells):
    """A row a cell in which we are behind."""
    return [
        "What",
        "Bytes",
        "Network",
        "Ranks",
        "Ours : best",
        "In the rounds",
        "Ours, us",
        "Best, us",
        "Whose",
        "When",
    ], [
        (
            f"{one.cell[2]} {one.cell[3]}",
            plots.size_label(one.cell[4]),
            one.cell[0],
            one.cell[1],
            one.ratio,
            f"{min(one.rounds):.2f} to {max(one.rounds):.2f}",
            one.ours,
            one.best,
            one.peer,
            "every round" if one.always else "at times",
        )
        for one in cells
        if one.rounds
    ]


def mean_rows(table):
    """A row an operation, a column a network."""
    ratios = analysis.ratios(table)
    nets = list(dict.fromkeys(r["network"] for r in ratios))
    ops = [*dict.fromkeys(r["op"] for r in ratios), ""]
    of = lambda op, net: [
        r["against"]
        for r in ratios
        if r["op"] in (op or ops) and r["network"] in ((net,) if net else nets)
    ]
    return ["Operation", *nets, "all"], [
        (op or "all", *(html.Ratio.of(analysis.mean_of(of(op, net))) for net in (*nets, None)))
        for op in ops
    ] if ratios else []


@app.command()
def export(
    out: Annotated[Path, typer.Argument(help="The file, .csv or .json.")],
    data: Data = DATA,
    plan: Annotated[
        Optional[str], typer.Option(help="Only this plan.", autocompletion=plan_names)
    ] = None,
):
    """Writes every run and figure as CSV or JSON, for other programs."""
    kind = out.suffix.removeprefix(".")
    if kind not in exports.FORMATS:
        raise ValueError(
            f"{out}: the name of the file says what is written, "
            f"and ends in {' or '.join(f'.{one}' for one in exports.FORMATS)}"
        )
    out.write_text(exports.FORMATS[kind](existing(data), plan and Path(plan).stem))
    console.print(f"{out}", soft_wrap=True)
