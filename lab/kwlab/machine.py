"""A machine, or a cluster, in one file that its owner can send: what it is made of, the figures
that the library's own calibration measured there, what is chosen by them, and all that the plan
measured. `kwlab run machine` writes it, `kwlab report FILE ...` and `kwlab check FILE ...` read it.

The file is JSON in gzip. It reveals as little as possible about its sender: no name of a host, no
address, no user, no path, no command and no words of programs that failed, unless its owner asks
for them (`--names`). What it says is what `zcat FILE | less` shows. It comes from strangers: all of
it is data, checked word by word as it is read."""

import datetime
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from functools import cached_property

from . import export, facts, libraries, report
from .store import MEMORY, Store, number

FORMAT, VERSION = "kittiwake machine", 1
MOST = 1 << 60  # of a figure
LONGEST = 512 << 20  # bytes of a file's contents
PROFILE = "machine"  # its name in the dataset
CALIBRATIONS = 5  # of a host: their spread says how far a figure may be believed
HIDDEN = ("command", "message")  # of a run: what may name paths, hosts and people
RUN = {
    "plan": str,
    "cell": str,
    "round": int,
    "library": str,
    "version": str,
    "program": str,
    "args": str,
    "ranks": int,
    "network": str,
    "variant": str,
    "status": str,
    "message": str,
    "wall_s": float,
    "load": float,
    "at": float,
    "command": str,
}
FIGURE = ("bench", "op", "bytes", "mode", "metric", "min", "median", "low", "high", "batches")


def described(ours, hosts=""):
    """What is known of the machine, or of the cluster of these hosts: `hosts`, kinds of hosts with
    their number; `figures`, `prices`, `messages` and `collectives`, what `kwinfo --choices --tsv`
    says after the host was measured, and of the figures the values of each time. `ours` is
    Kittiwake as a library."""
    with tempfile.TemporaryDirectory() as cache:
        return {"hosts": kinds(ours, hosts), **calibrated(ours, cache, hosts)}


def kinds(ours, hosts):
    """[facts, number of such hosts]."""
    found = []
    for host in described_hosts(ours, hosts) or [facts.described()]:
        same = next((kind for kind in found if kind[0] == host), None)
        if same:
            same[1] += 1
        else:
            found.append([host, 1])
    return found


def described_hosts(ours, hosts):
    """The facts of every host of a cluster; none where they cannot be had."""
    if not hosts or not ours.there():
        return []
    try:
        text, _ = ours.run(
            [sys.executable, "-I", facts.__file__],
            libraries.count_of(hosts),
            libraries.CLUSTER,
            timeout=60,
        )
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    except (libraries.Failed, libraries.Late, libraries.Unavailable, ValueError, OSError):
        return []


def calibrated(ours, cache, hosts):
    """The host measured several times, with its file of figures in that directory, and what is
    chosen by the last of them."""
    kwinfo = ours.launcher.with_name("kwinfo")
    env = {**os.environ, "KW_CALIBRATE": "yes", "XDG_CACHE_HOME": cache}
    if not kwinfo.exists():
        return {}
    times = []
    for _ in range(CALIBRATIONS):
        subprocess.run(
            [kwinfo, "--calibrate", "--no-verify"],
            env=env,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )
        times.append({name: int(value) for name, value, *_ in choices(kwinfo, env)["figure"]})
    if hosts:
        see_network(ours, cache)
    told = choices(kwinfo, env)
    return {
        "figures": [[*row, [one[row[0]] for one in times]] for row in told["figure"]],
        "prices": told["price"],
        "messages": told["messages"],
        "collectives": told["collective"],
    }


def see_network(ours, cache):
    """Has a job between two hosts keep what its connections see of the network."""
    try:
        ours.run(
            ours.build("p2p"),
            2,
            libraries.CLUSTER,
            "--ms",
            "100",
            "--sizes",
            "8,4194304",
            settings={"KW_CALIBRATE": "yes", "XDG_CACHE_HOME": cache},
            timeout=60,
        )
    except (libraries.Failed, libraries.Late, libraries.Unavailable, ValueError, OSError):
        pass  # its starting values say so


def choices(kwinfo, env):
    """What kwinfo says: the first word of its lines -> the others of each."""
    text = subprocess.run(
        [kwinfo, "--choices", "--tsv"],
        env=env,
        check=True,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=60,
    ).stdout
    found = {}
    for line in text.splitlines():
        kind, *words = line.split("\t")
        found.setdefault(kind, []).append(words)
    return found


def starting(dist):
    """The same with nothing measured: the library's starting values."""
    return choices(dist / "bin/kwinfo", {**os.environ, "KW_CALIBRATE": "no"})


def contents(store, plan, machine, names=False):
    """What a file says of a machine's runs of a plan."""
    runs = []
    for run, figures in export.rows(store, plan, ("cell",)):
        if run.pop("machine") == machine:
            hidden = {} if names else dict.fromkeys(HIDDEN, "")
            runs.append(
                {
                    **run,
                    **hidden,
                    "figures": [
                        [
                            json.loads(figure[name]) if name == "batches" else figure[name]
                            for name in FIGURE
                        ]
                        for figure in figures
                    ],
                }
            )
    if not runs:
        raise ValueError(f"nothing of {plan} is measured yet")
    known = store.facts()[machine]
    if "hosts" in known and not names:
        kinds_of_hosts = store.profile(machine).get(PROFILE, {}).get("hosts", [])
        known["hosts"] = f"{sum(count for _, count in kinds_of_hosts)} hosts"
    return {
        "format": FORMAT,
        "version": VERSION,
        "day": datetime.date.today().isoformat(),
        "facts": known,
        "profile": store.profile(machine).get(PROFILE, {}),
        "runs": runs,
    }


def write(store, plan, machine, path, names=False):
    """Writes the file, as a whole or not at all."""
    text = json.dumps(contents(store, plan, machine, names), separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f".{path.name}.{os.getpid()}")
    own.write_bytes(gzip.compress(text.encode(), mtime=0))
    own.replace(path)
    return path


class Machine:
    """A file that was read: `name` for people, the `day` it was written, the runs' `facts`, what
    else is known (`profile`), and its runs as a dataset of its own."""

    def __init__(self, name, table):
        self.name, self.day = name, of(table, "day", str)
        self.facts = of(table, "facts", dict)
        self.profile = checked_profile(of(table, "profile", dict))
        self.store = Store(MEMORY)
        number_of = self.store.machine(self.facts)
        with self.store.db as db:
            for run in of(table, "runs", list):
                keep(db, number_of, run)
        if not isinstance(self.facts.get("cores"), int) or not table["runs"]:
            raise KeyError("runs")

    @cached_property
    def book(self):
        """Its runs, for tables and pictures."""
        return report.Book(self.store)

    def rows(self, kind):
        """What `kwinfo --choices --tsv` said there."""
        return self.profile.get(kind, [])


class Unreadable(ValueError):
    """A file that is none, or not whole; one sentence."""


def of(table, field, kind):
    """A field of a table. Raises KeyError or TypeError."""
    value = table[field]
    if kind is float and isinstance(value, int):
        value = float(value)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(field)
    return value


def keep(db, machine, run):
    """One run with its figures into the dataset."""
    words = [of(run, field, kind) for field, kind in RUN.items()]
    others = None if run.get("others") is None else number(run["others"])
    marks = ", ".join("?" * (len(words) + 2))
    added = db.execute(
        f"insert into run (machine, others, {', '.join(RUN)}) values ({marks})",
        [machine, others, *words],
    ).lastrowid
    for figure in of(run, "figures", list):
        bench, op, n, mode, metric, *values, batches = figure
        if not all(isinstance(word, str) for word in (bench, op, mode, metric)):
            raise TypeError("figure")
        row = [
            added,
            bench,
            op,
            int(n),
            mode,
            metric,
            *map(number, values),
            json.dumps([number(one) for one in batches]),
            "{}",
        ]
        db.execute("insert into measurement values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def checked_profile(profile):
    """What is known of a machine, if it can be that. Raises TypeError or ValueError."""
    for facts_of, count in profile.get("hosts", []):
        if not isinstance(count, int) or not all(
            isinstance(name, str) and isinstance(value, (str, int))
            for name, value in facts_of.items()
        ):
            raise TypeError("hosts")
    for _, value, unit, _, start, times in profile.get("figures", []):
        values = [int(value), int(start), *(number(one) for one in times)]
        if unit not in UNITS or not all(0 <= one < MOST for one in values):
            raise ValueError(f"{value} {unit}")
    for kind, words, numbers in (
        ("prices", 5, (1, 4)),
        ("messages", 5, (1, 2)),
        ("collectives", 6, (1, 2, 3)),
    ):
        for row in profile.get(kind, []):
            if len(row) != words or not all(isinstance(word, str) for word in row):
                raise TypeError(kind)
            [float(row[at]) if kind == "prices" else int(row[at]) for at in numbers]
    return profile


def read(path):
    """A file that `write` has written, here or elsewhere. Raises Unreadable, and what comes of
    nonsense in it (`read_all`)."""
    return Machine(path.name.removesuffix(".gz").removesuffix(".json"), table_of(path))


def table_of(path):
    """The contents of a file, whose format and version are known."""
    try:
        with gzip.open(path) as packed:
            text = packed.read(LONGEST + 1)
        if len(text) > LONGEST:
            raise Unreadable(
                f"{path} has more in it than {LONGEST >> 20} MB; no machine is so large"
            )
        table = json.loads(text)
    except (gzip.BadGzipFile, UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise Unreadable(f"{path} is not a file of `kwlab run machine`") from None
    except (EOFError, zlib.error):
        raise Unreadable(f"{path} is not whole: have it sent again") from None
    if not isinstance(table, dict) or table.get("format") != FORMAT:
        raise Unreadable(f"{path} is not a file of `kwlab run machine`")
    if table.get("version") != VERSION:
        raise Unreadable(
            f"{path} was written by another version of the laboratory (its format is "
            f"{table.get('version')}, this one reads {VERSION})"
        )
    return table


def read_all(paths):
    """Several files; those of one name get numbers."""
    found = []
    for path in paths:
        try:
            one = read(path)
        except Unreadable:
            raise
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            OverflowError,
            sqlite3.Error,
        ) as why:
            raise Unreadable(
                f"{path} has something in it that `kwlab run machine` does not write: {why}"
            ) from None
        same = sum(other.name.partition(" #")[0] == one.name for other in found)
        one.name += f" #{same + 1}" if same else ""
        found.append(one)
    return found


# Unit of a figure -> its value for people; zero is what the host does not have.
UNITS = {
    "ps": lambda value: f"{value / 1e6:.3g} us" if value < 1e9 else f"{value / 1e6:.0f} us",
    "ps/KB": lambda value: f"{1024e3 / value:.3g} GB/s",
    "KB": lambda value: f"{value / 1024:.3g} MB",
}


def shown(value, unit):
    """A figure's value for people."""
    return UNITS[unit](float(value)) if float(value) > 0 else "none"
