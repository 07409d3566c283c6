"""What pytest needs to know of the tests of whole programs (README.md): programs are built once,
whatever a test starts ends with it, what is skipped is never green."""

import ctypes
import os
import pathlib
import signal
import subprocess

import pytest

from jobs import DIST, ROOT, SKIPPED, descendants

# Seconds after which a test is ended, unless it is marked with `limit`; each wait in it has a limit
# of its own (WATCHDOG).
LIMIT = 600
BEFORE = pytest.StashKey()  # the processes that a test found
PR_SET_CHILD_SUBREAPER = 36

# Orphans of what a test starts become children of this process, which ends them.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
# Started in the background of a script, this process ignores interrupts, by nohup hang-ups; what it
# tests must not.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def end_all_but(known):
    """Kills all that comes from this process, but these and what comes from them."""
    while left := descendants(known):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): when the test is ended")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    item.stash[BEFORE] = descendants()
    mark = item.get_closest_marker("limit")
    limit = mark.args[0] if mark else LIMIT
    signal.signal(
        signal.SIGALRM, lambda *_: pytest.fail(f"the test has not ended within {limit} s")
    )
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """When its fixtures have had their turn, what a test has started ends; what they had started
    before it stays, and goes on."""
    try:
        return (yield)
    finally:
        if BEFORE in item.stash:
            end_all_but(item.stash[BEFORE])


def pytest_sessionfinish(session, exitstatus):
    """Where every test was skipped, nothing has passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if (
        exitstatus == 0
        and reporter
        and reporter.stats.get("skipped")
        and not reporter.stats.get("passed")
    ):
        session.exitstatus = SKIPPED


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """program(SOURCE, FLAG...): the path of a program that the library's compiler (or another) has
    made of a file below the project; made once."""
    made = {}

    def build(source, *flags, compiler=None):
        compiler = compiler or DIST / "bin" / ("mpicxx" if source.endswith(".cc") else "mpicc")
        if (key := (compiler, source, flags)) not in made:
            path = tmp_path_factory.mktemp("program") / pathlib.Path(source).stem
            subprocess.run([compiler, "-o", path, ROOT / source, *flags], check=True)
            made[key] = path
        return made[key]

    return build
