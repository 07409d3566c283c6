"""The command `kwlab`."""

import math
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import (
    VERSION,
    analysis,
    attack,
    check,
    compare,
    facts,
    fitted,
    html,
    libraries,
    machine,
    machines,
    page,
    papers,
    plots,
    programs,
    regret,
    report,
    sections,
    substitute,
    timelines,
    trust,
    tune,
)
from . import export as exports
from . import plan as plans
from .runner import SETTLED, WIDTH, Runner
from .store import Store

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    help=(
        "Measures Kittiwake, MPICH, Open MPI and Intel MPI, fits cost models, "
        "and shows the result beside the papers'. Begin with `kwlab run quick`, "
        "then `kwlab report`."
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
peers_app = typer.Typer(
    no_args_is_help=True, help="The libraries that Kittiwake is measured beside."
)
app.add_typer(peers_app, name="peers")
console = Console(width=WIDTH)

Data = Annotated[Path, typer.Option("--data", help="The dataset.")]
Dist = Annotated[Path, typer.Option("--dist", help="Where Kittiwake is installed.")]
Peers = Annotated[Path, typer.Option("--peers", help="Where the peers are installed.")]
DATA = libraries.MADE / "lab/results.sqlite"
DIST = libraries.PREFIX
PEERS = libraries.MADE / "peers"


def plan_names(incomplete: str):
    """Completes the names of plans."""
    return [name for name in plans.names() if name.startswith(incomplete)]


def library_names(incomplete: str):
    """Completes the names of libraries."""
    return [name for name in plans.KNOWN if name.startswith(incomplete)]


def network_names(incomplete: str):
    """Completes the names of networks."""
    return [name for name in plans.NETWORKS if name.startswith(incomplete)]


def program_names(incomplete: str):
    """Completes the names of programs."""
    return [name for name in plans.programs() if name.startswith(incomplete)]


def version(wanted: bool):
    """Prints the version, if it is wanted."""
    if wanted:
        print(f"kwlab {VERSION}")
        raise typer.Exit()


@app.callback()
def common(
    _: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="The version.")
    ] = False,
):
    pass


PlanName = Annotated[
    str,
    typer.Argument(
        help="A plan that comes with the lab (`kwlab plans`), or a TOML file.",
        autocompletion=plan_names,
    ),
]
NETWORKS = "shm, tcp, gigabit, links, hosts (docs/lab.md says what they are)"
Real = Annotated[
    str,
    typer.Option(
        help=(
            "Real hosts, a,b, or 'slurm' in an allocation: "
            "what goes over a network goes over theirs."
        )
    ),
]
Side = Annotated[
    str,
    typer.Argument(
        help="A library, with knobs if any: kittiwake:KW_WRITE=no", autocompletion=library_names
    ),
]


def existing(data):
    """The dataset, which must be there."""
    if not data.exists():
        raise plans.PlanError(f"{data}: no dataset there yet; `kwlab run quick` makes one")
    return Store(data)


@app.command("plans")
def list_plans(
    plan: Annotated[
        str, typer.Argument(help="Tell more of this plan.", autocompletion=plan_names)
    ] = "",
):
    """Lists the plans that come with the lab, or says what one is about."""
    if plan:
        tell(plans.load(plan))
        return
    table = Table("Plan", "What", "Runs", "A round takes")
    for name in plans.names():
        found = plans.load(name)
        table.add_row(name, found.title, runs_of(found), lasting(found.minutes))
    console.print(table)
    console.print(
        "A round takes so long on two cores, where the plan says so. "
        "`kwlab plans PLAN` tells more of one.",
        highlight=False,
    )


def tell(plan):
    """A plan in some lines."""
    for line in (
        plan.title,
        plan.about,
        f"{runs_of(plan)} runs in {plan.rounds} rounds"
        + (f" of {lasting(plan.minutes)}" if plan.minutes else "")
        + f", each up to {plan.limit:g} s; {what_it_has(plans.cells(plan))}",
    ):
        if line:
            console.print(line, highlight=False, markup=False)


def runs_of(plan):
    """How many runs a plan has, in all its rounds."""
    more = " and those of every algorithm" if any(work.algorithms for work in plan.work) else ""
    return f"{len(plans.cells(plan)) * plan.rounds}{more}"


def lasting(minutes):
    """A time for people; nothing where none is said."""
    return f"{minutes:g} min" if minutes >= 1 else f"{60 * minutes:.0f} s" if minutes else ""


def what_it_has(cells):
    """The programs, ranks, networks and libraries of some cells."""
    every = lambda name: ", ".join(
        str(value) for value in dict.fromkeys(getattr(cell, name) for cell in cells)
    )
    ranks = ", ".join(map(str, sorted({cell.ranks for cell in cells})))
    return (
        f"programs {every('program')}; ranks {ranks}; networks {every('network')}; "
        f"libraries {every('library')}"
    )


def wanted(command, plan):
    """The plan that a command was given. Raises PlanError."""
    if not plan:
        raise plans.PlanError(
            f"{command}: which plan? `kwlab plans` lists those that come with the lab; "
            f"`kwlab {command} quick` is the one to begin with"
        )
    return plan


@app.command()
def run(
    plan: PlanName = "",
    data: Data = DATA,
    dist: Dist = DIST,
    peers: Peers = PEERS,
    rounds: Annotated[
        Optional[int], typer.Option(min=1, help="Rounds, instead of the plan's.")
    ] = None,
    library: Annotated[
        Optional[list[str]],
        typer.Option(
            help=f"Only this library ({', '.join(plans.KNOWN)}); may be given several times.",
            autocompletion=library_names,
        ),
    ] = None,
    ranks: Annotated[
        Optional[list[int]],
        typer.Option(min=1, help="Only this number of ranks; may be given several times."),
    ] = None,
    network: Annotated[
        Optional[list[str]],
        typer.Option(
            help=(
                f"Only this network: {NETWORKS}, or with --hosts cluster; "
                "may be given several times."
            ),
            autocompletion=network_names,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--for",
            min=0,
            show_default=False,
            help="Begin nothing after so many seconds; the same command goes on later.",
        ),
    ] = math.inf,
    args: Annotated[
        str,
        typer.Option(
            help=(
                "Further arguments of the programs, after the plan's: --args '--ops bcast --ms 20'."
            )
        ),
    ] = "",
    hosts: Real = "",
    install: Annotated[
        bool,
        typer.Option(
            "--install", help="Install missing peers first, as `kwlab peers install` does."
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what has been measured.")
    ] = False,
    file: Annotated[
        Path, typer.Option(help="Of a plan that describes the machine: the file for others.")
    ] = libraries.MADE / "lab/machine.json.gz",
    names: Annotated[
        bool,
        typer.Option("--names", help="Keep the names of hosts, paths and commands in that file."),
    ] = False,
):
    """Runs a plan; goes on where an interrupted run stopped."""
    until = time.monotonic() + seconds
    found = plans.load(wanted("run", plan))
    found = replace(
        found,
        rounds=rounds or found.rounds,
        work=tuple(replace(work, args=(*work.args, *args.split())) for work in found.work),
    )
    if hosts:
        found = plans.on_cluster(found)
    found = tune.expanded(
        plans.grown(found, facts.machine()["cores"]), dist, libraries.count_of(hosts)
    )
    for option, values, among in (
        ("--library", library, found.libraries),
        ("--network", network, plans.NETWORKS),
    ):
        for value in values or ():
            plans.known("run", option, value, among)
    if install:
        libraries.install(peers)
    there = libraries.known(dist, peers, hosts, found.own)
    runner = Runner(
        found,
        Store(data),
        there,
        lambda cell: all(
            not only or value in only
            for only, value in (
                (library, cell.library),
                (ranks, cell.ranks),
                (network, cell.network),
            )
        ),
        hosts,
    )
    if not runner.cells:
        raise plans.PlanError(
            f"{plan}: the plan has no run like this; it has {what_it_has(plans.cells(found))}"
        )
    if hosts and any(cell.network == libraries.CLUSTER for cell in runner.cells):
        libraries.reach(hosts)
    if again:
        runner.store.forget(found.name, runner.machine, runner.cells)
    console.print(found.brief(), highlight=False, markup=False)
    if found.profile:
        describe(runner, hosts, again)
    try:
        if runner.left():
            carry_out(runner, data, seconds)
        else:
            console.print(f"{found.title}: all is in {data} already; --again measures anew")
    finally:
        if found.profile:
            pack(runner, file, names)
    say_regret(runner)
    draw_timelines(runner, ranks, network, again, until)
    if runner.measured():
        there = "" if data == DATA else f" --data {data}"
        console.print(
            f"Next: `kwlab show {plan}{there}` has the figures, "
            f"`kwlab report{there}` makes a page of all plans that were run.",
            soft_wrap=True,
            highlight=False,
            markup=False,
        )


def draw_timelines(runner, ranks, network, again, until):
    """Makes the plan's time lines that are wanted and not there yet, unless the time is over; says
    what they show."""
    ours = runner.libraries[libraries.OURS]
    if not any(cell.library == ours.name for cell in runner.cells):
        return
    there = set() if again else runner.store.drawn(runner.plan.name, runner.machine)
    for one in runner.plan.timelines:
        if (
            one.key() in there
            or time.monotonic() >= until
            or ranks
            and one.ranks not in ranks
            or network
            and one.network not in network
        ):
            continue
        with console.status(f"time line of {one.label()}"):
            outcome = timelines.made(one, ours, runner.plan.limit)
        runner.store.keep_timeline(runner.plan.name, one, runner.machine, outcome)
        say_timeline(one.label(), outcome)


def say_timeline(label, outcome):
    """A line a phase."""
    for line in timelines.lines(label, outcome):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def describe(runner, hosts, again):
    """Has the machine of a plan described, once."""
    if again or not runner.store.profile(runner.machine):
        with console.status("what the machine is made of, and its figures"):
            runner.store.describe(
                runner.machine,
                machine.PROFILE,
                machine.described(runner.libraries[libraries.OURS], hosts),
            )


def pack(runner, file, names):
    """Writes the file for others, with what there is so far."""
    try:
        machine.write(runner.store, runner.plan.name, runner.machine, file, names)
    except ValueError as nothing:
        console.print(f"{file} is not written: {nothing}", soft_wrap=True)
        return
    private = (
        "It has the names of hosts, paths and commands in it."
        if names
        else "It names no host, address, person, path or command (--names keeps them)."
    )
    console.print(
        f"For others: {file} ({file.stat().st_size >> 10} KB). "
        f"{private} `zcat` shows all that it says; `kwlab report {file}` draws it.",
        soft_wrap=True,
        markup=False,
    )


def say_regret(runner):
    """The mean and the worst stable cell, by network and ranks, and the worst cells, where a plan
    forces algorithms."""
    keys = {cell.key() for cell in runner.cells if libraries.OURS == cell.library}
    data = trust.settled(runner.store.measurements(runner.plan.name))
    if found := regret.cells(data[(data.machine == runner.machine) & data.cell.isin(keys)]):
        show(
            "Regret: time of what was chosen over the best of all algorithms",
            *sections.regret_table(found),
        )
        show("The worst stable cells", *sections.worst_table(found, most=10))
        if not regret.summed(found).counting:
            console.print(
                "No cell counts: others used the machine during every round, "
                "or the rounds disagree."
            )


def carry_out(runner, data, seconds):
    """Runs what is left, and says how it went."""
    say_missing(runner)
    begun = len(runner.left())
    try:
        wrong, left = runner.run(seconds)
    except KeyboardInterrupt:  # here, because typer says nothing of it
        complain("interrupted; the same command goes on from here", 130)
    begun -= left
    if begun and not runner.measured():
        complain(
            f"{runner.plan.title}: all {begun} runs went wrong, and nothing is measured; "
            "`kwlab status` says why",
            1,
        )
    went = f"; {wrong} of {begun} runs went wrong, `kwlab status` says why" if wrong else ""
    console.print(f"{runner.plan.title}: in {data}{went}", highlight=False, markup=False)
    if left:
        console.print(f"{left} runs are left; the same command goes on with them")


def say_missing(runner):
    """Which libraries are not there, before anything is measured, and how to get them."""
    wanted = {cell.library for cell in runner.cells} & {*plans.KNOWN}
    absent = [name for name, lib in runner.libraries.items() if name in wanted and not lib.there()]
    runner.said |= {(name, "") for name in absent}
    if absent:
        console.print(
            f"Not installed: {', '.join(absent)}. The plan goes on without; `kwlab peers install` "
            "(or --install) installs peers from PyPI, `make stage` Kittiwake, and the same "
            "command then measures what is missing."
        )


@app.command("compare")
def compare_two(
    a: Side,
    b: Side,
    program: Annotated[
        str,
        typer.Option(help="A program of bench/, with its arguments.", autocompletion=program_names),
    ] = "p2p",
    ranks: Annotated[int, typer.Option(min=1, max=plans.MOST_RANKS)] = 2,
    network: Annotated[
        str,
        typer.Option(help=f"{NETWORKS}, or with --hosts cluster.", autocompletion=network_names),
    ] = "shm",
    pairs: Annotated[int, typer.Option(min=2, help="Most pairs of runs.")] = 20,
    limit: Annotated[float, typer.Option(min=1, help="Seconds a run may take.")] = 60,
    hosts: Real = "",
    dist: Dist = DIST,
    peers: Peers = PEERS,
):
    """Compares two libraries by runs in turn: a ratio with its confidence, or "same"."""
    plans.known("compare", "--network", network, plans.NETWORKS)
    plans.known("compare", "--program", (program.split() or [""])[0], plans.programs())
    network = libraries.CLUSTER if hosts and network != "shm" else network
    known = libraries.known(dist, peers, hosts)
    if network == libraries.CLUSTER and hosts:
        libraries.reach(hosts)
    once = compare.live(a, b, known, program, ranks, network, limit)
    verdicts, early = {}, None
    with console.status("pair 1") as shown:
        try:
            for number, verdicts in enumerate(compare.pairs(once, pairs), 2):
                shown.update(f"pair {number} done, at most {pairs}")
                if not console.is_terminal and verdicts:
                    print(
                        f"pair {number} of at most {pairs}: {a} : {b} = "
                        f"{compare.together(verdicts):.3f} so far",
                        file=sys.stderr,
                        flush=True,
                    )
        except (KeyboardInterrupt, SystemExit) as end:
            early = end.code if isinstance(end, SystemExit) else 130
    if early is not None:
        if verdicts:
            show_verdicts(a, b, verdicts)
        complain(
            f"ended early, after {number} pairs of at most {pairs}; above is what they say"
            if verdicts
            else "ended before two pairs were run; nothing is known yet",
            early,
        )
    if not verdicts:
        raise ValueError(f"{program}: the two sides printed no time in common")
    show_verdicts(a, b, verdicts)


def show_verdicts(a, b, verdicts):
    """A row a cell, and all of them in one sentence."""
    table = Table("What", "Bytes", "Metric", f"{a} : {b}", "Interval", "Verdict")
    for (bench, op, size, mode, metric), v in verdicts.items():
        word = "same" if v.same else f"{a if v.ratio < 1 else b} is quicker"
        table.add_row(
            " ".join(filter(None, [bench, op, mode])),
            str(size),
            metric,
            f"{v.ratio:.3f}",
            f"{v.low:.3f} to {v.high:.3f}",
            word,
        )
    console.print(table)
    different = [v for v in verdicts.values() if not v.same]
    console.print(
        f"{'Different' if different else 'Same'}: {len(different)} of {len(verdicts)} differ; "
        f"{a} : {b} = {compare.together(verdicts):.3f} (geometric mean); "
        f"below 1, {a} takes less time"
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


def show(title, head, body):
    """A table for the terminal."""
    if body:
        table = Table(*head, title=title, title_justify="left", box=SIMPLE, pad_edge=False)
        for row in body:
            table.add_row(*map(shown, row))
        console.print(table)


def shown(value):
    """A figure, or a ratio with its range over the rounds; faint when it counts for nothing."""
    words = (
        f"{value.ratio:.2f}"
        + (
            f" ({min(value.rounds):.2f} to {max(value.rounds):.2f})"
            if len(value.rounds) > 1
            else ""
        )
        if isinstance(value, html.Ratio)
        else html.figure(value).strip()
    )
    return Text(words, style="dim italic" if trust.grey(value) else "")


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
        bool, typer.Option("--points", help="Every point that the simulator is held against, too.")
    ] = False,
):
    """Holds the library's starting values, the simulator's descriptions and the simulator itself
    against machines that were measured."""
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
            "beside its measured collectives (docs/machines.md):"
        )
        print(check.simulated(one, kwsim, points))


@app.command("page")
def make_page(
    data: Data = DATA,
    out: Annotated[Path, typer.Option(help="The page.")] = libraries.ROOT / "docs/benchmarks.md",
    note: Annotated[
        str, typer.Option(help="A line about this run: how Kittiwake was built, what else ran.")
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


@app.command("tune")
def tune_table(
    data: Data = DATA,
    dist: Dist = DIST,
    ops: Annotated[str, typer.Option(help="Collectives, comma separated.")] = ",".join(tune.OPS),
    ranks: Annotated[str, typer.Option(help="Process counts.")] = "2,4,8,16",
    network: Annotated[str, typer.Option(help="shm, tcp or both.")] = "shm,tcp",
    sizes: Annotated[str, typer.Option(help="Bytes, multiples of 8.")] = ",".join(
        map(str, tune.SIZES)
    ),
    rounds: Annotated[int, typer.Option(min=1)] = 2,
    ms: Annotated[int, typer.Option(min=1, help="Milliseconds for each cell of a run.")] = 20,
    limit: Annotated[float, typer.Option(min=1, help="Seconds a run may take.")] = 60,
    seconds: Annotated[
        float,
        typer.Option(
            "--for",
            min=0,
            show_default=False,
            help="Begin nothing after so many seconds; the same command goes on later.",
        ),
    ] = math.inf,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what has been measured.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Where rows.txt and measured.tsv go.")] = libraries.MADE
    / "lab",
    keep_models: Annotated[
        bool,
        typer.Option(
            "--keep-models", help="Make the models of what was measured the library's own."
        ),
    ] = False,
):
    """Measures every collective algorithm of Kittiwake, fits the model, and writes rows of the
    selection table."""
    listed = lambda text, kind=str: [kind(word) for word in text.split(",")]
    for option, words, among in (
        ("--ops", listed(ops), tune.OPS),
        ("--network", listed(network), ("shm", "tcp")),
    ):
        for word in words:
            plans.known("tune", option, word, among)
    plan = tune.plan(
        dist,
        listed(ops),
        listed(ranks, int),
        listed(network),
        listed(sizes, int),
        rounds,
        ms,
        limit,
    )
    runner = Runner(
        plan,
        Store(data),
        [lib for lib in libraries.known(dist, PEERS) if lib.name == libraries.OURS],
    )
    if again:
        runner.store.forget(plan.name, runner.machine, runner.cells)
    if runner.left():
        carry_out(runner, data, seconds)
    found = tune.results(trust.settled(runner.store.measurements(plan.name)), runner.machine, plan)
    for line in tune.write(
        found,
        out,
        f"kwlab tune --ops {ops} --ranks {ranks} --network {network} --ms {ms} --rounds {rounds}",
        keep_models,
    ):
        print(line)


@app.command("attack")
def cost_of_attacks(
    dist: Dist = DIST,
    rate: Annotated[int, typer.Option(min=1, help="Connections a second.")] = 400,
    window: Annotated[float, typer.Option(min=0.05, help="Seconds of a turn.")] = 0.3,
    pairs: Annotated[int, typer.Option(min=2, help="Pairs of turns.")] = 70,
):
    """What strangers at the ports cost: an alltoall between two hosts, attacked, beside the same
    attack on a decoy."""
    for line in attack.cost(dist, rate, window, pairs):
        console.print(line, highlight=False)


@app.command()
def status(data: Data = DATA, dist: Dist = DIST):
    """What the dataset has: runs by plan, library and how they ended; how many others disturbed,
    and of plans that come with the lab how many are left on this machine."""
    store = existing(data)
    runs = store.runs()
    table = Table("Plan", "Library", "Status", "Runs", "Disturbed", "Example")
    for (plan, library, how), some in runs.groupby(["plan", "library", "status"]):
        table.add_row(
            plan,
            library,
            how,
            str(len(some)),
            str((some.others > trust.DISTURBED).sum()),
            some.message.iloc[0],
        )
    console.print(table)
    for plan in dict.fromkeys(runs.plan):
        if left := left_of(plan, store, dist):
            console.print(f"{plan}: {left}", highlight=False, markup=False)


def left_of(name, store, dist):
    """What is left of a plan that comes with the lab, on this machine; nothing of others, and where
    the plan's algorithms cannot be told."""
    here = next(
        (number for number, known in store.facts().items() if known == facts.machine()), None
    )
    if name not in plans.names() or here is None:
        return ""
    try:
        found = tune.expanded(plans.grown(plans.load(name), facts.machine()["cores"]), dist)
    except libraries.Unavailable:
        return ""
    tried = store.tried(name, here)
    left = [
        sum(tried.get((cell.key(), round)) not in SETTLED for cell in plans.cells(found))
        for round in range(found.rounds)
    ]
    if not any(left):
        return f"all {found.rounds} rounds are done"
    return (
        f"{sum(left)} runs of {sum(map(bool, left))} of its {found.rounds} rounds are left or went "
        "wrong"
    )


@peers_app.command("install")
def install_peers(peers: Peers = PEERS):
    """Installs MPICH, Open MPI and Intel MPI from PyPI, each into an environment of its own."""
    libraries.install(peers)
    list_peers(peers=peers)


@peers_app.command("list")
def list_peers(dist: Dist = DIST, peers: Peers = PEERS):
    """Which libraries are installed, in which version."""
    table = Table("Library", "Version", "Launcher")
    for lib in libraries.known(dist, peers):
        table.add_row(lib.name, lib.version() or "not installed", str(lib.launcher))
    console.print(table)


def main():
    """Runs the command; errors of the user are one sentence and status 2."""
    # so that a run under `timeout` ends its ranks
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        app()
    except (plans.PlanError, ValueError, libraries.Unavailable, libraries.Failed) as error:
        complain(str(error))
    except sqlite3.Error as error:
        complain(f"the dataset cannot be used: {error} (--data names another)")
    except OSError as error:
        complain(
            f"{error.filename}: {error.strerror}"
            if error.filename
            else error.strerror or str(error)
        )
    except subprocess.TimeoutExpired as late:
        complain(f"{Path(late.cmd[0]).name} took longer than {late.timeout:g} s (--limit)")


def complain(words, code=2):
    """One sentence, and the end."""
    print(f"kwlab: {words}", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
