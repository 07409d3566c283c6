"""Questions to the dataset, answered as small tables: medians over rounds, ratios, fitted models. No drawing, no text."""
from dataclasses import dataclass

import numpy
import pandas

from . import models, substitute
from .libraries import OURS
from .plan import RANDOM

KEY = ("network", "ranks", "op", "mode", "bytes")


def called(row):
    """The library with its variant."""
    return f"{row.library} ({row.variant})" if row.variant else row.library


def medians(data, bench, metric="us"):
    """One row a cell of each library: the median over rounds of the runs' medians, with the lowest and highest run."""
    some = data[(data.bench == bench) & (data.metric == metric)].copy()
    some["who"] = pandas.Series([called(row) for row in some.itertuples()], index=some.index, dtype=str)
    grouped = some.groupby(["who", *KEY], sort=False)["median"]
    return grouped.agg(value="median", low="min", high="max", rounds="count").reset_index()


def names(table):
    """Libraries, ours first."""
    found = sorted(set(table.who))
    return [w for w in found if w.startswith(OURS)] + [w for w in found if not w.startswith(OURS)]


def ratios(table, key=KEY):
    """Cells with our time, the best peer's, whose it is, and the ratio ours : best peer; below 1 we are ahead."""
    rows = []
    for cell, some in table.groupby(list(key), sort=False):
        ours = some[some.who == OURS]
        peers = some[~some.who.str.startswith(OURS) & (some.value > 0)]
        if ours.empty or peers.empty or ours.value.iloc[0] <= 0:
            continue
        best = peers.loc[peers.value.idxmin()]
        value = ours.value.iloc[0]
        rows.append(dict(zip(key, cell)) | {"ours": value, "best": best.value, "peer": best.who, "ratio": value / best.value})
    return rows


def geometric_mean(values):
    """Of ratios."""
    return float(numpy.exp(numpy.mean(numpy.log(list(values)))))


# name -> how to fit it
MODELS = {"three parameters": models.three_parameters, "Hockney": models.hockney, "LogGP": models.loggp, "pieces": models.pieces}


@dataclass(frozen=True)
class Judged:
    """The models of one primitive on one library, network and number of ranks: from the round in which the three-parameter model meets best the sizes it is
    fitted to. A round is a stretch of time: machines have quiet and busy ones, and a model can be judged by its errors only where sizes were measured under
    the same conditions. The random sizes have no say in which round is taken; `errors` are theirs, None where none were measured, and `every`
    has the three-parameter model's of all rounds."""
    curve: dict
    models: dict
    errors: dict
    every: tuple

    @property
    def three(self):
        return self.models["three parameters"]


def as_message(cell, curve):
    """The curve by the bytes that the paper calls the message, in two: sizes to fit to, and random sizes to judge by."""
    _, _, ranks, op = cell
    some = {n: t for n, t in curve.items() if n > 0}
    return tuple({models.message(op, n, ranks): t for n, t in some.items() if (n in RANDOM) == random} for random in (False, True))


def by_round(data, bench, mode):
    """(who, network, ranks, op) -> the curve {bytes: us} of each round of each plan; libraries without knobs only."""
    some = data[(data.bench == bench) & (data.metric == "us") & (data["mode"] == mode) & (data.variant == "") & (data["median"] > 0)]
    found = {}
    for (who, network, ranks, op, _, _), run in some.groupby(["library", "network", "ranks", "op", "plan", "round"], sort=False):
        found.setdefault((who, network, ranks, op), []).append(dict(zip(run.bytes, run["median"])))
    return found


def judged(cell, curves):
    """The models of one cell from its rounds; of plans with different numbers of sizes the richest counts. Nothing with fewer than three sizes."""
    split = [as_message(cell, curve) for curve in curves]
    most = max(len(fitting) for fitting, _ in split)
    if most < 3:
        return None
    rounds = []
    for fitting, judging in split:
        if len(fitting) == most:
            model = models.three_parameters([*fitting], [*fitting.values()])
            rounds.append((models.error(model, [*fitting], [*fitting.values()]), model, fitting, judging))
    _, _, fitting, judging = min(rounds, key=lambda r: r[0])
    found = {name: fit([*fitting], [*fitting.values()]) for name, fit in MODELS.items()}
    error = lambda model, sizes: models.error(model, [*sizes], [*sizes.values()]) if len(sizes) > 1 else None
    every = [error(model, sizes) for _, model, _, sizes in rounds]
    return Judged({**fitting, **judging}, found, {name: error(model, judging) for name, model in found.items()}, tuple(e for e in every if e is not None))


def fits(rounds):
    """cell -> Judged, of cells with enough sizes."""
    every = {cell: judged(cell, curves) for cell, curves in rounds.items()}
    return {cell: found for cell, found in every.items() if found}


def collectives(found):
    """(who, network) -> {collective: (the paper's model with parameters by processes, the process counts)}."""
    by_place = {}
    for (who, network, ranks, op), one in found.items():
        if op in models.MOVED:
            by_place.setdefault((who, network), {}).setdefault(op, {})[ranks] = one.three
    return {place: {op: (models.collective(op, by_ranks), sorted(by_ranks)) for op, by_ranks in ops.items()} for place, ops in by_place.items()}


def findings(coll_fits):
    """(who, network) -> substitutions that pay, by the models of `fits`."""
    by_place = {}
    for (who, network, ranks, op), one in coll_fits.items():
        by_place.setdefault((who, network), {})[op, ranks] = one.three
    return {(who, network): substitute.findings(who, known, sorted({p for _, p in known})) for (who, network), known in by_place.items()}


def errors(found):
    """model -> the errors of all cells that have one."""
    return {name: [one.errors[name] for one in found.values() if one.errors[name] is not None] for name in MODELS}


def availability(data):
    """(variant, network, mode) -> share of the bytes that were written straight into announced receives, and the bytes."""
    some = data[data.bench == "counters"]
    totals = some.groupby(["variant", "network", "mode", "metric"])["median"].sum()
    found = {}
    for place in {key[:3] for key in totals.index}:
        sent = {p: float(totals.get((*place, f"{p}_bytes"), 0)) for p in ("eager", "rndv", "get", "write")}
        if sum(sent.values()) > 0:
            found[place] = (sent["write"] / sum(sent.values()), sum(sent.values()))
    return found


def failures(runs):
    """Runs that went wrong, one row for each library, cell and reason."""
    wrong = runs[runs.status != "ok"]
    columns = ["library", "status", "program", "network", "ranks", "message"]
    return [tuple(row) for row in wrong.groupby(columns).size().reset_index(name="runs").itertuples(index=False)]
