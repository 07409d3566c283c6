"""A launcher of our own making, for what no good launcher does: it speaks PMI-1 to the ranks that it starts, and can stop in the middle of
a line, talk nonsense, die, give two jobs the same name. `python3 tests/launchers/servers.py` runs its tests."""

import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from engines import DIST, ROOT  # noqa: E402

OUT = ROOT / "build/tests/launchers"
RANK = OUT / "rank"
WATCHDOG = 60


class Job:
    """Ranks and the thread that serves each. `spoil(rank, command, answer)` may give another answer: bytes, or None to hang up.
    No rank hears from it that another one has ended."""

    def __init__(self, size, *program, name="job", spoil=None, env=None):
        self.size, self.name, self.env = size, name, env or {}
        self.spoil = spoil or (lambda rank, command, answer: answer)
        self.store, self.fence = {"PMI_process_mapping": f"(vector,(0,1,{size}))"}, threading.Barrier(size)
        self.wires = []
        self.ranks = [self.start(r, program) for r in range(size)]

    def start(self, rank, program):
        ours, theirs = socket.socketpair()
        env = {k: v for k, v in os.environ.items() if not re.match("PMI|SLURM|OMPI", k)}
        env.update(PMI_FD=str(theirs.fileno()), PMI_RANK=str(rank), PMI_SIZE=str(self.size), LD_LIBRARY_PATH=str(DIST / "lib"))
        env.update(self.env)
        p = subprocess.Popen([str(w) for w in program], env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        theirs.close()
        self.wires.append(ours)
        threading.Thread(target=self.serve, args=(rank, ours), daemon=True).start()
        return p

    def serve(self, rank, wire):
        try:
            for line in wire.makefile("r"):
                words = dict(w.split("=", 1) for w in line.split())
                answer = self.spoil(rank, words["cmd"], self.answer(words))
                if answer is None:
                    break
                wire.sendall(answer if isinstance(answer, bytes) else (answer + "\n").encode())
                if isinstance(answer, Half):
                    break
        except (OSError, threading.BrokenBarrierError):
            pass
        self.fence.abort()
        try:
            wire.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the rank has hung up first

    def answer(self, words):
        match words["cmd"]:
            case "init":
                return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
            case "get_maxes":
                return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"
            case "get_my_kvsname":
                return f"cmd=my_kvsname kvsname={self.name}"
            case "get_appnum":
                return "cmd=appnum appnum=0"
            case "get_universe_size":
                return f"cmd=universe_size size={self.size}"
            case "put":
                self.store[words["key"]] = words["value"]
                return "cmd=put_result rc=0"
            case "get" if words["key"] in self.store:
                return f"cmd=get_result rc=0 value={self.store[words['key']]}"
            case "get":
                return "cmd=get_result rc=-1"
            case "barrier_in":
                self.fence.wait()
                return "cmd=barrier_out"
            case "finalize":
                return "cmd=finalize_ack"
        return "cmd=what rc=-1"

    def hang_up(self):
        for wire in self.wires:
            wire.shutdown(socket.SHUT_RDWR)

    def ends(self):
        """Output, errors and status of every rank."""
        return [(*p.communicate(timeout=WATCHDOG), p.returncode) for p in self.ranks]


def met(job):
    text = "".join(out for out, _, _ in job.ends())
    seen = sorted(re.findall(r"^rank (\d+) of (\d+) sum (\d+) local (\d+)", text, re.M))
    n = job.size
    assert seen == [(str(r), str(n), str(n * (n - 1) // 2), str(n)) for r in range(n)], job.ends()


def a_good_server_is_served():
    met(Job(3, RANK))


def two_jobs_may_have_the_same_name():
    jobs = [Job(3, RANK, name="twin") for _ in range(4)]
    for job in jobs:
        met(job)


def spoiled(what, sentence, spoil):
    """Every rank of a spoiled job ends, with one sentence and a bad status."""
    for out, err, status in Job(3, RANK, spoil=spoil).ends():
        assert status != 0 and " of 3 " not in out and "panicked" not in err, (what, out, err, status)
        assert re.search(sentence, err) and err.count("\n") <= 2, (what, err)


def half(command):
    """Half of an answer, and the end."""
    def spoil(rank, cmd, good):
        return Half(good[:9].encode()) if cmd == command else good
    return spoil


class Half(bytes):
    """Nothing follows these bytes."""


def whatever_a_server_says_there_is_a_sentence():
    gone = "the launcher is gone|its launcher is gone"
    for command in ("init", "get_maxes", "get_my_kvsname", "put", "barrier_in", "get", "finalize"):
        def at(answer, command=command):
            return lambda rank, cmd, good: answer(good) if cmd == command else good
        if command != "finalize":
            spoiled(f"dies at {command}", gone, at(lambda good: None))
        if command in ("init", "get_maxes"):
            spoiled(f"half a line at {command}", gone, half(command))
            spoiled(f"nonsense at {command}", "cannot be understood", at(lambda good: b"\xff\x00\xfe nonsense\n"))
            spoiled(f"another answer at {command}", "cannot be understood", at(lambda good: "cmd=barrier_out rc=0"))


def a_server_that_dies_later_ends_the_job():
    job = Job(2, RANK, "wait")
    for p in job.ranks:
        assert " is up" in p.stdout.readline()
    job.hang_up()
    for _, err, status in job.ends():
        assert status != 0 and "its launcher is gone" in err, (err, status)


TESTS = [a_good_server_is_served, two_jobs_may_have_the_same_name, whatever_a_server_says_there_is_a_sentence,
         a_server_that_dies_later_ends_the_job]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run([DIST / "bin/mpicc", "-o", RANK, HERE / "rank.c"], check=True)
    for t in TESTS:
        t()
        print(f"ok     {t.__name__}", flush=True)
    print(f"{len(TESTS)} tests with servers of our own passed")


if __name__ == "__main__":
    main()
