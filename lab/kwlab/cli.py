"""The command `kwlab`."""
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.table import Table

from . import compare, libraries
from . import plan as plans
from .runner import Runner, parse
from .store import Store

app = typer.Typer(no_args_is_help=True, add_completion=True, help="Measures any MPI library, fits cost models, and shows the result beside the papers'.",
                  context_settings={"help_option_names": ["-h", "--help"]})
peers_app = typer.Typer(no_args_is_help=True, help="The libraries that Kittiwake is measured beside.")
app.add_typer(peers_app, name="peers")
console = Console()

Data = Annotated[Path, typer.Option("--data", help="The dataset.")]
Dist = Annotated[Path, typer.Option("--dist", help="Where Kittiwake is installed.")]
Peers = Annotated[Path, typer.Option("--peers", help="Where the peers are installed.")]
DATA, DIST, PEERS = libraries.ROOT / "build/lab/results.sqlite", libraries.ROOT / "dist", libraries.ROOT / "build/peers"


def plan_names(incomplete: str):
    """Completes the names of plans."""
    return [name for name in plans.names() if name.startswith(incomplete)]


PlanName = Annotated[str, typer.Argument(help="A plan that comes with the lab (`kwlab plans`), or a TOML file.", autocompletion=plan_names)]


@app.command("plans")
def list_plans():
    """Lists the plans that come with the lab."""
    table = Table("Plan", "What", "Runs")
    for name in plans.names():
        plan = plans.load(name)
        table.add_row(name, plan.title, str(len(plans.cells(plan)) * plan.rounds))
    console.print(table)


@app.command()
def run(plan: PlanName, data: Data = DATA, dist: Dist = DIST, peers: Peers = PEERS,
        rounds: Annotated[Optional[int], typer.Option(min=1, help="Rounds, instead of the plan's.")] = None):
    """Runs a plan; goes on where an interrupted run stopped."""
    found = plans.load(plan)
    if rounds:
        found = type(found)(**{**vars(found), "rounds": rounds})
    runner = Runner(found, Store(data), libraries.known(dist, peers))
    wrong = runner.run()
    console.print(f"{found.title}: in {data}" + (f"; {wrong} runs went wrong and say why in it" if wrong else ""))


@app.command("compare")
def compare_two(a: Annotated[str, typer.Argument(help="A library, with knobs if any: kittiwake:KW_WRITE=no")],
                b: Annotated[str, typer.Argument(help="Another, or the same with other knobs.")],
                program: Annotated[str, typer.Option(help="A program of bench/, with its arguments.")] = "p2p",
                ranks: Annotated[int, typer.Option(min=1)] = 2, network: Annotated[str, typer.Option(help="shm, tcp or gigabit.")] = "shm",
                pairs: Annotated[int, typer.Option(min=2, help="Most pairs of runs.")] = 20, limit: Annotated[float, typer.Option(help="Seconds a run may take.")] = 60,
                dist: Dist = DIST, peers: Peers = PEERS):
    """Compares two libraries by runs in turn: a ratio with its confidence, or "same"."""
    name, *arguments = program.split()
    sides = {"a": compare.side(a), "b": compare.side(b)}
    all_known = {lib.name: lib for lib in libraries.known(dist, peers)}
    for library, _ in sides.values():
        if library not in all_known or not all_known[library].there():
            raise plans.PlanError(f"{library}: not installed, or not one of {', '.join(all_known)} (`kwlab peers install`)")
    programs = {library: all_known[library].build(name) for library, _ in sides.values()}

    def once(which):
        library, knobs = sides[which]
        text, _ = all_known[library].run(programs[library], ranks, network, *arguments, knobs=knobs, timeout=limit)
        return {(line["bench"], line.get("op", ""), line.get("bytes", 0), line.get("mode", ""), metric): value["median"]
                for line in parse(text) for metric, value in line.items() if isinstance(value, dict) and "median" in value}

    verdicts = {}
    with console.status("pair 1") as shown:
        for number, verdicts in enumerate(compare.pairs(once, pairs), 2):
            shown.update(f"pair {number} done, at most {pairs}")
    table = Table("What", "Bytes", "Metric", f"{a} : {b}", "Interval", "Verdict")
    for (bench, op, size, mode, metric), v in verdicts.items():
        word = "same" if v.same else f"{a if v.ratio < 1 else b} is quicker"
        table.add_row(" ".join(filter(None, [bench, op, mode])), str(size), metric, f"{v.ratio:.3f}", f"{v.low:.3f} to {v.high:.3f}", word)
    console.print(table)


@app.command()
def status(data: Data = DATA):
    """What the dataset has: runs by plan, library and how they ended."""
    runs = Store(data).runs()
    table = Table("Plan", "Library", "Status", "Runs", "Example")
    for (plan, library, how), some in runs.groupby(["plan", "library", "status"]):
        table.add_row(plan, library, how, str(len(some)), some.message.iloc[0])
    console.print(table)


@peers_app.command("install")
def install_peers(peers: Peers = PEERS):
    """Installs MPICH, Open MPI and Intel MPI from PyPI, each into an environment of its own."""
    libraries.install(peers)


@peers_app.command("list")
def list_peers(dist: Dist = DIST, peers: Peers = PEERS):
    """Which libraries are installed, in which version."""
    table = Table("Library", "Version", "Launcher")
    for lib in libraries.known(dist, peers):
        table.add_row(lib.name, lib.version() or "not installed", str(lib.launcher))
    console.print(table)


def main():
    """Runs the command; errors of the user are one sentence and status 2."""
    try:
        app()
    except (plans.PlanError, ValueError) as error:
        console.print(f"kwlab: {error}", highlight=False, style="red")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        console.print("kwlab: interrupted; the same command goes on from here")
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
