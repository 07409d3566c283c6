"""KW_CHECK: accesses to windows that conflict are found, and both lines are named; correct programs
are left alone."""

import re

import pytest

from jobs import MPIEXEC, ROOT, run, dump

SOURCE = ROOT / "tests/conflicts/conflicts.c"
PATHS = ["self,shm", "self,tcp"]
CASES = re.findall(r"// (\w+) one$", SOURCE.read_text(), re.M)


@pytest.fixture
def conflicts(program):
    return program("tests/conflicts/conflicts.c", "-g", "-O1", "-Wall")


def line(case, which):
    """FILE:LINE of an access."""
    for number, text in enumerate(SOURCE.read_text().splitlines(), 1):
        if text.endswith(f"// {case} {which}"):
            return f"{SOURCE.name}:{number}"
    raise LookupError(f"{case} {which}")


@pytest.mark.parametrize("kind", ["created", "allocated"])
@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("case", CASES)
def test_a_conflict_is_found_and_both_lines_are_named(conflicts, case, paths, kind):
    p = run(MPIEXEC, "-n", 3, conflicts, case, kind, env={"KW_PATHS": paths, "KW_CHECK": "yes"})
    assert p.returncode != 0 and "MPI_ERR_RMA_CONFLICT" in p.stderr, dump(p)
    said = [text for text in p.stderr.splitlines() if line(case, "one") in text]
    assert len(said) == 1 and line(case, "two") in said[0], dump(p)


@pytest.mark.parametrize("kind", ["created", "allocated"])
@pytest.mark.parametrize("paths", PATHS)
def test_a_correct_program_is_left_alone(conflicts, paths, kind):
    p = run(
        MPIEXEC, "-n", 3, conflicts, "correct", kind, env={"KW_PATHS": paths, "KW_CHECK": "yes"}
    )
    assert p.returncode == 0 and not p.stderr, dump(p)


@pytest.mark.parametrize("case", CASES)
def test_without_the_check_nothing_is_reported(conflicts, case):
    p = run(MPIEXEC, "-n", 3, conflicts, case)
    assert p.returncode == 0 and not p.stderr, dump(p)
