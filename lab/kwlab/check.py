"""Holds what the library and its simulator assume against a machine that was measured (`machine`):
the starting value of every figure, the prices of the simulator's descriptions, and the simulator
itself, which runs a description made of the machine's own prices beside what was measured of its
collectives.

A factor is what is assumed over what was measured: 2 assumes twice the time, 0.5 half of it."""

import subprocess
import tempfile
from pathlib import Path

from . import machine, regret, tune
from .libraries import CLUSTER, ROOT

DESCRIPTIONS = ROOT / "crates/sim/machines"


def starts(one, library):
    """Rows of the starting values of a library's figures (`machine.starting`) beside those of a
    machine: name, starting value, what was measured, factor."""
    here = {name: (times, origin) for name, _, _, origin, _, times in one.rows("figures")}
    rows = []
    for name, _, unit, _, start in library["figure"]:
        times, origin = here.get(name, ([], "start"))
        if origin == "measured" and times:
            middle = sorted(times)[len(times) // 2]
            rows.append(
                (
                    name,
                    machine.shown(start, unit),
                    machine.shown(middle, unit),
                    factor(float(start), middle),
                )
            )
    return rows


def factor(assumed, measured):
    """What is assumed over what was measured; None where either is nothing."""
    return assumed / measured if assumed > 0 and measured > 0 else None


def described():
    """name -> {row: its value as text}, of the simulator's descriptions."""
    found = {}
    for path in sorted(DESCRIPTIONS.glob("*.tsv")):
        rows = (
            line.split("\t")
            for line in path.read_text().splitlines()
            if line and not line.startswith("#")
        )
        found[path.stem] = {name: value for name, value, *_ in rows}
    return found


def prices(one, library, machines):
    """Rows of the prices that a figure of the machine makes: name, nanoseconds, the factor of the
    library's starting value, and those of each description."""
    start = {name: float(value) for name, _, _, _, value in library["price"]}
    rows = []
    for name, value, origin, _, _ in one.rows("prices"):
        if origin != "measured":
            continue
        assumed = (
            described_price(rows_of.get(name), start.get(name)) for rows_of in machines.values()
        )
        rows.append(
            (
                name,
                float(value),
                *(factor(value_of or 0, float(value)) for value_of in (start.get(name), *assumed)),
            )
        )
    return rows


def described_price(text, start):
    return start if text == "start" else None if text is None else float(text)


def simulated(one, kwsim, points=False):
    """What `kwsim check` says of the machine's collectives, by a description made of its own
    prices. Raises ValueError where none were measured."""
    every = one.book.every
    some = every[regret.is_forced(every) & (every.metric == "us") & (every.network != CLUSTER)]
    found = tune.by_place(some.itertuples(), one.facts["cores"])
    if not found:
        raise ValueError(
            f"{one.name} has no algorithms of collectives that the simulator could be held against"
        )
    with tempfile.TemporaryDirectory() as place:
        measured, shm, net = (Path(place) / name for name in ("measured.tsv", "shm.tsv", "net.tsv"))
        measured.write_text("".join(f"{line}\n" for line in points_of(found)))
        shm.write_text(description(one, "two-cores", 0))
        net.write_text(description(one, "two-cores-tcp", 1))
        command = [
            kwsim,
            "check",
            measured,
            "--described",
            shm,
            net,
            *(["--points"] if points else []),
        ]
        return subprocess.run(
            command, check=True, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        ).stdout


def points_of(found):
    """The medians of what `tune.by_place` gives, as `kwsim check` reads them."""
    for (op, path, ranks, shared), labels in found.items():
        for label, rounds in labels.items():
            for size, us in tune.medians(rounds).items():
                load = "shared" if shared else "free"
                yield f"{op}\t{label}\t{path}\t{load}\t{ranks}\t{size}\t{us:.4g}"


def description(one, like, network):
    """A description of the machine, one host of it: a line a row, as in crates/sim/machines. What
    its figures make is theirs; the rest is as in another description."""
    rows = described()[like]
    measured = {
        name: value for name, value, origin, *_ in one.rows("prices") if origin == "measured"
    }
    # What goes over a network stays on the loopback interface here.
    measured = {
        name: value
        for name, value in measured.items()
        if name in rows and name not in ("latency", "link-byte")
    }
    host = (one.profile.get("hosts") or [[{}, 1]])[0][0]
    sockets = int(host.get("sockets", 1)) or 1
    own = {
        "hosts": 1,
        "sockets": sockets,
        "cores": max(1, one.facts["cores"] // sockets),
        "network-inside": network,
        **measured,
    }
    return "".join(
        f"{name}\t{own.get(name, value)}\t{'measured' if name in own else like}\n"
        for name, value in rows.items()
    )
