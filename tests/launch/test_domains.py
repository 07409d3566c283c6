"""Domains of ranks (packages, caches), as KW_DOMAINS makes them on any machine: collectives that
follow them, with equal, unequal, single and scattered domains, give what the others give; and what
KW_DOMAINS may not say is told before anything starts."""

import pytest

from jobs import MPIEXEC, mpiexec, run, dump

ROWS = ";".join(
    f"{coll} - - any any any shm_levels/{fan}"
    for coll, fan in [("barrier", 4), ("bcast", 4), ("reduce", 2), ("allreduce", 4)]
)


@pytest.mark.parametrize("domains", ["0.0.1.1", "0.0.0.0.0.1.1", "0.1.1", "1.0"])
@pytest.mark.parametrize("name", ["coll_move", "coll_reduce", "coll_ahead"])
def test_collectives_follow_the_domains(name, domains, program, tmp_path):
    # beside other work seven ranks that wait for each other take long
    rounds = [1000] if name == "coll_ahead" else []
    job = ["-n", 7, program(f"tests/c/{name}.c", "-O1", "-lm"), *rounds]
    p = run(
        MPIEXEC,
        *job,
        cwd=tmp_path,
        env={"KW_DOMAINS": domains, "KW_COLL": ROWS, "KW_LOG": "debug", "KW_PATHS": "self,shm"},
    )
    assert p.returncode == 0, dump(p)
    assert "by shm_levels" in p.stderr, dump(p)


def test_without_domains_nothing_follows_them(program, tmp_path):
    job = ["-n", 3, program("tests/c/coll_reduce.c", "-O1", "-lm")]
    p = run(
        MPIEXEC,
        *job,
        cwd=tmp_path,
        env={"KW_DOMAINS": "none", "KW_COLL": ROWS, "KW_LOG": "debug", "KW_PATHS": "self,shm"},
    )
    assert p.returncode == 0 and "by shm_levels" not in p.stderr, dump(p)


def test_domains_that_are_none_are_refused(program):
    mpiexec(
        "-n",
        2,
        program("tests/c/coll_reduce.c", "-O1", "-lm"),
        status=None,
        env={"KW_DOMAINS": "0,1"},
        err="KW_DOMAINS is '0,1', but must be auto, none, or numbers separated by dots (0.0.1.1)",
    )
