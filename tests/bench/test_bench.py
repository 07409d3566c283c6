"""The measuring programs: every operation of bench/coll.c gives right data and a whole line in both
modes, the other programs print what they should, and nonsense is refused. Nothing here depends on
how fast anything is. (What reads the lines is tested in lab/tests.)"""

import json
import re
import subprocess

import pytest

from jobs import MPIEXEC, WATCHDOG, run, dump

OPS = (
    "barrier bcast reduce allreduce allgather alltoall reduce_scatter gather scatter scan exscan"
).split()
OVERLAPPING = (
    "exchange ibcast ireduce iallreduce iallgather igather iscatter ialltoall ireduce_scatter "
    "iscan raw"
).split()
# program, ranks, arguments, how many lines, arguments that are refused
OTHERS = [
    (
        "p2p",
        2,
        [
            "--ms",
            "1",
            "--kinds",
            "pingpong,stream,unexpected,exchange,halo,pipeline",
            "--modes",
            "send,ssend,bsend,rsend,isend,persistent",
            "--sizes",
            "0,8,65536",
        ],
        32 * 3,
        [
            ["--turns", "200"],
            ["--kinds", "pong"],
            ["--modes", "fast"],
            ["--sizes", "-1"],
            ["--speed", "3"],
            ["--ms"],
        ],
    ),
    ("p2p", 4, ["--ms", "1", "--kinds", "pingpong,raw-pingpong,raw-stream", "--sizes", "8"], 3, []),
    (
        "p2p",
        2,
        [
            "--ms",
            "1",
            "--turns",
            "5",
            "--kinds",
            "pingpong,stream,raw-pingpong",
            "--modes",
            "send,persistent",
            "--sizes",
            "8,65536",
        ],
        10,
        [],
    ),
    (
        "overlap",
        4,
        ["--ms", "2", *(f"{op}:4096" for op in OVERLAPPING)],
        len(OVERLAPPING),
        [["exchange"], ["exchange:7"], ["sum:8"]],
    ),
    (
        "parts",
        2,
        ["--sizes", "1024,65536", "--parts", "1,16", "--work", "10", "--rounds", "3"],
        8,
        [["--sizes", "1000"], ["--parts", "0"], ["--rounds", "102"], ["--rounds"]],
    ),
    (
        "wait",
        2,
        ["--sizes", "8,65536", "--work", "0,1", "--rounds", "3"],
        4,
        [
            ["--sizes", "-8"],
            ["--work", "9999"],
            ["--rounds", "102"],
            ["--rounds"],
            ["--speed", "3"],
        ],
    ),
    (
        "sweep",
        3,
        ["--points", "1000", "--halo", "100", "--steps", "2"],
        3,
        [["--kinds", "behind"], ["--points", "2"], ["--halo", "-1"], ["--speed"]],
    ),
    ("memory", 3, ["--rounds", "2"], 1, [["--size", "0"], ["--rounds"], ["--speed", "3"]]),
    ("forms", 3, ["--ms", "1", "--sizes", "8,4096"], 11 + 10, [["--sizes", "7"], ["--speed", "3"]]),
    (
        "give",
        3,
        ["--sizes", "4000,80000", "--rounds", "3"],
        12,
        [["--speed", "3"], ["--rounds", "0"], ["--sizes", "80x"], ["--product"]],
    ),
    (
        "rate",
        4,
        ["--ms", "2", "--sizes", "0,8,4096"],
        3,
        [["--sizes", "-8"], ["--threads", "0"], ["--speed", "3"], ["--ms"]],
    ),
    ("rate", 2, ["--ms", "2", "--threads", "3", "--sizes", "8"], 1, []),
    (
        "tails",
        3,
        ["--count", "100"],
        5,
        [["--count", "9"], ["--ops", "barrier,scan"], ["--speed", "3"], ["--sizes"]],
    ),
    (
        "layouts",
        2,
        ["--ms", "2", "--sizes", "1024,65536"],
        22,
        [["--sizes", "1000"], ["--speed", "3"], ["--ms"]],
    ),
    (
        "first",
        3,
        ["--op", "allreduce", "--sizes", "4116", "--calls", "6"],
        4,
        [["--op", "scan"], ["--sizes", "6"], ["--calls", "0"], ["--speed", "3"], ["--op"]],
    ),
    ("first", 2, ["--op", "alltoallv", "--sizes", "4096,65536"], 10, []),
    ("first", 4, ["--op", "halo", "--sizes", "8192"], 5, []),
    ("idle", 2, ["1"], 1, [["0"], ["long"]]),
    ("comm", 3, ["4", "3"], 9, []),
    (
        "behind",
        2,
        ["--every", "5", "--questions", "3"],
        1,
        [["--questions", "0"], ["--speed", "3"]],
    ),
    ("flood", 2, ["1000", "8", "away"], 1, []),
    ("hello", 3, [], 1, []),
    (
        "spawn",
        1,
        ["--counts", "1,3", "--rounds", "2", "--memory"],
        2,
        [["--counts", "0"], ["--rounds", "0"], ["--speed", "3"], ["--rounds"]],
    ),
    ("io", 2, ["--turns", "1"], 17, [["--kinds", "writes"], ["--turns", "0"], ["--hint", "x"]]),
    ("io", 3, ["--turns", "1", "--kinds", "write1k,pwrite1k,read_sparse,view,overlap"], 5, []),
    ("served", 2, ["--ms", "5", "--rounds", "1"], 2, [["--rounds", "0"], ["--speed", "1"]]),
]


@pytest.fixture
def measure(program):
    """measure(NAME, RANKS, ARGUMENT...): a program of bench/ that has run."""

    def measured(name, ranks, *args, preload=None):
        under = ["env", f"LD_PRELOAD={preload}"] if preload else []
        return run(
            MPIEXEC, "-n", ranks, *under, program(f"bench/{name}.c", "-O2", "-Wall", "-lm"), *args
        )

    return measured


def measurements(p):
    """The lines of a program that are measurements; others begin with '#'."""
    return [json.loads(line) for line in p.stdout.splitlines() if not line.startswith("#")]


def in_order(times):
    names = [n for n in ("min", "low", "median", "high", "worst") if n in times]
    assert names[0] == "min" and "median" in names and len(names) > 2, times
    figures = [times[n] for n in names]
    assert figures == sorted(figures), f"figures out of order: {times}"


@pytest.mark.parametrize(
    "ranks, mode",
    [(1, ()), (3, ("--turns", "4")), (4, ("--apart",)), (2, ("--apart", "--turns", "3"))],
)
def test_collective_operations(ranks, mode, measure):
    p = measure("coll", ranks, "--ms", "1", "--ops", ",".join(OPS), "--sizes", "8,1024", *mode)
    lines = measurements(p)
    expected = {(op, size) for op in OPS for size in ((0,) if op == "barrier" else (8, 1024))}
    assert sorted((one["op"], one["bytes"]) for one in lines) == sorted(expected), dump(p)
    for us in [one["us"] for one in lines] + [
        one["barrier_us"] for one in lines if "--apart" in mode
    ]:
        in_order(us)
        assert len(us["batches"]) >= 3 and min(us["batches"]) == us["min"], f"too few batches: {us}"


@pytest.mark.parametrize("wrong", ["--ops brodcast", "--sizes 7", "--turns 0", "--speed"])
def test_collective_operations_refuse(wrong, measure):
    p = measure("coll", 2, "--ms", "1", *wrong.split())
    assert p.returncode != 0 and wrong.split()[-1] in p.stderr, dump(p)


@pytest.mark.parametrize("name, ranks, args, wanted", [row[:4] for row in OTHERS])
def test_a_program(name, ranks, args, wanted, measure):
    p = measure(name, ranks, *args)
    lines = measurements(p)
    assert len(lines) == wanted and not p.returncode, dump(p)
    for times in (value for line in lines for value in line.values() if isinstance(value, dict)):
        if "min" in times:
            in_order(times)


@pytest.mark.parametrize(
    "name, ranks, wrong",
    [(name, ranks, wrong) for name, ranks, _, _, refused in OTHERS for wrong in refused],
)
def test_a_program_refuses(name, ranks, wrong, measure):
    p = measure(name, ranks, *wrong)
    assert p.returncode != 0 and f"{name}: " in p.stderr, dump(p)


def test_tails_are_in_order(measure):
    for line in measurements(measure("tails", 2, "--count", "1000")):
        assert (
            0
            < line["p50_us"]
            <= line["p90_us"]
            <= line["p99_us"]
            <= line["p999_us"]
            <= line["most_us"]
        ), line


def test_turns_are_reported_so_that_a_long_run_is_not_silent(measure):
    for name, more in (("p2p", ["--sizes", "8"]), ("coll", ["--ops", "bcast", "--sizes", "8"])):
        lines = measure(name, 2, "--ms", "1", "--turns", "3", *more).stdout.splitlines()
        assert lines[:2] == ["# turn 1 of 3", "# turn 2 of 3"] and len(lines) == 3, lines


@pytest.mark.parametrize(
    "name, args",
    [
        (
            "p2p",
            [
                "--ms",
                "1",
                "--kinds",
                "pingpong,stream,unexpected,exchange,halo,pipeline",
                "--sizes",
                "0,8,65536,3000000",
            ],
        ),
        ("behind", ["--every", "5", "--questions", "3"]),
        ("overlap", ["--ms", "2", "exchange:4096"]),
        ("sweep", ["--points", "1000", "--halo", "100", "--steps", "2"]),
        ("memory", ["--rounds", "2"]),
        ("wait", ["--rounds", "3"]),
        ("rate", ["--ms", "2", "--sizes", "0,8,4096"]),
    ],
)
def test_no_two_receives_share_memory(name, args, measure, program):
    """MPI forbids it (MPI 5.0, 3.7.2): the results would be whatever came last."""
    watch = program("tests/bench/receives.c", "-shared", "-fPIC", "-O2", "-Wall")
    p = measure(name, 2, *args, preload=watch)
    assert not p.returncode and re.search(
        r"^[1-9]\d* receives were watched$", p.stderr, re.MULTILINE
    ), dump(p)


def met(p):
    connect, short, long = measurements(p)
    assert len(connect["us"]["batches"]) == 3, dump(p)
    assert 0 < connect["us"]["min"] <= connect["worst_us"], dump(p)
    assert 0 < short["us"] and short["bytes"] == 8 and long["bytes"] == 1 << 20, dump(p)


def test_two_jobs_meet(program, tmp_path):
    meet = program("bench/meet.c", "-O2", "-Wall", "-lm")
    port = tmp_path / "port"
    server = subprocess.Popen([MPIEXEC, "-n", "1", meet, "serve", port, "3"])
    p = run(MPIEXEC, "-n", 1, meet, "call", port, 3)
    met(p)
    assert server.wait(timeout=WATCHDOG) == 0
    met(run(MPIEXEC, "-n", 1, meet, "pair", 3))
    p = run(MPIEXEC, "-n", 1, meet, "shout", port, 3)
    assert p.returncode != 0 and "'shout'" in p.stderr, dump(p)
