"""Applications: commands of a plan are started as it says, read as it says, and compared when they
count: a result that is not verified and a run that others disturbed do not."""

import subprocess
import sys

import pytest
from conftest import script
from typer.testing import CliRunner

from kwlab import analysis, applications, cli, libraries, nas, plan, plots, programs, pstswm
from kwlab import report, sections, trust
from kwlab.applications import Reading, Unverified, pattern
from kwlab.runner import Runner
from kwlab.store import Store
from kwlab.trust import Watch

PLAN = """title = "t"
rounds = 3
limit = 20
libraries = ["kittiwake", "mpich"]
[run]
kittiwake = "./{name} ours {ranks}"
mpich = ["./{name}", "theirs"]
[read]
seconds = '^Time = *(\\S+)'
rate = '^Rate = *(\\S+)'
verified = '^Result: OK$'
[[application]]
name = "solver"
args = ["big"]
"""
# Prints what a solver prints; theirs takes twice the time.
SOLVER = """#!/bin/sh
[ "$1" = ours ] && { [ "$#" = 3 ] && [ "$2$3" = 2big ] || exit 3; s=2; } || s=4
echo "solving"; echo "Time = $s.0"; echo "Rate = 10"; echo "Result: OK"
"""


def measured(tmp_path, fake, text=PLAN, solver=SOLVER):
    """The store after a plan with a solver has run."""
    script(tmp_path / "solver", solver)
    store = Store(tmp_path / "d.sqlite")
    Runner(
        plan.parse(text, "small", tmp_path),
        store,
        [fake(name, "fine") for name in ("kittiwake", "mpich")],
    ).run()
    return store


def quiet(monkeypatch):
    monkeypatch.setattr(trust.Watch, "foreign", lambda self: 0.0)


def test_a_program_is_started_read_and_compared(tmp_path, fake, monkeypatch):
    quiet(monkeypatch)
    book = report.Book(measured(tmp_path, fake), "small")
    assert set(book.runs.status) == {"ok"}, list(book.runs.message)
    ((cell, of),) = programs.cells(book, "small").items()
    assert cell == ("solver", "big", "shm", 2)
    assert (
        of["kittiwake"].measured == 2
        and of["mpich"].measured == 4
        and len(of["kittiwake"].seconds) == 3
    )
    best, who = programs.best_peer(of)
    assert best.ratio == 0.5 and who == "mpich" and best.rounds == (0.5, 0.5, 0.5)
    page = programs.section(book)
    assert "0.50" in page and "2 (2 to 2)" in page and "10 (10 to 10)" in page


@pytest.mark.parametrize("status", [0, 1])
def test_a_result_that_is_not_verified_counts_for_nothing(tmp_path, fake, monkeypatch, status):
    quiet(monkeypatch)
    store = measured(
        tmp_path,
        fake,
        solver=SOLVER.replace(
            'echo "Result: OK"',
            '[ $s = 4 ] && echo "Result: OK" || { echo "Result: wrong"; exit STATUS; }'.replace(
                "STATUS", str(status)
            ),
        ),
    )
    book = report.Book(store, "small")
    wrong = book.runs[book.runs.status != "ok"]
    assert (
        set(wrong.library) == {"kittiwake"}
        and set(wrong.status) == {"unverified"}
        and "Result: wrong" in wrong.message.iloc[0]
    )
    ((_, of),) = programs.cells(book, "small").items()
    assert of["kittiwake"].unverified and programs.best_peer(of) == (None, None)
    assert "NOT VERIFIED" in programs.section(book) and "unverified" in sections.failed(book)


def test_a_run_that_others_disturbed_counts_when_there_is_no_other(tmp_path, fake, monkeypatch):
    # in the order of the runs: kittiwake's are 1, 4 and 5
    shares = iter([0.5, 0.0, 0.0, 0.0, 0.5, 0.5])
    monkeypatch.setattr(trust.Watch, "foreign", lambda self: next(shares))
    ((_, of),) = programs.cells(report.Book(measured(tmp_path, fake), "small"), "small").items()
    assert not of["kittiwake"].disturbed and len(of["kittiwake"].seconds) == 1
    monkeypatch.setattr(trust.Watch, "foreign", lambda self: 0.5)
    (tmp_path / "d.sqlite").unlink()
    ((_, of),) = programs.cells(report.Book(measured(tmp_path, fake), "small"), "small").items()
    assert (
        of["kittiwake"].disturbed
        and programs.best_peer(of)[0].grey
        and not programs.mean_table({("solver", "", "shm", 2): of})[1]
        and of["kittiwake"].words(of["kittiwake"].seconds).endswith("disturbed")
    )


@pytest.mark.parametrize(
    "broken, status, words",
    [
        ("echo hello", "nonsense", "no time"),
        ('echo "Time = quick"', "nonsense", "no time"),
        ('echo "Time = -1"', "nonsense", "its time is -1"),
        ('echo "Time = 1"; echo "Result: OK"', "nonsense", "no rate"),
        ("echo oh >&2; exit 4", "failed", "status 4: oh"),
        ("sleep 60", "late", "ended after 1 s"),
    ],
)
def test_a_program_that_goes_wrong_is_a_row(tmp_path, fake, broken, status, words):
    runs = measured(
        tmp_path,
        fake,
        PLAN.replace("rounds = 3", "rounds = 1").replace("limit = 20", "limit = 1"),
        f"#!/bin/sh\n{broken}\n",
    ).runs()
    assert set(runs.status) == {status} and words in runs.message.iloc[0], list(runs.message)


def test_a_program_that_is_not_there_is_a_row(tmp_path, fake):
    runs = measured(tmp_path, fake, PLAN.replace('"./{name}", "theirs"', '"./absent"')).runs()
    assert (
        set(runs[runs.library == "mpich"].status) == {"missing"}
        and "there is no program" in runs[runs.library == "mpich"].message.iloc[0]
    )


def test_how_much_of_what_was_sent_could_be_written_is_reported(tmp_path, fake, monkeypatch):
    """Of 4 messages 3 were long, of which 1 was written, and 900 of 1000 bytes; others are not
    asked."""
    quiet(monkeypatch)
    told = """[ "$KW_STATS" != yes ] || [ "$1" = ours ] || exit 9
[ "$KW_STATS" = yes ] && {
    echo 'rank 0: eager_sent 1, eager_bytes 10, rndv_sent 1, rndv_bytes 45'
    echo 'rank 1: get_sent 1, get_bytes 45, write_sent 1, write_bytes 900'
} >&2
"""
    solver = SOLVER.replace("echo", told + "echo", 1)
    book = report.Book(measured(tmp_path, fake, solver=solver), "small")
    counted = programs.counters(book, "small")
    head, (row,) = programs.seconds_table(programs.cells(book, "small"), counted)
    assert (head[-1], row[-1]) == ("Messages written", "25.0 %")
    ((*_, messages, megabytes, share, long, of_bytes),) = programs.sent_table(counted)[1]
    assert (messages, megabytes, share, long, of_bytes) == (4, 0.001, "25.0 %", "33.3 %", "90.0 %")
    assert "could be written (1 cells)" in programs.section(book)
    words = ["show", "small", "--data", str(tmp_path / "d.sqlite")]
    say = CliRunner().invoke(cli.app, words).output
    assert "90.0 %" in say and "eager_bytes" not in say


def of_rounds(**seconds):
    """{who: Figure} of a cell."""
    return {who: programs.Figure(dict(enumerate(rounds)), {}) for who, rounds in seconds.items()}


def test_a_picture_has_what_counts_over_the_best_peer():
    of = of_rounds(kittiwake=(1.0, 1.2), mpich=(2.0, 2.0), openmpi=(4.0, 4.0), impi=(3.0, 9.0))
    found = programs.over_best(of)
    assert found == {"kittiwake": 0.55, "mpich": 1, "openmpi": 2}  # impi's rounds disagree
    assert found["kittiwake"].span == (0.5, 0.6)
    assert not programs.over_best(of_rounds(kittiwake=(1.0, 2.0), mpich=(2.0, 2.0)))
    assert not programs.over_best(of_rounds(kittiwake=(1.0,)))
    disturbed = programs.Figure({0: 2.0}, {}, disturbed=True)
    assert not programs.over_best({**of_rounds(kittiwake=(1.0,)), "mpich": disturbed})


def test_a_picture_has_a_panel_for_each_number_of_ranks(tmp_path, fake, monkeypatch):
    quiet(monkeypatch)
    drawn, real = [], plots.ratios
    keep = lambda panels, *words: drawn.append(panels) or real(panels, *words)
    monkeypatch.setattr(plots, "ratios", keep)
    text = PLAN + 'ranks = [2, 1]\nnetwork = ["shm", "tcp"]\n'
    solver = SOLVER.replace('"$2$3" = 2big', '"$3" = big')
    book = report.Book(measured(tmp_path, fake, text, solver), "small")
    assert "are grey" not in programs.section(book)
    assert set(book.pictures) == {"programs-small-shm", "programs-small-tcp"}
    row = {"solver big": {"kittiwake": 0.5, "mpich": 1}}
    assert drawn[0] == {"1 ranks": row, "2 ranks": row}


def test_programs_are_called_by_what_tells_them_apart():
    cells = [("p", f"steps=9 way={way}", "shm", 2) for way in ("hand", "all")]
    called = lambda some: [*programs.labels(some).values()]
    assert called(cells) == ["way=hand", "way=all"] and called(cells[:1]) == ["p steps=9 way=hand"]
    assert called([*cells, ("p", "steps=9", "shm", 2)]) == ["way=hand", "way=all", "p"]


@pytest.mark.parametrize(
    "far, ticks",
    [(1.2, {"0.95", "1", "1.2"}), (2.0, {"0.9", "1", "1.5"}), (50.0, {"1", "2", "32"})],
)
def test_axes_of_ratios_have_steps_to_read_by(far, ticks):
    row = {"kittiwake": trust.Measured(0.9, {0: 0.9}), "mpich": trust.Measured(far)}
    figure = plots.ratios({"2 ranks": {"a": row}}, "u", "t")
    told = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert ticks <= set(told) and len(told) < 12
    plots.plt.close(figure)


def test_a_plan_without_counters_has_no_column_for_them():
    of = {"kittiwake": programs.Figure({0: 1.0}, {})}
    assert "Messages written" not in programs.seconds_table({("solver", "", "shm", 2): of}, {})[0]
    assert programs.written({}, "sent") is None


def own(text):
    """The plan with a library of its own, whose solver takes as long as theirs."""
    text = text.replace('["kittiwake", "mpich"]', '["kittiwake", "mpich", "mvapich"]')
    return text.replace(
        "[read]",
        """mvapich = "./{name} theirs"
[[library]]
name = "mvapich"
launcher = "./start {ranks}"
shm = ["WAY=near"]
[read]""",
    ).replace("rounds = 3", "rounds = 1")


def test_a_library_of_the_plan_is_measured_like_the_others(tmp_path, fake, monkeypatch):
    quiet(monkeypatch)
    text = own(PLAN)
    script(tmp_path / "solver", SOLVER)
    start = '#!/bin/sh\n[ "$1" = 2 ] && [ "$WAY" = near ] && shift && exec "$@"\n'
    script(tmp_path / "start", start)
    store, found = Store(tmp_path / "d.sqlite"), plan.parse(text, "small", tmp_path)
    known = [fake(name, "fine") for name in ("kittiwake", "mpich")]
    Runner(found, store, [*known, *found.own]).run()
    book = report.Book(store, "small")
    assert set(book.runs.status) == {"ok"}, list(book.runs.message)
    ((_, of),) = programs.cells(book, "small").items()
    assert of["mvapich"].measured == 4 and plots.colour("mvapich") != plots.GREY


def test_a_library_of_the_plan_that_is_not_there_or_cannot_compile_is_a_row(tmp_path, fake):
    script(tmp_path / "solver", SOLVER)
    text = own(PLAN) + '[[work]]\nprogram = "p2p"\nonly = ["mvapich"]\n'
    known = [fake(name, "fine") for name in ("kittiwake", "mpich")]
    found = plan.parse(text, "small", tmp_path)
    absent = f"there is no {tmp_path}/start, which the plan names"
    for data, words in (("absent", absent), ("there", "no mpicc of mvapich")):
        if data == "there":
            script(tmp_path / "start", "#!/bin/sh\nexit 1\n")
        store = Store(tmp_path / f"{data}.sqlite")
        Runner(found, store, [*known, *found.own]).run()
        runs = store.runs()
        of = runs[(runs.library == "mvapich") & (runs.program == "p2p")]
        assert list(of.status) == ["missing"] and words in of.message.iloc[0]


def test_a_library_without_a_command_is_left_out():
    found = plan.parse(PLAN.replace('mpich = ["./{name}", "theirs"]', ""), "p")
    assert [cell.library for cell in plan.cells(found)] == ["kittiwake"]


def test_the_plan_of_the_documents_can_be_read():
    text = (libraries.ROOT / "docs/lab.md").read_text().split("```toml\n")[2].split("```")[0]
    found = plan.parse(text, "npb")
    assert {cell.program for cell in plan.cells(found)} == {"cg.W", "hpl"} and {
        cell.library for cell in plan.cells(found)
    } == {"kittiwake", "openmpi"}


def test_each_application_is_started_by_its_own_command(tmp_path, fake):
    script(tmp_path / "other", SOLVER)
    text = PLAN.replace("rounds = 3", "rounds = 1") + (
        '[[application]]\nname = "solver"\nargs = ["small"]\n'
        'run = { mpich = "./other theirs", kittiwake = "./absent" }\n'
    )
    runs = measured(tmp_path, fake, text).runs()
    assert dict(zip(zip(runs.library, runs.args), runs.status)) == {
        ("kittiwake", "big"): "ok",
        ("mpich", "big"): "ok",
        ("kittiwake", "small"): "missing",
        ("mpich", "small"): "ok",
    }, list(runs.message)


def test_parts_of_programs_are_no_programs():
    assert applications.built() == ["grande", "nas", "pstswm"]
    assert applications.kernels("pstswm") == ["pstswm"]
    assert applications.kernels("nas") == ["bt", "btio", "cg", "ep", "ft", "is", "lu", "mg", "sp"]


@pytest.mark.parametrize(
    "old, new, field",
    [
        ('name = "solver"', "", "name"),
        ("[run]\n", "[walk]\n", "walk"),
        ("[read]", "[unread]", "unread"),
        ("seconds = '^Time = *(\\S+)'", "", "seconds"),
        ("(\\S+)'\nrate", "\\S+'\nrate", "read.seconds"),
        ("'^Result: OK$'", "'^Result: (OK)$'", "read.verified"),
        ("'^Result: OK$'", "'('", "read.verified"),
        ('"./{name} ours {ranks}"', "3", "run.kittiwake"),
        ('"./{name} ours {ranks}"', '""', "run.kittiwake"),
        ("kittiwake = ", "lam = ", "run"),
        ('args = ["big"]', 'build = "hpl"', "build"),
        ('args = ["big"]', 'build = "nas"', "name"),
        ('args = ["big"]', 'network = ["air"]', "network"),
        ('args = ["big"]', 'program = "p2p"', "program"),
        ("verified", "right", "right"),
    ],
)
def test_a_wrong_field_is_refused_with_its_name(old, new, field):
    assert PLAN.count(old) == 1
    with pytest.raises(plan.PlanError, match=f"'{field}'"):
        plan.parse(PLAN.replace(old, new), "p")


def test_a_program_is_built_or_started_by_a_command():
    """One that was to be both was built, and its command ignored. The plan's `run` is for those
    applications that are not built."""
    built = PLAN + '[[application]]\nname = "cg"\nbuild = "nas"\n'
    (solver, cg) = plan.parse(built, "p").work
    assert solver.application.run and not solver.application.build
    assert cg.application.build == "nas" and not cg.application.run
    with pytest.raises(plan.PlanError, match="application 2: it has both 'build' and 'run'"):
        plan.parse(built + 'run = { mpich = "./cg" }\n', "p")


def test_programs_whose_rounds_disagree_are_in_no_mean():
    cell = ("solver", "", "shm", 2)
    of = lambda *seconds: {
        "kittiwake": programs.Figure(dict(enumerate(seconds)), {}),
        "mpich": programs.Figure(dict.fromkeys(range(len(seconds)), 2.0), {}),
    }
    assert (
        programs.mean_table({cell: of(1.0, 1.4)})[1]
        and not programs.mean_table({cell: of(1.0, 1.6)})[1]
    )
    ((_, _, _, ratio, *_),) = programs.seconds_table({cell: of(1.0, 1.6)})[1]
    # the quickest peer was disturbed: that a slower one was not makes it no best peer
    best, who = programs.best_peer(
        {**of(1.0), "openmpi": programs.Figure({0: 0.5}, {}, disturbed=True)}
    )
    assert who == "openmpi" and best.ratio == 2 and best.grey
    assert ratio.grey and ratio.side() == "grey"


def test_the_last_figure_counts():
    reading = Reading(pattern("t=(.*)", 1))
    assert reading.figures("t=1\nt=2\n") == {"seconds": 2.0}
    with pytest.raises(ValueError):
        reading.figures("t=nan")
    with pytest.raises(Unverified):
        Reading(pattern("t=(.*)", 1), verified=pattern("right", 0)).figures("t=1\n")


@pytest.mark.parametrize(
    "busy, own, share", [(1.0, 1.0, 0.0), (1.0, 0.5, 0.25), (1.0, 1.1, 0.0), (0.54, 0.5, 0.0)]
)
def test_what_others_use_of_the_processors_is_what_was_not_ours(monkeypatch, busy, own, share):
    for name, before, after in (("busy", 7.0, 7.0 + busy), ("own", 3.0, 3.0 + own)):
        values = iter([before, after])
        monkeypatch.setattr(trust, name, lambda values=values: next(values))
    monkeypatch.setattr(trust.os, "cpu_count", lambda: 2)
    clock = iter([100.0, 101.0])
    monkeypatch.setattr(trust.time, "monotonic", lambda: next(clock))
    assert Watch().foreign() == pytest.approx(share)


def test_work_of_a_child_is_counted():
    busy, own = trust.busy(), trust.own()
    subprocess.run(
        [sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True
    )
    assert trust.own() - own >= 0.5 and trust.busy() - busy >= 0.3  # which counts in ticks


def kept(store, plan_name, cell, round, machine, seconds, counters=()):
    lines = [
        {
            "bench": "application",
            "op": cell.program,
            "mode": " ".join(cell.args),
            "seconds": seconds,
            "rate": 1 / seconds,
        },
        *counters,
    ]
    store.add(plan_name, cell, round, machine, "1", "ok", "", seconds, lines, 0.0)


@pytest.fixture
def papers_store(tmp_path):
    """Both seeds' plans, of made-up measurements."""
    store = Store(tmp_path / "d.sqlite")
    machine = store.machine(
        {"processor": "Abacus", "cores": 2, "memory": "8 GB", "system": "Linux", "kernel": "6"}
    )
    factor = {
        "": 1.0,
        "write": 1.0,
        "no write": 1.25,
        "short eager": 1.0,
        "no event thread": 1.1,
        "udp": 1.5,
    }
    for name in ("seed000-npb", "seed001-nas"):
        for cell in plan.cells(plan.load(name)):
            written = {"write": 10, "short eager": 60}.get(cell.variant, 0)
            counters = (
                [
                    {
                        "bench": "counters",
                        "op": cell.program,
                        "mode": " ".join(cell.args),
                        "eager_sent": 5,
                        "write_sent": 5,
                        "eager_bytes": 100 - written,
                        "write_bytes": written,
                    }
                ]
                if cell.variant in factor and name == "seed000-npb" and cell.variant
                else []
            )
            for round in range(2):
                kept(
                    store,
                    name,
                    cell,
                    round,
                    machine,
                    factor[cell.variant]
                    * (2 if cell.library != "kittiwake" else 1)
                    * 8
                    / cell.ranks,
                    counters,
                )
    return store


def test_the_tables_of_mpi_mbcf_stand_beside_todays(papers_store):
    page = nas.mbcf(report.Book(papers_store))
    # the paper's: CG on 16, the availability of IS
    assert "7.74 [8.99]" in page and "97.15 %" in page
    # ours on 4, availability, NSR : SR
    assert (
        "2 (2 to 2) [4.00 (4.00 to 4.00)]" in page
        and "10.00 %" in page
        and "60.00 %" in page
        and "1.25 (1.25 to 1.25)" in page
    )


def test_the_thesis_stands_beside_today(papers_store):
    book = report.Book(papers_store)
    page = nas.thesis(book)
    # the thesis'
    assert "9.2 %" in page and "8.73" in page and "8.238 GFLOPS" in page and "24696" in page
    assert "-9 % to -9 % in the rounds" in page and {
        "nas-event-thread-0",
        "nas-event-thread-1",
    } <= set(book.pictures)
    # ours: with : without, TCP : UDP
    assert "0.91" in page and "-9 %" in page and "0.67" in page and "-33 %" in page


def test_rounds_that_disagree_give_no_speed_up_and_a_faint_ratio():
    steady, restless = programs.Figure({0: 4.0, 1: 4.0}, {}), programs.Figure({0: 1.0, 1: 2.0}, {})
    assert nas.speed_up(restless, steady).endswith("[rounds disagree]") and trust.grey(
        nas.over({"a": steady, "b": restless}, "a", "b")
    )
    assert nas.over({"a": steady}, "a", "b") is None and nas.mean_of([]) == "No pair counts."


def test_means_and_rates_of_programs_have_ranges():
    of = {
        "kittiwake": programs.Figure({0: 1.0, 1: 1.2}, {0: 4.0, 1: 5.0}),
        "mpich": programs.Figure({0: 2.0, 1: 2.0}, {0: 2.0, 1: 2.0}),
    }
    ((_, _, mean, worst, _),) = programs.mean_table({("ep", "W", "shm", 2): of})[1]
    assert mean.range() == worst.range() == " <small>0.50 to 0.60</small>"
    ((_, _, _, ratio, ours, _),) = programs.rate_table({("ep", "W", "shm", 2): of})[1]
    assert ours == "4.5 (4 to 5)" and ratio.rounds == (0.5, 0.4)
    assert programs.rate_ratio({"mpich": of["mpich"]}) is None


def test_pstswm_stands_beside_the_words_of_its_paper(tmp_path):
    store = Store(tmp_path / "d.sqlite")
    machine = store.machine(
        {"processor": "Abacus", "cores": 2, "memory": "8 GB", "system": "Linux", "kernel": "6"}
    )
    costs = {"sendrecv": 1.2, "nonblocking": 1.1, "native": 0.8, "sockets": 1.0}
    for cell in plan.cells(plan.load("seed003-pstswm")):
        given = pstswm.options(" ".join(cell.args))
        by_hand = 1.5 if given.get("transpose", "hand") == "hand" else 0.99
        else_ = 0.66 if given.get("order") == "cart" else by_hand
        times = 4 / cell.ranks if "truncation" in given else 1
        seconds = costs.get(given.get("protocol"), else_) * times
        for round in range(2):
            told = [
                {
                    "bench": "application",
                    "op": cell.program,
                    "mode": " ".join(cell.args),
                    "seconds": seconds,
                    "messages": 12.5,
                }
            ]
            store.add("seed003-pstswm", cell, round, machine, "1", "ok", "", seconds, told, 0.0)
    book = report.Book(store)
    page = pstswm.section(book)
    assert {f"pstswm-{name}-shm-0" for name in pstswm.BARS} <= set(book.pictures)
    found = [
        (pstswm.options(mode), net, ranks, of)
        for (_, mode, net, ranks), of in programs.cells(
            report.Book(store), "seed003-pstswm"
        ).items()
    ]
    small = [one for one in found if "truncation" not in one[0]]
    large = [one for one in found if one not in small and one[1] == "shm"]
    in_messages = pstswm.message_bars(large)
    assert in_messages["DP\n4\n2x2"]["kittiwake"].span == (12.5, 12.5)
    assert not any("\n1\n" in group for group in in_messages)
    assert "pstswm-messages-gigabit-0" in book.pictures
    assert (
        "TN",
        "shared memory",
        4,
        "kittiwake",
        "1.2 (1.2 to 1.2)",
        "1.1 (1.1 to 1.1)",
        "protocol=nonblocking ahead=yes",
        "9.1 % (9.1 to 9.1)",
    ) in pstswm.defaults(small)
    below = pstswm.natives(small)
    assert (
        "DP",
        "shared memory",
        4,
        "kittiwake",
        "1.1 (1.1 to 1.1)",
        "rings in shared memory",
        "0.8 (0.8 to 0.8)",
        "37.5 % (37.5 to 37.5)",
    ) in below
    # two algorithms, networks, libraries
    assert len([one for one in below if one[5] == "TCP connections"]) == 16
    assert (
        "shared memory",
        4,
        "kittiwake",
        "transpose=alltoallv sum=allreduce",
        "0.99 (0.99 to 0.99)",
        "1.1 (1.1 to 1.1)",
        "-10.0 % (-10.0 to -10.0)",
        "0.8 (0.8 to 0.8)",
        "23.7 % (23.7 to 23.7)",
    ) in pstswm.collectives(small)
    assert "SHMEM" in page and "12.5" in page and "Figure 4" in page
    every, mesh = pstswm.orders(found), "transpose=alltoallv sum=allreduce mesh=2x2"
    place = (mesh, "shared memory", 4, "kittiwake")
    ((column, cart),) = (row[-2:] for row in every if row[:4] == place)
    assert len(every) == 8 and column.ratio == 1 and cart.ratio == pytest.approx(2 / 3)
    assert "order=cart" not in page and "cart : row" in page


def test_what_a_program_tells_of_its_messages_is_read():
    told = (
        "seconds    1.5\nMop/s      10.00\nmessages   12.5 % of the time (Fourier 2.0 %, "
        "Legendre 10.5 %), mean of the ranks\nverified\n"
    )
    assert applications.OURS_READ.figures(told) == {"seconds": 1.5, "rate": 10.0, "messages": 12.5}
    assert "messages" not in applications.OURS_READ.figures("seconds 1.5\nMop/s 10\nverified\n")


def test_the_report_has_the_sections(papers_store, tmp_path):
    text = report.write(papers_store, tmp_path / "out").read_text()
    assert all(f'id="{name}"' in text for name in ("applications", "npb", "nas"))


def test_counters_of_applications_are_no_messages_of_table_1(papers_store):
    assert analysis.availability(report.Book(papers_store).data) == {}
