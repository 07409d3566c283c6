"""Progress without calls: the event thread serves a rank that computes, over each path, by get and
by rendezvous. And a collective operation that waits for the end of a send goes on. But where
nothing is left to it, the event thread takes next to nothing of the processor."""

import pytest

from jobs import MPIEXEC, run, dump


def says_ok(name, program, ranks, directory, **env):
    p = run(MPIEXEC, "-n", ranks, program(f"tests/progress/{name}.c", "-O1"), directory, env=env)
    assert p.returncode == 0 and f"{name}: ok" in p.stdout, dump(p)


@pytest.mark.parametrize(
    "setting",
    [
        "KW_PATHS=self,shm",
        "KW_PATHS=self,tcp",
        "KW_PATHS=self,udp",
        "KW_SINGLE_COPY=no",
        "KW_WRITE=no",
        "KW_SPIN=0",
    ],
)
def test_a_rank_that_computes_is_served(setting, program, tmp_path):
    says_ok("async", program, 2, tmp_path, **dict([setting.split("=")]))


def test_a_collective_that_waits_for_the_end_of_a_send_goes_on(program, tmp_path):
    says_ok(
        "held",
        program,
        3,
        tmp_path,
        KW_PATHS="self,tcp",
        KW_COLL="alltoall - - any any any pairwise",
    )


@pytest.mark.parametrize("paths", ["self,shm", "self,tcp"])
def test_an_event_thread_without_work_rests(paths, program, tmp_path):
    says_ok("visits", program, 2, tmp_path, KW_PATHS=paths)


def test_a_short_operation_leaves_when_it_is_issued(program, tmp_path):
    says_ok("leaves", program, 2, tmp_path, KW_PATHS="self,shm", KW_EVENT_THREAD="no")


@pytest.mark.parametrize("paths", ["self,tcp", "self,udp"])
def test_calls_that_end_at_once_see_what_others_have_sent(paths, program, tmp_path):
    says_ok("spins", program, 2, tmp_path, KW_PATHS=paths, KW_EVENT_THREAD="no")


@pytest.mark.parametrize("spin", ["0", "300"])
def test_ranks_that_share_a_cpu_leave_no_fence_to_the_kernel(spin, program, tmp_path):
    name = program("tests/progress/fences.c", "-O1")
    p = run(MPIEXEC, "-n", 3, name, tmp_path, env={"KW_CPUS": "1", "KW_SPIN": spin})
    if "no filter" in p.stdout:
        pytest.skip("no system call can be forbidden here: " + p.stdout.splitlines()[0])
    assert p.returncode == 0 and "fences: ok" in p.stdout, dump(p)
