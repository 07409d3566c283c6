"""Honesty of comparisons, on data whose truth is known: drifting machines, spikes, and a planted
difference."""

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


@pytest.mark.parametrize("runs", [5, 12, 24])
def test_a_machine_with_two_speeds_is_no_difference_between_equals(runs):
    """Three runs in ten take half as long again; by the promise of one wrong verdict in a hundred,
    16 of 800 have odds of one in a hundred."""
    random = numpy.random.default_rng(9)
    times = random.normal(1, 0.02, (800, runs, 2)) * numpy.where(
        random.random((800, runs, 2)) < 0.3, 1.5, 1
    )
    assert sum(not compare.verdict(*one.T).same for one in times) < 16


def test_five_percent_planted_are_found():
    random = numpy.random.default_rng(8)
    found = 0
    for _ in range(100):
        times = machine(random, 20)
        verdict = compare.verdict(times[:, 0] * 1.05, times[:, 1])
        found += not verdict.same and verdict.ratio > 1
    assert found >= 95


def test_words_name_the_quicker_one():
    assert (
        compare.verdict([1.0, 1.01, 0.99], [2.0, 2.02, 1.99])
        .words("ours", "theirs")
        .startswith("ours is quicker")
    )


@pytest.mark.parametrize("a, b", [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, 0.0], [1.0, 1.0])])
def test_too_little_is_refused(a, b):
    with pytest.raises(ValueError):
        compare.verdict(a, b)


def once(seed, planted=1.0, cells=5):
    """What `pairs` wants, on machines that drift apart from each other."""
    random = numpy.random.default_rng(seed)
    drift = numpy.ones(cells)

    def run(which):
        drift[:] *= numpy.exp(random.normal(0, 0.01, cells))
        spikes = numpy.where(random.random(cells) < 0.05, random.uniform(1.3, 3, cells), 1)
        return dict(
            enumerate(
                10
                * drift
                * random.normal(1, 0.02, cells)
                * spikes
                * (planted if which == "a" else 1)
            )
        )

    return run


def last(seed, **more):
    *_, verdicts = compare.pairs(once(seed, **more), 30, seed=seed)
    return verdicts


def test_looking_after_each_pair_at_many_cells_finds_no_difference_between_equals():
    same = [all(v.same for v in last(seed).values()) for seed in range(100)]
    assert sum(same) >= 95


def test_looking_after_each_pair_finds_five_percent():
    found = [
        all(not v.same and v.ratio > 1 for v in last(seed, planted=1.05, cells=1).values())
        for seed in range(50)
    ]
    assert sum(found) >= 48


def test_all_cells_together():
    assert compare.together(
        {1: compare.verdict([2, 2], [1, 1]), 2: compare.verdict([1, 1], [2, 2])}
    ) == pytest.approx(1)
