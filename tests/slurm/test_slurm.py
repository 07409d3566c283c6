#!/usr/bin/env python3
"""Our library under Slurm: a cluster of emulated nodes on this machine (`cluster`), srun over PMI-2 and PMIx, and our mpiexec inside an
allocation. `tests/slurm/run [NAME...]`. Where no cluster can run it is skipped; with NEED_SLURM=1 it fails then."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import DIST, MPIEXEC, ROOT, SKIPPED, WATCHDOG  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OUT = ROOT / "build/tests/slurm"
RANK = OUT / "rank"
LAST_WORDS = OUT / "last-words"
NODES = 3
WHO = r"^rank (\d+) of (\d+) sum (\d+) local (\d+) app (-?\d+) universe (-?\d+)$"


def test(f):
    """A test that begins when no job holds a node."""
    def one():
        settle()
        f()
    one.__name__ = f.__name__
    return harness.test(one)


def call(*words, status=0, **env):
    p = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=WATCHDOG, stdin=subprocess.DEVNULL,
                       env={**os.environ, **env})
    told = f"{' '.join(map(str, words))}\nstatus {p.returncode}\n{p.stdout}{p.stderr}"
    assert p.returncode == status or status == "not 0" and p.returncode, told
    return p.stdout + p.stderr


def srun(mpi, *words, **how):
    return call("srun", "--quiet", f"--mpi={mpi}", *words, **how)


def met(text, n):
    """What n ranks of one job said, by rank: [local, app, universe]."""
    found = sorted(tuple(map(int, m)) for m in re.findall(WHO, text, re.M))
    assert [f[:3] for f in found] == [(r, n, n * (n - 1) // 2) for r in range(n)], text
    return [f[3:] for f in found]


def both(f):
    """A test of each of Slurm's two ways."""
    for mpi in ("pmi2", "pmix"):
        def one(mpi=mpi):
            f(mpi)
        one.__name__ = f"{f.__name__}_{mpi}"
        test(one)
    return f


@both
def ranks_of_several_nodes_meet(mpi):
    for nodes, n in ((1, 1), (1, 5), (2, 4), (3, 7)):
        found = met(srun(mpi, "-N", nodes, "-n", n, "--overcommit", RANK), n)
        assert all(universe == n for *_, universe in found), found


@both
def ranks_share_memory_with_those_of_their_node(mpi):
    found = met(srun(mpi, "-N", 3, "-n", 6, "-m", "block", RANK), 6)
    assert [f[0] for f in found] == [2] * 6, found


@both
def ranks_may_be_spread_unevenly(mpi):
    # three on the first node, one on each of the others
    hosts = OUT / f"hosts-{mpi}"
    hosts.write_text("n1\nn2\nn1\nn3\nn1\n")
    found = met(srun(mpi, "-N", 3, "-n", 5, "--overcommit", "-m", "arbitrary", RANK, SLURM_HOSTFILE=str(hosts)), 5)
    assert [f[0] for f in found] == [3, 1, 3, 1, 3], found


@both
def binding_is_respected(mpi):
    text = srun(mpi, "-N", 1, "-n", 2, "--cpu-bind=map_cpu:1,0", RANK, "processors")
    assert sorted(re.findall(r"^rank (\d) on (\d+): (.*)$", text, re.M)) == [("0", "1", "1"), ("1", "1", "0")], text


@both
def heterogeneous_parts_are_one_job(mpi):
    # Slurm 22.05's srun does not always end after such a job under PMIx, not even one of /bin/true: it may be late, our ranks may not
    words = f"timeout -s KILL {WATCHDOG} srun --quiet --mpi={mpi} --job-name parts -N 1 -n 1 {RANK} : -N 1 -n 2 {RANK}"
    job = subprocess.Popen(words.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    found = met("".join(job.stdout.readline() for _ in range(3)), 3)
    assert [f[0] for f in found] == [1, 2, 2], found
    gone()
    try:
        assert job.wait(5) == 0, job.stdout.read()
    except subprocess.TimeoutExpired:
        call("scancel", "--name", "parts")
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


@both
def steps_of_one_allocation_follow_each_other(mpi):
    script = f"srun --quiet --mpi={mpi} {RANK} && srun --quiet --mpi={mpi} -n 2 {RANK} && srun --quiet --mpi={mpi} {RANK}"
    text = call("salloc", "--quiet", "-N", 2, "-n", 4, "sh", "-c", script)
    assert len(re.findall(r"^rank \d+ of 4 sum 6 ", text, re.M)) == 8, text
    assert len(re.findall(r"^rank \d+ of 2 sum 1 ", text, re.M)) == 2, text


@both
def two_jobs_at_once_do_not_mix(mpi):
    jobs = [subprocess.Popen(["srun", "--quiet", f"--mpi={mpi}", "-n", "2", "-N", "1", "--exclusive", RANK], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(2)]
    for job in jobs:
        met(job.communicate(timeout=WATCHDOG)[0], 2)


@both
def cancel_leaves_nothing(mpi):
    job = subprocess.Popen(["srun", f"--mpi={mpi}", "-N", "3", "-n", "6", "--job-name", "to-cancel", RANK, "wait"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(6):
        line = job.stdout.readline()
        assert " is up" in line, line + job.stderr.read()
    assert len(left()) == 6
    call("scancel", "--name", "to-cancel")
    job.communicate(timeout=WATCHDOG)
    assert job.returncode != 0
    gone()


@both
def abort_ends_all_nodes(mpi):
    text = srun(mpi, "-N", 3, "-n", 6, RANK, "abort", LAST_WORDS, 9, status="not 0")
    assert "rank 5 on n3 aborted the job with status 9" in text, text
    gone()


@both
def a_rank_that_dies_ends_the_job(mpi):
    LAST_WORDS.unlink(missing_ok=True)
    srun(mpi, "--kill-on-bad-exit=1", "-N", 2, "-n", 4, RANK, "die", LAST_WORDS, status="not 0")
    assert LAST_WORDS.exists(), "the ranks have not met"
    gone()


@test
def without_pmi_it_is_refused_with_the_command_that_works():
    text = srun("none", "-n", 2, RANK, status="not 0")
    assert "started by Slurm's srun" in text and "srun --mpi=pmi2 -n 2" in text and "of 1 " not in text, text


@test
def a_batch_script_may_run_a_program_alone():
    script = OUT / "script"
    script.write_text(f"#!/bin/sh\n{RANK}\n")
    out = OUT / "script.out"
    call("sbatch", "--quiet", "--wait", "-N", 2, "-n", 4, "-o", out, script)
    met(out.read_text(), 1)


def salloc(nodes, n, *words, **how):
    return call("salloc", "--quiet", "-N", nodes, "-n", n, *words, **how)


@test
def our_mpiexec_uses_the_allocation():
    found = met(salloc(3, 6, MPIEXEC, RANK), 6)
    assert all(f == (2, 0, 6) for f in found), found
    found = met(salloc(2, 4, MPIEXEC, "-n", 3, RANK), 3)
    assert [f[0] for f in found] == [2, 2, 1], found
    text = salloc(2, 2, MPIEXEC, "-v", "-l", RANK)
    assert "mpiexec: rank 1 on n2" in text, text


@test
def our_mpiexec_uses_the_allocation_of_a_batch_script():
    out = OUT / "mpiexec.out"
    call("sbatch", "--quiet", "--wait", "-N", 3, "-n", 6, "-o", out, "--wrap", f"{MPIEXEC} {RANK}")
    met(out.read_text(), 6)


@test
def our_mpiexec_ends_as_everywhere():
    assert "rank 3 on n2 exited with status 7" in salloc(2, 4, MPIEXEC, RANK, "exit", 7, status=7)
    assert "rank 3 on n2 aborted the job with status 9" in salloc(2, 4, MPIEXEC, RANK, "abort", LAST_WORDS, 9, status=9)
    salloc(2, 4, MPIEXEC, RANK, "die", LAST_WORDS, status="not 0")
    gone()


@test
def cancel_of_an_allocation_ends_our_mpiexec():
    out = OUT / "cancelled.out"
    job = call("sbatch", "--parsable", "-N", 3, "-n", 6, "-o", out, "--wrap", f"{MPIEXEC} {RANK} wait").strip()
    harness.wait_until(lambda: out.exists() and out.read_text().count(" is up") == 6, "the ranks do not come up")
    call("scancel", job)
    gone()


def left():
    def ours(p):
        try:
            return os.readlink(p / "exe") == str(RANK)
        except OSError:
            return False
    return [p.name for p in pathlib.Path("/proc").glob("[0-9]*") if ours(p)]


def gone():
    end = time.monotonic() + 20
    while left():
        assert time.monotonic() < end, f"processes {left()} are left"
        time.sleep(0.1)


def settle():
    """Waits until no job holds a node."""
    end = time.monotonic() + 30
    while call("squeue", "-h").strip() and time.monotonic() < end:
        time.sleep(0.1)


def main():
    if "TEST_CLUSTER" in os.environ:
        return harness.main("Slurm")
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([DIST / "bin/mpicc", "-o", RANK, ROOT / "tests/launchers/rank.c"], check=True)
    env = {**os.environ, "LD_LIBRARY_PATH": str(DIST / "lib")}
    p = subprocess.run([HERE / "cluster", "--nodes", str(NODES), "--", sys.executable, __file__, *sys.argv[1:]], env=env)
    if p.returncode == SKIPPED:
        print("skipped: there is no Slurm to run (see above); NEED_SLURM=1 makes this a failure")
        return 1 if os.environ.get("NEED_SLURM") == "1" else SKIPPED
    return p.returncode


sys.exit(main())
