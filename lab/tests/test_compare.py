"""Honesty of comparisons, on data whose truth is known: drifting machines, spikes, and a planted difference."""
import numpy
import pytest

from kwlab import compare


def machine(random, runs, noise=0.02):
    """Times of a machine whose speed drifts, with a run in twenty hit by something outside."""
    drift = numpy.exp(numpy.cumsum(random.normal(0, 0.01, runs)))
    spikes = numpy.where(random.random((runs, 2)) < 0.05, random.uniform(1.3, 3, (runs, 2)), 1)
    return 10 * drift[:, None] * random.normal(1, noise, (runs, 2)) * spikes


def test_a_against_a_says_same_nineteen_times_of_twenty():
    random = numpy.random.default_rng(7)
    verdicts = [compare.verdict(*machine(random, 12).T) for _ in range(400)]
    assert sum(v.same for v in verdicts) >= 0.95 * len(verdicts)


def test_five_percent_planted_are_found():
    random = numpy.random.default_rng(8)
    found = 0
    for _ in range(100):
        times = machine(random, 20)
        verdict = compare.verdict(times[:, 0] * 1.05, times[:, 1])
        found += not verdict.same and verdict.ratio > 1
    assert found >= 95


def test_words_name_the_quicker_one():
    assert compare.verdict([1.0, 1.01, 0.99], [2.0, 2.02, 1.99]).words("ours", "theirs").startswith("ours is quicker")


@pytest.mark.parametrize("a, b", [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 0.0], [1.0, 1.0])])
def test_too_little_is_refused(a, b):
    with pytest.raises(ValueError):
        compare.verdict(a, b)
