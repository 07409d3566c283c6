"""PETSc with our compilers, and its own Fortran examples: `make petsc` (half an hour on two cores,
so no part of `make check`).

The source is PyPI's package petsc. PETSc's own harness compiles the examples, runs them with our
mpiexec on as many processes as each asks for, and compares what they print with what they must
print.
"""

import os
import re
import subprocess
import sys

import pytest

from jobs import DIST, ROOT, dump

VERSION = "3.26.1"
WORK = ROOT / "build" / "petsc"
SOURCE = WORK / f"petsc-{VERSION}"
WHERE = {"PETSC_DIR": str(SOURCE), "PETSC_ARCH": "kittiwake"}
# directories of PETSc's tutorials; the makefile's pattern of the Fortran ones in each
ROOMS = ["sys", "vec_vec", "mat", "dm", "ksp_ksp", "snes"]
FORTRAN = "{room}_tutorials-ex*f*"
# They open files by MPI_File_open, which is not built.
FILES = {"vec_vec_tutorials-ex5f_1", "vec_vec_tutorials-ex5f_2"}


def make(*words, log, seconds):
    """PETSc's make; what it said is in WORK/LOG."""
    with open(WORK / log, "w") as out:
        return subprocess.run(
            ["make", *(f"{k}={v}" for k, v in WHERE.items()), *words],
            cwd=SOURCE,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        ).returncode


def ending(log):
    return "".join(open(WORK / log, errors="replace").readlines()[-20:])


@pytest.fixture(scope="module")
def petsc():
    """PETSc, built with dist/bin/mpicc and mpifort."""
    WORK.mkdir(parents=True, exist_ok=True)
    if not SOURCE.exists():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run(
            [
                *pip,
                "download",
                "--no-deps",
                "--no-binary",
                ":all:",
                "-d",
                WORK,
                f"petsc=={VERSION}",
            ],
            check=True,
        )
        subprocess.run(["tar", "-xzf", WORK / f"petsc-{VERSION}.tar.gz", "-C", WORK], check=True)
    tools = {"cc": "mpicc", "fc": "mpifort", "mpiexec": "mpiexec"}
    configured = subprocess.run(
        [
            sys.executable,
            "configure",
            "--with-cxx=0",
            "--with-debugging=0",
            "--with-x=0",
            "--with-blaslapack-lib=-llapack -lblas",
            "COPTFLAGS=-O1",
            "FOPTFLAGS=-O1",
            f"PETSC_ARCH={WHERE['PETSC_ARCH']}",
            *(f"--with-{what}={DIST}/bin/{name}" for what, name in tools.items()),
        ],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=1200,
        env={**os.environ, "PETSC_DIR": str(SOURCE)},
    )
    assert configured.returncode == 0, dump(configured)
    assert make("all", log="make.log", seconds=5400) == 0, ending("make.log")


@pytest.mark.limit(3660)
@pytest.mark.parametrize("room", ROOMS)
def test_fortran_examples(room, petsc):
    """PETSc's harness prints a line of TAP for each example: none of them is "not ok", but for
    those that want files."""
    log = f"{room}.log"
    make(
        "-f",
        "gmakefile.test",
        "test",
        f"search={FORTRAN.format(room=room)}",
        "timeout=120",
        log=log,
        seconds=3600,
    )
    lines = open(WORK / log, errors="replace").read().splitlines()
    failed = {found[1] for line in lines if (found := re.match(r"\s*not ok (\S+)", line))}
    assert failed <= FILES, f"{sorted(failed - FILES)}: see build/petsc/{log}"
    assert any(re.match(r"\s*ok", line) for line in lines), f"no example ran: {ending(log)}"
