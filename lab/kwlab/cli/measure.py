"""Commands that measure: `plans` and `run`."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from .. import facts, libraries, machine, regret, sections, timelines, trust, tune
from .. import plan as plans
from ..runner import Runner
from ..store import Store
from .common import (
    DATA,
    DIST,
    NETWORKS,
    PEERS,
    Data,
    Dist,
    Peers,
    PlanName,
    Real,
    Seconds,
    app,
    complain,
    console,
    library_names,
    network_names,
    plan_names,
    say_timeline,
    show,
    wanted,
    what_it_has,
)


@app.command("plans")
def list_plans(
    plan: Annotated[
        str, typer.Argument(help="Show details of this plan.", autocompletion=plan_names)
    ] = "",
):
    """Lists the built-in plans, or describes one."""
    if plan:
        tell(plans.load(plan))
        return
    table = Table("Plan", "What", "Runs", "A round takes")
    for name in plans.names():
        found = plans.load(name)
        table.add_row(name, found.title, runs_of(found), lasting(found.minutes))
    console.print(table)
    console.print(
        "Times of a round are for two cores. `kwlab plans PLAN` describes a plan.", highlight=False
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
            help=f"Only this library ({', '.join(plans.NAMED)}); may be given several times.",
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
    seconds: Seconds = math.inf,
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
        bool, typer.Option("--again", help="Repeat measurements that already exist.")
    ] = False,
    file: Annotated[
        Path, typer.Option(help="For a plan that describes the machine: file to share with others.")
    ] = libraries.MADE / "lab/machine.json.gz",
    names: Annotated[
        bool, typer.Option("--names", help="Keep host names, paths and commands in that file.")
    ] = False,
):
    """Runs a plan; resumes an interrupted run."""
    until = time.monotonic() + seconds
    found = asked(plans.load(wanted("run", plan)), rounds, args, hosts, dist)
    for option, values, among in (
        ("--library", library, found.libraries),
        ("--network", network, plans.NETWORKS),
    ):
        for value in values or ():
            plans.known("run", option, value, among)
    if install:
        libraries.install(peers)
    only = ((library, "library"), (ranks, "ranks"), (network, "network"))
    is_wanted = lambda cell: all(not some or getattr(cell, what) in some for some, what in only)
    there = libraries.known(dist, peers, hosts, found.own)
    runner = Runner(found, Store(data), there, is_wanted, hosts)
    if not runner.cells:
        raise plans.PlanError(
            f"{plan}: the plan has no run like this; it has {what_it_has(plans.cells(found))}"
        )
    leave_out(runner)
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
            console.print(f"{found.title}: all is in {data} already; --again repeats")
    finally:
        if found.profile:
            pack(runner, file, names)
    say_regret(runner)
    draw_timelines(runner, ranks, network, again, until)
    if runner.measured():
        say_next(plan, data)


def asked(plan, rounds, args, hosts, dist):
    """The plan as the command's options want it on this machine."""
    work = tuple(replace(work, args=(*work.args, *args.split())) for work in plan.work)
    found = replace(plan, rounds=rounds or plan.rounds, work=work)
    if hosts:
        found = plans.on_cluster(found)
    found = plans.grown(found, facts.machine()["cores"])
    return tune.expanded(found, dist, libraries.count_of(hosts))


def leave_out(runner):
    """Leaves out of a run what libraries have no Fortran for; a line says so. Raises
    Unavailable when nothing is left."""
    without = [f"{name} ({why})" for name, why in sorted(runner.leave_out().items())]
    words = f"no program in Fortran by {'; '.join(without)}: docs/lab.md says who has `mpi_f08`"
    if not runner.cells:
        raise libraries.Unavailable(f"{runner.plan.name}: nothing is left to run: {words}")
    if without:
        console.print(f"Left out: {words}", soft_wrap=True, highlight=False, markup=False)


def say_next(plan, data):
    """The commands that come next."""
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
    wanted = {cell.library for cell in runner.cells} & {*plans.NAMED}
    absent = [name for name, lib in runner.libraries.items() if name in wanted and not lib.there()]
    runner.said |= {(name, "") for name in absent}
    if absent:
        console.print(
            f"Not installed: {', '.join(absent)}. The plan goes on without; `kwlab peers install` "
            "(or --install) installs peers from PyPI, `make stage` Kittiwake, and the same "
            "command then measures what is missing."
        )
