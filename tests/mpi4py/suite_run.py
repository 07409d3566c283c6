"""Runs suite.py on several processes and reads what it wrote: outcomes by test, and where every
rank stood when a run ended early."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
# Seconds in which no rank ends or begins a test, until a run counts as hung. The longest test
# computes for 4 s alone; eight of it share two cores, which others may use too.
QUIET = 240
TELL = 60  # seconds between two lines about a run that makes steps
# A run that hung or died goes on behind the module at fault, this many times.
RESUMES = 2


class Lists:
    """modules.txt: what is run, with the patterns of tests left out of it, and which modules are
    left out, with reasons."""

    def __init__(self):
        self.modules, self.patterns, self.left_out, self.alone = [], [], {}, set()
        for line in (HERE / "modules.txt").read_text().splitlines():
            words = line.split("#")[0].split()
            if words and words[0] == "-":
                self.left_out[words[1]] = " ".join(words[2:])
            elif words:
                self.modules.append(words[0])
                self.patterns += [
                    f"{words[0]}.*{x}*" for x in words[1:] if x not in ("-x", "alone")
                ]
                if "alone" in words:
                    self.alone.add(words[0])

    def for_number(self, n):
        """The modules for `n` processes: those whose ranks do nothing together are for one."""
        return [name for name in self.modules if n == 1 or name not in self.alone]

    def of(self, numbers):
        """Numbers of processes ("1,2,3", or none for the shortest run that has each module), each
        with its modules."""
        if numbers:
            return [(n, self.for_number(n)) for n in map(int, numbers.split(","))]
        return [(1, sorted(self.alone)), (2, self.for_number(2))]

    def whole(self):
        """The same for every module with every number."""
        return [(n, self.modules) for n in (1, 2, 3, 4, 8)]


class Outcome:
    """What became of the tests at one number of processes. A test is skipped, or fails, where one
    rank says so."""

    def __init__(self):
        self.tests, self.skipped, self.failed, self.seconds = set(), {}, {}, {}

    def read(self, rank, text):
        """Takes a rank's events in; says in which test it stands, or None when it is through."""
        where = "before the first module"
        for line in text.splitlines():
            try:
                e = json.loads(line)
            except ValueError:  # torn when the rank died
                continue
            name = e["test"]
            match e["event"]:
                case "begin":
                    where = name
                case "end":
                    self.tests.add(name)
                    self.seconds[name] = self.seconds.get(name, 0) + e["cpu"]
                    where = f"{name}, ended"
                case "skip":
                    self.skipped[name] = e["text"]
                case "fail":
                    self.failed.setdefault(name, f"rank {rank}: {e['text']}")
                case "done":
                    return None
        return where


def stop(p):
    os.killpg(p.pid, signal.SIGKILL)
    return p.communicate()[0]


def attempt(command, n, options, modules, source, logs, outcome):
    """One run. Returns None, or why it ended early with where every rank stood."""
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    out = open(logs / "output", "w+", encoding="utf-8", errors="replace")
    p = subprocess.Popen(
        [*command(n), str(HERE / "suite.py"), str(logs), str(source), *options, *modules],
        cwd=source,
        stdout=out,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    fault = watch(p, logs)
    stands = {rank: outcome.read(rank, read(logs / str(rank))) for rank in range(n)}
    if fault is None and p.returncode != 0 and not outcome.failed:
        fault = f"mpiexec ended with status {p.returncode}"
    if fault is None and any(stands.values()):
        fault = "a rank ended before its time"
    if fault is None:
        return None, stands
    said = "\n".join(read(logs / "output").splitlines()[-20:])
    places = "\n".join(f"rank {r} in {w or 'nothing any more'}" for r, w in stands.items())
    return f"{fault}\n{places}\n{said}", stands


def read(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def watch(p, logs):
    """Waits for the end; ends what makes no step for QUIET seconds, and says so. A line now and
    then shows in its output that there are steps."""
    size, since = -1, time.monotonic()
    told = since
    while True:
        try:
            p.wait(timeout=1)
            return None
        except subprocess.TimeoutExpired:
            pass
        now = sum(f.stat().st_size for f in logs.iterdir())
        if now != size:
            size, since = now, time.monotonic()
            if since - told > TELL:
                told = since
                print(f"... {size} bytes of steps", flush=True)
        elif time.monotonic() - since > QUIET:
            stop(p)
            return f"no rank made a step for {QUIET} s"


def suite(command, n, modules, patterns, source, logs, options=()):
    """Runs all modules on n processes, again behind a module where a run hangs or dies.
    `command(n)` starts Python."""
    outcome, rest = Outcome(), list(modules)
    options = [*options, *(word for x in patterns for word in ("-x", x))]
    for _ in range(RESUMES + 1):
        fault, stands = attempt(command, n, options, rest, source, logs, outcome)
        if fault is None:
            return outcome
        at = [rest.index(m) for m in (w.split(".")[0] for w in stands.values() if w) if m in rest]
        at = min(at, default=len(rest) - 1 if not any(stands.values()) else 0)
        outcome.failed[rest[at]] = fault
        rest = rest[at + 1 :]
        if not rest:
            return outcome
    for name in rest:
        outcome.failed[name] = f"not run: {RESUMES + 1} modules before it hung or died"
    return outcome
