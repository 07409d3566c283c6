"""Servers of PMI-1 that talk nonsense or die (servers.py)."""

import re

import pytest

from servers import Half, Job


@pytest.fixture
def rank(program):
    return program("tests/launchers/rank.c")


def met(job):
    text = "".join(out for out, _, _ in job.ends())
    seen = sorted(re.findall(r"^rank (\d+) of (\d+) sum (\d+) local (\d+)", text, re.M))
    n = job.size
    assert seen == [(str(r), str(n), str(n * (n - 1) // 2), str(n)) for r in range(n)], job.ends()


def test_a_good_server_is_served(rank):
    met(Job(3, rank))


def test_two_jobs_may_have_the_same_name(rank):
    jobs = [Job(3, rank, name="twin") for _ in range(4)]
    for job in jobs:
        met(job)


def spoiled(rank, what, sentence, spoil):
    """Every rank of a spoiled job ends, with one sentence and a bad status."""
    for out, err, status in Job(3, rank, spoil=spoil).ends():
        assert status != 0 and " of 3 " not in out and "panicked" not in err, (
            what,
            out,
            err,
            status,
        )
        assert re.search(sentence, err) and err.count("\n") <= 2, (what, err)


def half(command):
    """Half of an answer, and the end."""

    def spoil(rank, cmd, good):
        return Half(good[:9].encode()) if cmd == command else good

    return spoil


def test_whatever_a_server_says_there_is_a_sentence(rank):
    gone = "the launcher is gone|its launcher has exited"
    for command in ("init", "get_maxes", "get_my_kvsname", "put", "barrier_in", "get", "finalize"):

        def at(answer, command=command):
            return lambda rank, cmd, good: answer(good) if cmd == command else good

        if command != "finalize":
            spoiled(rank, f"dies at {command}", gone, at(lambda good: None))
        if command in ("init", "get_maxes"):
            spoiled(rank, f"half a line at {command}", gone, half(command))
            spoiled(
                rank,
                f"nonsense at {command}",
                "invalid message",
                at(lambda good: b"\xff\x00\xfe nonsense\n"),
            )
            spoiled(
                rank,
                f"another answer at {command}",
                "invalid message",
                at(lambda good: "cmd=barrier_out rc=0"),
            )


def test_a_server_that_dies_later_ends_the_job(rank):
    job = Job(2, rank, "wait")
    for p in job.ranks:
        assert " is up" in p.stdout.readline()
    job.hang_up()
    for _, err, status in job.ends():
        assert status != 0 and "its launcher has exited" in err, (err, status)
