"""Algorithms of Kittiwake's collectives: every one of them as a variant of a plan, forced with
KW_COLL, so that within a round all algorithms of a collective take turns (bench/coll.c); and rows
of the selection table from what was measured so: the quickest algorithm at each size.

    kwlab run regret                            measures them
    kwlab tune                                  rows on the terminal, and in build/lab/rows.txt
    KW_COLL=@build/lab/rows.txt mpiexec ...     uses the rows
"""

import os
import statistics
import subprocess
from collections import defaultdict
from dataclasses import replace

from . import facts
from .libraries import CLUSTER, tool
from .plan import Work

OPS = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "scan",
    "exscan",
]
# Algorithms that look at the number behind the slash of their row, and the numbers that are tried
# in addition to the usual one.
FANS = {
    "tree": [8, 16, 32],
    "gather_bcast": [32],
    "reduce_scatterv": [32],
    "chain": [2, 8, 16],
    "shm_tree": [8],
    "shm": [8, 16, 32, 64, 128, 256, 512],
    "shm_parts": [128, 512],
    "shm_root": [256],
}
# Those of that name that have no number.
WITHOUT = {("scan", "chain"), ("exscan", "chain"), ("barrier", "shm")}
CLOSE = 0.12  # by how much another algorithm must be quicker


def algorithms(dist):
    """Collective -> [(label, need)], as kwinfo tells. Raises Unavailable where it is not there."""
    text = subprocess.run(
        [tool(dist, "kwinfo"), "--algorithms"],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "160"},
    ).stdout
    found = {op: [] for op in OPS}
    for line in text.splitlines()[2:]:
        if line.startswith(" "):  # the rest of a need that is long
            continue
        coll, name, *need = line.split(maxsplit=2)
        if coll in found:
            fans = [] if (coll, name) in WITHOUT else FANS.get(name, [])
            found[coll] += [
                (label, need[0] if need else "")
                for label in [name, *(f"{name}/{fan}" for fan in fans)]
            ]
    return found


def usable(need, ranks, network, hosts=1):
    """Whether an ordinary call of this many ranks, on one host or over several in turn, meets an
    algorithm's need."""
    several = network == CLUSTER and ranks > hosts > 1
    if need.startswith("MPI_IN_PLACE"):
        return False
    if need.startswith("several hosts"):
        return several
    if need.startswith("one host"):
        return network == "shm" and ("several sockets" not in need or facts.domains() > 1)
    if "2^n processes" in need:
        return ranks & (ranks - 1) == 0
    return ranks % 2 == 0 if "an even number of processes" in need else True


def forced(op, label):
    """The row of KW_COLL that has an algorithm do every call of a collective."""
    return f"{op} - - any any any {label}"


def every_algorithm(known, op, ranks, network, args, more=Work("coll"), hosts=1):
    """Every algorithm of a collective that an ordinary call can use there, as a variant of
    Kittiwake; the libraries by themselves are measured beside them. `known`: see `algorithms`;
    `more`: the work on which it is based."""
    labels = [label for label, need in known[op] if usable(need, ranks, network, hosts)]
    return replace(
        more,
        args=("--ops", op, *args),
        ranks=(ranks,),
        network=(network,),
        variants={label: {"KW_COLL": forced(op, label)} for label in labels},
        algorithms=False,
        asked=True,
        grow=False,
    )


def sized(op, args):
    """The arguments for a collective: a barrier has no sizes."""
    return without(args, "--sizes")[0] if op == "barrier" else tuple(args)


def without(args, option):
    """The arguments without an option, and the value that it had last."""
    left, value, words = [], None, iter(args)
    for word in words:
        if word == option:
            value = next(words, None)
        else:
            left.append(word)
    return tuple(left), value


def expanded(plan, dist, hosts=1):
    """The same plan with every algorithm in place of its parts that ask for them."""
    if not any(work.algorithms for work in plan.work):
        return plan
    known, found = algorithms(dist), []
    for work in plan.work:
        if not work.algorithms:
            found.append(work)
            continue
        args, ops = without(work.args, "--ops")
        ops = [op for op in OPS if not ops or op in ops.split(",")]
        found += [
            every_algorithm(known, op, n, network, sized(op, args), work, hosts)
            for network in work.network
            for n in work.ranks
            for op in ops
        ]
    return replace(plan, work=tuple(found))


def by_place(rows, cores):
    """(op, path, ranks, shared) -> label -> bytes -> microseconds of each round, from measurements
    of forced algorithms on a machine with this many processors."""
    found = {}
    for row in rows:
        place = (row.op, "shm" if row.network == "shm" else "net", row.ranks, row.ranks > cores)
        found.setdefault(place, {}).setdefault(row.variant, defaultdict(list))[row.bytes].append(
            row.median
        )
    return found


def medians(rounds):
    return {n: statistics.median(us) for n, us in rounds.items()}


def winners(measured):
    """[(largest size, label)] of one collective in one place; a winner stays as long as no other
    is 12 % faster, and up to the middle (of the logarithms) between two measured sizes."""
    sizes = sorted({n for times in measured.values() for n in times})
    rows, kept = [], None
    for i, n in enumerate(sizes):
        here = {label: times[n] for label, times in measured.items() if n in times}
        best = min(here, key=here.get)
        if kept in here and here[kept] <= here[best] * (1 + CLOSE):
            best = kept
        if kept and best != kept:
            rows.append((int((sizes[i - 1] * n) ** 0.5), kept))
        kept = best
    return rows + [(None, kept)]


def table_rows(found):
    """Rows of the selection table. The largest process count measured stands for all larger
    ones."""
    lines = []
    for op in OPS:
        for path in ("shm", "net"):
            places = sorted((n, shared) for (o, p, n, shared) in found if o == op and p == path)
            for i, (ranks, shared) in enumerate(places):
                times = {
                    label: medians(rounds)
                    for label, rounds in found[op, path, ranks, shared].items()
                }
                procs = "-" if i == len(places) - 1 else ranks
                # What shared memory wins on shared cores it wins on free ones; of messages that is
                # not known.
                load = "any" if path == "shm" or ranks == 2 else "shared" if shared else "free"
                for size, label in winners(times):
                    size = "-" if size is None else size
                    lines.append(
                        f"{op:<15} {size:<8} {procs:<6} {'one':<6} {path:<6} {load:<7} {label}"
                    )
    return lines
