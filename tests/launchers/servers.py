"""A launcher of our own making, for what no good launcher does: it speaks PMI-1 to the ranks that
it starts, and can stop in the middle of a line, talk nonsense, die, give two jobs the same name."""

import os
import re
import socket
import subprocess
import threading

from jobs import DIST, WATCHDOG


class Half(bytes):
    """Nothing follows these bytes."""


class Job:
    """Ranks and the thread that serves each. `spoil(rank, command, answer)` may give another
    answer: bytes, or None to hang up. No rank hears from it that another one has ended."""

    def __init__(self, size, *program, name="job", spoil=None, env=None):
        self.size, self.name, self.env = size, name, env or {}
        self.spoil = spoil or (lambda rank, command, answer: answer)
        self.store = {"PMI_process_mapping": f"(vector,(0,1,{size}))"}
        self.fence = threading.Barrier(size)
        self.wires = []
        self.ranks = [self.start(r, program) for r in range(size)]

    def start(self, rank, program):
        ours, theirs = socket.socketpair()
        env = {k: v for k, v in os.environ.items() if not re.match("PMI|SLURM|OMPI", k)}
        env.update(
            PMI_FD=str(theirs.fileno()),
            PMI_RANK=str(rank),
            PMI_SIZE=str(self.size),
            LD_LIBRARY_PATH=str(DIST / "lib"),
        )
        env.update(self.env)
        p = subprocess.Popen(
            [str(w) for w in program],
            env=env,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
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
