"""Several installations side by side, and one that is replaced while a job runs."""

import os
import shutil
import subprocess

import pytest

from jobs import DIST, ROOT, WATCHDOG, run, dump

WAITS = ROOT / "tests/install/waits.c"


@pytest.fixture
def install(tmp_path):
    """install(NAME): a copy of the installation in a directory of its own, and a program that its
    mpicc has made."""

    def one(name):
        home = tmp_path / name
        shutil.copytree(DIST, home, symlinks=True, ignore=shutil.ignore_patterns("doc", "man3"))
        program = tmp_path / f"waits-{name}"
        p = run(home / "bin/mpicc", "-o", program, WAITS)
        assert p.returncode == 0, dump(p)
        return home, program

    return one


def sums(home, program):
    p = run(home / "bin/mpiexec", "-n", 3, program, input="\n")
    assert p.returncode == 0 and p.stdout == "ready\nsum 3\n" and not p.stderr, dump(p)


def test_two_installations_do_not_meet(install):
    (first, by_first), (second, by_second) = install("first"), install("second")
    for home, program in ((first, by_first), (second, by_second)):
        assert str(home / "lib/libmpi_abi.so.1") in run("ldd", program).stdout
        sums(home, program)
    sums(second, by_first)  # either starts the other's programs
    shutil.rmtree(first)
    sums(second, by_second)


def test_hosts_with_different_libraries_are_reported_before_anything_else(install, tmp_path):
    home, program = install("first")
    another = tmp_path / "another"
    another.mkdir()
    name, ours, other = "libmpi_abi.so.1", b"standard ABI 1.0", b"standard ABI 1.9"
    code = (home / "lib" / name).read_bytes()
    assert ours in code
    (another / name).write_bytes(code.replace(ours, other))
    first = ["-n", 1, "-env", "KW_HOST", "a", program]
    second = ["-n", 1, "-env", "KW_HOST", "b", "-env", "LD_LIBRARY_PATH", another, program]
    p = run(home / "bin/mpiexec", *first, ":", *second, input="\n")
    assert p.returncode != 0 and "sum" not in p.stdout, dump(p)
    # a rank that got that far says so, and mpiexec that it has ended
    *said, last = p.stderr.splitlines()
    assert said and last.startswith("mpiexec: rank "), dump(p)
    for line in said:
        for part in ("1.0' on rank 0", "1.9' on rank 1", "install the same on all hosts"):
            assert part in line, dump(p)


def test_a_library_of_another_mpi_that_comes_first_is_named(install, tmp_path):
    home, program = install("first")
    other = tmp_path / "other"
    other.mkdir()
    (other / "libmpi_abi.so.1").write_text("another MPI")
    p = run(home / "bin/mpiexec", "-n", 2, "-env", "LD_LIBRARY_PATH", other, program)
    assert p.returncode != 0 and not p.stdout, dump(p)
    said = (
        f"mpiexec: '{program}' runs on {other}/libmpi_abi.so.1, which is not a library of Kittiwake"
    )
    assert p.stderr.startswith(said), dump(p)


def replace(home):
    """Every file by a new one under the same name, as `make install`, dpkg and pip do."""
    for file in home.rglob("*"):
        if file.is_file() and not file.is_symlink():
            new = file.with_name(file.name + ".new")
            shutil.copy2(file, new)
            os.replace(new, file)


@pytest.mark.parametrize("what", [replace, shutil.rmtree])
def test_a_running_job_keeps_the_files_it_has(install, what):
    home, program = install("only")
    p = subprocess.Popen(
        [home / "bin/mpiexec", "-n", "3", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert p.stdout.readline() == "ready\n"
    what(home)
    out, err = p.communicate("\n", timeout=WATCHDOG)
    assert (p.returncode, out, err) == (0, "sum 3\n", "")
