"""What the selection table of Kittiwake's collectives is made of: every algorithm measured in turn,
a model fitted to each, and rows for the quickest.

Each algorithm is forced with KW_COLL and measured with bench/coll.c as a variant of a plan, so that
within a round all algorithms of a collective take turns. To each algorithm and process count the
three-parameter model of `models` is fitted; where the data outgrows a cache a straight line takes
over, if the error is half of it then. The error is that of the fit and the scatter of the rounds
(median absolute deviation), both relative and the mean of the sizes, added as independent. Rows
follow: the quickest measured algorithm at each size; between two sizes with different winners, the
size at which their models cross.

    kwlab tune                                  rows on the terminal, and in build/lab/rows.txt;
                                                figures in build/lab/measured.tsv
    KW_COLL=@build/lab/rows.txt mpiexec ...     uses the rows
    kwsim consistency --measured build/lab/measured.tsv
                                                judges the table in force by the figures
    kwlab tune --keep-models                    makes the models the library's own: `kwsim regret`
                                                judges its table by them
"""

import datetime
import math
import os
import statistics
import subprocess
from collections import defaultdict
from dataclasses import replace

from . import facts, models
from .libraries import CLUSTER, OURS, ROOT, tool
from .plan import Plan, Work

MODELS = ROOT / "crates/sim/src/measured.tsv"
SIZES = [8, 128, 1024, 8192, 65536, 262144, 1048576]
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
COLUMNS = "# coll\talgorithm\tpath\tload\tprocs\tfrom_bytes\tt0_us\tti_us\ttb_ns_per_byte\terror"
HALF_PERCENT, CLOSE = 0.005, 0.12
FEWEST = 4, 3  # sizes of the model and of the line that takes over from it
GOOD = 0.01  # a model with this error needs no line


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


def plan(dist, ops, ranks, networks, sizes, rounds, ms, limit):
    """Every algorithm that an ordinary call can use, as a variant of Kittiwake; the library by
    itself is measured beside them."""
    known = algorithms(dist)
    # The longest first: it touches the pages of shared memory, which the others then find.
    args = ("--ms", str(ms), "--sizes", ",".join(map(str, sorted(sizes, reverse=True))))
    work = [
        every_algorithm(known, op, n, network, sized(op, args))
        for network in networks
        for n in ranks
        for op in ops
    ]
    return Plan("tune", "Algorithms of collectives", tuple(work), (OURS,), rounds, limit)


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


def results(data, machine, plan):
    """(op, path, ranks, shared) -> label -> bytes -> microseconds of each round, of what the plan
    asks for."""
    wanted = {
        (" ".join(work.args), n, network)
        for work in plan.work
        for n in work.ranks
        for network in work.network
    }
    some = data[
        (data.machine == machine)
        & (data.bench == "coll")
        & (data.metric == "us")
        & (data.variant != "")
    ]
    return by_place(
        (row for row in some.itertuples() if (row.args, row.ranks, row.network) in wanted),
        facts.machine()["cores"],
    )


def by_place(rows, cores):
    """The same from measurements of forced algorithms on a machine with this many processors."""
    found = {}
    for row in rows:
        place = (row.op, "shm" if row.network == "shm" else "net", row.ranks, row.ranks > cores)
        found.setdefault(place, {}).setdefault(row.variant, defaultdict(list))[row.bytes].append(
            row.median
        )
    return found


def straight(times):
    """A weighted line, which may begin below nothing: it holds from some size on."""
    sizes = models.arrays([*times], [*times.values()])
    return models.Hockney(*map(float, models.line(*sizes, 1 / sizes[1])))


def fit(times):
    """The model of bytes -> microseconds; of one size, its time."""
    return (
        models.three_parameters([*times], [*times.values()])
        if len(times) > 1
        else models.ThreeParameters(*times.values(), 0.0, 0.0)
    )


def off(model, times):
    """Mean absolute relative error."""
    return statistics.mean(abs(float(model.time(n)) / us - 1) for n, us in times.items())


def pieces(times):
    """[(bytes of its sizes, model, error)]: one model, or one and a line."""
    sizes, whole = sorted(times), fit(times)
    best, least = [(sizes, whole, off(whole, times))], off(whole, times) / 2
    if least < GOOD / 2:
        return best
    for k in range(FEWEST[0] - 1, len(sizes) - FEWEST[1] + 1):
        low, high = ({n: times[n] for n in part} for part in (sizes[: k + 1], sizes[k:]))
        two = [
            ([*part], model, off(model, part))
            for part, model in ((low, fit(low)), (high, straight(high)))
        ]
        error = sum(len(part) * wrong for part, _, wrong in two) / (len(sizes) + 1)
        if error < least:
            best, least = two, error
    return best


def medians(rounds):
    return {n: statistics.median(us) for n, us in rounds.items()}


def scatter(rounds):
    """How far a round is from the median, relative to it: the middle of the rounds, the mean of the
    sizes."""
    return statistics.mean(
        statistics.median(abs(u / statistics.median(us) - 1) for u in us) for us in rounds.values()
    )


def crossing(a, b, low, high):
    """The size between `low` and `high` from which on `b` is quicker than `a`, by their models; the
    middle (of the logarithms) where the models do not cross there."""
    if a.time(low) <= b.time(low) and a.time(high) >= b.time(high):
        while high - low > max(8, low * HALF_PERCENT):
            middle = (low + high) // 2
            low, high = (middle, high) if a.time(middle) <= b.time(middle) else (low, middle)
        return low
    return int((low * high) ** 0.5)


def winners(measured):
    """[(largest size, label)] of one collective in one place; a winner stays as long as no other
    is 12 % faster."""
    sizes = sorted({n for times in measured.values() for n in times})
    fitted = {label: fit(times) for label, times in measured.items()}
    rows, kept = [], None
    for i, n in enumerate(sizes):
        here = {label: times[n] for label, times in measured.items() if n in times}
        best = min(here, key=here.get)
        if kept in here and here[kept] <= here[best] * (1 + CLOSE):
            best = kept
        if kept and best != kept:
            rows.append((crossing(fitted[kept], fitted[best], sizes[i - 1], n), kept))
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


def model_lines(found):
    """Place -> the lines of measured.tsv."""
    lines = {}
    for (op, path, ranks, shared), labels in found.items():
        load = "shared" if shared else "free"
        for label, rounds in labels.items():
            start = 0
            for sizes, model, wrong in pieces(medians(rounds)):
                error = math.hypot(wrong, scatter({n: rounds[n] for n in sizes}))
                parameters = model.t0, getattr(model, "ti", 0), model.tb * 1000
                figures = [*(f"{one:.4g}" for one in parameters), f"{error:.3f}"]
                text = "\t".join(map(str, (op, label, path, load, ranks, start, *figures)))
                lines.setdefault((op, path, load, str(ranks)), []).append(text)
                start = sizes[-1]
    return lines


def measured_text(lines, origin):
    head = [
        (
            "# Cost of the collective algorithms: parameters of the model in model.rs, "
            "fitted to measurements."
        ),
        *origin,
        COLUMNS,
    ]
    places = sorted(lines, key=lambda place: (OPS.index(place[0]), place[1], int(place[3])))
    return "\n".join(head + [line for place in places for line in lines[place]]) + "\n"


def keep_models(found, origin, file=MODELS):
    """Puts the models of the places that were measured now in place of those in the file."""
    lines, above = {}, []
    for line in file.read_text().splitlines():
        if line.startswith("#"):
            above.append(line)
        elif line:
            op, _, *place = line.split("\t")[:5]
            lines.setdefault((op, *place), []).append(line)
    file.write_text(measured_text({**lines, **model_lines(found)}, [*above[1:-1], origin]))


def write(found, out, command, keep=False):
    """Writes rows.txt and measured.tsv into `out` and, if asked for, into the library; gives the
    rows."""
    origin = (
        f"# Made by `{command}` on {datetime.date.today().isoformat()} "
        f"({facts.sentence(facts.machine())})."
    )
    rows = table_rows(found)
    out.mkdir(parents=True, exist_ok=True)
    (out / "measured.tsv").write_text(measured_text(model_lines(found), [origin]))
    (out / "rows.txt").write_text("".join(f"{row}\n" for row in rows))
    if keep:
        keep_models(found, origin)
    return rows
