"""What runs the steps of `make check`, and what runs tests in them: nothing is left behind, nothing
hangs, what is skipped is not green."""

import os
import subprocess
import sys

import pytest

from jobs import MPIEXEC, ROOT, SKIPPED, WATCHDOG, gone, living, run, sh, sleepers, tag, wait_until


def step(log, silent, *words):
    p = subprocess.run(
        [ROOT / "scripts/run-step", log, str(silent), "1000", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    return p, log.read_text()


def test_a_step_leaves_nothing(tmp_path):
    log = tmp_path / "step.log"
    t = tag()
    p, said = step(
        log,
        60,
        *sh(f"{MPIEXEC} -n 2 setsid sleep {t} & setsid sleep {t} & sleep {t} & echo said; exit 5"),
    )
    assert p.returncode == 5 and "said\n" in said and "left behind, and ended: " in p.stderr, (
        p,
        said,
    )
    gone(t)
    p, said = step(log, 1, MPIEXEC, "-n", 2, *sh(f"trap '' TERM; setsid sleep {t}"))
    assert (
        p.returncode == 124 and "its log has not grown for 1 s" in said and f"sleep {t}" in said
    ), (p, said)
    gone(t)
    p = subprocess.Popen(
        [ROOT / "scripts/run-step", log, "60", "1000", MPIEXEC, "-n", "2", "setsid", "sleep", t],
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(sleepers(t)) == 2, "the ranks do not start")
    p.terminate()
    assert p.wait(timeout=WATCHDOG) == 124
    gone(t)
    p, said = step(log, 60, "sh", "-c", "echo fine")
    assert p.returncode == 0 and said == "fine\n" and p.stderr == "", (p, said)


@pytest.fixture
def outcome(tmp_path):
    """outcome(TEXT): what comes of tests, which know a length of sleep, TAG, and may set LIMIT."""

    def of(text, t=""):
        file = tmp_path / "test_it.py"
        file.write_text(f"import conftest, pytest, subprocess\nTAG = '{t}'\n{text}\n")
        words = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            ROOT / "tests/pytest.ini",
            "-p",
            "conftest",
            "--rootdir",
            tmp_path,
            file,
        ]
        return run(*words, env={"PYTHONPATH": f"{ROOT}/tests:{os.environ.get('PYTHONPATH', '')}"})

    return of


def test_what_a_test_has_started_ends_with_it(outcome):
    t = tag()
    started = "    subprocess.Popen(['setsid', 'sh', '-c', f'sleep {TAG} & sleep {TAG}'])"
    there = "    assert conftest.descendants()"
    p = outcome(
        f"def test_starts():\n{started}\ndef test_finds_none():\n"
        "    assert not conftest.descendants()",
        t,
    )
    assert p.returncode == 0 and "2 passed" in p.stdout and not living(t), p.stdout
    fixture = f"@pytest.fixture(scope='module')\ndef stays():\n{started}"
    p = outcome(f"{fixture}\ndef test_starts(stays):\n{there}\ndef test_has_it(stays):\n{there}", t)
    assert p.returncode == 0 and "2 passed" in p.stdout, p.stdout


def test_a_test_that_hangs_is_ended(outcome):
    t = tag()
    p = outcome(
        "conftest.LIMIT = 1\ndef test_hangs():\n    subprocess.run(['setsid', 'sleep', TAG])\n"
        "def test_next():\n    pass",
        t,
    )
    assert (
        p.returncode == 1
        and "has not ended within 1 s" in p.stdout
        and "1 failed, 1 passed" in p.stdout
        and not living(t)
    ), p.stdout


def test_what_is_skipped_is_not_green(outcome):
    p = outcome("def test_one():\n    pytest.skip('no such thing here')")
    assert p.returncode == SKIPPED and "1 skipped" in p.stdout, p.stdout
    assert [
        line
        for line in p.stdout.splitlines()
        if line.startswith("SKIPPED")
        and "::test_one - " in line
        and line.endswith("no such thing here")
    ], p.stdout
    p = outcome("def test_one():\n    pytest.skip('no such thing here')\ndef test_two():\n    pass")
    assert p.returncode == 0 and "1 passed, 1 skipped" in p.stdout, p.stdout
