"""PETSc with our compilers, its own Fortran examples, and its star forests on windows: `make petsc`
(half an hour on two cores, so no part of `make check`).

The source is PyPI's package petsc. PETSc's own harness compiles the examples, runs them with our
mpiexec on as many processes as each asks for, and compares what they print with what they must
print.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest

from jobs import DIST, ROOT, dump, mpiexec

VERSION = "3.26.1"
WORK = ROOT / "build" / "petsc"
SOURCE = WORK / f"petsc-{VERSION}"
WHERE = {"PETSC_DIR": str(SOURCE), "PETSC_ARCH": "kittiwake"}
# directories of PETSc's tutorials; the makefile's pattern of the Fortran ones in each
ROOMS = ["sys", "vec_vec", "mat", "dm", "ksp_ksp", "snes"]
FORTRAN = "{room}_tutorials-ex*f*"
PATHS = {"shm": "self,shm,tcp", "tcp": "self,tcp"}
SYNCS = ["fence", "active", "lock"]
FLAVORS = ["create", "dynamic", "allocate", "shared"]
# They open files by MPI_File_open, which is not built.
FILES = {"vec_vec_tutorials-ex5f_1", "vec_vec_tutorials-ex5f_2"}


def make(*words, log, seconds, env=None):
    """PETSc's make; what it said is in WORK/LOG."""
    with open(WORK / log, "w") as out:
        return subprocess.run(
            ["make", *(f"{k}={v}" for k, v in WHERE.items()), *words],
            cwd=SOURCE,
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            env={**os.environ, **(env or {})},
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
                "petsc",  # what pip builds it with may be binary
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


def examples(search, log, env=None):
    """PETSc's harness prints a line of TAP for each example that the pattern finds: returns the
    names of those that are "ok" and of those that are not."""
    words = ["-f", "gmakefile.test", "test", f"search={search}", "timeout=120"]
    make(*words, log=log, seconds=3600, env=env)
    lines = open(WORK / log, errors="replace").read().splitlines()
    named = lambda pattern: {m[1] for line in lines if (m := re.match(pattern, line))}
    good, bad = named(r"\s*ok (\S+)"), named(r"\s*not ok (\S+)")
    assert good, f"no example ran: {ending(log)}"
    return good, bad


@pytest.mark.limit(3660)
@pytest.mark.parametrize("room", ROOMS)
def test_fortran_examples(room, petsc):
    """All are right, but for those that want files."""
    log = f"{room}.log"
    _, failed = examples(FORTRAN.format(room=room), log)
    assert failed <= FILES, f"{sorted(failed - FILES)}: see build/petsc/{log}"


def is_promised(paths, sync, flavor):
    """Whether star forests with such a window must work. MPI_Win_allocate_shared needs shared
    memory. With locks on dynamic windows a rank of PETSc's detaches its memory when its own
    accesses have ended, while others may not have begun theirs (PetscSFRestoreWindow). Open MPI's
    MPI_Accumulate refuses them then with MPI_ERR_RMA_RANGE, as does our MPI_Win_unlock. PETSc finds
    the groups for MPI_Win_post with such locks."""
    races = flavor == "dynamic" and sync != "fence"
    return not races and (paths == "shm" or flavor != "shared")


@pytest.mark.limit(3660)
@pytest.mark.parametrize("paths", PATHS)
def test_star_forests(paths, petsc):
    """PETSc's own tests of star forests, among them those on windows with each synchronisation."""
    log = f"forests-{paths}.log"
    good, failed = examples("vec_is_sf_*", log, {"KW_PATHS": PATHS[paths]})
    for sync in SYNCS:
        for flavor in FLAVORS:
            if not is_promised(paths, sync, flavor):
                of_sync = {name for name in failed if f"-{sync}" in name}
                failed -= {name for name in of_sync if flavor in name}
    assert not failed, f"{sorted(failed)}: see build/petsc/{log}"
    assert sum("sf_window_sync" in name for name in good) >= 200


@pytest.fixture(scope="module")
def forest(petsc):
    """forest.c, compiled."""
    arch = SOURCE / WHERE["PETSC_ARCH"]
    p = subprocess.run(
        [
            DIST / "bin/mpicc",
            *("-I", SOURCE / "include", "-I", arch / "include"),
            *("-o", WORK / "forest", pathlib.Path(__file__).with_name("forest.c")),
            *("-L", arch / "lib", f"-Wl,-rpath,{arch / 'lib'}", "-lpetsc"),
        ],
        capture_output=True,
        text=True,
    )
    assert p.returncode == 0, dump(p)
    return WORK / "forest"


@pytest.mark.limit(600)
@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_forest_on_windows_has_the_results_of_messages(ranks, paths, forest):
    def printed(*options):
        p = mpiexec("-genv", "KW_PATHS", PATHS[paths], "-n", ranks, forest, *options)
        return p.stdout

    expected = printed("-sf_type", "basic")
    assert expected.count("fetched from") == 3 * ranks
    for sync, flavor in itertools.product(SYNCS, FLAVORS):
        if is_promised(paths, sync, flavor) or ranks == 1:
            window = ["-sf_window_sync", sync, "-sf_window_flavor", flavor]
            assert printed("-sf_type", "window", *window) == expected, window
