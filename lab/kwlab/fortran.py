"""Fortran of the libraries that are measured. The programs of apps/ use the module mpi_f08, which
is made for one compiler and one library: not every installation has it."""

import os
import subprocess

PROGRAM = "use mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nend\n"


def refused(compiler, program):
    """Why a wrapper cannot compile a small program that uses mpi_f08, in words; nothing when it
    can: the program is there then."""
    program.parent.mkdir(parents=True, exist_ok=True)
    source = program.with_suffix(f".{os.getpid()}.f90")
    source.write_text(PROGRAM)
    try:
        done = said(compiler, "-o", program, source)
    except OSError as why:
        return f"{compiler} cannot be started: {why.strerror}"
    finally:
        source.unlink()
    words = " ".join(done.stdout.split())[-200:]
    return f"{compiler} cannot compile `use mpi_f08`: {words}" if done.returncode else ""


def needed(program, env=None):
    """{name: path} of the libraries that a program is linked with, in this environment; `not` is
    the path of one that is not found."""
    rows = [line.split() for line in said("ldd", program, env=env).stdout.splitlines()]
    return {row[0]: row[2] for row in rows if row[1:2] == ["=>"]}


def said(*command, env=None):
    """A command that has ended, with all that it has said."""
    return subprocess.run(
        command,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
    )


def alone(place, libraries):
    """A directory with links to these libraries, {name: path}, and to nothing else, so that what
    they stand on is found in another."""
    place.mkdir(parents=True, exist_ok=True)
    for name, library in libraries.items():
        link = place / f".{name}.{os.getpid()}"
        link.symlink_to(library)
        link.replace(place / name)
    return str(place)
