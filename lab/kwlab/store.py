"""The dataset: one SQLite file with the machines, every run, and every measurement of every run.

A run that failed is a row like any other; `status` is `ok`, `missing` (the library is not
installed), `failed` (it ended with an error), `slow` (it was ended after its limit and was still
printing), `hung` (ended after its limit, but it had stopped printing), `late` (ended after its
limit, and it had printed nothing), `nonsense` (its output could not be read) or `unverified` (an
application's result is wrong), and `message` says the rest. What it had measured is kept. `others`
is the share of the processors that others used meanwhile (null: not measured), `command` what
started it. `profile` has what else is known of a machine, as JSON under a name (`machine`),
`timeline` what traced runs look like (`timelines`)."""

import json
import math
import os
import sqlite3
import time
from dataclasses import asdict

from .lazy import pandas
from .timelines import MADE, Outcome

VERSION = 3  # of the tables below
MEMORY = ":memory:"  # the path of a dataset that is not a file

SCHEMA = """
create table if not exists machine (id integer primary key, facts text unique not null);
create table if not exists run (
    id integer primary key, plan text not null, cell text not null, round integer not null,
    machine integer not null references machine, library text not null, version text not null,
    program text not null, args text not null, ranks integer not null, network text not null,
    variant text not null, status text not null, message text not null, wall_s real not null,
    load real not null, at real not null, others real, command text not null default '',
    unique (plan, cell, round, machine));
create table if not exists measurement (
    run integer not null references run on delete cascade, bench text not null, op text not null,
    bytes integer not null, mode text not null, metric text not null, min real, median real,
    low real, high real, batches text not null, line text not null);
create table if not exists profile (
    machine integer not null references machine, name text not null, content text not null,
    unique (machine, name));
create table if not exists timeline (
    plan text not null, key text not null, machine integer not null references machine,
    label text not null, words text not null, outcome text not null, at real not null,
    unique (plan, key, machine));
create index if not exists measurement_of_run on measurement (run);
"""
# Of applications version 1 had what others used among their measurements.
FROM_1 = """
alter table run add column others real;
alter table run add column command text not null default '';
update run set others = (select median from measurement where run = run.id and metric = 'foreign');
delete from measurement where metric = 'foreign';
"""
# What a JSON line says of itself; everything else that is a table of order statistics, or a number,
# is a metric.
NAMES = ("bench", "op", "bytes", "mode", "ranks", "iterations")


class Store:
    """An open dataset."""

    def __init__(self, path):
        if path != MEMORY:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(path)
        self.db.execute("pragma foreign_keys = on")
        try:
            version = self.db.execute("pragma user_version").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{path} is not a dataset of kwlab ({error}); name another file with --data"
            ) from None
        if version not in (0, *range(1, VERSION + 1)):
            raise ValueError(
                f"{path} was written by another version of the laboratory; "
                "name another file with --data"
            )
        self.db.executescript(
            f"begin immediate; {FROM_1 if version == 1 else ''} {SCHEMA} pragma user_version = "
            f"{VERSION}; commit;"
        )

    def machine(self, facts):
        """The number of the machine with these facts."""
        text = json.dumps(facts, sort_keys=True)
        self.db.execute("insert or ignore into machine (facts) values (?)", [text])
        self.db.commit()
        return self.db.execute("select id from machine where facts = ?", [text]).fetchone()[0]

    def tried(self, plan, machine):
        """(cell, round) -> status of the plan's runs so far."""
        found = self.db.execute(
            "select cell, round, status from run where plan = ? and machine = ?", [plan, machine]
        )
        return {(cell, round): status for cell, round, status in found}

    def forget(self, plan, machine, cells):
        """Removes the runs of some of a plan's cells on a machine."""
        with self.db:
            self.db.executemany(
                "delete from run where plan = ? and machine = ? and cell = ?",
                [(plan, machine, cell.key()) for cell in cells],
            )

    def add(
        self,
        plan,
        cell,
        round,
        machine,
        version,
        status,
        message,
        wall,
        lines,
        others=None,
        command="",
    ):
        """Keeps a run with its measurements, in place of an earlier try, unless that went wrong too
        and has measured more."""
        rows = [row for line in lines for row in measurements(None, line)]
        if status != "ok" and len(rows) < self.measured(plan, cell, round, machine):
            return
        with self.db:
            self.db.execute(
                "delete from run where plan = ? and cell = ? and round = ? and machine = ?",
                [plan, cell.key(), round, machine],
            )
            run = self.db.execute(
                "insert into run (plan, cell, round, machine, library, version, program, args, "
                "ranks, network, variant, status, message, wall_s, load, at, others, command) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    plan,
                    cell.key(),
                    round,
                    machine,
                    cell.library,
                    version,
                    cell.program,
                    " ".join(cell.args),
                    cell.ranks,
                    cell.network,
                    cell.variant,
                    status,
                    message,
                    wall,
                    os.getloadavg()[0],
                    time.time(),
                    others,
                    command,
                ],
            ).lastrowid
            self.db.executemany(
                "insert into measurement values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [[run, *row[1:]] for row in rows],
            )

    def measured(self, plan, cell, round, machine):
        """How many figures an earlier try has."""
        return self.db.execute(
            "select count(*) from measurement join run on run = run.id where plan = ? and cell = "
            "? and round = ? and machine = ?",
            [plan, cell.key(), round, machine],
        ).fetchone()[0]

    def runs(self, plan=None):
        """All runs, of one plan or of all, as a data frame."""
        where, values = ("where plan = ?", [plan]) if plan else ("", [])
        return pandas.read_sql_query(
            f"select * from run {where} order by id", self.db, params=values
        )

    def measurements(self, plan=None):
        """All measurements with their runs, as a data frame."""
        where, values = ("where plan = ?", [plan]) if plan else ("", [])
        return pandas.read_sql_query(
            "select plan, cell, round, machine, library, version, program, args, ranks, network, "
            "variant, others, bench, op, bytes, mode, metric, min, median, low, high, batches, "
            f"line from measurement join run on run = run.id {where} order by run.id",
            self.db,
            params=values,
        )

    def describe(self, machine, name, content):
        """Keeps what is known of a machine under a name."""
        with self.db:
            self.db.execute(
                "insert or replace into profile values (?, ?, ?)",
                [machine, name, json.dumps(content)],
            )

    def profile(self, machine):
        """name -> what is known of a machine."""
        found = self.db.execute("select name, content from profile where machine = ?", [machine])
        return {name: json.loads(content) for name, content in found}

    def keep_timeline(self, plan, one, machine, outcome):
        """Keeps a plan's time line, in place of an earlier one."""
        with self.db:
            self.db.execute(
                "insert or replace into timeline values (?, ?, ?, ?, ?, ?, ?)",
                [
                    plan,
                    one.key(),
                    machine,
                    one.label(),
                    one.words,
                    json.dumps(asdict(outcome)),
                    time.time(),
                ],
            )

    def timelines(self, machine, plan=None):
        """(plan, label, words, outcome) of the time lines of a machine, in the order in which they
        were made."""
        where, values = ("and plan = ?", [machine, plan]) if plan else ("", [machine])
        found = self.db.execute(
            f"select plan, label, words, outcome from timeline where machine = ? {where} order by "
            "at",
            values,
        )
        return [
            (name, label, words, Outcome(**json.loads(outcome)))
            for name, label, words, outcome in found
        ]

    def drawn(self, plan, machine):
        """Keys of the plan's time lines that were made."""
        found = self.db.execute(
            "select key, outcome from timeline where plan = ? and machine = ?", [plan, machine]
        )
        return {key for key, outcome in found if json.loads(outcome)["status"] == MADE}

    def facts(self):
        """Machine number -> facts."""
        return {
            number: json.loads(text)
            for number, text in self.db.execute("select id, facts from machine")
        }


def measurements(run, line):
    """The rows of one JSON line: one for each metric in it. Raises ValueError, KeyError or
    TypeError if it is not a measurement."""
    text = json.dumps(line)
    if not isinstance(line["bench"], str):
        raise ValueError("bench")
    for metric, value in line.items():
        if metric in NAMES:
            continue
        if isinstance(value, dict):
            order = [number(value[k]) for k in ("min", "median", "low", "high")]
            batches = json.dumps([number(one) for one in value["batches"]])
        else:
            order, batches = [number(value)] * 4, json.dumps([value])
        yield [
            run,
            line["bench"],
            str(line.get("op", "")),
            int(line.get("bytes", 0)),
            str(line.get("mode", "")),
            metric,
            *order,
            batches,
            text,
        ]


def number(value):
    """The value, if it is a number like those of a clock."""
    if isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"{value} is not a number")
    return float(value)
