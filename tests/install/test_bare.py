"""The first five minutes on a machine that has next to nothing: a root directory with the commands,
the library, a program, and what the dynamic linker loads with them. What is missing is mentioned by
who needs it, and by no other."""

import re
import shutil
import subprocess

import pytest

from jobs import DIST, ROOT, run, dump

RANKS = 4


def needed(file):
    """What the dynamic linker loads with a file, itself included."""
    p = run("ldd", file)
    assert p.returncode == 0, dump(p)
    return set(re.findall(r"(/\S+) \(0x", p.stdout))


@pytest.fixture(scope="module")
def hello(program):
    return program("examples/hello.c")


@pytest.fixture(scope="module")
def bare(hello, tmp_path_factory):
    """bare(WORD...): a command in such a root directory, without variables."""
    root = tmp_path_factory.mktemp("bare")
    own = [DIST / "bin/mpiexec", DIST / "bin/kwinfo", DIST / "lib/libmpi_abi.so.1", hello]
    for file in {*map(str, own)}.union(*map(needed, own)):
        to = root / str(file).lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, to)
    (root / "proc").mkdir()
    (root / "dev").mkdir()
    (root / "dev/null").touch()

    def call(*words, proc=True):
        mounts = f"mount --bind /dev/null {root}/dev/null && "
        mounts += f"mount -t proc proc {root}/proc && " if proc else ""
        script = mounts + f'exec env -i "$(command -v chroot)" {root} "$@"'
        return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", *words)

    if call(DIST / "bin/mpiexec", "--version").returncode:
        pytest.skip("this machine allows no namespace of mounts")
    return call


def greetings(p):
    return sorted(re.findall(rf"rank (\d) of {RANKS}", p.stdout))


def test_a_job_needs_nothing_else(bare, hello):
    p = bare(DIST / "bin/mpiexec", "-n", RANKS, hello)
    assert p.returncode == 0 and not p.stderr, dump(p)
    assert greetings(p) == [str(r) for r in range(RANKS)], dump(p)


def test_a_rank_loads_no_libm():
    # It would be 0.3 MB of each rank's resident memory, for one function.
    names = {file.rpartition("/")[2] for file in needed(DIST / "lib/libmpi_abi.so.1")}
    assert not [name for name in names if name.startswith("libm.")], names


def test_a_job_needs_no_proc(bare, hello):
    p = bare(DIST / "bin/mpiexec", "-n", RANKS, hello, proc=False)
    assert p.returncode == 0 and not p.stderr, dump(p)
    assert greetings(p) == [str(r) for r in range(RANKS)], dump(p)


def test_other_hosts_need_ssh_and_that_is_reported(bare, hello):
    p = bare(DIST / "bin/mpiexec", "--hosts", "elsewhere", hello)
    assert p.returncode != 0 and "elsewhere" in p.stderr and "ssh" in p.stderr, dump(p)
    assert len(p.stderr.splitlines()) == 1, dump(p)


def test_a_debugger_is_missed_by_who_wants_it(bare, hello):
    p = bare(DIST / "bin/mpiexec", "--debug", "0", "-n", 1, hello)
    assert p.returncode != 0 and "gdb" in p.stderr, dump(p)
    assert len(p.stderr.splitlines()) == 1, dump(p)


def test_the_doctor_lists_what_is_missing(bare):
    p = bare(DIST / "bin/kwinfo", "--doctor")
    for what in ("cc", "c++", "gfortran", "ssh"):
        assert re.search(rf"^{re.escape(what)} +note ", p.stdout, re.M), dump(p)
    assert re.search(r"^shared memory +ok ", p.stdout, re.M), dump(p)


@pytest.mark.parametrize("home", ["/nonexistent", "/proc", ""])
def test_no_home_is_needed(hello, home):
    words = ["env", "-i", f"HOME={home}", DIST / "bin/mpiexec", "-n", RANKS, hello]
    p = run(*words)
    assert p.returncode == 0 and not p.stderr, dump(p)
    assert greetings(p) == [str(r) for r in range(RANKS)], dump(p)


@pytest.mark.parametrize(
    "command, package", [("mpicc", "gcc"), ("mpicxx", "g++"), ("mpifort", "gfortran")]
)
def test_a_missing_compiler_is_named_with_its_package(command, package, tmp_path):
    for name in ("sh", "sed", "dirname", "readlink", "cat", "basename", "uname", "ls"):
        (tmp_path / name).symlink_to(shutil.which(name))
    p = subprocess.run(
        [DIST / "bin" / command, "-o", tmp_path / "out", ROOT / "examples/hello.c"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert p.returncode != 0 and package in p.stderr and not (tmp_path / "out").exists(), dump(p)
    assert len(p.stderr.splitlines()) == 1, dump(p)
