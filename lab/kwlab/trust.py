"""What may be believed of a figure. A run during which others used the machine counts only where
there is no other of its cell, and a ratio whose rounds disagree says nothing: such figures are
shown in grey and count for nothing."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

DISTURBED = 0.05  # share of all processors that others used while a program ran
DISAGREE = 1.5  # times the least ratio of a round that the greatest of another may be
NOISE = 0.05  # seconds of processors that are not worth a word
TICK = os.sysconf("SC_CLK_TCK")


class Watch:
    """What others use of the processors from now on."""

    def __init__(self):
        self.began, self.busy, self.own = time.monotonic(), busy(), own()

    def foreign(self):
        """Their share of all processors; 0 when it is little."""
        seconds = (busy() - self.busy) - (own() - self.own)
        return (
            max(0.0, seconds) / ((time.monotonic() - self.began) * os.cpu_count())
            if seconds > NOISE
            else 0.0
        )


def busy():
    """Seconds that processors have worked for processes, or were not given to this machine, since
    it was started."""
    user, nice, system, _, _, _, _, steal = (
        int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + steal) / TICK


def own():
    """Seconds of processors that this process and what it has started and seen end have used."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in used)


CELL = [
    "machine",
    "library",
    "variant",
    "network",
    "ranks",
    "bench",
    "op",
    "mode",
    "bytes",
    "metric",
]


def settled(data, cell=CELL):
    """Measurements (or runs, with what their `cell` is) without those of disturbed runs, where the
    cell has others; `disturbed`: it has none. Runs that were not watched count as undisturbed."""
    data = data.assign(disturbed=data.others.fillna(0) > DISTURBED)
    if data.empty:
        return data
    alone = data.groupby(list(cell)).disturbed.transform("all")
    return data[~data.disturbed | alone]


class Measured(float):
    """The median of a library's rounds in a cell. `rounds`: round -> value; `grey`: it counts for
    nothing."""

    def __new__(cls, value, rounds=(), grey=False):
        one = super().__new__(cls, value)
        one.rounds, one.grey = dict(rounds), grey
        return one

    def map(self, function):
        """The same of every value, where `function` only grows or only falls."""
        return Measured(
            function(float(self)),
            {at: function(value) for at, value in self.rounds.items()},
            self.grey,
        )

    @property
    def span(self):
        """The least and the greatest round."""
        return (
            (min(self.rounds.values()), max(self.rounds.values()))
            if self.rounds
            else (float(self), float(self))
        )


def grey(value):
    """Does a figure count for nothing?"""
    return getattr(value, "grey", False)


def counting(of):
    """Those of {who: value} that count."""
    return {who: value for who, value in of.items() if not grey(value)}


@dataclass(frozen=True)
class Against:
    """A ratio of two figures: of their medians, and of each round that both have."""

    ratio: float
    rounds: tuple = ()
    disturbed: bool = False

    @property
    def grey(self):
        return self.disturbed or self.disagree

    @property
    def disagree(self):
        return bool(self.rounds) and max(self.rounds) > DISAGREE * min(self.rounds)


def against(one, other):
    """The ratio of two figures."""
    mine, theirs = (getattr(value, "rounds", {}) for value in (one, other))
    return Against(
        one / other,
        tuple(value / theirs[at] for at, value in mine.items() if theirs.get(at)),
        grey(one) or grey(other),
    )
