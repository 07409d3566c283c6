"""Packages of other people that run on mpi4py: their own tests, under our mpiexec. They are fetched
from PyPI into build/clients and use the mpi4py that tests/mpi4py/setup builds."""

import os
import pathlib
import subprocess
import sys

import pytest

from jobs import DIST, MPIEXEC, ROOT, run, told

MPI4PY = pathlib.Path(os.environ.get("MPI4PY", ROOT / "build" / "mpi4py"))
WORK = ROOT / "build" / "clients"
PYTHON = WORK / "venv" / "bin" / "python"
SECONDS = 120
PACKAGES = ["schwimmbad==0.4.2", "mpi-pytest==2026.0"]
WITH_PYTEST = "-m pytest -q -p no:cacheprovider -m parallel[{n}] tests"

# directory of the source, numbers of processes, arguments behind the interpreter ({n}: number of
# processes)
RUNS = [
    ("schwimmbad-0.4.2", (2, 4), "tests/test_mpi.py"),
    ("schwimmbad-0.4.2", (2, 4), "tests/test_mpi_with_dill.py"),
    ("mpi_pytest-2026.0", (1, 2, 3), WITH_PYTEST),
]


@pytest.fixture(scope="module")
def sources():
    """Where the sources of the packages are, which hold the tests; the packages are installed."""
    subprocess.run(
        [ROOT / "tests/mpi4py/setup", MPI4PY], check=True, env={**os.environ, "DIST": str(DIST)}
    )
    made = WORK / ".made"
    if not made.exists() or made.read_text() != str(PACKAGES):
        install()
        made.write_text(str(PACKAGES))
    return WORK / "source"


def install():
    subprocess.run([sys.executable, "-m", "venv", "--clear", WORK / "venv"], check=True)
    mpi4py = next((MPI4PY / "venv/lib").glob("python*/site-packages"))
    site = next((WORK / "venv/lib").glob("python*/site-packages"))
    (site / "mpi4py.pth").write_text(f"{mpi4py}\n")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "pytest", "dill", *PACKAGES], check=True)
    for package in PACKAGES:
        subprocess.run(
            [*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", WORK / "source", package],
            check=True,
        )
    for archive in (WORK / "source").glob("*.tar.gz"):
        subprocess.run(["tar", "-xzf", archive, "-C", WORK / "source"], check=True)


@pytest.mark.parametrize(
    "directory, n, arguments",
    [(directory, n, words) for directory, sizes, words in RUNS for n in sizes],
)
def test_a_package(directory, n, arguments, sources):
    p = run(
        MPIEXEC,
        "-n",
        n,
        PYTHON,
        *arguments.format(n=n).split(),
        cwd=sources / directory,
        timeout=SECONDS,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    assert p.returncode == 0, told(p)
