"""The tuner: models in one piece or two, rows from the quickest, and what is kept of what stood in
the library's files."""

from kwlab import tune

COLUMNS = tune.COLUMNS


def test_where_a_cache_ends_a_line_takes_over():
    cliff = {n: 1 + n / 1000 if n <= 65536 else n / 200 for n in tune.SIZES}
    (low, _, below), (high, _, above) = tune.pieces(cliff)
    assert low[-1] == high[0] == 65536 and below < 0.05 and above < 0.3


def test_one_model_where_that_will_do():
    assert len(tune.pieces({n: 1 + n / 1000 for n in tune.SIZES})) == 1
    ((_, model, error),) = tune.pieces({0: 3.5})
    assert float(model.time(0)) == 3.5 and error == 0


def places(low, high):
    rounds = lambda times: {n: [us, us * 1.1, us * 0.9] for n, us in times.items()}
    return {("bcast", "shm", 2, False): {"tree": rounds(low), "chain": rounds(high)}}


def test_rows_change_where_the_models_cross():
    """1 + n/100 and 10 + n/1000 us cross at 1000 bytes."""
    sizes = (8, 64, 512, 4096, 32768)
    rows = tune.table_rows(
        places({n: 1 + n / 100 for n in sizes}, {n: 10 + n / 1000 for n in sizes})
    )
    (_, size, procs, *_, first), (_, last, *_, second) = map(str.split, rows)
    assert (first, second, procs, last) == ("tree", "chain", "-", "-") and 800 < int(size) < 1250


def test_a_place_is_measured_anew_and_the_others_stand(tmp_path):
    file = tmp_path / "measured.tsv"
    old = [
        "# head",
        "# made before",
        COLUMNS,
        "bcast\tlinear\tshm\tfree\t2\t0\t1\t0\t1\t0",
        "bcast\tlinear\tnet\tfree\t2\t0\t2\t0\t1\t0",
    ]
    file.write_text("\n".join(old) + "\n")
    tune.keep_models(
        {("bcast", "shm", 2, False): {"chain": {8: [5.0, 6.0, 4.0]}}}, "# made now", file
    )
    lines = file.read_text().splitlines()
    assert lines[1:4] == ["# made before", "# made now", COLUMNS]
    assert lines[4:] == [old[4], "bcast\tchain\tshm\tfree\t2\t0\t5\t0\t0\t0.200"]


def test_needs_say_where_an_algorithm_runs():
    shared = "one host with shared memory, short data"
    power = "blocks of equal size, 2^n processes"
    assert tune.usable(shared, 4, "shm") and not tune.usable(shared, 4, "tcp")
    assert (
        tune.usable(power, 8, "tcp")
        and not tune.usable(power, 6, "tcp")
        and not tune.usable("several hosts", 4, "tcp")
    )
