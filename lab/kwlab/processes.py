"""A launcher and its ranks while they run: reads what they write, waits for them, ends them with
all that they have started."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

MOST_OUTPUT = 4 << 20  # a program that prints more is ended
KIND = 2  # seconds between asking a job to end and ending it


class Output(threading.Thread):
    """Reads what a program writes; ends the program when that is more than anybody would want to
    read."""

    def __init__(self, running, stream):
        super().__init__(daemon=True)
        self.running, self.stream, self.found, self.flooded = running, stream, bytearray(), False
        self.moments = [time.monotonic()]  # of its start, and of all it has written
        self.start()

    def run(self):
        try:
            while piece := self.stream.read1(1 << 16):
                self.found += piece
                self.moments.append(time.monotonic())
                if len(self.found) > MOST_OUTPUT:
                    self.flooded = True
                    end(self.running)
                    return
        except (OSError, ValueError):
            pass  # closed by the code that ended the program

    def text(self):
        """So far."""
        return self.found.decode(errors="replace")

    def pauses(self, now):
        """Seconds between what it wrote, the last up to now; none when that is nothing."""
        moments = [*self.moments, now]
        return (
            [late - early for early, late in zip(moments, moments[1:])] if len(moments) > 2 else []
        )


def wait(running, out, err, timeout):
    """The status of a program that has ended and written all; raises TimeoutExpired."""
    until = time.monotonic() + timeout
    for reader in (out, err):
        reader.join(max(0, until - time.monotonic()))
        if reader.is_alive():
            raise subprocess.TimeoutExpired(running.args, timeout)
    return running.wait(max(0.1, until - time.monotonic()))


def end(running):
    """Ends a launcher and its ranks, kindly first; whatever else runs in its session goes too."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in session(running.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + KIND
        while session(running.pid) and time.monotonic() < until:
            time.sleep(0.05)


def session(leader):
    """The processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found
