"""Whatever a library does is a row that says so, and the plan goes on; an interrupted plan goes on
where it stopped."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import BEHAVIOUR, COMPILER, LINE, script
from typer.testing import CliRunner

from kwlab import cli, facts, libraries, plan, processes, runner, trust
from kwlab.runner import Runner, counters
from kwlab.store import Store

PLAN = 'title = "t"\nrounds = 2\nlimit = 30\n[[work]]\nprogram = "p2p"\n'
IMPATIENT = PLAN.replace("limit = 30", "limit = 3")  # for libraries that hang
LONG = 300  # seconds after which what does not end counts as hung, on a machine that is busy
EXPECTED = {
    "fine": ("ok", ""),
    "missing": ("missing", "not installed"),
    "crashes": ("failed", "segmentation fault"),
    "breaks off": ("failed", "no word why"),
    "hangs": ("late", "it had printed nothing"),
    "hangs later": ("hung", "with 1 measurements; it had printed nothing for"),
    "is slow": ("slow", "measurements; it was still printing"),
    "tells its turns": ("slow", "with 0 measurements"),
    "nonsense": ("nonsense", "no measurement"),
    "broken line": ("nonsense", "line 1 is not a measurement"),
    "not a number": ("nonsense", "line 1"),
    "silent": ("nonsense", "no measurement"),
    "endless": ("nonsense", "more than 4 MB"),
}


def run(tmp_path, behaviours, fake):
    """The runs of a small plan in which each library behaves as told."""
    store = Store(tmp_path / "d.sqlite")
    text = (
        IMPATIENT
        if any(EXPECTED[how][0] in ("late", "hung", "slow") for how in behaviours)
        else PLAN
    )
    Runner(
        plan.parse(text, "small"),
        store,
        [fake(name, how) for name, how in zip(plan.KNOWN, behaviours)],
    ).run()
    return store


@pytest.mark.parametrize("behaviour", [b for b in EXPECTED if b != "fine"])
def test_a_peer_that_goes_wrong_is_a_row_and_the_run_goes_on(tmp_path, fake, behaviour):
    store = run(tmp_path, ["fine", behaviour, "fine", "fine"], fake)
    runs = store.runs()
    assert len(runs) == 8
    status, words = EXPECTED[behaviour]
    wrong = runs[runs.library == "mpich"]
    assert set(wrong.status) == {status} and words in wrong.message.iloc[0], list(wrong.message)
    assert ("in another round it" if status in ("hung", "late") else words) in wrong.message.iloc[1]
    assert set(runs[runs.library != "mpich"].status) == {"ok"}
    measured = len(store.measurements()) - 6
    assert measured > 4 if behaviour == "is slow" else measured == (behaviour == "hangs later")
    assert len(str(wrong.message.iloc[0])) < 500


def test_every_behaviour_is_expected():
    assert set(BEHAVIOUR) | {"missing"} == set(EXPECTED)


def test_what_hung_under_an_earlier_command_is_tried_again_once_and_last(tmp_path, fake):
    """Else a plan in short turns would hang in each of them."""
    store, others = Store(tmp_path / "d.sqlite"), [fake(name, "fine") for name in plan.KNOWN[1:]]
    Runner(
        plan.parse(IMPATIENT.replace("rounds = 2", "rounds = 1"), "small"),
        store,
        [fake("kittiwake", "hangs"), *others],
    ).run()
    Runner(plan.parse(PLAN, "small"), store, [fake("kittiwake", "fine"), *others]).run()
    ours = store.runs().query("library == 'kittiwake'")
    assert (
        dict(zip(ours["round"], ours.status)) == {0: "ok", 1: "late"}
        and "another round" in ours[ours.status == "late"].message.iloc[0]
    )
    assert (
        set(store.runs().query("library != 'kittiwake'").status) == {"ok"}
        and len(store.runs()) == 8
    )


@pytest.mark.parametrize(
    "pauses, status",
    [
        ([], "late"),
        ([0.1, 9.9], "hung"),
        ([9.5, 0.5], "slow"),
        ([1, 1, 1, 7], "hung"),
        ([0.5, 2, 2, 5.5], "slow"),
        ([7.9, 2.1], "hung"),
    ],
)
def test_slow_is_who_was_not_silent_for_much_longer_than_before(pauses, status):
    """The pause before the first line is the start's, not a measurement's."""
    late = libraries.Late(["p2p"], 10, LINE, "")
    late.pauses = pauses
    assert runner.ended(late).status == status


def test_what_is_slow_is_measured_in_every_round_and_done_with_then(tmp_path, fake):
    store = run(tmp_path, ["is slow", "fine", "fine", "fine"], fake)
    assert (
        list(store.runs().query("library == 'kittiwake'").status) == ["slow", "slow"]
        and store.measurements().query("library == 'kittiwake'")["round"].nunique() == 2
    )
    assert Runner(plan.parse(IMPATIENT, "small"), store, []).left() == []


def test_a_later_try_that_measures_less_does_not_take_what_was_measured(tmp_path):
    store, cell = Store(tmp_path / "d.sqlite"), plan.Cell("mpich", "p2p", (), 2, "shm")
    machine = store.machine({"processor": "p"})
    for status, lines in (("hung", 3), ("failed", 1), ("hung", 0)):
        store.add("p", cell, 0, machine, "1", status, status, 1, [json.loads(LINE)] * lines)
        assert list(store.runs().status) == ["hung"] and len(store.measurements()) == 3
    store.add("p", cell, 0, machine, "1", "ok", "", 1, [json.loads(LINE)])
    assert list(store.runs().status) == ["ok"] and len(store.measurements()) == 1


def test_how_a_run_was_started_and_what_others_used_is_kept(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(trust.Watch, "foreign", lambda self: 0.25)
    known = [fake(name, "fine") for name in plan.KNOWN]
    known[0].args["shm"], known[1].env = ["KW_PATHS=self,shm"], {"SOME": "a b"}
    store = Store(tmp_path / "d.sqlite")
    Runner(plan.parse(PLAN + 'variants = { v = { KW_SPIN = "0" } }\n', "small"), store, known).run()
    runs = store.runs()
    assert set(runs.others) == {0.25} and set(store.measurements().others) == {0.25}
    said = {(run.library, run.variant): run.command for run in runs.itertuples()}
    assert said["kittiwake", ""].startswith(
        f"env KW_PATHS=self,shm {tmp_path}/kittiwake/bin/mpiexec -n 2 "
    )
    assert said["kittiwake", "v"].startswith("env KW_PATHS=self,shm KW_SPIN=0 ") and said[
        "mpich", ""
    ].startswith("env 'SOME=a b' ")


def test_a_dataset_of_the_first_version_is_read(tmp_path):
    store, cell = Store(tmp_path / "d.sqlite"), plan.Cell("mpich", "cg", (), 2, "shm")
    machine = store.machine({"processor": "p"})
    line = {"bench": "application", "op": "cg", "seconds": 1.0, "foreign": 0.5}
    store.add("p", cell, 0, machine, "1", "ok", "", 1, [line])
    store.db.executescript(
        "alter table run drop column others; alter table run drop column command; "
        "pragma user_version = 1;"
    )
    store.db.close()
    again = Store(tmp_path / "d.sqlite")
    assert list(again.runs().others) == [0.5] and list(again.measurements().metric) == ["seconds"]


def test_what_hung_leaves_no_process(tmp_path, fake, monkeypatch):
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(
        libraries.subprocess, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1]
    )
    run(tmp_path, ["hangs", "fine", "fine", "fine"], fake)
    assert started and all(processes.session(process.pid) == [] for process in started)


def test_a_host_lab_that_is_refused_is_a_row(tmp_path, fake, monkeypatch):
    monkeypatch.setattr(libraries, "HOSTS", tmp_path / "hosts")
    script(tmp_path / "hosts/lab", "#!/bin/sh\necho 'lab: no namespaces for you' >&2\nexit 77\n")
    store = Store(tmp_path / "d.sqlite")
    text = PLAN + 'network = ["gigabit", "shm"]\n'
    Runner(plan.parse(text, "small"), store, [fake(name, "fine") for name in plan.KNOWN]).run()
    runs = store.runs()
    assert set(runs[runs.network == "gigabit"].status) == {"missing"} and set(
        runs[runs.network == "shm"].status
    ) == {"ok"}
    assert "no namespaces for you" in runs[runs.network == "gigabit"].message.iloc[0]


def test_a_compiler_that_fails_is_a_row(tmp_path, fake):
    library = fake("kittiwake", "fine")
    script(library.compiler, "#!/bin/sh\necho 'no mpi.h' >&2\nexit 1\n")
    store = Store(tmp_path / "d.sqlite")
    Runner(
        plan.parse(PLAN.replace("rounds", 'libraries = ["kittiwake"]\nrounds'), "small"),
        store,
        [library],
    ).run()
    assert set(store.runs().status) == {"failed"} and "no mpi.h" in store.runs().message.iloc[0]


def test_counters_are_summed_over_ranks():
    cell = plan.Cell("kittiwake", "p2p", ("--sizes", "8"), 2, "shm")
    found = counters(
        cell, "noise\nrank 0: eager_sent 8, write_bytes 24\nrank 1: eager_sent 2, write_bytes 6\n"
    )
    assert found == [
        {"bench": "counters", "op": "p2p", "mode": "--sizes 8", "eager_sent": 10, "write_bytes": 30}
    ]
    assert counters(cell, "rank 1: died\n") == []


def home(place, log):
    """A directory that looks like an installation whose launcher notes each run; the third one and
    those after it last as long as there is a file `held` beside the notes."""
    script(place / "bin/mpicc", COMPILER)
    script(
        place / "bin/mpiexec",
        f"""#!/bin/sh
[ "$1" != --version ] || exit 0
echo run >>{log}
while [ -e {log.parent}/held ] && [ $(wc -l <{log}) -ge 3 ]; do sleep 0.05; done
echo '{LINE}'
""",
    )


def kwlab(tmp_path, *args, **more):
    command = [
        sys.executable,
        "-m",
        "kwlab",
        *args,
        "--data",
        tmp_path / "d.sqlite",
        "--dist",
        tmp_path / "dist",
        "--peers",
        tmp_path / "peers",
    ]
    return subprocess.Popen(
        [str(word) for word in command],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, number):
    """It is interrupted in its third run, however slow the machine is just then: that one is held
    until the signal is there."""
    log, held = tmp_path / "log", tmp_path / "held"
    held.touch()
    home(tmp_path / "dist", log)
    text = PLAN.replace("rounds = 2", 'rounds = 8\nlibraries = ["kittiwake"]').replace(
        "limit = 30", f"limit = {LONG}"
    )
    (tmp_path / "small.toml").write_text(text)
    runs = lambda: len(log.read_text().split()) if log.exists() else 0
    first = kwlab(tmp_path, "run", "small.toml")
    until = time.monotonic() + LONG
    while runs() < 3 and first.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    first.send_signal(number)
    held.unlink()  # a run that is not ended ends by itself
    said = first.communicate(timeout=LONG)[1]
    assert first.returncode != 0 and ("goes on from here" in said or number != signal.SIGINT), said
    assert len(Store(tmp_path / "d.sqlite").runs()) == 2 and runs() == 3
    second = kwlab(tmp_path, "run", "small.toml")
    assert "small" not in second.communicate(timeout=LONG)[1] and second.returncode == 0
    assert len(Store(tmp_path / "d.sqlite").runs()) == 8 and runs() == 3 + 6
    third = kwlab(tmp_path, "run", "small.toml")
    assert "already" in third.communicate(timeout=LONG)[0]


def test_a_plan_can_be_run_in_turns_and_in_part(tmp_path):
    """No time: nothing is begun. Only mpich: only its runs. In each round another library comes
    first, and what went wrong is tried again after what was not tried yet."""
    log = tmp_path / "log"
    home(tmp_path / "dist", log)
    (tmp_path / "small.toml").write_text(PLAN)
    none = kwlab(tmp_path, "run", "small.toml", "--for", "0").communicate(timeout=LONG)[0]
    assert (
        "8 runs are left" in none
        and "Not installed: mpich, openmpi, impi" in none
        and not log.exists()
    )
    part = kwlab(
        tmp_path,
        "run",
        "small.toml",
        "--library",
        "mpich",
        "--library",
        "kittiwake",
        "--rounds",
        "1",
    )
    part.communicate(timeout=LONG)
    runs = Store(tmp_path / "d.sqlite").runs()
    assert list(zip(runs.library, runs.status)) == [("kittiwake", "ok"), ("mpich", "missing")]
    store = Store(tmp_path / "d.sqlite")
    left = Runner(plan.parse(PLAN, "small"), store, []).left()
    assert [cell.library for _, cell in left] == [
        "openmpi",
        "impi",
        "mpich",
        "openmpi",
        "impi",
        "kittiwake",
        "mpich",
    ]
    kwlab(
        tmp_path, "run", "small.toml", "--library", "kittiwake", "--again", "--for", "0"
    ).communicate(timeout=LONG)
    assert list(Store(tmp_path / "d.sqlite").runs().library) == ["mpich"]


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_comparison_that_is_ended_says_what_it_knows(tmp_path, number, code):
    """Off a terminal it tells each pair, so that progress is visible."""
    log = tmp_path / "log"
    home(tmp_path / "dist", log)
    words = [
        sys.executable,
        "-m",
        "kwlab",
        "compare",
        "kittiwake",
        "kittiwake:KW_SPIN=0",
        "--pairs",
        "100000",
        "--dist",
        tmp_path / "dist",
    ]
    held = (tmp_path / "dist/bin/mpiexec").read_text().replace("-ge 3", "-ge 7")
    script(tmp_path / "dist/bin/mpiexec", held)  # the fourth pair does not come
    (tmp_path / "held").touch()
    running = subprocess.Popen(
        [str(word) for word in words],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert (
        "pair 2 of at most 100000" in running.stderr.readline()
        and "pair 3 of" in running.stderr.readline()
    )
    running.send_signal(number)
    (tmp_path / "held").unlink()
    out, err = running.communicate(timeout=LONG)
    assert (
        running.returncode == code
        and "ended early, after 3 pairs" in err
        and "geometric mean" in out
    ), out + err


def test_a_comparison_has_the_libraries_of_a_plan(tmp_path, fake):
    fake("theirs", "fine")
    fake("dist", "fine")
    (tmp_path / "p.toml").write_text(
        PLAN + '[[library]]\nname = "theirs"\nmpicc = "theirs/bin/mpicc"\n'
        'launcher = "theirs/bin/mpiexec -n {ranks}"\n'
    )
    words = ["compare", "kittiwake", "theirs", "--pairs", "2", "--dist", str(tmp_path / "dist")]
    without = CliRunner().invoke(cli.app, words)
    assert "--plan FILE" in str(without.exception)
    done = CliRunner().invoke(cli.app, [*words, "--plan", str(tmp_path / "p.toml")])
    assert "kittiwake : theirs = 1.000" in done.output, done
    (tmp_path / "theirs/bin/mpiexec").unlink()
    absent = CliRunner().invoke(cli.app, [*words, "--plan", str(tmp_path / "p.toml")])
    assert "mpiexec, which the plan names" in str(absent.exception)


def test_the_status_counts_what_others_disturbed_and_what_is_left(tmp_path):
    store, found = Store(tmp_path / "d.sqlite"), plan.load("behind")
    machine, cells = store.machine(facts.machine()), plan.cells(found)
    for at, cell in enumerate(cells):
        store.add(
            "behind",
            cell,
            0,
            machine,
            "1",
            "ok" if at else "failed",
            "no word",
            1,
            [],
            0.5 if at == 1 else 0.0,
        )
    said = " ".join(
        CliRunner().invoke(cli.app, ["status", "--data", str(tmp_path / "d.sqlite")]).output.split()
    )
    assert f"behind: {len(cells) * 2 + 1} runs of 3 of its 3 rounds are left or went wrong" in said
    rows = re.findall(r"behind │ (\w+) │ (\w+) │ (\d+) │ (\d+) │", said)
    assert ("kittiwake", "failed", "1", "0") in rows and (cells[1].library, "ok", "1", "1") in rows
    for round in range(3):
        for cell in cells:
            store.add("behind", cell, round, machine, "1", "ok", "", 1, [], 0.0)
    assert (
        "behind: all 3 rounds are done"
        in CliRunner().invoke(cli.app, ["status", "--data", str(tmp_path / "d.sqlite")]).output
    )


def test_a_run_says_what_is_next_and_ends_with_1_when_nothing_was_measured(tmp_path):
    """Of what is measured some may fail, also of a later command all that it tries."""
    (tmp_path / "small.toml").write_text('about = "About this. And that."\n' + PLAN)
    none = kwlab(tmp_path, "run", "small.toml", "--library", "mpich")
    out, err = none.communicate(timeout=LONG)
    assert (
        none.returncode == 1
        and "all 2 runs went wrong" in err
        and "kwlab status" in err
        and "Next" not in out
    )
    home(tmp_path / "dist", tmp_path / "log")
    for wrong in ("6 of 8", "6 of 6"):
        some = kwlab(tmp_path, "run", "small.toml")
        out, err = some.communicate(timeout=LONG)
        said = " ".join(out.split())  # lines are as long as there is room for
        assert (
            some.returncode == 0 and f"{wrong} runs went wrong, `kwlab status` says why" in said
        ), out + err
        assert (
            out.startswith("t. About this.")
            and f"Next: `kwlab show small.toml --data {tmp_path}/d.sqlite`" in out
            and "`kwlab report --data" in out
        )


@pytest.mark.parametrize(
    "args, words",
    [
        (["run", "good.toml", "--library", "lam"], "'lam'"),
        (["run", "good.toml", "--network", "ib"], "'ib'"),
        (
            ["run", "good.toml", "--ranks", "3"],
            (
                "no run like this; it has programs p2p; ranks 2; networks shm; "
                "libraries kittiwake, mpich"
            ),
        ),
        (["run"], "`kwlab plans` lists"),
        (["show"], "`kwlab plans` lists"),
        (["run", "quikc"], "did you mean quick?"),
        (["run", "sub/torn.toml"], "sub/torn.toml: "),
        (["run", "sub/torn.toml"], "line 2"),
        (
            ["check", "f.json.gz", "--dist", "nowhere"],
            "nowhere/bin/kwinfo is not there; `make stage`",
        ),
        (["tune", "--data", "nowhere"], "nowhere: no dataset there yet"),
        (["plans", "nonesuch"], "neither a plan"),
        (["run", "nonesuch"], "neither a plan"),
        (["run", "bad.toml"], "'ranks'"),
        (["compare", "kittiwake", "nonesuch"], "not one of"),
        (["compare", "kittiwake:KW_WRITE", "kittiwake"], "NAME=VALUE"),
        (["compare", "kittiwake", "kittiwake", "--network", "ib"], "'ib'"),
        (["compare", "kittiwake", "kittiwake", "--program", "sleep"], "'sleep'"),
        (["run", "good.toml", "--data", "bad.toml"], "bad.toml is not a dataset"),
        (["report", "--data", "nowhere"], "nowhere: no dataset"),
        (["export", "figures.xls"], "ends in .csv or .json"),
        (["run", "good.toml", "--hosts", "a b"], "'a b' is not a list of hosts"),
        (["export", "f.csv", "--data", "nowhere"], "nowhere: no dataset"),
        (["run", "good.toml", "--data", "good.toml/d"], "good.toml"),
    ],
)
def test_bad_input_is_answered_with_one_sentence(tmp_path, args, words, monkeypatch, capsys):
    """In this process: what kwlab stands on is imported already."""
    (tmp_path / "bad.toml").write_text(PLAN + "ranks = 4\n" + "#" * 500)
    (tmp_path / "good.toml").write_text(PLAN)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/torn.toml").write_text('title = "t"\nrounds = = 3\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["kwlab", *args])
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    out, err = capsys.readouterr()
    assert ended.value.code == 2 and words in err, (ended.value, out, err)
    assert len(err.strip().splitlines()) == 1 and "Traceback" not in out + err


def test_bad_input_ends_the_command_with_2(tmp_path):
    command = [sys.executable, "-m", "kwlab", "run", "nonesuch"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=LONG)
    assert done.returncode == 2 and "neither a plan" in done.stderr and done.stdout == "", done
    assert len(done.stderr.strip().splitlines()) == 1
