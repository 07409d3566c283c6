"""Programs of the standard ABI run unchanged on another library. A program built by MPICH's
mpicc_abi runs on ours, under our mpiexec and under MPICH's; one built by our mpicc runs on MPICH's
library. The two mpi.h agree on every value. MPICH=DIR names an installation; else one is put into
build/mpich."""

import os
import pathlib
import shutil
import subprocess

import pytest

from engines import package
from jobs import DIST, MPIEXEC, ROOT, cargo, run, dump


@pytest.fixture(scope="module")
def mpich():
    return pathlib.Path(os.environ.get("MPICH") or package("mpich"))


@pytest.fixture
def says(mpich):
    """says(EXPECTED, LIBRARY, COMMAND...): a command with a library on its way prints this."""

    def check(expected, library, *words):
        p = run(*words, env={"LD_LIBRARY_PATH": str(library / "lib")} if library else {})
        assert p.returncode == 0 and p.stdout.strip() == expected, dump(p)

    return check


@pytest.fixture
def ours(program):
    return program("tests/abi/swap.c", "-std=c99")


@pytest.fixture
def theirs(program, mpich):
    return program("tests/abi/swap.c", "-std=c99", compiler=mpich / "bin/mpicc_abi")


def test_our_program_on_our_library(says, ours):
    says("4 ranks on Kittiwake", None, MPIEXEC, "-n", 4, ours)


def test_their_program_on_our_library(says, theirs):
    says("4 ranks on Kittiwake", DIST, MPIEXEC, "-n", 4, theirs)


def test_their_program_on_our_library_under_their_mpiexec(says, theirs, mpich):
    says("4 ranks on Kittiwake", DIST, mpich / "bin/mpiexec", "-n", 4, theirs)


def test_our_program_on_their_library(says, ours, mpich):
    says("4 ranks on MPICH Ver", mpich, mpich / "bin/mpiexec", "-n", 4, ours)


@pytest.mark.skipif(
    not shutil.which("gfortran"),
    reason="gfortran is not installed (scripts/install-deps - fortran)",
)
def test_our_fortran_on_their_library(mpich, tmp_path):
    p = run(
        DIST / "bin/mpifort",
        "-O1",
        "-o",
        tmp_path / "heat2d",
        ROOT / "examples/heat2d.f90",
        cwd=tmp_path,
    )
    assert p.returncode == 0, dump(p)
    p = run(
        mpich / "bin/mpiexec",
        "-n",
        2,
        tmp_path / "heat2d",
        env={"LD_LIBRARY_PATH": str(mpich / "lib")},
    )
    assert p.returncode == 0 and "as it must be" in p.stdout, dump(p)


def test_a_program_without_a_launcher(says, theirs):
    says("1 ranks on Kittiwake", DIST, theirs)


@pytest.fixture
def values():
    """kw-abi's own test of the header, built."""
    words = cargo("test", "--workspace", "--test", "header")
    subprocess.run([*words, "--no-run"], cwd=ROOT, check=True)
    return words


def test_values_are_the_same(mpich, values):
    env = {"PEER_MPI_ABI_INCLUDE": f"{mpich}/include"}
    p = run(*values, "--", "--include-ignored", cwd=ROOT, timeout=600, env=env)
    assert p.returncode == 0, dump(p)
