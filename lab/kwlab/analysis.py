"""Questions to the dataset, answered as small tables: medians over rounds, ratios, fitted models. No drawing, no text."""
import json

import numpy

from . import models

OURS = "kittiwake"


def called(row):
    """The library with its variant."""
    return f"{row.library} ({row.variant})" if row.variant else row.library


def medians(data, bench, metric="us"):
    """One row a library, program arguments' cell: the median over rounds of the runs' medians, with the lowest and highest run."""
    some = data[(data.bench == bench) & (data.metric == metric)].copy()
    if some.empty:
        return some
    some["who"] = [called(row) for row in some.itertuples()]
    grouped = some.groupby(["who", "network", "ranks", "op", "mode", "bytes"], sort=False)["median"]
    return grouped.agg(value="median", low="min", high="max", rounds="count").reset_index()


def names(table):
    """Libraries, ours first."""
    found = sorted(set(table.who))
    return [w for w in found if w.startswith(OURS)] + [w for w in found if not w.startswith(OURS)]


def ratios(table, key=("network", "ranks", "op", "mode", "bytes")):
    """Cells with our time, the best peer's, whose it is, and the ratio ours : best peer; below 1 we are ahead."""
    rows = []
    for cell, some in table.groupby(list(key), sort=False):
        ours = some[some.who == OURS]
        peers = some[~some.who.str.startswith(OURS)]
        if ours.empty or peers.empty:
            continue
        best = peers.loc[peers.value.idxmin()]
        value = ours.value.iloc[0]
        rows.append(dict(zip(key, cell)) | {"ours": value, "best": best.value, "peer": best.who, "ratio": value / best.value})
    return rows


def geometric_mean(values):
    """Of ratios."""
    return float(numpy.exp(numpy.mean(numpy.log(list(values)))))


def curves(table):
    """(who, network, ranks, op, mode) -> {message bytes as the paper counts them: us}."""
    found = {}
    for row in table.itertuples():
        size = models.message(row.op, row.bytes, row.ranks)
        found.setdefault((row.who, row.network, row.ranks, row.op, row.mode), {})[size] = row.value
    return found


def fits(table):
    """(who, network, ranks, op, mode) -> (three-parameter model, its error, Hockney's error, error of pieces), where there are sizes enough. Errors
    are of sizes held out: every other size fits, the ones between judge."""
    found = {}
    for cell, times in curves(table).items():
        sizes = sorted(n for n in times if n > 0)
        if len(sizes) < 3:
            continue
        t = [times[n] for n in sizes]
        fitting, judging = (sizes[::2], sizes[1::2]) if len(sizes) > 5 else (sizes, sizes)
        judge = lambda fit: models.error(fit([*fitting], [times[n] for n in fitting]), judging, [times[n] for n in judging]) if len(judging) > 1 else float("nan")
        found[cell] = (models.three_parameters(sizes, t), judge(models.three_parameters), judge(models.hockney), judge(models.pieces))
    return found


def collectives(table):
    """(who, network) -> {collective: the paper's model with parameters by processes}."""
    times = {}
    for (who, network, ranks, op, mode), curve in curves(table).items():
        if len(curve) > 2:
            times.setdefault((who, network), {}).setdefault(op, {})[ranks] = curve
    return {place: {op: models.collective(op, by_ranks) for op, by_ranks in ops.items() if op in models.MOVED} for place, ops in times.items()}


def failures(runs):
    """Runs that went wrong, one row for each library, cell and reason."""
    wrong = runs[runs.status != "ok"]
    return list(wrong.groupby(["library", "program", "ranks", "network", "status", "message"]).size().reset_index(name="runs").itertuples(index=False))


def extra(data, bench, metric):
    """Values of a metric that is a plain number, by library and cell (overlap, memory, processor time)."""
    return medians(data, bench, metric)


def batches(text):
    """The kept times of a measurement."""
    return numpy.array(json.loads(text), float)
