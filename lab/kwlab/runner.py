"""Carries a plan out: every cell on every library in interleaved rounds, each run kept as it ends,
so that an interrupted plan goes on where it stopped. A run that goes wrong is a row that says so,
and the plan goes on."""
import itertools
import json
import math
import re
import shutil
import subprocess
import time
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import facts
from .libraries import Failed, Unavailable
from .plan import cells
from .store import measurements

# A library that hung in a cell, or is not there, is not tried again in later rounds: it would cost
# its limit each time.
HOPELESS = ("hung", "missing")
WIDTH = shutil.get_terminal_size((160, 25)).columns  # of lines; what goes into a file or a pipe need not be narrow
# What KW_STATS=yes prints for each rank at the end.
COUNTERS = re.compile(r"^rank \d+: ((?:\w+ \d+(?:, )?)+)$", re.MULTILINE)


@dataclass
class Outcome:
    """How one run ended."""
    status: str
    message: str = ""
    wall: float = 0.0
    lines: tuple = ()


HUNG_BEFORE = Outcome("hung", "not run: it hung in another round")


def parse(text):
    """The JSON lines of a program's output; launchers may have written other lines between them.
    Raises ValueError when a line that looks like ours cannot be read, or none is there."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
            list(measurements(0, value))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise ValueError(f"line {number} is no measurement: {line[:80]!r}") from None
        found.append(value)
    if not found:
        raise ValueError(f"no measurement in what it printed: {text[:80]!r}")
    return found


def in_turn(cells, round):
    """The cells in the order of a round: in each another library comes first, so that none always
    runs after the same neighbour."""
    found = []
    for _, group in itertools.groupby(cells, key=lambda cell: (cell.program, cell.args, cell.ranks, cell.network)):
        some = list(group)
        first = round % len(some)
        found += some[first:] + some[:first]
    return found


def whole(text):
    """The lines that can be read, of a program that did not come to its end."""
    found = []
    for line in (text or "").splitlines():
        try:
            found += parse(line) if line.startswith("{") else []
        except ValueError:
            pass
    return found


def counters(cell, text):
    """A measurement of Kittiwake's counters, summed over the ranks; nothing when none were
    printed."""
    sums = {}
    for rank in COUNTERS.findall(text):
        for name, value in (pair.split() for pair in rank.split(", ")):
            sums[name] = sums.get(name, 0) + int(value)
    return [{"bench": "counters", "op": cell.program, "mode": " ".join(cell.args), **sums}] if sums else []


class Runner:
    """One plan on one machine; of its cells those that `wanted` says."""

    def __init__(self, plan, store, known, wanted=lambda cell: True):
        self.plan, self.store = plan, store
        self.libraries = {lib.name: lib for lib in known}
        self.machine = store.machine(facts.machine())
        self.cells = [cell for cell in cells(plan) if wanted(cell)]
        self.programs = {}
        self.hopeless = {}
        self.tried = store.tried(plan.name, self.machine)
        self.hung = {cell for (cell, _), status in self.tried.items() if status == "hung"}  # by an earlier command, as keys
        self.said = set()

    def left(self):
        """(round, cell) still to be run, in order; those that went wrong before come last, so that
        a plan of many short turns gets on."""
        self.tried = self.store.tried(self.plan.name, self.machine)
        every = [(round, cell) for round in range(self.plan.rounds) for cell in in_turn(self.cells, round) if self.tried.get((cell.key(), round)) != "ok"]
        return sorted(every, key=lambda one: (one[1].key(), one[0]) in self.tried)

    def program(self, library, name):
        """Where a program is, compiled for a library once."""
        if (library.name, name) not in self.programs:
            self.programs[library.name, name] = library.build(name)
        return self.programs[library.name, name]

    def once(self, cell):
        """Runs a cell."""
        library = self.libraries[cell.library]
        if not library.there():
            return Outcome("missing", "not installed; `kwlab peers install` installs the peers, `make stage` Kittiwake")
        try:
            program = self.program(library, cell.program)
            out, err, wall = library.run_whole(program, cell.ranks, cell.network, *cell.args, knobs=dict(cell.knobs), timeout=self.plan.limit)
            return Outcome("ok", wall=wall, lines=(*parse(out), *counters(cell, err)))
        except subprocess.TimeoutExpired as late:
            lines = tuple(whole(late.output))
            return Outcome("hung", f"ended after {self.plan.limit:g} s, with {len(lines)} measurements", self.plan.limit, lines)
        except Failed as error:
            return Outcome("failed", str(error), lines=tuple(whole(error.output)))
        except Unavailable as why:
            return Outcome("missing", str(why))
        except ValueError as error:
            return Outcome("nonsense", str(error))
        except OSError as error:
            return Outcome("failed", f"cannot be started: {error}")

    def settle(self, round, cell):
        """Runs a cell unless it is known to be hopeless, and keeps the result. What hung under an
        earlier command is hopeless in further rounds; the round in which it hung is tried again."""
        if cell.key() in self.hung and (cell.key(), round) not in self.tried:
            outcome = HUNG_BEFORE
        else:
            outcome = self.hopeless.get(cell) or self.once(cell)
            if outcome.status in HOPELESS:
                self.hopeless[cell] = HUNG_BEFORE if outcome.status == "hung" else outcome
        version = self.libraries[cell.library].version()
        self.store.add(self.plan.name, cell, round, self.machine, version, outcome.status, outcome.message, outcome.wall, outcome.lines)
        return outcome

    def run(self, seconds=math.inf):
        """Runs what is left, with a progress bar, and begins nothing after so many seconds. Says
        what went wrong; the number of runs that did, and of those that are left."""
        left, wrong, until = self.left(), 0, time.monotonic() + seconds
        columns = [SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.description}")]
        with Progress(*columns, console=Console(width=WIDTH)) as progress:
            task = progress.add_task(self.plan.name, total=len(left))
            for number, (round, cell) in enumerate(left):
                if time.monotonic() >= until:
                    return wrong, len(left) - number
                progress.update(task, description=f"round {round + 1}  {cell.label()}")
                outcome = self.settle(round, cell)
                if outcome.status != "ok":
                    wrong += 1
                    self.say(progress.console, cell, outcome)
                progress.advance(task)
            progress.update(task, description=f"{self.plan.title}: done")
        return wrong, 0

    def say(self, console, cell, outcome):
        """Says what went wrong; of a library that is not there, once."""
        what = (cell.library, cell.network if "host lab" in outcome.message else "") if outcome.status == "missing" else cell
        if what not in self.said:
            self.said.add(what)
            where = cell.library if outcome.status == "missing" else cell.label()
            console.print(f"[yellow]{outcome.status}[/]  {where}: ", end="")
            console.print(outcome.message, highlight=False, markup=False)
