"""`kwlab export`: every run and every figure, in both formats."""

import csv
import io
import json

import pytest
from conftest import LINE

from kwlab import export, plan
from kwlab.store import Store


@pytest.fixture
def store(tmp_path):
    found = Store(tmp_path / "d.sqlite")
    machine = found.machine({"processor": "Abacus"})
    found.add(
        "p",
        plan.Cell("kittiwake", "p2p", ("--sizes", "8"), 2, "shm"),
        0,
        machine,
        "kw 1",
        "ok",
        "",
        1,
        [json.loads(LINE)],
        0.25,
        "env A='b c' mpiexec -n 2",
    )
    found.add(
        "q",
        plan.Cell("mpich", "p2p", (), 2, "tcp"),
        0,
        machine,
        "m 1",
        "failed",
        'said "no", twice',
        1,
        [],
    )
    return found


def test_csv_has_a_row_a_figure_and_one_for_a_run_without(store):
    one, other = csv.DictReader(io.StringIO(export.as_csv(store)))
    assert (
        one["library"] == "kittiwake"
        and float(one["median"]) == 2
        and one["batches"] == "2.0 1.0 3.0"
        and one["others"] == "0.25"
    )
    assert (
        one["command"] == "env A='b c' mpiexec -n 2"
        and one["metric"] == "us"
        and one["args"] == "--sizes 8"
    )
    assert (
        other["status"] == "failed"
        and other["message"] == 'said "no", twice'
        and other["median"] == ""
        and other["others"] == ""
    )


def test_json_has_machines_runs_and_batches(store):
    found = json.loads(export.as_json(store))
    one, other = found["runs"]
    assert (
        found["machines"] == {"1": {"processor": "Abacus"}}
        and one["figures"][0]["batches"] == [2, 1, 3]
        and one["others"] == 0.25
    )
    assert other["figures"] == [] and other["others"] is None


def test_how_often_something_was_repeated_is_no_figure(store):
    store.add(
        "r",
        plan.Cell("mpich", "tails", (), 2, "shm"),
        0,
        1,
        "m 1",
        "ok",
        "",
        1,
        [{"bench": "tails", "op": "barrier", "iterations": 100, "p99_us": 1.5}],
    )
    assert [
        figure["metric"]
        for run in json.loads(export.as_json(store, "r"))["runs"]
        for figure in run["figures"]
    ] == ["p99_us"]


def test_a_plan_alone(store):
    assert [run["plan"] for run in json.loads(export.as_json(store, "q"))["runs"]] == ["q"]
