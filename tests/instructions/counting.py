"""Counts of instructions: of the calls that program.c makes, in C or, by watched.F90, in
Fortran."""

import re
import shutil
import subprocess

import pytest

from jobs import MPIEXEC, ROOT, WATCHDOG, run

HERE = ROOT / "tests/instructions"
# The functions that are counted. callgrind takes several of them for one where their names begin
# with the same letter.
FUNCTIONS = {
    "send": "a_send",
    "recv": "b_recv",
    "bcast": "c_bcast",
    "allreduce": "d_allreduce",
    "isend": "e_isend",
    "irecv": "f_irecv",
    "waitall": "g_waitall",
    "rank": "h_rank",
}
MACROS = {"mpi_f08": "-DKW_F08", "mpi": "-DKW_MPI", "mpif.h": "-DKW_MPIF"}

needs_valgrind = pytest.mark.skipif(
    not shutil.which("valgrind"),
    reason="valgrind is not installed (scripts/install-deps - valgrind)",
)


def cheapest(program, calls, work, *options):
    """Instructions of the cheapest call of each function that rank 0 made; all in one job."""
    profile, there = work / "counted", work / "there"
    watched = [
        "valgrind",
        "--tool=callgrind",
        "-q",
        "--collect-atstart=no",
        *(f"--toggle-collect={FUNCTIONS[call]}" for call in calls),
        *(f"--dump-after={FUNCTIONS[call]}" for call in calls),
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
    command = [program, ",".join(calls), there]
    ranks = ["-n", "1", *watched, *command, ":", "-n", "1", *command]
    done = run(MPIEXEC, *options, *settings, *ranks, timeout=2 * WATCHDOG)
    assert done.returncode == 0, f"{calls} ended with {done.returncode}: {done.stderr}"
    found = {call: [] for call in calls}
    for dump in work.glob(f"{profile.name}.*"):
        text = dump.read_text()
        after = re.search(r"^desc: Trigger: --dump-after=._(\w+)", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if after and total and int(total[1]) > 0:
            found[after[1]].append(int(total[1]))
    assert all(found.values()), f"some calls of {calls} were not counted: {found}"
    return {call: min(numbers) for call, numbers in found.items()}


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
