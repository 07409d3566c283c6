"""Two libraries, or one with and without a setting, compared: runs in turn, and a ratio with its
confidence.

The unit is a run, not a repetition within one: repetitions of one run share its luck (memory
placement, neighbours on the machine), so their spread says too little. A pair is a run of each, in
an order drawn again each time; pairs share the machine's drift. The ratio is the geometric mean of
the pairs' ratios without a fifth of them at either end, which something outside may have hit; its
interval is that of the trimmed mean (Yuen, Biometrika 61, 1974) of their logarithms, as wide as the
machine is restless. (To leave out just the pairs that look hit makes the interval too narrow: on a
machine with two speeds one comparison of equals in ten was called different.) It is "same" when the
interval holds 1, or when the ratio lies within the smallest difference that is asked about.

One in a hundred comparisons may call a difference what is none. A comparison of many cells (sizes,
operations) that is looked at after each pair has many chances to err, so each look takes its share
of that hundredth (Bonferroni)."""

from dataclasses import dataclass

from .lazy import mstats, numpy
from .plan import PlanError
from .runner import parse

ERRORS = 0.01  # comparisons of equals that may be called different
FIRST_LOOK = 4  # pairs before a comparison may end early
# A ratio nearer to 1 than this is not worth a word.
SMALLEST = 0.01
TRIMMED = 0.2  # of the pairs, at either end


@dataclass(frozen=True)
class Verdict:
    """What is known of A : B after some pairs."""

    ratio: float
    low: float
    high: float
    pairs: int
    errors: float = ERRORS
    smallest: float = SMALLEST

    @property
    def same(self):
        return self.low <= 1 <= self.high or abs(self.ratio - 1) < self.smallest

    def words(self, a="A", b="B"):
        """The verdict for people; below 1 A takes less time."""
        interval = f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}, {self.pairs} pairs)"
        if self.same:
            return f"same: {a} : {b} = {interval}"
        quicker, slower = (a, b) if self.ratio < 1 else (b, a)
        return f"{quicker} is quicker than {slower}: {a} : {b} = {interval}"


def verdict(a, b, errors=ERRORS, smallest=SMALLEST):
    """From the times of paired runs; the interval misses the truth in `errors` of all cases."""
    a, b = numpy.asarray(a, float), numpy.asarray(b, float)
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"{len(a)} runs of the one and {len(b)} of the other make no two pairs")
    if not (numpy.all(a > 0) and numpy.all(b > 0)):
        raise ValueError("times are above 0")
    logs = numpy.log(a / b)
    low, high = mstats.trimmed_mean_ci(logs, limits=(TRIMMED, TRIMMED), alpha=errors)
    middle = (low + high) / 2
    reach = min((high - low) / 2, 50.0)
    return Verdict(
        float(numpy.exp(middle)),
        float(numpy.exp(middle - reach)),
        float(numpy.exp(middle + reach)),
        len(a),
        errors,
        smallest,
    )


def decided(found, wanted=0.02):
    """Whether more pairs would add little: the interval is narrow, or far from 1."""
    return (
        found.high / found.low - 1 < wanted
        or not found.same
        and (found.low > 1 + wanted or found.high < 1 - wanted)
    )


def side(text):
    """(library, settings) of one side: `kittiwake` or `kittiwake:KW_WRITE=no,KW_SPIN=0`."""
    name, _, rest = text.partition(":")
    settings = dict(word.split("=", 1) for word in rest.split(",") if "=" in word)
    if rest and len(settings) != len(rest.split(",")):
        raise ValueError(f"'{text}': what follows the colon is NAME=VALUE, comma separated")
    return name, settings


def live(a, b, known, program, ranks=2, network="shm", limit=60.0):
    """What `pairs` wants, for two sides as text; `program` has its arguments after its name.
    Compiles it for both."""
    name, *arguments = program.split()
    sides = {"a": side(a), "b": side(b)}
    libraries = {lib.name: lib for lib in known}
    for library, _ in sides.values():
        if library not in libraries:
            raise PlanError(
                f"{library}: not one of {', '.join(libraries)}; "
                "--plan FILE brings libraries that a plan describes"
            )
        if not libraries[library].there():
            raise PlanError(f"{library}: {libraries[library].lacks()}")
    programs = {library: libraries[library].build(name) for library, _ in sides.values()}

    def once(which):
        library, settings = sides[which]
        text, _ = libraries[library].run(
            programs[library], ranks, network, *arguments, settings=settings, timeout=limit
        )
        return times(parse(text))

    return once


def times(lines):
    """(bench, op, bytes, mode, metric) -> median microseconds, of a program's lines."""
    return {
        (
            line["bench"],
            line.get("op", ""),
            line.get("bytes", 0),
            line.get("mode", ""),
            metric,
        ): value["median"]
        for line in lines
        for metric, value in line.items()
        if isinstance(value, dict) and value["median"] > 0
    }


def pairs(once, most, seed=0):
    """Runs pairs of `once("a")` and `once("b")`, each giving {what: microseconds}, in an order
    drawn from the seed; yields the verdicts so far after each pair from the second on, and stops
    when all of them are decided."""
    random = numpy.random.default_rng(seed)
    times = {}
    for number in range(1, most + 1):
        order = ["a", "b"] if random.random() < 0.5 else ["b", "a"]
        found = {which: once(which) for which in order}
        for what in found["a"].keys() & found["b"].keys():
            times.setdefault(what, ([], []))
            times[what][0].append(found["a"][what])
            times[what][1].append(found["b"][what])
        if number < 2:
            continue
        share = ERRORS / len(times) / max(1, most - FIRST_LOOK) if times else ERRORS
        verdicts = {
            what: verdict(*both, errors=share) for what, both in times.items() if len(both[0]) > 1
        }
        yield verdicts
        if number > FIRST_LOOK and verdicts and all(decided(v) for v in verdicts.values()):
            return


def together(verdicts):
    """One ratio for many cells: the geometric mean of theirs."""
    return float(numpy.exp(numpy.mean([numpy.log(v.ratio) for v in verdicts.values()])))
