"""Questions to the dataset, answered as small tables: medians over rounds, ratios, fitted models.
No drawing, no text."""

import json
from dataclasses import dataclass, field

from . import models, substitute, trust
from .lazy import numpy, pandas
from .libraries import OURS
from .plan import RANDOM

KEY = ("network", "ranks", "op", "mode", "bytes")


def called(row):
    """The library with its variant."""
    return f"{row.library} ({row.variant})" if row.variant else row.library


def medians(data, bench, metric="us"):
    """One row a cell of each library: the median over rounds of the runs' medians, with the lowest
    and highest run; `measured` is all that (`trust.Measured`), `grey` whether it counts for
    nothing. `data` is settled."""
    some = data[(data.bench == bench) & (data.metric == metric)].copy()
    some["who"] = pandas.Series(
        [called(row) for row in some.itertuples()], index=some.index, dtype=str
    )
    some["when"] = list(zip(some.plan, some["round"]))
    grouped = some.groupby(["who", *KEY], sort=False)
    table = grouped.agg(
        value=("median", "median"),
        low=("median", "min"),
        high=("median", "max"),
        rounds=("median", "count"),
        grey=("disturbed", "all"),
    ).reset_index()
    table["measured"] = pandas.Series(
        [
            trust.Measured(
                numpy.median(one["median"]), zip(one.when, one["median"]), bool(one.disturbed.all())
            )
            for _, one in grouped
        ],
        index=table.index,
        dtype=object,
    )
    return table


# what a run's start and end are compared by
WALL = ("machine", "library", "variant", "args", "ranks", "network")


def walls(runs, program):
    """ranks -> {library: seconds from start to end} of a program's runs without settings."""
    some = trust.settled(
        runs[(runs.program == program) & (runs.status == "ok") & (runs.variant == "")], WALL
    )
    found = {}
    for (ranks, library), one in some.groupby(["ranks", "library"]):
        rounds = zip(zip(one.plan, one["round"]), one.wall_s)
        found.setdefault(ranks, {})[library] = trust.Measured(
            one.wall_s.median(), rounds, bool(one.disturbed.all())
        )
    return found


def of(cell):
    """{library: figure} of a table of medians, or a part of it."""
    return dict(zip(cell.who, cell.measured))


def names(table):
    """Libraries, ours first."""
    found = sorted(set(table.who))
    return [w for w in found if w.startswith(OURS)] + [w for w in found if not w.startswith(OURS)]


def ratios(table, key=KEY):
    """Cells with our time, the best peer's, whose it is, and the ratio ours : best peer
    (`trust.Against`); below 1 we are ahead. A best peer whose figure counts for nothing makes the
    ratio count for nothing: the next best would flatter us."""
    rows = []
    for cell, some in table.groupby(list(key), sort=False):
        ours = some[some.who == OURS]
        peers = some[~some.who.str.startswith(OURS) & (some.value > 0)]
        if ours.empty or peers.empty or ours.value.iloc[0] <= 0:
            continue
        best = peers.loc[peers.value.idxmin()]
        found = trust.against(ours.measured.iloc[0], best.measured)
        rows.append(
            dict(zip(key, cell))
            | {
                "ours": ours.value.iloc[0],
                "best": best.value,
                "peer": best.who,
                "ratio": found.ratio,
                "against": found,
            }
        )
    return rows


def mean_of(some):
    """One ratio for many cells (`trust.Against`): the geometric mean of those that count, and of
    their first rounds, their second rounds and so on; None where none counts."""
    counting = [one for one in some if not one.grey]
    rounds = zip(*(one.rounds for one in counting)) if counting else ()
    return (
        trust.Against(
            geometric_mean(one.ratio for one in counting),
            tuple(geometric_mean(each) for each in rounds),
        )
        if counting
        else None
    )


BEHIND = 1.10  # times the best peer's: below, it may be noise


@dataclass(frozen=True)
class Behind:
    """A cell (`KEY`) in which the best peer takes less time, by more than a tenth of it. `rounds`:
    ours over that peer's in each round that both have."""

    cell: tuple
    ratio: float
    rounds: tuple
    ours: float
    best: float
    peer: str

    @property
    def always(self):
        """In every round? What is behind only at times is noise."""
        return min(self.rounds, default=0) > BEHIND


def behind(data, bench):
    """The cells in which we are behind, the worst first."""
    some = data[
        (data.bench == bench)
        & (data.metric == "us")
        & (data.variant == "")
        & ~data.bytes.isin(RANDOM)
    ]
    found = []
    for cell, one in some.groupby(list(KEY), sort=False):
        if one.groupby("library").disturbed.all().any():
            continue
        rounds = {
            who: dict(zip(runs["round"], runs["median"])) for who, runs in one.groupby("library")
        }
        medians = {who: float(numpy.median([*times.values()])) for who, times in rounds.items()}
        peers = [who for who in medians if who != OURS]
        if OURS not in medians or not peers:
            continue
        peer = min(peers, key=medians.get)
        ratios = tuple(
            us / rounds[peer][r] for r, us in rounds[OURS].items() if rounds[peer].get(r)
        )
        if medians[OURS] > BEHIND * medians[peer] > 0:
            found.append(
                Behind(
                    cell, medians[OURS] / medians[peer], ratios, medians[OURS], medians[peer], peer
                )
            )
    return sorted(found, key=lambda one: -one.ratio)


def by_cell(table):
    """(cell, {library: figure}) of a table of medians, without settings and random sizes."""
    some = table[~table.who.str.contains("(", regex=False) & ~table.bytes.isin(RANDOM)]
    return [(cell, of(one)) for cell, one in some.groupby(list(KEY), sort=False)]


def beside_best(of):
    """{library: time} as {library: time over the least}, nothing where something counts for
    nothing; and ours over the best peer's (`trust.Against`; None without one)."""
    peers = [us for who, us in of.items() if who != OURS]
    ours = trust.against(of[OURS], min(peers)) if OURS in of and peers else None
    if not of or trust.grey(ours) or any(map(trust.grey, of.values())):
        return {}, ours
    least = min(of.values())
    return {who: us / least for who, us in of.items()}, ours


def means(cells):
    """For cells {library: time}: each library's geometric mean of its time over the fastest
    library's, and of our time over the best peer's (`mean_of`). A library without a figure in a
    cell counts in the others."""
    found, ours = {}, []
    for of in cells:
        shares, ratio = beside_best(of)
        for who, share in shares.items():
            found.setdefault(who, []).append(share)
        ours += [ratio] if ratio else []
    return {who: geometric_mean(shares) for who, shares in found.items()}, mean_of(ours)


def geometric_mean(values):
    """Of ratios."""
    return float(numpy.exp(numpy.mean(numpy.log(list(values)))))


FEWEST = 4  # sizes that a model is fitted to: any three parameters go through three
# name -> how to fit it
MODELS = {
    "three parameters": models.three_parameters,
    "Hockney": models.hockney,
    "LogGP": models.loggp,
    "pieces": models.pieces,
}


@dataclass(frozen=True)
class Judged:
    """The models of one primitive on one library, network and number of ranks, from one round, the
    quietest (`Round.noise`). A round is a stretch of time; machines have quick and slow ones, and
    models can be judged, and held against each other, only where sizes and primitives were measured
    under the same conditions. No model and no random size has a say in which round is taken.
    `errors` are those on the random sizes, None where none were measured; `noise` is the round's,
    and `every` has the three-parameter model's errors in all rounds. `upper`: the upper quartile of
    the batches of each size."""

    curve: dict
    models: dict
    errors: dict
    noise: float
    every: tuple
    upper: dict = field(default_factory=dict)

    @property
    def three(self):
        return self.models["three parameters"]


@dataclass(frozen=True)
class Round:
    """What one round measured in one place. `curves`: op -> {bytes: us}, us the lower quartile of
    the batches, which is what the operation costs when nothing else goes on: a quarter of them is
    no accident, and a slow minute in the other half of the run does not change it. `noise`: how far
    apart the batches of a size lie, as the distance between their quartiles by the lower one, in
    the mean over all sizes. `uppers`: op -> {bytes: upper quartile}."""

    curves: dict
    noise: float = 0.0
    uppers: dict = field(default_factory=dict)


def as_message(cell, curve):
    """The curve by the bytes that the paper calls the message, in two: sizes to fit to, and random
    sizes to judge by."""
    _, _, ranks, op = cell
    some = {n: t for n, t in curve.items() if n > 0}
    return tuple(
        {models.message(op, n, ranks): t for n, t in some.items() if (n in RANDOM) == random}
        for random in (False, True)
    )


def by_round(data, bench, mode):
    """(who, network, ranks) -> {(plan, round): Round}; libraries without settings only."""
    some = data[
        (data.bench == bench)
        & (data.metric == "us")
        & (data["mode"] == mode)
        & (data.variant == "")
        & (data["median"] > 0)
        & ~data.disturbed
    ].copy()
    quartiles = [numpy.quantile(json.loads(batches), (0.25, 0.75)) for batches in some.batches]
    some["us"] = [q[0] for q in quartiles]
    some["upper"] = [q[1] for q in quartiles]
    some["apart"] = [q[1] / q[0] - 1 for q in quartiles]
    found = {}
    for (who, network, ranks, *when), run in some.groupby(
        ["library", "network", "ranks", "plan", "round"], sort=False
    ):
        curves, uppers = (
            {op: dict(zip(one.bytes, one[which])) for op, one in run.groupby("op", sort=False)}
            for which in ("us", "upper")
        )
        found.setdefault((who, network, ranks), {})[tuple(when)] = Round(
            curves, float(run.apart.mean()), uppers
        )
    return found


@dataclass(frozen=True)
class Fit:
    """The three-parameter model of a curve, the sizes it was fitted to, and the random ones that it
    is judged by."""

    model: models.ThreeParameters
    fitting: dict
    judging: dict
    upper: dict

    def error(self, model=None):
        """Of this or another model on the random sizes; None where there are too few."""
        return (
            models.error(model or self.model, [*self.judging], [*self.judging.values()])
            if len(self.judging) > 1
            else None
        )


def fit(cell, curve, upper):
    """A model is judged between the sizes it was fitted to only: beyond them it knows nothing, and
    a curve that was measured as far as 512 bytes says nothing of what a byte of a megabyte
    costs."""
    fitting, judging = as_message(cell, curve)
    if len(fitting) < FEWEST:
        return None
    judging = {n: us for n, us in judging.items() if min(fitting) <= n <= max(fitting)}
    return Fit(
        models.three_parameters([*fitting], [*fitting.values()]),
        fitting,
        judging,
        {n: us for part in as_message(cell, upper) for n, us in part.items()},
    )


def judged(place, rounds):
    """op -> Judged, of one place (who, network, ranks); an op counts in the rounds that measured it
    at most sizes, a round when it has all ops."""
    tried = [
        (
            {
                op: one
                for op, curve in round.curves.items()
                if (one := fit((*place, op), curve, round.uppers.get(op, {})))
            },
            round.noise,
        )
        for round in rounds.values()
    ]
    most = {}
    for op, one in (pair for ops, _ in tried for pair in ops.items()):
        most[op] = max(most.get(op, 0), len(one.fitting))
    richest = [
        ({op: one for op, one in ops.items() if len(one.fitting) == most[op]}, noise)
        for ops, noise in tried
    ]
    return {op: judge(op, [(ops, noise) for ops, noise in richest if op in ops]) for op in most}


def judge(op, rounds):
    """One primitive, from the rounds that have it, each {op: Fit} and its noise."""
    whole = max(len(ops) for ops, _ in rounds)
    ops, noise = min((one for one in rounds if len(one[0]) == whole), key=lambda one: one[1])
    quiet = ops[op]
    by_name = {
        name: how([*quiet.fitting], [*quiet.fitting.values()]) for name, how in MODELS.items()
    }
    every = [one for ops, _ in rounds if (one := ops[op].error()) is not None]
    return Judged(
        {**quiet.fitting, **quiet.judging},
        by_name,
        {name: quiet.error(model) for name, model in by_name.items()},
        noise,
        tuple(every),
        quiet.upper,
    )


def fits(places):
    """(who, network, ranks, op) -> Judged, of those with enough sizes."""
    return {
        (*place, op): one
        for place, rounds in places.items()
        for op, one in judged(place, rounds).items()
    }


def collectives(found):
    """(who, network) -> {collective: (the paper's model with parameters by processes, the process
    counts)}."""
    by_place = {}
    for (who, network, ranks, op), one in found.items():
        if op in models.MOVED:
            by_place.setdefault((who, network), {}).setdefault(op, {})[ranks] = one.three
    return {
        place: {
            op: (models.collective(op, by_ranks), sorted(by_ranks)) for op, by_ranks in ops.items()
        }
        for place, ops in by_place.items()
    }


def findings(coll_fits):
    """(who, network) -> substitutions that pay, by the models of `fits`."""
    by_place = {}
    for (who, network, ranks, op), one in coll_fits.items():
        by_place.setdefault((who, network), {})[op, ranks] = substitute.Known(
            one.three, min(one.curve), max(one.curve)
        )
    return {
        (who, network): substitute.findings(who, known, sorted({p for _, p in known}))
        for (who, network), known in by_place.items()
    }


def detours(found):
    """Where a longer message takes less time, by more than a tenth: (cell, bytes, us, the longer
    message's bytes, its us), the worst of each curve. A program could send the longer message
    instead: a library with such sizes has a badly chosen algorithm there."""
    rows = []
    for cell, one in found.items():
        sizes = sorted(one.curve)
        pairs = [(n, min(sizes[i + 1 :], key=one.curve.get)) for i, n in enumerate(sizes[:-1])]
        n, longer = max(
            pairs, key=lambda pair: one.curve[pair[0]] / one.curve[pair[1]], default=(0, 0)
        )
        if n and one.curve[n] > substitute.MARGIN * one.curve[longer]:
            rows.append((cell, n, one.curve[n], longer, one.curve[longer]))
    return rows


def errors(found):
    """model -> the errors of all cells that have one."""
    return {
        name: [one.errors[name] for one in found.values() if one.errors[name] is not None]
        for name in MODELS
    }


def availability(data):
    """(variant, network, mode) -> share of the bytes that were written straight into announced
    receives, and the bytes; of messages between two ranks."""
    some = data[(data.bench == "counters") & (data.op == "p2p")]
    totals = some.groupby(["variant", "network", "mode", "metric"])["median"].sum()
    found = {}
    for place in {key[:3] for key in totals.index}:
        sent = {
            p: float(totals.get((*place, f"{p}_bytes"), 0))
            for p in ("eager", "rndv", "get", "write")
        }
        if sum(sent.values()) > 0:
            found[place] = (sent["write"] / sum(sent.values()), sum(sent.values()))
    return found


def failures(runs):
    """Runs that went wrong, one row for each library, cell and reason."""
    wrong = runs[runs.status != "ok"]
    columns = ["library", "status", "program", "network", "ranks", "message"]
    return [
        tuple(row)
        for row in wrong.groupby(columns).size().reset_index(name="runs").itertuples(index=False)
    ]
