"""The command `exec`."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from .. import fortran, libraries
from .. import plan as plans
from .common import DIST, NETWORKS, PEERS, Dist, Peers, Real, app, network_names, plan_names


class LibraryFirst(TyperCommand):
    """A command whose first word is a library. Options follow it, up to the program, whose own
    options belong to the program."""

    def parse_args(self, ctx, args):
        named = args and not args[0].startswith("-")
        return super().parse_args(ctx, ["--library", *args] if named else args)


@app.command(
    "exec",
    cls=LibraryFirst,
    options_metavar="LIBRARY [OPTIONS]",
    context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True},
)
def execute(
    words: Annotated[list[str], typer.Argument(metavar="PROGRAM", show_default=False)],
    library: Annotated[str, typer.Option(hidden=True)] = "",
    ranks: Annotated[int, typer.Option("-n", "--ranks", min=1)] = 1,
    network: Annotated[
        str,
        typer.Option(help=f"{NETWORKS}, or with --hosts cluster.", autocompletion=network_names),
    ] = "shm",
    show: Annotated[
        bool, typer.Option("--print", help="Print the command instead of running it.")
    ] = False,
    plan: Annotated[
        str,
        typer.Option(help="A plan that describes further libraries.", autocompletion=plan_names),
    ] = "",
    hosts: Real = "",
    dist: Dist = DIST,
    peers: Peers = PEERS,
):
    """Runs any program with the launcher of a library: kittiwake, mpich, openmpi, impi, or one that
    a plan describes. The program must have been compiled for that library, or for the standard ABI
    if the library has it."""
    plans.known("exec", "--network", network, plans.NETWORKS)
    network = libraries.CLUSTER if hosts and network != "shm" else network
    known = libraries.known(dist, peers, hosts, plans.load(plan).own if plan else ())
    known = {found.name: found for found in known}
    plans.known("exec", "the library", library, known)
    chosen = known[library]
    if why := chosen.lacks():
        raise libraries.Unavailable(f"{library}: {why}")
    settings = surroundings(chosen, dist)
    if show:
        print(chosen.told(words, ranks, network, settings=settings))
        return
    line, env = chosen.command(words, ranks, network, settings=settings)
    fits(words[0], chosen, dist, env)
    os.execvpe(line[0], line, env)


def surroundings(library, dist):
    """Environment in which programs find the libraries of another MPI, and not Kittiwake's."""
    if library.name.startswith(libraries.OURS):
        return {}
    own = library.env.get("LD_LIBRARY_PATH", str(library.launcher.absolute().parents[1] / "lib"))
    before = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    ours = str(dist.absolute())
    places = [*own.split(":"), *(place for place in before if not place.startswith(ours))]
    # what the dynamic linker searches anyway must not come before other directories
    places = [place for place in places if place and place not in ("/lib", "/usr/lib")]
    return {"LD_LIBRARY_PATH": ":".join(dict.fromkeys(places))}


def fits(program, library, dist, env):
    """Raises Unavailable when the program would run on another MPI than this one, or on none."""
    path = shutil.which(program)
    if path is None:
        raise libraries.Unavailable(f"{program} is neither a program nor on PATH")
    if library.name.startswith(libraries.OURS):
        return
    ours = dist.resolve()
    for name, place in fortran.needed(path, env).items():
        file = Path(place).resolve()
        if name.startswith("libmpi") and (not file.is_file() or ours in file.parents):
            raise libraries.Unavailable(
                f"{program} needs {name}, which {library.name} does not have: compile it with "
                f"{library.compiler}"
            )
