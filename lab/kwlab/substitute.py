"""Where two collectives in a row beat one: the substitutions of Table 5 of *Performance Analysis of
Message-Passing Libraries on High-Speed Clusters*, judged by fitted models, for any library.

A library that beats itself has a badly chosen algorithm. For Kittiwake the finding can be acted
upon: `rows` gives the rows for its selection table (KW_COLL takes a file of them; the columns are
explained in coll/table.txt)."""

import math
from dataclasses import dataclass

from .lazy import numpy
from .models import OF_BLOCKS

SIZES = [8 * 4**k for k in range(10)]
MARGIN = 1.10

# collective: pairs that do the same in a row on messages of the same size (models.message says what
# that is).
SUBSTITUTES = {
    "bcast": [("scatter", "allgather")],
    "allgather": [("gather", "bcast")],
    "reduce_scatter": [("reduce", "scatter")],
    "allreduce": [("reduce", "bcast"), ("reduce_scatter", "allgather")],
}
# The algorithm of Kittiwake's that is the substitution in one schedule.
ALGORITHM = {
    ("bcast", "scatter"): "scatter_ring",
    ("allgather", "gather"): "gather_bcast",
    ("reduce_scatter", "reduce"): "reduce_scatterv",
    ("allreduce", "reduce"): "linear",
    ("allreduce", "reduce_scatter"): "rabenseifner",
}


@dataclass(frozen=True)
class Known:
    """A model of a collective, and between which sizes it was measured."""

    model: object
    least: float = 0
    most: float = math.inf

    def time(self, n):
        return self.model.time(n)


@dataclass(frozen=True)
class Finding:
    """Sizes at which a pair beats the collective by more than a tenth."""

    library: str
    coll: str
    first: str
    second: str
    processes: int
    low: int
    high: int
    example: int
    reduction: float

    def sentence(self):
        sizes = f"{self.low} B" if self.low == self.high else f"{self.low} to {self.high} B"
        return (
            f"{self.library}: {self.coll} = {self.first} + {self.second} for {sizes} on "
            f"{self.processes} processes; at {self.example} B {self.reduction:.0%} less time"
        )


def findings(library, models, processes):
    """All cases; `models` gives for (collective, processes) what is known (`Known`), or nothing.
    Sizes that one of the three was not measured at are left out: a model knows nothing beyond."""
    found = []
    for coll, ways in SUBSTITUTES.items():
        for first, second in ways:
            for p in processes:
                whole, one, two = (models.get((c, p)) for c in (coll, first, second))
                if whole and one and two:
                    sizes = [
                        n
                        for n in SIZES
                        if all(part.least <= n <= part.most for part in (whole, one, two))
                    ]
                    found += spans(
                        library,
                        coll,
                        first,
                        second,
                        p,
                        sizes,
                        whole.time(sizes),
                        one.time(sizes) + two.time(sizes),
                    )
    return found


def spans(library, coll, first, second, p, sizes, now, then):
    """Runs of neighbouring sizes at which the pair wins."""
    wins, found, start = now > then * MARGIN, [], None
    for i, win in enumerate([*wins, False]):
        if win and start is None:
            start = i
        elif not win and start is not None:
            best = start + int(numpy.argmax(now[start:i] / then[start:i]))
            found.append(
                Finding(
                    library,
                    coll,
                    first,
                    second,
                    p,
                    sizes[start],
                    sizes[i - 1],
                    sizes[best],
                    float(1 - then[best] / now[best]),
                )
            )
            start = None
    return found


def rows(found, path):
    """Rows for Kittiwake's selection table that put the substitutions in force; `path` is shm or
    net. A row holds for all sizes up to its own, so a span that begins above the smallest size
    needs the table's own choice below it: such spans are named in a comment."""
    lines = []
    for f in found:
        algorithm = ALGORITHM[f.coll, f.first]
        size = f.high // f.processes if f.coll in OF_BLOCKS else f.high
        row = f"{f.coll:<15} {size:<8} {f.processes:<6} any    {path:<6} any    {algorithm}"
        lines.append(row if f.low == SIZES[0] else f"# only from {f.low} B on: {row}")
    return lines
