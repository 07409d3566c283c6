"""Our library under Slurm: a cluster of emulated nodes on this machine (`cluster`), srun over PMI-2
and PMIx, and our mpiexec inside an allocation. Where no cluster can run it is skipped; with
NEED_SLURM=1 it fails then."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from jobs import DIST, MPIEXEC, WATCHDOG, slurm, dump, wait_until
from jobs import run as command

NODES = 3
WHO = r"^rank (\d+) of (\d+) sum (\d+) local (\d+) app (-?\d+) universe (-?\d+)$"
both = pytest.mark.parametrize("mpi", ["pmi2", "pmix"])


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with slurm(NODES):
        yield


@pytest.fixture(autouse=True)
def settled(cluster):
    """A test ends when no job holds a node any more, if it can."""
    yield
    end = time.monotonic() + 30
    while call("squeue", "-h").strip() and time.monotonic() < end:
        time.sleep(0.1)


@pytest.fixture
def rank(program):
    return program("tests/launchers/rank.c")


@pytest.fixture
def grow(program):
    return program("tests/launchers/grow.c")


def call(*words, status=0, **env):
    p = command(*words, env=env, stdin=subprocess.DEVNULL)
    assert p.returncode == status or status == "not 0" and p.returncode, dump(p)
    return p.stdout + p.stderr


def srun(mpi, *words, **how):
    return call("srun", "--quiet", f"--mpi={mpi}", *words, **how)


def met(text, n):
    """What n ranks of one job said, by rank: [local, app, universe]."""
    found = sorted(tuple(map(int, m)) for m in re.findall(WHO, text, re.M))
    assert [f[:3] for f in found] == [(r, n, n * (n - 1) // 2) for r in range(n)], text
    return [f[3:] for f in found]


@both
def test_ranks_of_several_nodes_meet(mpi, rank):
    for nodes, n in ((1, 1), (1, 5), (2, 4), (3, 7)):
        found = met(srun(mpi, "-N", nodes, "-n", n, "--overcommit", rank), n)
        assert all(universe == n for *_, universe in found), found


@both
def test_ranks_share_memory_with_those_of_their_node(mpi, rank):
    found = met(srun(mpi, "-N", 3, "-n", 6, "-m", "block", rank), 6)
    assert [f[0] for f in found] == [2] * 6, found


@both
def test_ranks_may_be_spread_unevenly(mpi, rank, tmp_path):
    # three on the first node, one on each of the others
    hosts = tmp_path / f"hosts-{mpi}"
    hosts.write_text("n1\nn2\nn1\nn3\nn1\n")
    found = met(
        srun(
            mpi,
            "-N",
            3,
            "-n",
            5,
            "--overcommit",
            "-m",
            "arbitrary",
            rank,
            SLURM_HOSTFILE=str(hosts),
        ),
        5,
    )
    assert [f[0] for f in found] == [3, 1, 3, 1, 3], found


@both
def test_binding_is_respected(mpi, rank):
    text = srun(mpi, "-N", 1, "-n", 2, "--cpu-bind=map_cpu:1,0", rank, "processors")
    assert sorted(re.findall(r"^rank (\d) on (\d+): (.*)$", text, re.M)) == [
        ("0", "1", "1"),
        ("1", "1", "0"),
    ], text


@both
def test_heterogeneous_parts_are_one_job(mpi, rank):
    # Slurm 22.05's srun does not always end after such a job under PMIx, not even one of /bin/true:
    # it may be late, our ranks may not
    words = (
        f"timeout -s KILL {WATCHDOG} srun --quiet --mpi={mpi} --job-name parts -N 1 -n 1 {rank} : "
        f"-N 1 -n 2 {rank}"
    )
    job = subprocess.Popen(
        words.split(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    found = met("".join(job.stdout.readline() for _ in range(3)), 3)
    assert [f[0] for f in found] == [1, 2, 2], found
    gone(rank)
    try:
        assert job.wait(5) == 0, job.stdout.read()
    except subprocess.TimeoutExpired:
        call("scancel", "--name", "parts")
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


@both
def test_ranks_of_several_nodes_start_processes(mpi, grow):
    """The mpiexec of MPI_Comm_spawn uses the allocation of the job that starts them."""
    found = srun(mpi, "-N", 3, "-n", 3, grow, "nodes")
    wanted = [f"rank {r} grows to 5, 1 on a node" for r in range(3)]
    assert sorted(found.splitlines()) == wanted, found


@both
def test_steps_of_one_allocation_follow_each_other(mpi, rank):
    script = (
        f"srun --quiet --mpi={mpi} {rank} && srun --quiet --mpi={mpi} -n 2 {rank} && "
        f"srun --quiet --mpi={mpi} {rank}"
    )
    text = call("salloc", "--quiet", "-N", 2, "-n", 4, "sh", "-c", script)
    assert len(re.findall(r"^rank \d+ of 4 sum 6 ", text, re.M)) == 8, text
    assert len(re.findall(r"^rank \d+ of 2 sum 1 ", text, re.M)) == 2, text


@both
def test_two_jobs_at_once_do_not_mix(mpi, rank):
    jobs = [
        subprocess.Popen(
            ["srun", "--quiet", f"--mpi={mpi}", "-n", "2", "-N", "1", "--exclusive", rank],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(2)
    ]
    for job in jobs:
        met(job.communicate(timeout=WATCHDOG)[0], 2)


@both
def test_cancel_leaves_nothing(mpi, rank):
    job = subprocess.Popen(
        ["srun", f"--mpi={mpi}", "-N", "3", "-n", "6", "--job-name", "to-cancel", rank, "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(6):
        line = job.stdout.readline()
        assert " is up" in line, line + job.stderr.read()
    assert len(left(rank)) == 6
    call("scancel", "--name", "to-cancel")
    job.communicate(timeout=WATCHDOG)
    assert job.returncode != 0
    gone(rank)


@both
def test_abort_ends_all_nodes(mpi, rank, tmp_path):
    text = srun(mpi, "-N", 3, "-n", 6, rank, "abort", tmp_path / "last-words", 9, status="not 0")
    assert "rank 5 on n3 aborted the job with status 9" in text, text
    gone(rank)


@both
def test_a_rank_that_dies_ends_the_job(mpi, rank, tmp_path):
    srun(
        mpi,
        "--kill-on-bad-exit=1",
        "-N",
        2,
        "-n",
        4,
        rank,
        "die",
        tmp_path / "last-words",
        status="not 0",
    )
    assert (tmp_path / "last-words").exists(), "the ranks have not met"
    gone(rank)


def test_without_pmi_it_is_refused_with_the_command_that_works(rank):
    text = srun("none", "-n", 2, rank, status="not 0")
    assert (
        "started by Slurm's srun" in text and "srun --mpi=pmi2 -n 2" in text and "of 1 " not in text
    ), text


def test_a_batch_script_may_run_a_program_alone(rank, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{rank}\n")
    out = tmp_path / "script.out"
    call("sbatch", "--quiet", "--wait", "-N", 2, "-n", 4, "-o", out, script)
    met(out.read_text(), 1)


def salloc(nodes, n, *words, **how):
    return call("salloc", "--quiet", "-N", nodes, "-n", n, *words, **how)


def test_our_mpiexec_uses_the_allocation(rank):
    found = met(salloc(3, 6, MPIEXEC, rank), 6)
    assert all(f == (2, 0, 6) for f in found), found
    found = met(salloc(2, 4, MPIEXEC, "-n", 3, rank), 3)
    assert [f[0] for f in found] == [2, 2, 1], found
    text = salloc(2, 2, MPIEXEC, "-v", "-l", rank)
    assert "mpiexec: rank 1 on n2" in text, text


def test_ranks_of_our_mpiexec_in_an_allocation_start_processes(grow):
    found = salloc(3, 3, MPIEXEC, grow, "nodes")
    wanted = [f"rank {r} grows to 5, 1 on a node" for r in range(3)]
    assert sorted(found.splitlines()) == wanted, found


def test_the_laboratory_measures_over_the_nodes_of_an_allocation(tmp_path):
    (tmp_path / "small.toml").write_text(
        'title = "t"\nrounds = 1\nlibraries = ["kittiwake"]\n[[work]]\nprogram = "p2p"\n'
        'args = ["--ms", "5", "--sizes", "8"]\nnetwork = ["tcp"]\n'
    )
    kwlab = pathlib.Path(sys.executable).parent / "kwlab"
    text = salloc(
        2,
        2,
        kwlab,
        "run",
        tmp_path / "small.toml",
        "--hosts",
        "slurm",
        "--data",
        tmp_path / "d.sqlite",
        "--dist",
        DIST,
    )
    call(kwlab, "export", tmp_path / "d.json", "--data", tmp_path / "d.sqlite")
    (found,) = json.loads((tmp_path / "d.json").read_text())["runs"]
    assert (found["status"], found["network"]) == ("ok", "cluster") and found["figures"][0][
        "median"
    ] > 0, (text, found)


def test_our_mpiexec_uses_the_allocation_of_a_batch_script(rank, tmp_path):
    out = tmp_path / "mpiexec.out"
    call("sbatch", "--quiet", "--wait", "-N", 3, "-n", 6, "-o", out, "--wrap", f"{MPIEXEC} {rank}")
    met(out.read_text(), 6)


def test_our_mpiexec_ends_as_everywhere(rank, tmp_path):
    assert "rank 3 on n2 exited with status 7" in salloc(2, 4, MPIEXEC, rank, "exit", 7, status=7)
    assert "rank 3 on n2 aborted the job with status 9" in salloc(
        2, 4, MPIEXEC, rank, "abort", tmp_path / "last-words", 9, status=9
    )
    salloc(2, 4, MPIEXEC, rank, "die", tmp_path / "last-words", status="not 0")
    gone(rank)


def test_cancel_of_an_allocation_ends_our_mpiexec(rank, tmp_path):
    out = tmp_path / "cancelled.out"
    job = call(
        "sbatch", "--parsable", "-N", 3, "-n", 6, "-o", out, "--wrap", f"{MPIEXEC} {rank} wait"
    ).strip()
    wait_until(
        lambda: out.exists() and out.read_text().count(" is up") == 6, "the ranks do not come up"
    )
    call("scancel", job)
    gone(rank)


def left(rank):
    def ours(p):
        try:
            return os.readlink(p / "exe") == str(rank)
        except OSError:
            return False

    return [p.name for p in pathlib.Path("/proc").glob("[0-9]*") if ours(p)]


def gone(rank):
    end = time.monotonic() + 20
    while left(rank):
        assert time.monotonic() < end, f"processes {left(rank)} are left"
        time.sleep(0.1)
