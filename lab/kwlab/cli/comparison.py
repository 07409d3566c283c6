"""The command `compare`."""

import sys
from typing import Annotated

import typer
from rich.table import Table

from .. import compare, libraries
from .. import plan as plans
from .common import (
    DIST,
    NETWORKS,
    PEERS,
    Dist,
    Peers,
    Real,
    Side,
    app,
    complain,
    console,
    network_names,
    plan_names,
    program_names,
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
    plan: Annotated[
        str,
        typer.Option(
            help="A plan whose [[library]] tables describe further libraries.",
            autocompletion=plan_names,
        ),
    ] = "",
    hosts: Real = "",
    dist: Dist = DIST,
    peers: Peers = PEERS,
):
    """Compares two libraries in alternating runs: a ratio with its confidence, or "same"."""
    plans.known("compare", "--network", network, plans.NETWORKS)
    plans.known("compare", "--program", (program.split() or [""])[0], plans.programs())
    network = libraries.CLUSTER if hosts and network != "shm" else network
    known = libraries.known(dist, peers, hosts, plans.load(plan).own if plan else ())
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
