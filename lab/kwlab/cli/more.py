"""The other commands: `tune`, `attack`, `status`, `peers`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from .. import attack, facts, libraries, regret, trust, tune
from .. import plan as plans
from ..runner import SETTLED, Runner
from .common import DATA, DIST, PEERS, Data, Dist, Peers, app, console, existing, peers_app


@app.command("tune")
def tune_table(
    data: Data = DATA,
    out: Annotated[Path, typer.Option(help="File for the rows (KW_COLL=@FILE).")] = libraries.MADE
    / "lab/rows.txt",
):
    """Writes rows of the selection table: the fastest algorithm of every collective at every size,
    from what `kwlab run regret` has measured on this machine."""
    store, here = existing(data), facts.machine()
    number = next((number for number, known in store.facts().items() if known == here), None)
    found = trust.settled(store.measurements("regret"))
    found = found[
        (found.machine == number) & (found.metric == "us") & (found.network.isin(["shm", "tcp"]))
    ]
    found = tune.by_place(found[regret.is_forced(found)].itertuples(), here["cores"])
    if not found:
        raise plans.PlanError(f"{data}: nothing to tune by; `kwlab run regret` measures it")
    lines = tune.table_rows(found)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(f"{line}\n" for line in lines))
    print("\n".join(lines))


@app.command("attack")
def cost_of_attacks(
    dist: Dist = DIST,
    rate: Annotated[int, typer.Option(min=1, help="Connections per second.")] = 400,
    window: Annotated[float, typer.Option(min=0.05, help="Seconds per turn.")] = 0.3,
    pairs: Annotated[int, typer.Option(min=2, help="Pairs of turns.")] = 70,
):
    """Measures the cost of unauthenticated connections: an alltoall between two hosts while its
    ports are attacked, and while a decoy is."""
    for line in attack.cost(dist, rate, window, pairs):
        console.print(line, highlight=False)


@app.command()
def status(data: Data = DATA, dist: Dist = DIST, peers: Peers = PEERS):
    """Shows the dataset: runs by plan, library and status, disturbed runs, and for built-in plans
    the runs left on this machine."""
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
        if left := left_of(plan, store, dist, peers):
            console.print(f"{plan}: {left}", highlight=False, markup=False)


def left_of(name, store, dist, peers):
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
    runner = Runner(found, store, libraries.known(dist, peers))
    runner.leave_out()
    left = [
        sum(runner.tried.get((cell.key(), round)) not in SETTLED for cell in runner.cells)
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
