"""Regret: how much longer a collective takes with the algorithm that Kittiwake chooses than with
the best of all, each forced by KW_COLL and measured in the same turn (`tune.every_algorithm`).

A cell is a collective on a number of ranks of a network with a number of bytes. The best is the
algorithm with the least median over the rounds. What was chosen is measured by itself, and its
ranks say which algorithm it is (`Runner.chosen`): where that was forced, too, the same code ran
twice, and a round's figure is the mean of both. So a regret is above 1 only where another algorithm
was quicker. Rows of `shm` that differ in the length of pieces are one algorithm where all fits
into one (`whole`). Trees in a shm region are for short data, and what is longer is done as chosen
(`is_passed_over`). It is still a little too large: the least of many restless figures is luck, too.
Two rounds that disagree (`trust`) count for nothing, and a cell is stable when it has two that
agree."""

from dataclasses import dataclass

from . import trust
from .analysis import geometric_mean
from .libraries import OURS
from .plan import COLLECTIVES

CHOSEN = "as chosen"  # what stands for an algorithm when none is better
LIMITS = (1.05, 1.20)  # of the mean, and of the worst stable cell: what the library wants to reach
SETTING = "KW_COLL="
CHOICE = "choice"  # the measurements that say what was chosen
USUAL = "4"  # an algorithm's number where its row has none
PIECES = "shm"  # the algorithm whose number is the kilobytes of a piece
SPARE = 4  # all data of the ranks certainly fits into one piece if it is shorter by this factor

SHORT = 4096  # bytes of a short shm buffer, as crates/base/src/shm_region.rs has it
TREES = ("shm_tree", "shm_levels")  # reductions by these go through short shm buffers alone


def is_forced(data):
    """Which rows of measurements (or runs) are of an algorithm that was forced."""
    return data.cell.map(lambda key: key.rpartition("|")[2].startswith(SETTING)).astype(bool)


@dataclass(frozen=True)
class Cell:
    """What was chosen beside the best: microseconds (`trust.Measured`), the best one's name, and
    the ratio (`trust.Against`)."""

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
    """Every cell of settled measurements that has what was chosen and an algorithm that was forced,
    in their order."""
    some = data[
        (data.bench == COLLECTIVES)
        & (data.metric == "us")
        & (data.library == OURS)
        & (data["median"] > 0)
    ]
    some = some.assign(label=some.variant.where(is_forced(some), CHOSEN))
    some = some[(some.label != CHOSEN) | (some.variant == "")]
    chosen = ran_by(data)
    found = []
    for (args, network, ranks, op, n), one in some.groupby(
        ["args", "network", "ranks", "op", "bytes"], sort=False
    ):
        label = chosen.get((args, network, ranks, op, n), "")
        known = (CHOSEN if is_passed_over(op, forced, n) else forced for forced in one.label)
        one = one.assign(label=[whole(forced, n * ranks) for forced in known])
        label = among(whole(label, n * ranks), set(one.label))
        one = one.assign(label=one.label.where(one.label != label, CHOSEN))
        of = {label: figure(rounds) for label, rounds in one.groupby("label", sort=False)}
        if CHOSEN in of and len(of) > 1:
            found.append(cell((network, int(ranks), op, int(n)), of))
    return found


def is_passed_over(op, label, bytes_):
    """Whether a forced algorithm cannot do this many bytes: then the usual choice is made."""
    name = label.partition("/")[0]
    long = bytes_ > SHORT
    return long and name in TREES and (op, name) != ("bcast", "shm_levels")


def whole(label, bytes_):
    """The same label for all lengths of a piece into which this many bytes fit."""
    name, _, number = label.partition("/")
    fits = name == PIECES and SPARE * bytes_ <= int(number or USUAL) << 10
    return f"{PIECES}/whole" if fits else label


def ran_by(data):
    """(arguments, network, ranks, collective, bytes) -> which algorithm was chosen, as
    `name/number`."""
    some = data[(data.bench == CHOICE) & (data.library == OURS)]
    return {
        (one.args, one.network, one.ranks, one.op, one.bytes): one.mode for one in some.itertuples()
    }


def among(chosen, labels):
    """The chosen algorithm among those that were forced; None if it was not forced, or is unknown.
    Algorithms without a number are forced without one, and so is the usual number."""
    name, _, number = (chosen or "").partition("/")
    usual = number == USUAL or not any(label.startswith(f"{name}/") for label in labels)
    return next((label for label in (chosen, name if usual else None) if label in labels), None)


def figure(rounds):
    """The median over the rounds of one algorithm, each round the mean of its figures."""
    means = rounds.groupby(["plan", "round"])["median"].mean()
    return trust.Measured(means.median(), means.to_dict(), bool(rounds.disturbed.all()))


def cell(place, of):
    """One cell, from its algorithms."""
    chosen = of[CHOSEN]
    # What was chosen is the best where another is as quick.
    best = min(of, key=lambda label: (of[label], label != CHOSEN))
    return Cell(*place, chosen, of[best], best, trust.against(chosen, of[best]))


@dataclass(frozen=True)
class Sum:
    """Some cells in one line: how many, those that count, their geometric mean (None where none
    does), the stable ones, and the worst of these (a Cell, or None)."""

    cells: int
    counting: int
    mean: float
    stable: int
    worst: Cell


def summed(found):
    """Of some cells."""
    counting = [one for one in found if not one.against.grey]
    stable = [one for one in found if one.stable]
    mean = geometric_mean(one.regret for one in counting) if counting else None
    return Sum(
        len(found),
        len(counting),
        mean,
        len(stable),
        max(stable, key=lambda one: one.regret, default=None),
    )


def by(found, *fields):
    """Values of these fields -> cells."""
    groups = {}
    for one in found:
        groups.setdefault(tuple(getattr(one, field) for field in fields), []).append(one)
    return groups


def ratios(found):
    """The cells as `plots.heat_map` takes them."""
    return [
        {
            "ranks": one.ranks,
            "op": one.op,
            "bytes": one.bytes,
            "ratio": one.regret,
            "against": one.against,
        }
        for one in found
    ]
