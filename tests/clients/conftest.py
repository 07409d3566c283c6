"""Packages of other people that run on mpi4py, from PyPI: installed into build/clients, beside the
mpi4py that tests/mpi4py/setup builds."""

import os
import pathlib
import subprocess
import sys

import pytest

from jobs import DIST, ROOT

MPI4PY = pathlib.Path(os.environ.get("MPI4PY", ROOT / "build" / "mpi4py"))
WORK = ROOT / "build" / "clients"
PYTHON = WORK / "venv" / "bin" / "python"
PACKAGES = ["schwimmbad==0.4.2", "mpi-pytest==2026.0"]


@pytest.fixture(scope="session")
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
    subprocess.run([*pip, "install", "--no-compile", "pytest", "dill", *PACKAGES], check=True)
    for package in PACKAGES:
        # of this package alone the source: what builds it need not be built itself
        source = ["--no-deps", "--no-binary", package.split("==")[0], "-d", WORK / "source"]
        subprocess.run([*pip, "download", *source, package], check=True)
    for archive in (WORK / "source").glob("*.tar.gz"):
        subprocess.run(["tar", "-xzf", archive, "-C", WORK / "source"], check=True)


@pytest.fixture(scope="session")
def python(sources):
    """An interpreter that has mpi4py and the packages."""
    return PYTHON
