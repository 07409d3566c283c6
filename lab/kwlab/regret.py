"""Regret: how much longer a collective takes with the algorithm that Kittiwake chooses than with the
best of all, each forced by KW_COLL and measured in the same turn (`tune.every_algorithm`).

A cell is a collective on so many ranks of a network with so many bytes. The best is the algorithm
with the least median over the rounds; what was chosen is measured by itself, as one more of them, so
that no regret is below 1. That makes it a little too large: the least of many restless figures is
luck, too. Two rounds that disagree (`trust`) count for nothing, and a cell is stable when it has
two that agree."""
from dataclasses import dataclass

from . import trust
from .analysis import geometric_mean
from .libraries import OURS
from .plan import COLLECTIVES

CHOSEN = "as chosen"  # what stands for an algorithm when none is better
LIMITS = (1.05, 1.20)  # of the mean, and of the worst stable cell: what the library wants to reach
KNOB = "KW_COLL="


def is_forced(data):
    """Which rows of measurements (or runs) are of an algorithm that was forced."""
    return data.cell.map(lambda key: key.rpartition("|")[2].startswith(KNOB)).astype(bool)


@dataclass(frozen=True)
class Cell:
    """What was chosen beside the best: microseconds (`trust.Measured`), the best one's name, and the
    ratio (`trust.Against`)."""
    network: str
    ranks: int
    op: str
    bytes: int
    chosen: trust.Measured
    best: trust.Measured
    algorithm: str
    against: trust.Against

    @property
    def regret(self):
        return self.against.ratio

    @property
    def stable(self):
        return not self.against.grey and len(self.chosen.rounds) > 1


def cells(data):
    """Every cell of settled measurements that has what was chosen and an algorithm that was forced, in their order."""
    some = data[(data.bench == COLLECTIVES) & (data.metric == "us") & (data.library == OURS) & (data["median"] > 0)]
    some = some.assign(label=some.variant.where(is_forced(some), CHOSEN))
    some = some[(some.label != CHOSEN) | (some.variant == "")]
    found = []
    for (_, network, ranks, op, n), one in some.groupby(["args", "network", "ranks", "op", "bytes"], sort=False):
        of = {label: figure(rounds) for label, rounds in one.groupby("label", sort=False)}
        if CHOSEN in of and len(of) > 1:
            found.append(cell((network, int(ranks), op, int(n)), of))
    return found


def figure(rounds):
    """The median over the rounds of one algorithm."""
    return trust.Measured(rounds["median"].median(), zip(zip(rounds.plan, rounds["round"]), rounds["median"]), bool(rounds.disturbed.all()))


def cell(place, of):
    """One cell, from its algorithms."""
    chosen = of[CHOSEN]
    # What was chosen is the best where another is as quick.
    best = min(of, key=lambda label: (of[label], label != CHOSEN))
    return Cell(*place, chosen, of[best], best, trust.against(chosen, of[best]))


@dataclass(frozen=True)
class Sum:
    """Some cells in one line: how many, those that count, their geometric mean (None where none does),
    the stable ones, and the worst of these (a Cell, or None)."""
    cells: int
    counting: int
    mean: float
    stable: int
    worst: Cell


def summed(found):
    """Of some cells."""
    counting, stable = [one for one in found if not one.against.grey], [one for one in found if one.stable]
    mean = geometric_mean(one.regret for one in counting) if counting else None
    return Sum(len(found), len(counting), mean, len(stable), max(stable, key=lambda one: one.regret, default=None))


def by(found, *fields):
    """Values of these fields -> cells."""
    groups = {}
    for one in found:
        groups.setdefault(tuple(getattr(one, field) for field in fields), []).append(one)
    return groups


def ratios(found):
    """The cells as `plots.heat_map` takes them."""
    return [{"ranks": one.ranks, "op": one.op, "bytes": one.bytes, "ratio": one.regret, "against": one.against} for one in found]
