"""The other commands: `tune`, `attack`, `status`, `peers`."""

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from .. import attack, facts, libraries, trust, tune
from .. import plan as plans
from ..runner import SETTLED, Runner
from ..store import Store
from .common import DATA, DIST, PEERS, Data, Dist, Peers, Seconds, app, console, existing, peers_app
from .measure import carry_out


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
    ms: Annotated[int, typer.Option(min=1, help="Milliseconds per cell of a run.")] = 20,
    limit: Annotated[float, typer.Option(min=1, help="Seconds a run may take.")] = 60,
    seconds: Seconds = math.inf,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat measurements that already exist.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Directory for rows.txt and measured.tsv.")
    ] = libraries.MADE / "lab",
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Use the fitted models as the library's own.")
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
