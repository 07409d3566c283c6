"""Carries a plan out: every cell on every library in interleaved rounds, each run kept as it ends,
so that an interrupted plan goes on where it stopped. A run that goes wrong is a row that says so,
and the plan goes on."""

import itertools
import json
import math
import re
import shutil
import time
from dataclasses import dataclass, replace

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from . import applications, facts
from .libraries import OURS, Failed, Late, Unavailable, cluster
from .plan import cells
from .store import measurements
from .trust import Watch

SETTLED = ("ok", "slow")  # how a run ends that is not tried again
# A library that came to no end in a cell, and was not just slow, or is not there, is not tried
# again in later rounds: it would cost its limit each time.
ENDLESS = ("hung", "late")
HOPELESS = (*ENDLESS, "missing")
PAUSE = 0.2  # of its limit a program may be silent before it is taken to hang,
PAUSES = 4  # or this many times its longest earlier pause between two lines
WIDTH = shutil.get_terminal_size(
    (160, 25)
).columns  # of lines; what goes into a file or a pipe need not be narrow
# What rank 0 says under KW_LOG=debug of a collective that it chooses an algorithm for.
CHOICE = re.compile(r"^rank 0 on \S+: (\w+) of (\d+) bytes by (\w+) (\d+)$", re.MULTILINE)
# What KW_STATS=yes prints for each rank at the end. Kittiwake always counts, so applications are
# always asked.
COUNTERS = re.compile(r"^rank \d+: ((?:\w+ \d+(?:, )?)+)$", re.MULTILINE)


@dataclass
class Outcome:
    """How one run ended."""

    status: str
    message: str = ""
    wall: float = 0.0
    lines: tuple = ()
    others: float = None
    command: str = ""


def not_again(status):
    """Of a cell that came to no end before."""
    return Outcome(
        status, "not run: in another round it " + ("hung" if status == "hung" else "did not end")
    )


def ended(late):
    """How a run ended that was ended after its limit (`libraries.Late`). A program that prints
    lines until the end is slow, one that has stopped hangs, and for one that has printed none it
    is unknown."""
    lines = tuple(whole(late.output))
    had = f"with {len(lines)} measurements"
    if not late.pauses:
        return Outcome(
            "late",
            f"ended after {late.timeout:g} s: too slow, or it hangs; it had printed nothing",
            late.timeout,
            lines,
        )
    *before, last = late.pauses
    if last <= max(PAUSE * late.timeout, PAUSES * max(before[1:], default=0)):
        return Outcome(
            "slow",
            f"ended after {late.timeout:g} s, {had}; it was still printing",
            late.timeout,
            lines,
        )
    return Outcome(
        "hung",
        f"ended after {late.timeout:g} s, {had}; it had printed nothing for {last:.0f} s",
        late.timeout,
        lines,
    )


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
            raise ValueError(f"line {number} is not a measurement: {line[:80]!r}") from None
        found.append(value)
    if not found:
        raise ValueError(f"no measurement in what it printed: {text[:80]!r}")
    return found


def in_turn(cells, round):
    """The cells in the order of a round: in each another library comes first, so that none always
    runs after the same neighbour."""
    found = []
    for _, group in itertools.groupby(
        cells, key=lambda cell: (cell.program, cell.args, cell.ranks, cell.network)
    ):
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
    return (
        [{"bench": "counters", "op": cell.program, "mode": " ".join(cell.args), **sums}]
        if sums
        else []
    )


def settings(cell):
    """The settings that a cell runs with."""
    asked = {"KW_STATS": "yes"} if cell.application and cell.library == OURS else {}
    return asked | dict(cell.settings)


def choices(text):
    """Measurements that say by which algorithms collectives ran: the mode is its name and
    number."""
    found = {
        (re.sub(r"\B(?=[A-Z])", "_", coll).lower(), int(n)): f"{name}/{number}"
        for coll, n, name, number in CHOICE.findall(text)
    }
    return [
        {"bench": "choice", "op": op, "bytes": n, "mode": label, "chosen": 1}
        for (op, n), label in found.items()
    ]


def is_in_fortran(cell):
    """Is it a program that is built, and in Fortran?"""
    return bool(cell.application) and cell.application.in_fortran()


class Runner:
    """One plan on one machine, or on a cluster of it and others (`hosts`); of its cells those that
    `wanted` says."""

    def __init__(self, plan, store, known, wanted=lambda cell: True, hosts=""):
        self.plan, self.store = plan, store
        self.libraries = {lib.name: lib for lib in known}
        self.machine = store.machine(facts.machine() | ({"hosts": cluster(hosts)} if hosts else {}))
        self.cells = [cell for cell in cells(plan) if wanted(cell)]
        self.programs = {}
        self.hopeless = {}
        self.tried = store.tried(plan.name, self.machine)
        # of cells that came to no end by an earlier command, by their keys
        self.endless = {
            cell: status for (cell, _), status in self.tried.items() if status in ENDLESS
        }
        self.said = set()

    def leave_out(self):
        """Leaves out the cells of libraries that have no Fortran for them, as if the plan had none:
        {library: why}. One that is not installed has its rows, which say so."""
        found = {}
        for name in {cell.library for cell in self.cells if is_in_fortran(cell)}:
            library = self.libraries[name]
            if library.there() and (why := library.lacks_fortran()):
                found[name] = why
        self.cells = [c for c in self.cells if not (c.library in found and is_in_fortran(c))]
        return found

    def left(self):
        """(round, cell) still to be run, in order; those that went wrong before come last, so that
        a plan of many short turns gets on."""
        self.tried = self.store.tried(self.plan.name, self.machine)
        every = [
            (round, cell)
            for round in range(self.plan.rounds)
            for cell in in_turn(self.cells, round)
            if self.tried.get((cell.key(), round)) not in SETTLED
        ]
        return sorted(every, key=lambda one: (one[1].key(), one[0]) in self.tried)

    def measured(self):
        """Has any of its cells been measured, now or by an earlier command?"""
        keys = {cell.key() for cell in self.cells}
        return any(
            status in SETTLED and cell in keys
            for (cell, _), status in self.store.tried(self.plan.name, self.machine).items()
        )

    def program(self, library, name):
        """Where a program is, compiled for a library once."""
        if (library.name, name) not in self.programs:
            self.programs[library.name, name] = library.build(name)
        return self.programs[library.name, name]

    def once(self, cell):
        """Runs a cell, and watches what others use of the processors meanwhile."""
        library = self.libraries[cell.library]
        if not library.there():
            return Outcome("missing", library.lacks())
        try:
            words = (
                self.words(library, cell)
                if cell.application
                else [self.program(library, cell.program)]
            )
            command = library.told(
                words, cell.ranks, cell.network, *cell.args, settings=settings(cell)
            )
        except (Failed, Unavailable, OSError) as why:
            return Outcome("missing" if isinstance(why, Unavailable) else "failed", str(why))
        watch = Watch()
        outcome = self.started(library, cell, words)
        return replace(outcome, others=watch.foreign(), command=command)

    def ran(self, library, cell, words, settings, *more):
        """A cell's program, with further arguments: output, complaints, wall seconds."""
        return library.run_whole(
            words,
            cell.ranks,
            cell.network,
            *cell.args,
            *more,
            settings=settings,
            timeout=self.plan.limit,
        )

    def started(self, library, cell, words):
        """How a run ended."""
        try:
            if cell.application:
                return self.whole_program(library, cell, words)
            out, err, wall = self.ran(library, cell, words, settings(cell))
            return Outcome(
                "ok",
                wall=wall,
                lines=(*parse(out), *counters(cell, err), *self.chosen(library, cell, words)),
            )
        except Late as late:
            return ended(late)
        except Failed as error:
            return Outcome("failed", str(error), lines=tuple(whole(error.output)))
        except Unavailable as why:
            return Outcome("missing", str(why))
        except ValueError as error:
            return Outcome("nonsense", str(error))
        except OSError as error:
            return Outcome("failed", f"cannot be started: {error}")

    def chosen(self, library, cell, words):
        """Which algorithms a cell of collectives is run by, where that is asked: from a short run
        of its own, in which the ranks say so."""
        if not cell.asked:
            return []
        loud = {**dict(cell.settings), "KW_LOG": "debug"}
        _, err, _ = self.ran(library, cell, words, loud, "--ms", "1")
        return choices(err)

    def whole_program(self, library, cell, words):
        """Runs an application."""
        try:
            out, err, wall = self.ran(library, cell, words, settings(cell))
            return Outcome(
                "ok", wall=wall, lines=(cell.application.line(cell, out), *counters(cell, err))
            )
        except applications.Unverified as why:
            return Outcome("unverified", str(why))
        except Failed as error:  # some end with a status when their result is wrong
            try:
                cell.application.reading.figures(error.output)
            except applications.Unverified as why:
                return Outcome("unverified", str(why))
            except ValueError:
                pass
            raise

    def words(self, library, cell):
        """What an application is started with; what has to be built is, for a library once."""
        application = cell.application
        if not application.build:
            return application.words(library, cell.ranks)
        key = (library.name, application.build, application.name)
        if key not in self.programs:
            self.programs[key] = application.words(library, cell.ranks)
        return self.programs[key]

    def settle(self, round, cell):
        """Runs a cell unless it is known to be hopeless, and keeps the result. What came to no end
        under an earlier command is hopeless in further rounds; the round of then is tried again."""
        if cell.key() in self.endless and (cell.key(), round) not in self.tried:
            outcome = not_again(self.endless[cell.key()])
        else:
            outcome = self.hopeless.get(cell) or self.once(cell)
            if outcome.status in HOPELESS:
                self.hopeless[cell] = (
                    not_again(outcome.status) if outcome.status in ENDLESS else outcome
                )
        version = self.libraries[cell.library].version()
        self.store.add(
            self.plan.name,
            cell,
            round,
            self.machine,
            version,
            outcome.status,
            outcome.message,
            outcome.wall,
            outcome.lines,
            outcome.others,
            outcome.command,
        )
        return outcome

    def run(self, seconds=math.inf):
        """Runs what is left, with a progress bar, and begins nothing after this many seconds.
        Prints what went wrong; returns the number of failed runs, and of those that are left."""
        left, wrong, until = self.left(), 0, time.monotonic() + seconds
        columns = [
            SpinnerColumn(),
            BarColumn(20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
        ]
        with Progress(*columns, console=Console(width=WIDTH)) as progress:
            task = progress.add_task(self.plan.name, total=len(left))
            for number, (round, cell) in enumerate(left):
                if time.monotonic() >= until:
                    return wrong, len(left) - number
                progress.update(task, description=f"round {round + 1}  {cell.label()}")
                outcome = self.settle(round, cell)
                if outcome.status != "ok":
                    wrong += outcome.status not in SETTLED
                    self.say(progress.console, cell, outcome)
                progress.advance(task)
            progress.update(task, description=f"{self.plan.title}: done")
        return wrong, 0

    def say(self, console, cell, outcome):
        """Says what went wrong; of a library that is not there, once."""
        what = (
            (cell.library, cell.network if "host lab" in outcome.message else "")
            if outcome.status == "missing"
            else cell
        )
        if what not in self.said:
            self.said.add(what)
            where = cell.library if outcome.status == "missing" else cell.label()
            console.print(f"[yellow]{outcome.status}[/]  {where}: ", end="")
            console.print(outcome.message, highlight=False, markup=False)
