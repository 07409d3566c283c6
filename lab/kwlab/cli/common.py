"""What the commands of `kwlab` share: the application, its options, and how tables and errors
look."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import VERSION, html, libraries, timelines, trust
from .. import plan as plans
from ..runner import WIDTH
from ..store import Store

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    help=(
        "Measures Kittiwake, MPICH, Open MPI and Intel MPI, fits cost models, "
        "and compares the results with those of the papers. Start with `kwlab run quick`, "
        "then `kwlab report`."
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
peers_app = typer.Typer(
    no_args_is_help=True, help="Install or list the MPI libraries to compare with."
)
app.add_typer(peers_app, name="peers")
console = Console(width=WIDTH)

Data = Annotated[Path, typer.Option("--data", help="The dataset.")]
Dist = Annotated[Path, typer.Option("--dist", help="Installation of Kittiwake.")]
Peers = Annotated[Path, typer.Option("--peers", help="Directory of the installed peers.")]
Seconds = Annotated[
    float,
    typer.Option(
        "--for",
        min=0,
        show_default=False,
        help="Start no new run after this many seconds; the same command continues later.",
    ),
]
DATA = libraries.MADE / "lab/results.sqlite"
DIST = libraries.PREFIX
PEERS = libraries.MADE / "peers"


def plan_names(incomplete: str):
    """Completes the names of plans."""
    return [name for name in plans.names() if name.startswith(incomplete)]


def library_names(incomplete: str):
    """Completes the names of libraries."""
    return [name for name in plans.NAMED if name.startswith(incomplete)]


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


NETWORKS = "shm, tcp, gigabit, gigabit2, gigabit4, links, hosts (docs/lab.md says what they are)"


Real = Annotated[
    str,
    typer.Option(
        help=(
            "Real hosts, a,b, or 'slurm' in an allocation: "
            "the plan's network cells use their network."
        )
    ),
]


Side = Annotated[
    str,
    typer.Argument(
        help="A library, optionally with settings: kittiwake:KW_WRITE=no",
        autocompletion=library_names,
    ),
]


def existing(data):
    """The dataset, which must be there."""
    if not data.exists():
        raise plans.PlanError(f"{data}: no dataset there yet; `kwlab run quick` makes one")
    return Store(data)


def what_it_has(cells):
    """The programs, ranks, networks and libraries of some cells."""
    values = lambda name: dict.fromkeys(str(getattr(cell, name)) for cell in cells)
    every = lambda name: ", ".join(values(name))
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


def say_timeline(label, outcome):
    """A line a phase."""
    for line in timelines.lines(label, outcome):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


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


def complain(words, code=2):
    """One sentence, and the end."""
    print(f"kwlab: {words}", file=sys.stderr)
    raise SystemExit(code)
