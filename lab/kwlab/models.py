"""Cost models of communication: time in microseconds as a function of the size in bytes, fitted to
measurements.

The paper is *Performance Analysis of Message-Passing Libraries on High-Speed Clusters*.

- Hockney: t0 + tb n, as the paper uses it in section 2.
- Three parameters: t0 + ti tb n / (t0 + tb n) + tb n (section 3).
- LogGP: L + 2 o + (n - 1) G, with o from one-sided times where they are measured; section 2 names
  it.
- Pieces: straight lines between sizes at which the protocol changes; in section 3 the alternative
  that wants to know them.

The paper fits by least squares on T(n) - t0, with t0 the time of nothing. Ours fit the *relative*
error, because the paper judges its models by the relative error; `paper=True` fits as the paper
does, to compare."""

from dataclasses import dataclass

from .lazy import numpy, optimize


SOFT = 0.1  # relative errors above this count for less
FEWEST = 3  # sizes that a straight line of `pieces` wants: any two lie on one
MOST = 8  # of its lines


@dataclass(frozen=True)
class Hockney:
    """t0 us, tb us a byte."""

    t0: float
    tb: float

    def time(self, n):
        return self.t0 + self.tb * numpy.asarray(n, float)


@dataclass(frozen=True)
class ThreeParameters:
    """t0 us, ti us, tb us a byte."""

    t0: float
    ti: float
    tb: float

    def time(self, n):
        moving = self.tb * numpy.asarray(n, float)
        return self.t0 + self.ti * moving / (self.t0 + moving) + moving

    def bandwidth(self):
        """Asymptotic bandwidth, 1/tb, in MB/s."""
        return 1 / self.tb

    def specific(self, size=1):
        """Specific performance, 1/t0: what short messages get, in MB/s for messages of `size`
        bytes."""
        return size / self.t0


@dataclass(frozen=True)
class LogGP:
    """Latency, overhead (us) and gap a byte (us). Only L + 2 o shows in one-way times; o must come
    from elsewhere."""

    latency: float
    overhead: float
    gap: float

    def time(self, n):
        return (
            self.latency
            + 2 * self.overhead
            + numpy.maximum(numpy.asarray(n, float) - 1, 0) * self.gap
        )


@dataclass(frozen=True)
class Pieces:
    """Straight lines: piece i is t0[i] + tb[i] n for sizes up to `to[i]` (the last has no end)."""

    to: tuple
    t0: tuple
    tb: tuple

    def time(self, n):
        n = numpy.asarray(n, float)
        piece = numpy.searchsorted(numpy.asarray(self.to), n)
        return numpy.asarray(self.t0)[piece] + numpy.asarray(self.tb)[piece] * n


def arrays(sizes, times):
    """Sizes ascending, with their times; a model needs at least two."""
    order = numpy.argsort(sizes)
    n, t = numpy.asarray(sizes, float)[order], numpy.asarray(times, float)[order]
    if len(n) < 2 or not numpy.all(t > 0):
        raise ValueError("a model is fitted to the times of at least two sizes, all above 0")
    return n, t


def line(n, t, weights):
    """Intercept and slope of weighted least squares."""
    slope, intercept = numpy.polyfit(n, t, 1, w=weights)
    return intercept, slope


def hockney(sizes, times, paper=False):
    """Fits Hockney's model."""
    n, t = arrays(sizes, times)
    if paper:
        slope = float(n @ (t - t[0]) / (n @ n))
        return Hockney(float(t[0]), slope)
    result = optimize.nnls(numpy.column_stack([1 / t, n / t]), numpy.ones_like(t))[0]
    return Hockney(*map(float, result))


def three_parameters(sizes, times, paper=False):
    """Fits the paper's model. The paper takes the time of the smallest size for t0; ours fits t0
    too, because one unlucky run of that size would bend the whole curve, lets single sizes that are
    far off count for less (the soft L1 loss of relative errors above a tenth), and keeps ti at or
    above -t0: below, the model says that a longer message takes less time."""
    n, t = arrays(sizes, times)
    if paper:
        t0 = float(t[0])
        ti, tb = (
            line(n[1:], t[1:] - t0, numpy.ones(len(n) - 1))
            if len(n) > 2
            else (0.0, (t[1] - t0) / n[1])
        )
        return ThreeParameters(t0, float(ti), max(float(tb), 1e-12))

    def model(parameters):
        return ThreeParameters(
            numpy.exp(parameters[0]),
            parameters[1] * numpy.exp(parameters[0]),
            numpy.exp(parameters[2]),
        )

    def wrong(parameters):
        return numpy.log(numpy.maximum(model(parameters).time(n), t / 1e3) / t)

    bounds = ([-numpy.inf, -1, -numpy.inf], numpy.inf)
    best = optimize.least_squares(
        wrong, coarse(n, t), bounds=bounds, loss="soft_l1", f_scale=SOFT, max_nfev=200
    ).x
    return ThreeParameters(*map(float, (model(best).t0, model(best).ti, model(best).tb)))


def coarse(n, t):
    """(log t0, ti / t0, log tb) of the best among a grid of three-parameter models: where the fit
    begins."""
    t0 = numpy.quantile(t[: max(2, len(t) // 2)], [0.0, 0.25, 0.5])
    tb = numpy.median((t / n)[-max(2, len(t) // 3) :]) * numpy.geomspace(1 / 32, 2, 25)
    ti = numpy.array([-0.99, -0.5, 0, 0.5, 1, 2, 4, 8, 16, 32, 64])
    a, b, c = (part.ravel()[:, None] for part in numpy.meshgrid(t0, ti, tb, indexing="ij"))
    times = a + a * b * c * n / (a + c * n) + c * n
    off = numpy.log(numpy.maximum(times, t / 1e3) / t)
    best = int(numpy.argmin(numpy.sum(numpy.sqrt(1 + (off / SOFT) ** 2), 1)))
    return numpy.log(a[best, 0]), b[best, 0], numpy.log(c[best, 0])


def loggp(sizes, times, overhead=0.0):
    """Fits LogGP; `overhead` (us) is measured apart: the time a sender's call takes."""
    straight = hockney(sizes, times)
    return LogGP(max(straight.t0 - 2 * overhead, 0.0), overhead, straight.tb)


def pieces(sizes, times, most=MOST):
    """Fits up to `most` straight lines; their number and their ends are those with the least error,
    a line costing as much as it must save (Bayesian information criterion)."""
    n, t = arrays(sizes, times)
    count = len(n)
    fewest = min(FEWEST, count)
    fits = {
        (i, j): piece(n[i:j], t[i:j]) for i in range(count) for j in range(i + fewest, count + 1)
    }
    best = {(0, 0): (0.0, ())}
    for used in range(1, most + 1):
        for j in range(fewest, count + 1):
            choices = [
                (best[used - 1, i][0] + fits[i, j][0], best[used - 1, i][1] + ((i, j),))
                for i in range(j)
                if (used - 1, i) in best and (i, j) in fits
            ]
            if choices:
                best[used, j] = min(choices)
    whole = [(used, *best[used, count]) for used in range(1, most + 1) if (used, count) in best]
    score = lambda w: count * numpy.log(w[1] / count + 1e-9) + 3 * w[0] * numpy.log(count)
    spans = min(whole, key=score)[2]
    ends = tuple(float(n[j - 1]) for _, j in spans[:-1])
    return Pieces(ends, *(tuple(float(fits[s][k]) for s in spans) for k in (1, 2)))


def piece(n, t):
    """(squared relative error, t0, tb) of one straight line."""
    intercept, slope = line(n, t, 1 / t)
    return float(numpy.sum(((intercept + slope * n) / t - 1) ** 2)), intercept, slope


def error(model, sizes, times):
    """Mean absolute relative error, as the paper states accuracy."""
    n, t = arrays(sizes, times)
    return float(numpy.mean(numpy.abs(model.time(n) / t - 1)))


# f(p) of the paper, section 3: bytes that a collective moves in all, by the bytes of its message.
# The message is what the root or each rank holds whole (all blocks of a scatter, the result of an
# allgather); the peak metrics of its Tables 1 to 4 follow from these.
MOVED = {
    "send": lambda p: 1,
    "bcast": lambda p: p - 1,
    "scatter": lambda p: (p - 1) / p,
    "gather": lambda p: (p - 1) / p,
    "reduce": lambda p: p - 1,
    "allgather": lambda p: p - 1 + (p - 1) / p,
    "alltoall": lambda p: p - 1,
    "allreduce": lambda p: 2 * (p - 1),
    "reduce_scatter": lambda p: p - 1 + (p - 1) / p,
    "scan": lambda p: p - 1,
    "barrier": lambda p: p - 1,
}
# Where bench/coll.c and the selection table count the bytes of one block.
OF_BLOCKS = ("scatter", "gather", "allgather", "alltoall")


def message(coll, block_bytes, processes):
    """The paper's n of a measurement by bench/coll.c."""
    return block_bytes * processes if coll in OF_BLOCKS else block_bytes


@dataclass(frozen=True)
class OfProcesses:
    """A parameter as the paper gives it: constant + factor * g(p), with g either p or ceil(log2
    p)."""

    constant: float
    factor: float
    by: str

    def at(self, p):
        return self.constant + self.factor * g(self.by, p)

    def __str__(self):
        name = {"p": "p", "lp": "⌈lp⌉"}[self.by]
        return (
            f"{self.constant:.3g} {'+' if self.factor >= 0 else '-'} {abs(self.factor):.3g}{name}"
        )


def g(by, p):
    p = numpy.asarray(p, float)
    return p if by == "p" else numpy.ceil(numpy.log2(p))


def of_processes(values):
    """Fits a parameter (process count -> value) by whichever of p and ceil(log2 p) leaves less
    error."""
    p = numpy.asarray(sorted(values), float)
    v = numpy.asarray([values[k] for k in sorted(values)], float)
    if len(p) < 2:
        return OfProcesses(float(v[0]), 0.0, "p")
    found = []
    for by in ("p", "lp"):
        x = g(by, p)
        if len(set(x)) < 2:
            continue
        factor, constant = numpy.polyfit(x, v, 1)
        found.append(
            (
                float(numpy.sum((constant + factor * x - v) ** 2)),
                OfProcesses(float(constant), float(factor), by),
            )
        )
    return min(found, key=lambda f: f[0])[1]


@dataclass(frozen=True)
class Collective:
    """The paper's model of one collective, its parameters functions of the processes."""

    name: str
    t0: OfProcesses
    ti: OfProcesses
    tb: OfProcesses

    def at(self, p):
        return ThreeParameters(
            max(float(self.t0.at(p)), 1e-3), float(self.ti.at(p)), max(float(self.tb.at(p)), 1e-9)
        )

    def peak_specific(self, processes):
        """Peak aggregated specific performance over the process counts: f(p)/t0(p), in KB/s for
        one-byte messages."""
        return max(MOVED[self.name](p) / self.at(p).t0 * 1000 for p in processes)

    def peak_bandwidth(self, processes):
        """Peak aggregated asymptotic bandwidth over the process counts: f(p)/tb(p), in MB/s."""
        return max(MOVED[self.name](p) / self.at(p).tb for p in processes)


def collective(name, fits):
    """The paper's model from {processes: ThreeParameters}."""
    if not fits:
        raise ValueError(f"{name}: no process count with a model")
    part = lambda which: of_processes({p: getattr(f, which) for p, f in fits.items()})
    return Collective(name, part("t0"), part("ti"), part("tb"))
