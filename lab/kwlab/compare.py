"""Two libraries, or one with and without a knob, compared: runs in turn, and a ratio with its confidence.

The unit is a run, not a repetition within one: repetitions of one run share its luck (memory placement, neighbours on the machine), so
their spread says too little. A pair is a run of each, in an order drawn anew each time; pairs share the machine's drift. The ratio is the
geometric mean of the pairs' ratios; its interval is Student's on their logarithms, as wide as the machine is restless. It is "same"
when the interval holds 1, or when the ratio lies within the smallest difference that is asked about."""
from dataclasses import dataclass

import numpy
from scipy import stats

CONFIDENCE = 0.99
# A ratio nearer to 1 than this is not worth a word.
SMALLEST = 0.01


@dataclass(frozen=True)
class Verdict:
    """What is known of A : B after some pairs."""
    ratio: float
    low: float
    high: float
    pairs: int
    smallest: float = SMALLEST

    @property
    def same(self):
        return self.low <= 1 <= self.high or abs(self.ratio - 1) < self.smallest

    def words(self, a="A", b="B"):
        """The verdict for people; below 1 A takes less time."""
        interval = f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}, {CONFIDENCE:.0%}, {self.pairs} pairs)"
        if self.same:
            return f"same: {a} : {b} = {interval}"
        quicker, slower = (a, b) if self.ratio < 1 else (b, a)
        return f"{quicker} is quicker than {slower}: {a} : {b} = {interval}"


def verdict(a, b, smallest=SMALLEST):
    """From the times of paired runs."""
    a, b = numpy.asarray(a, float), numpy.asarray(b, float)
    if len(a) != len(b) or len(a) < 2:
        raise ValueError(f"{len(a)} runs of the one and {len(b)} of the other make no two pairs")
    if not (numpy.all(a > 0) and numpy.all(b > 0)):
        raise ValueError("times are above 0")
    logs = trimmed(numpy.log(a / b))
    middle, error = logs.mean(), logs.std(ddof=1) / numpy.sqrt(len(logs))
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * error
    return Verdict(float(numpy.exp(middle)), float(numpy.exp(middle - reach)), float(numpy.exp(middle + reach)), len(a), smallest)


def trimmed(logs):
    """Without the pairs that something outside hit: further than five robust deviations from the median."""
    median = numpy.median(logs)
    deviation = 1.4826 * numpy.median(numpy.abs(logs - median))
    kept = logs[numpy.abs(logs - median) <= 5 * max(deviation, 1e-4)]
    return kept if len(kept) >= max(2, len(logs) // 2) else logs


def decided(found, wanted=0.02):
    """Whether more pairs would add little: the interval is narrow, or far from 1."""
    return found.high / found.low - 1 < wanted or not found.same and (found.low > 1 + wanted or found.high < 1 - wanted)


def side(text):
    """(library, knobs) of one side: `kittiwake` or `kittiwake:KW_WRITE=no,KW_SPIN=0`."""
    name, _, rest = text.partition(":")
    knobs = dict(word.split("=", 1) for word in rest.split(",") if "=" in word)
    if rest and len(knobs) != len(rest.split(",")):
        raise ValueError(f"'{text}': what follows the colon is NAME=VALUE, comma separated")
    return name, knobs


def pairs(once, most, seed=0):
    """Runs pairs of `once("a")` and `once("b")`, each giving {what: microseconds}, in an order drawn from the seed; yields the verdicts so far
    after each pair from the second on, and stops when all of them are decided."""
    random = numpy.random.default_rng(seed)
    times = {}
    for number in range(most):
        order = ["a", "b"] if random.random() < 0.5 else ["b", "a"]
        found = {which: once(which) for which in order}
        for what in found["a"].keys() & found["b"].keys():
            times.setdefault(what, ([], []))
            times[what][0].append(found["a"][what])
            times[what][1].append(found["b"][what])
        if number:
            verdicts = {what: verdict(*both) for what, both in times.items() if len(both[0]) > 1}
            yield verdicts
            if number > 3 and verdicts and all(decided(v) for v in verdicts.values()):
                return
