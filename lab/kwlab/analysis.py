"""Questions to the dataset, answered as small tables: medians over rounds, ratios, fitted models. No drawing, no text."""
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


def curves(table):
    """(who, network, ranks, op) -> {bytes: us}, sizes ascending."""
    found = {}
    for row in table.sort_values("bytes").itertuples():
        found.setdefault((row.who, row.network, row.ranks, row.op), {})[row.bytes] = row.value
    return found


def as_message(cell, curve):
    """The curve by the bytes that the paper calls the message."""
    _, _, ranks, op = cell
    return {models.message(op, size, ranks): us for size, us in curve.items()}


# name -> how to fit it
MODELS = {"three parameters": models.three_parameters, "Hockney": models.hockney, "LogGP": models.loggp, "pieces": models.pieces}


def judged(cell, curve):
    """The models of one curve and their errors on the random sizes, which were measured apart: {name: (model, error)}. Without random sizes the
    errors are None; with fewer than three others there is no model."""
    fitting = as_message(cell, {n: t for n, t in curve.items() if n > 0 and n not in RANDOM})
    judging = as_message(cell, {n: t for n, t in curve.items() if n in RANDOM})
    if len(fitting) < 3:
        return {}
    found = {}
    for name, fit in MODELS.items():
        model = fit([*fitting], [*fitting.values()])
        found[name] = (model, models.error(model, [*judging], [*judging.values()]) if len(judging) > 1 else None)
    return found


def fits(table):
    """cell -> {name of a model: (model, error)}."""
    every = {cell: judged(cell, curve) for cell, curve in curves(table).items()}
    return {cell: found for cell, found in every.items() if found}


def collectives(table):
    """(who, network) -> {collective: (the paper's model with parameters by processes, the process counts)}."""
    times = {}
    for cell, curve in curves(table).items():
        who, network, ranks, op = cell
        fitting = as_message(cell, {n: t for n, t in curve.items() if n > 0 and n not in RANDOM})
        if op in models.MOVED and len(fitting) > 2:
            times.setdefault((who, network), {}).setdefault(op, {})[ranks] = fitting
    return {place: {op: (models.collective(op, by_ranks), sorted(by_ranks)) for op, by_ranks in ops.items()} for place, ops in times.items()}


def findings(coll_fits):
    """(who, network) -> substitutions that pay, by the models of `fits`."""
    by_place = {}
    for (who, network, ranks, op), found in coll_fits.items():
        by_place.setdefault((who, network), {})[op, ranks] = found["three parameters"][0]
    return {(who, network): substitute.findings(who, known, sorted({p for _, p in known})) for (who, network), known in by_place.items()}


def errors(found):
    """model -> the errors of all cells that have one."""
    return {name: [cell[name][1] for cell in found.values() if cell[name][1] is not None] for name in MODELS}


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
