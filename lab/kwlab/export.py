"""The dataset for other programs: CSV, a row a figure, or JSON, an object a run with its figures
and the machines. Both have every run, also those that went wrong (in CSV a row without a
figure)."""

import csv
import io
import json

RUN = [
    "plan",
    "machine",
    "round",
    "library",
    "version",
    "variant",
    "program",
    "args",
    "ranks",
    "network",
    "status",
    "message",
    "wall_s",
    "load",
    "others",
    "at",
    "command",
]
FIGURE = ["bench", "op", "mode", "bytes", "metric", "min", "median", "low", "high", "batches"]


def rows(store, plan=None, more=()):
    """(run, its figures) of a plan or of all, both as dictionaries; `more`: further columns of a
    run."""
    where, values = ("where plan = ?", [plan]) if plan else ("", [])
    names = [*RUN, *more]
    for number, *run in store.db.execute(
        f"select id, {', '.join(names)} from run {where} order by id", values
    ):
        figures = store.db.execute(
            f"select {', '.join(FIGURE)} from measurement where run = ? order by rowid", [number]
        )
        yield dict(zip(names, run)), [dict(zip(FIGURE, figure)) for figure in figures]


def as_csv(store, plan=None):
    """The text; the batches of a figure are separated by blanks."""
    out = io.StringIO()
    table = csv.DictWriter(out, RUN + FIGURE, lineterminator="\n")
    table.writeheader()
    for run, figures in rows(store, plan):
        for figure in figures or [{}]:
            batches = " ".join(map(str, json.loads(figure["batches"]))) if figure else ""
            table.writerow({**run, **figure, "batches": batches})
    return out.getvalue()


def as_json(store, plan=None):
    """The text."""
    runs = [
        {
            **run,
            "figures": [{**figure, "batches": json.loads(figure["batches"])} for figure in figures],
        }
        for run, figures in rows(store, plan)
    ]
    return (
        json.dumps(
            {
                "machines": {str(number): facts for number, facts in store.facts().items()},
                "runs": runs,
            },
            indent=1,
        )
        + "\n"
    )


FORMATS = {"csv": as_csv, "json": as_json}
