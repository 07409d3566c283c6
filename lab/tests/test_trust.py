"""What counts for nothing: figures of disturbed runs, ratios whose rounds disagree, models beyond
what they were fitted to. Each is shown, in grey, and is in no mean and no list."""

import pandas
import pytest

from kwlab import analysis, html, models, page, plan, report, sections, substitute, trust
from kwlab.store import Store

QUIET, BUSY = 0.0, 0.5  # what others use


def line(n, us, op="bcast"):
    return {
        "bench": "coll",
        "op": op,
        "mode": "back-to-back",
        "bytes": n,
        "us": dict.fromkeys(("min", "median", "low", "high"), us) | {"batches": [us]},
    }


def book_of(tmp_path, figures, plan_name="p"):
    """A book of {library: rounds}, a round a time and what others used, or {bytes: time} and
    that."""
    store = Store(tmp_path / "d.sqlite")
    machine = store.machine(
        {"processor": "p", "cores": 2, "memory": "8 kB", "system": "s", "kernel": "k"}
    )
    for library, rounds in figures.items():
        for round, (us, others) in enumerate(rounds):
            of = us if isinstance(us, dict) else {8: us}
            store.add(
                plan_name,
                plan.Cell(library, "coll", (), 2, "shm"),
                round,
                machine,
                "1",
                "ok",
                "",
                1,
                [line(n, t) for n, t in of.items()],
                others,
            )
    return report.Book(store)


def ratio_of(book):
    (row,) = analysis.ratios(book.medians("coll"))
    return row["against"]


def test_disturbed_rounds_do_not_count_where_there_are_others(tmp_path):
    book = book_of(
        tmp_path,
        {
            "kittiwake": [(1, QUIET), (9, BUSY), (1.2, QUIET)],
            "mpich": [(2, QUIET), (2, None), (9, BUSY)],
        },
    )
    assert {
        row.who: (round(row.value, 2), row.rounds, row.grey)
        for row in book.medians("coll").itertuples()
    } == {"kittiwake": (1.1, 2, False), "mpich": (2.0, 2, False)}
    found = ratio_of(book)
    assert found.ratio == 0.55 and found.rounds == (0.5,) and not found.grey


@pytest.mark.parametrize(
    "ours, theirs, grey",
    [
        ([(1, BUSY), (1, BUSY)], [(2, QUIET), (2, QUIET)], True),
        ([(1, QUIET)] * 2, [(2, BUSY)] * 2, True),
        ([(1, QUIET)] * 2, [(2, QUIET)] * 2, False),
        ([(1, QUIET), (1.6, QUIET)], [(2, QUIET)] * 2, True),
        ([(1, QUIET), (1.4, QUIET)], [(2, QUIET)] * 2, False),
        # a slow round is slow for both
        ([(1, QUIET), (4, QUIET)], [(2, QUIET), (8, QUIET)], False),
    ],
)
def test_a_ratio_is_grey_when_it_was_disturbed_or_its_rounds_disagree(tmp_path, ours, theirs, grey):
    book = book_of(tmp_path, {"kittiwake": ours, "mpich": theirs})
    assert ratio_of(book).grey == grey
    text = sections.ratio_tables(book)
    assert ('class="grey"' in text) == grey and ("1 are grey" in text) == grey
    assert (analysis.mean_of([ratio_of(book)]) is None) == grey
    assert "_______" not in text and sections.heat_maps(book)


def test_the_quickest_peer_is_not_passed_over_because_it_was_disturbed(tmp_path):
    """The next best would flatter us."""
    book = book_of(
        tmp_path, {"kittiwake": [(2, QUIET)], "mpich": [(1, BUSY)], "openmpi": [(4, QUIET)]}
    )
    found = ratio_of(book)
    assert found.ratio == 2 and found.grey and analysis.behind(book.data, "coll") == []
    assert analysis.means([of for _, of in analysis.by_cell(book.medians("coll"))]) == ({}, None)
    assert "mpich" not in sections.which(book)


def test_ratios_stand_with_their_range_over_the_rounds(tmp_path):
    book = book_of(
        tmp_path, {"kittiwake": [(1, QUIET), (1.2, QUIET), (1.1, QUIET)], "mpich": [(2, QUIET)] * 3}
    )
    assert '<td class="ahead">0.55 <small>0.50 to 0.60</small></td>' in sections.ratio_tables(book)


def test_a_mean_has_the_range_of_its_rounds(tmp_path):
    book = book_of(
        tmp_path,
        {
            "kittiwake": [({8: 1, 64: 1}, QUIET), ({8: 2, 64: 2}, QUIET)],
            "mpich": [({8: 2, 64: 0.5}, QUIET), ({8: 2, 64: 1}, QUIET)],
        },
    )
    two = [row["against"] for row in analysis.ratios(book.medians("coll"))]
    assert [one.rounds for one in two] == [(0.5, 1.0), (2.0, 2.0)] and [
        one.grey for one in two
    ] == [True, False]
    found = analysis.mean_of(
        [trust.Against(1, (0.9, 1.2)), trust.Against(1, (1.0, 1.2)), trust.Against(9, (9, 9), True)]
    )
    assert found.ratio == 1 and found.rounds == pytest.approx((0.9**0.5, 1.2))


def test_start_and_end_are_of_undisturbed_runs(tmp_path):
    book = book_of(tmp_path, {"kittiwake": [(1, QUIET)]})
    wall, *_ = book.runs.to_dict("records")
    runs = pandas.DataFrame(
        [
            wall | {"program": "hello", "round": round, "wall_s": seconds, "others": others}
            for round, (seconds, others) in enumerate([(9, BUSY), (1, QUIET), (2, QUIET)])
        ]
    )
    found = analysis.walls(runs, "hello")[2]["kittiwake"]
    assert found == 1.5 and found.span == (1, 2) and not found.grey
    assert analysis.walls(runs[:1], "hello")[2]["kittiwake"].grey


def test_no_model_is_made_of_disturbed_runs(tmp_path):
    curve = {n: 1 + n / 1000 for n in (8, 64, 512, 4096, 32768)}
    assert book_of(tmp_path, {"kittiwake": [(curve, QUIET)]}).collective_fits()
    (tmp_path / "busy").mkdir()
    assert not book_of(tmp_path / "busy", {"kittiwake": [(curve, BUSY)]}).collective_fits()


def test_a_model_is_judged_between_the_sizes_it_was_fitted_to():
    """Times that do not grow up to 512 bytes say nothing of a megabyte: such a model was called
    40,000 % wrong."""
    true = models.ThreeParameters(2.0, 3.0, 0.001)
    curve = {
        n: float(true.time(n)) * (1.3 if n == 64 else 1) for n in (8, 16, 32, 64, 128, 256, 512)
    }
    every = {**curve, **{n: float(true.time(n)) for n in plan.RANDOM}}
    found = analysis.judged(
        ("kittiwake", "shm", 2), {("made", 0): analysis.Round({"pingpong": every})}
    )["pingpong"]
    assert all(error < 0.2 for error in found.errors.values()), found.errors


def test_figures_that_count_for_nothing_slant_on_the_page():
    assert (
        page.figure(trust.Measured(1.5)) == "1.5"
        and page.figure(trust.Measured(1.5, grey=True)) == "*1.5*"
    )
    assert page.less_is_better(
        {"kittiwake": trust.Measured(1), "mpich": trust.Measured(2, grey=True)}
    ).grey
    assert (
        page.with_range(trust.Against(0.5, (0.4, 0.6))) == "0.50 (0.40 to 0.60)"
        and page.with_range(trust.Against(0.5, (0.5, 0.5), True)) == "*0.50*"
    )
    assert html.cell(trust.Measured(1.5, grey=True), False) == '<td class="grey">1.5</td>'


def test_substitutions_are_looked_for_where_all_three_were_measured():
    """Beyond, the models of one another know nothing."""
    slow, quick = models.Hockney(10.0, 0.01), models.Hockney(1.0, 0.001)
    of = {("bcast", 2): slow, ("scatter", 2): quick, ("allgather", 2): quick}
    known = {
        key: substitute.Known(model, 8, 512 if key[0] == "scatter" else 1 << 20)
        for key, model in of.items()
    }
    (found,) = substitute.findings("kittiwake", known, [2])
    assert (found.low, found.high) == (8, 512)
