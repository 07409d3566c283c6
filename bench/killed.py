#!/usr/bin/env python3
"""Time from the death of a rank to the end of its job.

    killed.py [--rounds N] [--after SECONDS] MPIEXEC [OPTION...] -n RANKS [OPTION...] PROGRAM [...]

Starts the job, kills the last rank with SIGKILL after some seconds (default 1), and waits for the
end of the job; prints the milliseconds of each round, the exit code and the last line of what the
job said. PROGRAM must run longer. For a collective write, for example:

    bench/killed.py dist/bin/mpiexec -n 4 ./io --turns 101 --kinds write64k /scratch/file

with bench/io.c; MPIEXEC may be another library's. Exits with 1 if a job ended before, or well."""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time


def command_of(pid):
    """The words of a process; none where it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as words:
            return words.read().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def children_of(pid):
    """The processes that a process has started, and those that they have."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                found += [int(child), *children_of(child)]
    return found


def last_rank(job, program):
    """The process of the program that was started last."""
    ranks = [pid for pid in children_of(job.pid) if command_of(pid)[:1] == [program]]
    return max(ranks) if ranks else None


def program_of(words):
    """The first word that names a program, behind `-n RANKS`."""
    behind = words.index("-n") + 2
    return next(w for w in words[behind:] if os.access(w, os.X_OK) and os.path.isfile(w))


def kill_once(words, after):
    """Milliseconds until the job had ended, its exit code, and what it said."""
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as job:
        time.sleep(after)
        rank = last_rank(job, program_of(words))
        if job.poll() is not None or rank is None:
            job.terminate()
            sys.exit(f"the job has no rank left to kill: {job.communicate()[1]}")
        begin = time.monotonic()
        os.kill(rank, signal.SIGKILL)
        said = job.communicate()[1]
        return (time.monotonic() - begin) * 1000, job.returncode, said


def main():
    """Reads the arguments, kills, and prints."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--after", type=float, default=1)
    arguments.add_argument("command", nargs=argparse.REMAINDER)
    given = arguments.parse_args()
    times = []
    for _ in range(given.rounds):
        took, code, said = kill_once(given.command, given.after)
        lines = said.strip().splitlines()
        print(f"{took:.1f} ms, exit code {code}: {lines[-1] if lines else 'nothing was said'}")
        if code == 0:
            sys.exit("the job ended well, though a rank was killed")
        times.append(took)
    print(f"median {statistics.median(times):.1f} ms, longest {max(times):.1f} ms")


if __name__ == "__main__":
    main()
