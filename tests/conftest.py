"""What pytest needs to know of the tests of whole programs (README.md): programs are built once, whatever a test starts ends with it, what
is skipped is never green."""

import ctypes
import os
import pathlib
import signal
import subprocess

import pytest

from jobs import DIST, ROOT, SKIPPED

LIMIT = 600  # seconds after which a test is ended; each wait in it has a limit of its own (WATCHDOG)
PR_SET_CHILD_SUBREAPER = 36

# Orphans of what a test starts become children of this process, which ends them.
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
# Started in the background of a script, this process ignores interrupts; what it tests must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def parents():
    """The parent of every process that is no zombie."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            found[int(entry.name)] = int(parent)
    return found


def descendants():
    """Process ids of all that comes from this process."""
    known, found, row = parents(), set(), {os.getpid()}
    while row := {pid for pid, parent in known.items() if parent in row}:
        found |= row
    return found


def end_all_but(known):
    """Kills all descendants but these, and what they start meanwhile."""
    while left := descendants() - known:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def too_long(_number, _frame):
    pytest.fail(f"the test has not ended within {LIMIT} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test ends, and what it has started ends with it; what fixtures have started before stays."""
    before = descendants()
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        end_all_but(before)


def pytest_sessionfinish(session, exitstatus):
    """Where every test was skipped, nothing has passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and reporter and reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        session.exitstatus = SKIPPED


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """program(SOURCE, FLAG...): the path of a program that the library's compiler has made of a file below the project; made once."""
    made = {}

    def build(source, *flags):
        if (source, flags) not in made:
            path = tmp_path_factory.mktemp("program") / pathlib.Path(source).stem
            compiler = DIST / "bin" / ("mpicxx" if source.endswith(".cc") else "mpicc")
            subprocess.run([compiler, "-o", path, ROOT / source, *flags], check=True)
            made[source, flags] = path
        return made[source, flags]
    return build
