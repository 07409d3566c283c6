"""What the library and mpiexec say of a program that crashes, of ranks that wait for ever, of
settings and handles that are wrong; and the log."""

import re
import socket
import subprocess
import sys

import pytest

from jobs import DIST, WATCHDOG, mpiexec

HOST = socket.gethostname()


@pytest.fixture
def crash(crashing):
    """crash(HOW, STATUS, OPTION...): what is said when rank 1 of two does so."""

    def of(how, status, *words, env=None):
        p = mpiexec("-n", 2, *words, crashing, how, status=status, env=env)
        return [line for line in p.stderr.splitlines() if not line.startswith("mpiexec: ")], p

    return of


def test_a_crash_says_where(crash):
    said, p = crash("segv", 139)
    assert (
        len(said) > 3 and said[0] == "rank 1: SIGSEGV at address 0x10, which is not mapped, in"
    ), p.stderr
    for number, function in enumerate(["innermost", "inner", "main"]):
        assert re.fullmatch(
            rf"rank 1:   #{number} {function} at .*crash\.c:\d+", said[number + 1]
        ), p.stderr
    assert (
        p.stderr.count("mpiexec: ") == 1
        and f"rank 1 on {HOST} was killed by signal 11 (SIGSEGV" in p.stderr
    ), p.stderr
    for how, status, first in (
        ("abort", 134, "SIGABRT, in"),
        ("small", 134, "SIGABRT, in"),
        ("divide", 136, "SIGFPE, in"),
        ("sent", 139, "SIGSEGV, in"),
        ("deep", 139, "SIGSEGV at address 0x"),
        ("thread", 139, "SIGSEGV at address 0x10"),
    ):
        said, p = crash(how, status)
        assert said and said[0].startswith(f"rank 1: {first}"), p.stderr
        function = {"thread": "in_a_thread", "deep": "deeper"}.get(how, "main")
        assert any(f" {function} at " in line for line in said), p.stderr


def test_a_crash_is_left_to_whom_it_belongs(crash, ssh):
    said, p = crash("handler", 3)
    assert said == ["my own handler"], p.stderr
    said, p = crash("child", 0)
    assert said == [] and p.stdout == "the child was killed by 11\n", (p.stdout, p.stderr)
    said, p = crash("finalized", 139)
    assert said == [], p.stderr
    said, p = crash("segv", 139, env={"KW_BACKTRACE": "no"})
    assert said == [], p.stderr
    said, p = crash("segv", 139, "--hosts", f"{HOST},b", env=ssh)
    assert any(re.fullmatch(r"rank 1:   #0 innermost at .*crash\.c:\d+", line) for line in said), (
        p.stderr
    )


def test_pythons_faulthandler_is_undisturbed():
    start_mpi = f"import ctypes, faulthandler; mpi = ctypes.CDLL('{DIST}/lib/libmpi_abi.so.1'); "
    before = "faulthandler.enable(); mpi.MPI_Init(None, None); faulthandler._sigsegv()"
    after = "mpi.MPI_Init(None, None); faulthandler.enable(); faulthandler._sigsegv()"
    for order, ours in ((before, False), (after, True)):
        p = mpiexec("-n", 1, sys.executable, "-c", start_mpi + order, status=139)
        assert "Fatal Python error: Segmentation fault" in p.stderr, p.stderr
        assert ("rank 0: SIGSEGV" in p.stderr) == ours, p.stderr


def test_a_crash_without_a_launcher_is_readable(crashing):
    p = subprocess.run([crashing, "segv"], capture_output=True, text=True, timeout=WATCHDOG)
    lines = p.stderr.splitlines()
    assert (
        p.returncode == -11
        and len(lines) > 1
        and lines[0].startswith("rank 0: killed by signal 11 (SIGSEGV) at address 0x10")
    ), p
    file, offset = re.fullmatch(r"rank 0:  #0 (\S+) (0x[0-9a-f]+)", lines[1]).groups()
    assert file == str(crashing) and int(offset, 16) > 0, p


LEFT = (
    r"rank [12] on \S+( and rank [12])? aborted the job with status 58: MPI_\w+: rank 0 has called "
    r"MPI_Finalize: "
)


def test_who_waits_for_a_rank_that_has_finished_is_named(program):
    left = program("tests/launch/left.c")
    for how, env in (
        ("collective", {}),
        ("collective", {"KW_PATHS": "self,tcp"}),
        ("receive", {"KW_SPIN": "1000000000"}),
    ):
        p = mpiexec("-n", 3, left, how, 1, status=58, env=env)
        assert re.search(LEFT, p.stderr) and p.stderr.count("mpiexec: ") == 1, p.stderr


def test_misspelt_settings_are_named(crashing):
    p = mpiexec("-n", 2, crashing, "not", env={"KW_SPIM": "3"})
    assert (
        p.stderr == f"rank 0 on {HOST}: unknown setting KW_SPIM (ignored); did you mean KW_SPIN?\n"
    ), p.stderr
    p = mpiexec("-n", 2, crashing, "not", env={"KW_SPIM": "3", "KW_LOG": "error"}, err="")
    assert p.stderr == "", p.stderr


def test_programs_of_another_mpi_are_found_out(tmp_path):
    """A library with the name of Open MPI's."""
    library, other = tmp_path / "libmpi.so", tmp_path / "other"
    source = "int MPI_Init(int *a, char ***b) { return 0; }"
    for words in (
        ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.20", "-o", library, "-xc", "-"],
        ["-o", other, "-xc", "-", "-L", tmp_path, f"-Wl,-rpath,{tmp_path}", "-lmpi"],
    ):
        subprocess.run(["cc", *words], input=source, text=True, check=True)
        source = (
            "int MPI_Init(int *, char ***); int main(int n, char **v) { return MPI_Init(&n, &v); }"
        )
    (tmp_path / "libmpi.so.20").symlink_to("libmpi.so")
    mpiexec(
        "-n",
        2,
        other,
        status=126,
        sentence=(
            f"'{other}' is linked with libmpi.so.20 of Open MPI, "
            "in whose place Kittiwake has no library"
        ),
    )


def test_handles_of_mpich_are_known(crashing):
    p = mpiexec("-n", 1, crashing, "foreign", status=None)
    assert (
        p.returncode != 0
        and "0x44000000, which names no communicator (a constant of MPICH: " in p.stderr
    ), p


def test_networks_are_reported_where_there_are_none(crashing):
    p = mpiexec("-n", 2, "--report-network", crashing, "not")
    told = "no network is used: all ranks are on this host and share memory"
    assert sorted(line for line in p.stderr.splitlines() if "network" in line) == [
        f"rank {r} on {HOST}: {told}" for r in range(2)
    ], p.stderr


def test_each_level_of_the_log_says_more(crashing):
    said = []
    for level in ("error", "warn", "info", "debug", "trace"):
        p = mpiexec("-n", 2, crashing, "not", env={"KW_SPIM": "3", "KW_LOG": level}, err="")
        said.append(p.stderr.splitlines())
        assert all(re.match(rf"(rank [01]|process \d+) on {HOST}: ", line) for line in said[-1]), (
            p.stderr
        )
    error, warn, info, debug, trace = map(len, said)
    assert error == 0 and warn == 1 and warn < info < debug < trace, [
        error,
        warn,
        info,
        debug,
        trace,
    ]
    for text, lines in (
        ("joined a job of 2", said[2]),
        ("KW_LOG is debug", said[3]),
        (" by Shm", said[3]),
        ("to rank 1: Header {", said[4]),
    ):
        assert any(text in line for line in lines), f"{text}: {lines}"
