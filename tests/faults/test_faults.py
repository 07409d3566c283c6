"""What goes wrong in or around a program: how a process of the job ends, what it has printed by
then, exceptions, forks, limits and sandboxes."""

import os
import platform
import resource

import pytest

from jobs import MPIEXEC, WATCHDOG, run, dump
from seccomp import refuse
from servers import Job


@pytest.fixture
def build(program):
    """build(NAME): the program of this directory."""
    return lambda name: program(f"tests/faults/{name}", "-O1", "-Wall", "-pthread")


@pytest.fixture
def end(build):
    return build("end.c")


def test_what_was_printed_comes_out(end):
    for how, status in ("abort", 7), ("fatal", 6), ("outside", 16), ("handler", 7):
        for start in [end], [MPIEXEC, "-n", 1, end]:
            p = run(*start, how)
            assert (p.returncode, p.stdout) == (status, "a line\n"), f"{how}: {dump(p)}"


def test_what_others_printed_comes_out_when_one_ends_the_job(end):
    p = run(MPIEXEC, "-n", 2, end, "others")
    assert (p.returncode, p.stdout) == (7, "a line\n" * 2), dump(p)
    p = run(end, "killed")
    assert (p.returncode, p.stdout) == (-15, "a line\n"), dump(p)


def test_a_stream_that_cannot_be_written_does_not_hold_up_the_end(end):
    for how in "locked", "full":
        for start in [end], [MPIEXEC, "-n", 1, end]:
            p = run(*start, how)
            assert p.returncode == 7 and "error code 7" in p.stderr, f"{how}: {dump(p)}"


def kill_the_last(killed, size, how, **env):
    """What the other ranks of a job print after the last one was killed, where nothing tells them
    so."""
    job = Job(size, killed, how, env={"KW_PATHS": "self,shm", **env})
    try:
        for p in job.ranks:
            assert p.stdout.readline() == "here\n"
        job.ranks[-1].kill()
        return [p.communicate(timeout=WATCHDOG)[0] for p in job.ranks[:-1]]
    finally:
        for p in job.ranks:
            p.kill()


@pytest.mark.parametrize(
    "setting",
    ["KW_EVENT_THREAD=yes", "KW_EVENT_THREAD=no", "KW_SPIN=10000000", "KW_PATHS=self,shm,tcp"],
)
def test_a_rank_that_is_killed_is_noticed_by_shared_memory(build, setting):
    env = dict([setting.split("=")])
    for how in "recv", "wait", "test", "probe", "ssend", "barrier", "allreduce":
        for out in kill_the_last(build("killed.c"), 3, how, **env):
            assert out.startswith("aborted: ") and "MPI_Finalize" in out, f"{how}: {out!r}"
            # Of those who wait for each other, one may hear first that the other has given up.
            assert "rank 2" in out or how in ("barrier", "allreduce"), f"{how}: {out!r}"
    assert "rank 1" in kill_the_last(build("killed.c"), 2, "any", **env)[0]


WINDOWS = "unlock fence complete wait free put get rget fetch"


@pytest.mark.parametrize("how", WINDOWS.split())
def test_operations_that_need_a_dead_target_end_with_an_error(build, how):
    for out in kill_the_last(build("killed.c"), 3, f"win_{how}"):
        assert out.startswith("aborted: ") and "MPI_Win" in out or how == "rget", out
        # Of those who wait for each other, one may hear first that the other has given up.
        assert "rank 2" in out or how in ("fence", "free"), out


@pytest.mark.parametrize("how", ["held", "held_alone", "held_shared"])
def test_the_lock_of_a_dead_rank_is_given_to_the_next(build, how):
    for out in kill_the_last(build("killed.c"), 3, f"win_{how}"):
        assert out.startswith("no error: "), out


def test_exceptions_pass(build):
    throws = build("throws.cc")
    for n in 1, 2, 4:
        for paths in "self,shm", "self,tcp":
            p = run(MPIEXEC, "-n", n, throws, env={"KW_PATHS": paths})
            assert p.returncode == 0, f"{n} ranks, {paths}: {dump(p)}"


def test_an_exception_that_cannot_pass_ends_the_job_with_a_sentence(build):
    p = run(MPIEXEC, "-n", 2, build("throws.cc"), "background")
    assert (
        p.returncode == 128 + 6
        and "an exception was thrown out of the function of a reduction in the background"
        in p.stderr
    ), dump(p)
    p = run(MPIEXEC, "-n", 1, build("throws.cc"), "event")
    assert (
        p.returncode == 128 + 6
        and "an exception was thrown out of a function that MPI_T_event_register_callback took"
        in p.stderr
    ), dump(p)


def test_a_forked_child_is_refused_mpi_with_a_sentence(build):
    p = run(MPIEXEC, "-n", 2, build("forks.c"))
    assert p.returncode == 0 and p.stdout == "a line\n" * 2, dump(p)
    assert (
        p.stderr.count("MPI_Send was called in a child that a process of the job made with fork()")
        == 2
    ), dump(p)


def test_a_limit_of_file_sizes_is_named(end):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    p = run(MPIEXEC, "-n", 2, end, "none", preexec_fn=limit)
    assert (
        p.returncode not in (0, 3, 128 + 25)
        and "ulimit -f" in p.stderr
        and "SIGXFSZ" not in p.stderr
    ), dump(p)
    p = run(MPIEXEC, "-n", 2, end, "none", preexec_fn=limit, env={"KW_PATHS": "self,tcp"})
    assert p.returncode == 3, f"what the sentence proposes helps: {dump(p)}"


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"),
    reason="the numbers of this processor's system calls are not known here",
)
def test_a_sandbox_that_refuses_to_name_processors_stops_nobody():
    def refuse_affinity():
        refuse({"x86_64": 204, "aarch64": 123}[platform.machine()])

    p = run(MPIEXEC, "-n", 2, "true", preexec_fn=refuse_affinity)
    assert p.returncode == 0, dump(p)
    p = run(MPIEXEC, "--bind", "core", "-n", 1, "true", preexec_fn=refuse_affinity)
    assert p.returncode in (0, 1), dump(p)


def test_what_outlives_the_job_is_named():
    p = run(MPIEXEC, "-n", 1, "sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!")
    left = p.stdout.strip()
    os.kill(int(left), 9)
    assert p.returncode == 0 and f"still run on {os.uname().nodename}: {left}" in p.stderr, dump(p)
    p = run(MPIEXEC, "-n", 2, "true")
    assert p.returncode == 0 and p.stderr == "", dump(p)
