"""Rows of the selection table from the quickest algorithms."""

from kwlab import tune


def places(low, high):
    rounds = lambda times: {n: [us, us * 1.1, us * 0.9] for n, us in times.items()}
    return {("bcast", "shm", 2, False): {"tree": rounds(low), "chain": rounds(high)}}


def test_rows_change_between_the_sizes_with_different_winners():
    """1 + n/100 and 10 + n/1000 us cross at 1000 bytes."""
    sizes = (8, 64, 512, 4096, 32768)
    rows = tune.table_rows(
        places({n: 1 + n / 100 for n in sizes}, {n: 10 + n / 1000 for n in sizes})
    )
    (_, size, procs, *_, first), (_, last, *_, second) = map(str.split, rows)
    assert (first, second, procs, last) == ("tree", "chain", "-", "-") and int(size) == 1448


def test_a_winner_stays_while_no_other_is_an_eighth_quicker():
    (row,) = tune.table_rows(places({8: 1.0, 64: 1.05}, {8: 2.0, 64: 1.0}))
    assert row.split()[-1] == "tree"


def test_needs_say_where_an_algorithm_runs():
    shared = "one host with shared memory, short data"
    power = "blocks of equal size, 2^n processes"
    assert tune.usable(shared, 4, "shm") and not tune.usable(shared, 4, "tcp")
    assert (
        tune.usable(power, 8, "tcp")
        and not tune.usable(power, 6, "tcp")
        and not tune.usable("several hosts", 4, "tcp")
    )
