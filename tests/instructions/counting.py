"""Counts of instructions: of the calls that program.c makes, in C or, by watched.F90, in
Fortran."""

import re
import shutil
import subprocess

import pytest

from jobs import MPIEXEC, ROOT, WATCHDOG, run

HERE = ROOT / "tests/instructions"
MACROS = {"mpi_f08": "-DKW_F08", "mpi": "-DKW_MPI", "mpif.h": "-DKW_MPIF"}

needs_valgrind = pytest.mark.skipif(
    not shutil.which("valgrind"),
    reason="valgrind is not installed (scripts/install-deps - valgrind)",
)


def counts(program, call, work, *options):
    """Instructions of each call of this function that rank 0 made."""
    profile, there = work / call, work / "there"
    watched = [
        "valgrind",
        "--tool=callgrind",
        "-q",
        "--collect-atstart=no",
        f"--toggle-collect=watched_{call}",
        f"--dump-after=watched_{call}",
        f"--callgrind-out-file={profile}",
    ]
    # the other rank never sleeps while it waits for this slow one: who sleeps is rung, which is not
    # the price of a call
    settings = [
        "-genv",
        "KW_PATHS",
        "self,shm",
        "-genv",
        "KW_EVENT_THREAD",
        "no",
        "-genv",
        "KW_SPIN",
        "10000000",
    ]
    done = run(
        MPIEXEC,
        *options,
        *settings,
        "-n",
        "1",
        *watched,
        program,
        call,
        there,
        ":",
        "-n",
        "1",
        program,
        call,
        there,
        timeout=2 * WATCHDOG,
    )
    assert done.returncode == 0, f"{call} ended with {done.returncode}: {done.stderr}"
    texts = [dump.read_text() for dump in work.glob(f"{call}.*")]
    found = [
        int(n) for text in texts for n in re.findall(r"^(?:summary|totals): (\d+)", text, re.M)
    ]
    return [n for n in found if n > 0]


def in_fortran(there, interface, mpicc, mpifort, *options):
    """The program whose counted functions are in Fortran, made in a directory by two compilers."""
    subprocess.run(
        [mpicc, "-O2", "-DFORTRAN", "-c", "-o", "program.o", HERE / "program.c"],
        check=True,
        cwd=there,
    )
    subprocess.run(
        [
            mpifort,
            "-O2",
            MACROS[interface],
            "-o",
            "program",
            HERE / "watched.F90",
            "program.o",
            *options,
        ],
        check=True,
        cwd=there,
    )
    return there / "program"
