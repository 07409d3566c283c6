"""Time lines of a plan: a traced run is drawn once and kept; where there is none, one sentence says
why, and nothing else changes."""

import pytest
from conftest import script

from kwlab import cli, plan, report, timelines
from kwlab.runner import Runner
from kwlab.store import Store

PLAN = """title = "t"
rounds = 1
libraries = ["kittiwake", "mpich"]
[[work]]
program = "p2p"
[[timeline]]
program = "p2p"
words = "Figure <2>"
phases = { "a broadcast" = 11, "a loop" = 12 }
"""
# What the summary of a trace looks like.
SUMMARY = (
    r"Note: 3 events\nhad no room.\n2 ranks ran for 5 ms: 44 calls\nof MPI.\n\nThe largest "
    r"losses:\n\n1. Late sender: 4 ms, 9 %% of the run\n   Rank 1 waits.\n   What would help: "
    r"less.\n\n2. More\n"
)
KWTRACE = f"""#!/bin/sh
case $1 in
summary) printf '{SUMMARY}' ;;
picture) echo "<svg>$3</svg>" >"$6" ;;
view) echo "<!doctype html>whole" >"$4" ;;
esac
"""
SAID = "2 ranks ran for 5 ms: 44 calls of MPI. Late sender: 4 ms, 9 % of the run. Rank 1 waits."


@pytest.fixture
def ours(fake):
    """A library that records traces."""
    library = fake("kittiwake", "fine")
    text = library.launcher.read_text()
    script(
        library.launcher,
        text.replace("shift 2\n", 'shift 2\n[ -z "$KW_TRACE" ] || echo trace >"$KW_TRACE"\n'),
    )
    script(library.launcher.with_name("kwtrace"), KWTRACE)
    return library


def run(store, *libraries):
    """Carries the plan out and makes its time lines, as `kwlab run` does."""
    runner = Runner(plan.parse(PLAN, "small"), store, libraries)
    runner.run()
    cli.measure.draw_timelines(runner, None, None, False, float("inf"))
    return runner


def kept(store, runner):
    ((_, label, words, outcome),) = store.timelines(runner.machine)
    return label, words, outcome


def test_a_traced_run_is_drawn_and_reported(tmp_path, fake, ours, capsys):
    store = Store(tmp_path / "d.sqlite")
    runner = run(store, ours, fake("mpich", "fine"))
    label, words, outcome = kept(store, runner)
    assert (label, words, outcome.status, outcome.page) == (
        "p2p on 2 ranks, shared memory",
        "Figure <2>",
        "ok",
        "<!doctype html>whole\n",
    )
    assert [(name, said, picture) for name, said, _, picture in outcome.phases] == [
        ("a broadcast", SAID, "<svg>11</svg>\n"),
        ("a loop", SAID, "<svg>12</svg>\n"),
    ]
    assert (
        "KW_TRACE=p2p.trace" in outcome.command
        and str(tmp_path) not in outcome.command.split("KW_TRACE=")[1].split()[0]
    )
    said = capsys.readouterr().out
    assert f"Time line of {label}, a broadcast: {SAID}" in said and "a loop: " in said
    # the traced run is none of those that are timed
    assert set(store.runs().status) == {"ok"} and len(store.runs()) == 2


def test_the_report_has_the_pictures_and_the_page_beside_it(tmp_path, fake, ours):
    store = Store(tmp_path / "d.sqlite")
    run(store, ours, fake("mpich", "fine"))
    text = report.write(store, tmp_path / "out").read_text()
    assert (
        'id="timelines"' in text
        and "Figure &lt;2&gt;" in text
        and SAID in text
        and text.count("data:image/svg+xml;base64,") == 2
    )
    assert (
        'href="timeline-small-1.html"' in text
        and (tmp_path / "out/timeline-small-1.html").read_text() == "<!doctype html>whole\n"
    )
    assert (
        tmp_path / "out/timeline-small-1-2.svg"
    ).read_text() == "<svg>12</svg>\n" and "Only Kittiwake records a trace" in text


def test_what_is_drawn_is_not_drawn_again(tmp_path, fake, ours, capsys):
    store = Store(tmp_path / "d.sqlite")
    run(store, ours, fake("mpich", "fine"))
    capsys.readouterr()
    runner = run(store, ours, fake("mpich", "fine"))
    assert "Time line" not in capsys.readouterr().out
    cli.measure.draw_timelines(runner, None, None, True, float("inf"))
    assert "Time line" in capsys.readouterr().out and len(store.timelines(runner.machine)) == 1


@pytest.mark.parametrize(
    "ranks,network,until", [([3], None, 1e99), (None, ["tcp"], 1e99), (None, None, 0)]
)
def test_what_is_not_asked_for_is_not_drawn(tmp_path, ours, capsys, ranks, network, until):
    runner = Runner(plan.parse(PLAN, "small"), Store(tmp_path / "d.sqlite"), [ours])
    cli.measure.draw_timelines(runner, ranks, network, False, until)
    assert (
        not runner.store.timelines(runner.machine)
        and "time line" not in capsys.readouterr().out.lower()
    )


def spoiled(library, how):
    """The library with one thing wrong."""
    tool, launcher = library.launcher.with_name("kwtrace"), library.launcher
    match how:
        case "no tool":
            tool.unlink()
        case "a tool that fails":
            script(tool, "#!/bin/sh\necho 'kwtrace: it is torn' >&2\nexit 1\n")
        case "no trace":
            script(launcher, launcher.read_text().replace('echo trace >"$KW_TRACE"', "true"))
        case "a run that fails":
            script(
                launcher,
                launcher.read_text().replace(
                    "echo trace", "{ echo 'no room' >&2; exit 3; }; echo trace"
                ),
            )
        case "no library":
            launcher.unlink()
    return library


@pytest.mark.parametrize(
    "how,words",
    [
        ("no tool", "kwtrace is not there"),
        ("a tool that fails", "kwtrace: status 1: kwtrace: it is torn"),
        ("no trace", "has written no trace"),
        ("a run that fails", "no room"),
        ("no library", "kittiwake is not installed"),
    ],
)
def test_a_trace_that_cannot_be_made_is_one_sentence(tmp_path, fake, ours, capsys, how, words):
    store = Store(tmp_path / "d.sqlite")
    runner = run(store, spoiled(ours, how), fake("mpich", "fine"))
    _, _, outcome = kept(store, runner)
    assert outcome.status != "ok" and words in outcome.message and not outcome.phases
    assert "No time line of p2p on 2 ranks, shared memory: " in capsys.readouterr().out.replace(
        "\n", " "
    )
    assert "There is no time line: " in report.write(store, tmp_path / "out").read_text()
    assert store.drawn("small", runner.machine) == set()  # so the next command tries again


def test_a_summary_without_losses_is_its_overview():
    assert (
        timelines.sentence("2 ranks ran for\n1 ms.\n\nNothing was lost.\n")
        == "2 ranks ran for 1 ms."
    )


@pytest.mark.parametrize(
    "field,words",
    [
        ('phases = { "x" = "one" }', "takes a whole number"),
        ("phases = {}\nranks = 0", "it goes from 1"),
        ('words = "w"', "'phases' is missing"),
        ('phases = {}\nnetwork = "token ring"', "there are shm"),
        ("phases = {}\nvariants = {}", "there is no field 'variants'"),
    ],
)
def test_fields_that_are_wrong_are_named(field, words):
    with pytest.raises(plan.PlanError, match="timeline 1") as wrong:
        plan.parse(
            f'title = "t"\n[[work]]\nprogram = "p2p"\n[[timeline]]\nprogram = "give"\n{field}\n',
            "made",
        )
    assert words in str(wrong.value)


def test_the_studies_of_the_papers_have_time_lines():
    for name in ("seed004-broadcast", "seed004-product"):
        (one,) = plan.load(name).timelines
        assert one.program == "give" and "paper" in one.words and len(one.phases) == 3
        assert plan.on_cluster(plan.load(name)).timelines[0].network == "cluster"
