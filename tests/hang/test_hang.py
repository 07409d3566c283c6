"""Why nothing moves: programs that hang, each in its own way, get the right sentence; those that
only seem to are not accused."""

import contextlib
import os
import re
import signal

import pytest

from jobs import DIST, LIMITS, MPIEXEC, ROOT, run, start, dump, wait_until

SOURCE = ROOT / "tests/hang/hangs.c"
PATHS = ["self,shm", "self,tcp"]
HUNG, TIMED_OUT = 123, 124
# Ranks, and what the sentence holds; {NAME} stands for the line of hangs.c that ends with this
# comment.
HANGS = {
    "sends": (2, "0 -> 1 -> 0, each in MPI_Send, tag 3, on MPI_COMM_WORLD at {sends}"),
    "receives": (2, "0 -> 1 -> 0, each in MPI_Recv, tag 5, on MPI_COMM_WORLD at {recv_word}"),
    "tag": (
        2,
        (
            "a message of rank 1 with tag 8 on MPI_COMM_WORLD is unexpected at rank 0: "
            "the receive has tag 7"
        ),
    ),
    "comm": (
        2,
        (
            "a message of rank 1 with tag 7 on other is unexpected at rank 0: "
            "the receive is on MPI_COMM_WORLD"
        ),
    ),
    "missing": (
        3,
        (
            "ranks 0-1 wait in MPI_Barrier on MPI_COMM_WORLD at {missing} for rank 2, "
            "which is in MPI_Recv at {recv_word}"
        ),
    ),
    "file": (
        3,
        (
            "ranks 0-1 wait in MPI_File_write_all on a communicator of ranks 0-2 at {file} "
            "for rank 2, which is in MPI_Recv at {recv_word}"
        ),
    ),
    "again": (
        3,
        (
            "ranks 0-1 wait in MPI_Allreduce on MPI_COMM_WORLD at {again} for rank 2, "
            "which is in MPI_Recv at {recv_word}"
        ),
    ),
    "differ": (
        3,
        (
            "rank 1 calls MPI_Bcast at {bcast} and rank 0 calls MPI_Reduce at {differ} as the same "
            "collective of MPI_COMM_WORLD"
        ),
    ),
    "cycle": (3, "0 -> 1 -> 2 -> 0, each in MPI_Recv, tag 11, on MPI_COMM_WORLD at {recv_word}"),
    "any": (
        3,
        "rank 0 is in MPI_Waitany at {any} and waits for one of 2 requests, "
        "the first for a message of rank 1, tag 4, on MPI_COMM_WORLD; "
        "only ranks 1-2 can serve it, and all of them wait themselves",
    ),
    "probe": (
        3,
        (
            "rank 0 is in MPI_Probe at {probe} and waits for a message of any rank, tag 6, "
            "on MPI_COMM_WORLD; only ranks 1-2"
        ),
    ),
    "barrier": (
        2,
        "rank 1 waits in MPI_Barrier on MPI_COMM_WORLD at {in_barrier} for rank 0, "
        "which is in MPI_Send at {barrier} and waits for rank 1 to receive its message, tag 2",
    ),
    "inter": (2, "0 -> 1 -> 0, each in MPI_Recv, tag 12, on both at {recv_word}"),
    "background": (
        3,
        (
            "ranks 0-1 wait in MPI_Wait on MPI_COMM_WORLD at {background} for rank 2, "
            "which is in MPI_Recv at {recv_word}"
        ),
    ),
    "making": (
        3,
        (
            "ranks 0-1 wait in MPI_Comm_split on MPI_COMM_WORLD at {making} for rank 2, "
            "which is in MPI_Recv at {recv_word}"
        ),
    ),
    "part": (
        3,
        "rank 1 waits in MPI_Barrier on part at {part} for rank 2, "
        "which is in MPI_Recv at {recv_word} and waits for a message of rank 0, tag 9, "
        "on MPI_COMM_WORLD",
    ),
    "partitioned": (
        2,
        "a partitioned send (MPI_Psend_init) of rank 0 with tag 1 on MPI_COMM_WORLD is "
        "unexpected at rank 1: only a receive made by MPI_Precv_init matches it",
    ),
    "win_create": (
        3,
        "ranks 0-1 wait in MPI_Win_create on MPI_COMM_WORLD at {win_create} for rank 2, "
        "which is in MPI_Recv at {recv_word}",
    ),
    "win_fence": (
        3,
        "ranks 0-1 wait in MPI_Win_fence on window 'grid' at {win_fence} for rank 2, "
        "which is in MPI_Recv at {recv_word}",
    ),
    "win_free": (
        3,
        "ranks 0-1 wait in MPI_Win_free on window 'grid' at {win_free} for rank 2, "
        "which is in MPI_Recv at {recv_word}",
    ),
    "win_post": (
        2,
        "rank 0 is in MPI_Win_complete at {win_post} and waits for rank 1 to call MPI_Win_post, "
        "on window 'grid'; rank 1 is in MPI_Recv at {recv_word}",
    ),
    "win_complete": (
        2,
        "rank 1 is in MPI_Win_wait at {win_complete} and waits for rank 0 to call "
        "MPI_Win_complete, on window 'grid'",
    ),
    "win_lock": (
        3,
        "rank 2 is in MPI_Win_unlock at {win_lock} and waits for the lock at rank 1 of window "
        "'grid', which rank 0 holds",
    ),
    "win_lock_allocated": (
        3,
        "at {win_lock} and waits for the lock at rank 1 of window 'grid', which rank 0 holds",
    ),
    "win_lock_shared": (
        3,
        "at {win_lock} and waits for all of 2 requests, the first for the lock at rank 1 of "
        "window 'grid', which rank 0 holds",
    ),
    "win_crossed": (2, "0 -> 1 -> 0, each in MPI_Win_"),
}


@pytest.fixture
def hangs(program):
    return program("tests/hang/hangs.c", "-g", "-O1", "-Wall", "-pthread")


def lines():
    """By comment: FILE:LINE."""
    found = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if m := re.search(r"[;)] // (\w+)$", line):
            found[m[1]] = f"{SOURCE.name}:{number}"
    return found


def sentence(p):
    """The last line of the only page."""
    pages = re.findall(r"^mpiexec: [^\n]*:\n(?:  [^\n]*\n)+", p.stderr, re.M)
    assert len(pages) == 1, dump(p)
    return pages[0].splitlines()[-1].strip()


def page_of(p):
    """The next page of a job, by lines: the last one is what follows."""
    page = [p.stderr.readline()]
    while not re.match("$|  deadlock|  not ", page[-1]):
        page.append(p.stderr.readline())
    return page


def ask(p):
    """The page that mpiexec prints when kwinfo asks."""
    asked = run(DIST / "bin/kwinfo", "--job", p.pid)
    assert asked.returncode == 0 and f"process {p.pid}" in asked.stdout, dump(asked)
    return page_of(p)


def out_of_time(said, *words, **more):
    """A job that its time limit ends, and its sentence, which begins as it should (`said`)."""
    for limit in LIMITS:
        p = run(MPIEXEC, "--timeout", limit, *words, **more)
        if re.match(said, sentence(p)) and p.returncode == TIMED_OUT:
            return p
    raise AssertionError(f"no '{said}': {dump(p)}")


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("how", HANGS)
def test_a_deadlock_is_proven_and_named(hangs, how, paths):
    size, expected = HANGS[how]
    p = run(
        MPIEXEC, "--end-hung", "-n", size, hangs, how, env={"KW_HANG": "0.3", "KW_PATHS": paths}
    )
    said = sentence(p)
    assert said.startswith("deadlock: ") and expected.format(**lines()) in said, dump(p)
    assert p.returncode == HUNG and p.stderr.endswith(
        "mpiexec: the job was ended because it is deadlocked (--end-hung)\n"
    ), dump(p)


def test_ranks_of_other_hosts_are_asked_too(hangs, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    ssh.chmod(0o755)
    words = ["--ssh", ssh, "--hosts", "a:2,b:1", "--end-hung", hangs, "cycle"]
    p = run(MPIEXEC, *words, env={"KW_HANG": "0.3", "KW_PATHS": "self,tcp"})
    assert HANGS["cycle"][1].format(**lines()) in sentence(p) and p.returncode == HUNG, dump(p)


def test_a_receive_from_a_rank_that_has_finished_ends_by_itself(hangs):
    p = run(MPIEXEC, "--end-hung", "-n", 2, hangs, "finished", env={"KW_HANG": "0.3"})
    assert "rank 1 has called MPI_Finalize" in p.stderr and "deadlock" not in p.stderr, dump(p)


@contextlib.contextmanager
def held_open():
    """A pipe that nothing writes to."""
    here, there = os.pipe()
    try:
        yield here
    finally:
        os.close(here)
        os.close(there)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize(
    "how, expected",
    [
        # Its place is known where the system lets mpiexec look.
        (
            "computes",
            r"not a deadlock: rank 2 does not wait in MPI \((runs|sleeps)[^)]*\)( at {spin})?[;.]",
        ),
        (
            "sleeps",
            r"not a deadlock: rank 2 does not wait in MPI \(sleeps.*; rank 1 has waited for it ",
        ),
        (
            "holder_computes",
            r"not a deadlock: rank 0 does not wait in MPI \(runs[^)]*\)( at {holder})?; "
            r"rank 2 has waited for it ",
        ),
        ("input", r"not a deadlock: rank 0 does not wait in MPI \(sleeps"),
        ("short_calls", r"not a deadlock: rank 0 does not wait in MPI( \((runs|sleeps)[^)]*\))?"),
        (
            "looks",
            r"not proven to be a deadlock: rank 0 calls MPI_Test at hangs.c:\d+ again and again",
        ),
    ],
)
def test_who_does_something_else_is_named_when_the_time_is_over(hangs, how, expected, paths):
    size = 2 if how in ("looks", "short_calls") else 3
    env = {"KW_HANG": "0.1", "KW_PATHS": paths}
    said = re.sub(r"{(\w+)}", lambda m: lines()[m[1]], expected)
    with held_open() as nothing_comes:
        p = out_of_time(said, "--end-hung", "-n", size, hangs, how, env=env, stdin=nothing_comes)
    assert p.stderr.endswith(
        "mpiexec: the job was ended because its time limit was reached (--timeout)\n"
    ), dump(p)


WAITS = {
    "partitioned_receive": (
        "rank 0 is in MPI_Wait at {partitioned} and waits for a partitioned send (MPI_Psend_init) "
        "of rank 1, tag 4, on MPI_COMM_WORLD; "
    ),
    "not_ready": (
        "rank 0 is in MPI_Wait at {not_ready} and waits for partitions of its send to rank 1 to be "
        "made ready by MPI_Pready, tag 4, on MPI_COMM_WORLD; "
    ),
}


@pytest.mark.parametrize("how", WAITS)
def test_the_page_names_what_a_partitioned_transfer_waits_for(hangs, how):
    expected = "not proven to be a deadlock: " + WAITS[how].format(**lines())
    out_of_time(re.escape(expected), "-n", 2, hangs, how, env={"KW_HANG": "0"})


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("how", ["slow", "transfer", "thread"])
def test_what_takes_long_is_no_deadlock(hangs, how, paths):
    p = run(MPIEXEC, "--end-hung", "-n", 2, hangs, how, env={"KW_HANG": "0.05", "KW_PATHS": paths})
    assert p.returncode == 0 and "mpiexec:" not in p.stderr, dump(p)


def test_sigquit_prints_where_every_rank_is_and_a_second_one_ends_the_job(hangs):
    p = start("-n", 3, hangs, "cycle", env={**os.environ, "KW_HANG": "0"})
    try:
        assert [p.stdout.readline() for _ in range(3)] == ["here\n"] * 3
        wait_until(lambda: "deadlock: " in ask(p)[-1], "the ranks do not wait")
        p.send_signal(signal.SIGQUIT)
        page = page_of(p)
        assert page[0] == "mpiexec: where every rank is:\n", page
        assert "each in MPI_Recv, tag 11" in page[-1], page
        assert p.poll() is None, "the job goes on"

        def ended():
            if p.poll() is None:
                p.send_signal(signal.SIGQUIT)
            return p.poll() is not None

        wait_until(ended, "the second SIGQUIT has ended nothing")
        assert p.returncode == 128 + signal.SIGQUIT
    finally:
        p.kill()
        p.communicate()


def test_kwinfo_asks_as_often_as_one_likes(hangs):
    p = start("-n", 2, hangs, "receives", env={**os.environ, "KW_HANG": "0"})
    try:
        assert [p.stdout.readline() for _ in range(2)] == ["here\n"] * 2
        wait_until(lambda: "deadlock: " in ask(p)[-1], "the ranks do not wait")
        for _ in range(2):
            page = ask(p)
            assert "0 -> 1 -> 0, each in MPI_Recv" in page[-1], page
        assert p.poll() is None
    finally:
        p.kill()
        p.communicate()
    asked = run(DIST / "bin/kwinfo", "--job", os.getpid())
    assert asked.returncode == 1 and "is not an mpiexec" in asked.stderr, dump(asked)


def test_without_a_limit_nobody_says_anything(hangs):
    p = out_of_time("deadlock: 0 -> 1 -> 0", "-n", 2, hangs, "receives", env={"KW_HANG": "0"})
    assert p.stderr.startswith("mpiexec: the time limit (--timeout) is reached"), dump(p)


@pytest.mark.parametrize("text", ["", "0", "soon", "-1"])
def test_a_time_that_is_none_is_refused(text):
    p = run(MPIEXEC, "--timeout", text, "-n", 1, "true")
    assert p.returncode == 1 and "--timeout needs seconds" in p.stderr, dump(p)
