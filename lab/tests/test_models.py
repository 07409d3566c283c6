"""The models against data made from them, and against what the paper says of them."""

import numpy
import pytest

from kwlab import models

SIZES = [1, 8, 64, 512, 4096, 32768, 262144, 2097152]


def test_three_parameters_finds_what_made_the_data():
    made = models.ThreeParameters(4.0, 13.0, 0.00389)
    found = models.three_parameters(SIZES, made.time(SIZES))
    assert found.ti == pytest.approx(13.0, rel=0.05)
    assert found.tb == pytest.approx(0.00389, rel=0.02)
    assert models.error(found, SIZES, made.time(SIZES)) < 0.01


def test_hockney_underestimates_the_middle_as_the_paper_says():
    made = models.ThreeParameters(4.0, 13.0, 0.00389)
    straight = models.Hockney(made.t0, made.tb)
    ratio = made.time(SIZES) / straight.time(SIZES)
    middle = made.t0 / made.tb
    assert made.time(middle) / straight.time(middle) >= ratio.max()


def test_noise_of_three_percent_leaves_the_fit_within_seven():
    made = models.ThreeParameters(5.0, 8.0, 0.0008)
    random = numpy.random.default_rng(1)
    times = made.time(SIZES) * random.normal(1, 0.03, len(SIZES))
    held_out = random.integers(1, 2 << 20, 20)
    assert models.error(models.three_parameters(SIZES, times), held_out, made.time(held_out)) < 0.07


def test_one_unlucky_size_does_not_bend_the_curve():
    made = models.ThreeParameters(5.0, 8.0, 0.0008)
    for unlucky in range(len(SIZES)):
        times = made.time(SIZES)
        times[unlucky] *= 4
        assert (
            models.error(models.three_parameters(SIZES, times), SIZES, made.time(SIZES)) < 0.12
        ), SIZES[unlucky]


def test_pieces_find_a_change_of_protocol():
    n = numpy.array([8 * 2**k for k in range(16)], float)
    t = numpy.where(n <= 4096, 2 + 0.001 * n, 9 + 0.0002 * n)
    found = models.pieces(n, t)
    assert len(found.t0) == 2 and found.to == (4096.0,)
    assert models.error(found, n, t) < 1e-6


def test_straight_data_is_one_piece():
    n = numpy.array([8 * 2**k for k in range(12)], float)
    assert len(models.pieces(n, 3 + 0.001 * n).t0) == 1


def test_loggp_keeps_the_overhead_apart():
    found = models.loggp([1, 1000, 100000], [10.0, 11.0, 110.0], overhead=2.0)
    assert found.latency == pytest.approx(6.0, rel=0.1) and found.gap == pytest.approx(
        0.001, rel=0.05
    )


def test_no_model_says_that_longer_messages_take_less_time():
    """Four sizes of a bad hour, between two of which the time fell: the best curve through them
    dives below zero."""
    found = models.three_parameters(
        [8, 64, 512, 4096, 65536, 1048576], [4000, 4000, 4000, 4000, 60, 180]
    )
    fine = numpy.geomspace(8, 1 << 20, 200)
    assert numpy.all(numpy.diff(found.time(fine)) > -1e-6 * found.t0) and found.ti >= -found.t0


@pytest.mark.parametrize(
    "by, g", [("p", lambda p: p), ("lp", lambda p: int(numpy.ceil(numpy.log2(p))))]
)
def test_parameters_grow_with_processes_as_they_were_made(by, g):
    found = models.of_processes({p: 3 + 2.5 * g(p) for p in (2, 4, 8, 16)})
    assert (
        found.by == by and found.constant == pytest.approx(3) and found.factor == pytest.approx(2.5)
    )


def test_a_collective_has_the_peaks_of_its_largest_count():
    found = models.collective(
        "bcast", {p: models.ThreeParameters(2.0 * p, 1.0, 0.001 * p) for p in (2, 4, 8)}
    )
    assert found.peak_bandwidth([2, 4, 8]) == pytest.approx(7 / 0.008, rel=0.01)


def test_a_model_of_one_size_is_refused():
    with pytest.raises(ValueError, match="at least two sizes"):
        models.three_parameters([8], [1.0])
