"""Packages of other people that run on mpi4py: their own tests, under our mpiexec."""

import subprocess

import pytest

from jobs import MPIEXEC, WATCHDOG, run, dump

WITH_PYTEST = "-m pytest -q -p no:cacheprovider -m parallel[{n}] tests"

# directory of the source, numbers of processes, arguments behind the interpreter ({n}: number of
# processes)
RUNS = [
    ("schwimmbad-0.4.2", (2, 4), "tests/test_mpi.py"),
    ("schwimmbad-0.4.2", (2, 4), "tests/test_mpi_with_dill.py"),
    ("mpi_pytest-2026.0", (1, 2, 3), WITH_PYTEST),
]


@pytest.mark.parametrize(
    "directory, n, arguments",
    [(directory, n, words) for directory, sizes, words in RUNS for n in sizes],
)
def test_a_package(directory, n, arguments, sources, python):
    p = run(
        MPIEXEC,
        "-n",
        n,
        python,
        *arguments.format(n=n).split(),
        cwd=sources / directory,
        timeout=2 * WATCHDOG,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    assert p.returncode == 0, dump(p)
