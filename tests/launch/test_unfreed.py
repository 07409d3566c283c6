"""KW_CHECK: what a program leaves at MPI_Finalize is said, with the line that made it."""

import re

import pytest

from jobs import MPIEXEC, ROOT, run, dump

SOURCE = ROOT / "tests/launch/unfreed.c"
HEAD = "mpiexec: left at MPI_Finalize (KW_CHECK):\n"
LEFT = {
    "comm": "ranks 0-1: a communicator made by MPI_Comm_dup at {comm} was never freed "
    "(MPI_Comm_free) (2 times)",
    "group": "ranks 0-1: a group made by MPI_Comm_group at {group} was never freed "
    "(MPI_Group_free)",
    "type": "ranks 0-1: a datatype made by MPI_Type_vector at {type} was never freed "
    "(MPI_Type_free)",
    "op": "rank 1: an operation made by MPI_Op_create at {op} was never freed (MPI_Op_free)",
    "window": "ranks 0-1: a window made by MPI_Win_allocate at {window} was never freed "
    "(MPI_Win_free)",
    "sent": "ranks 0-1: a request made by MPI_Isend at {sent} was never completed or freed",
    "received": "ranks 0-1: a request made by MPI_Irecv at {received} was never completed or freed",
    "persistent": "ranks 0-1: a request made by MPI_Recv_init at {persistent} was never completed "
    "or freed",
}


@pytest.fixture
def left(program):
    return program("tests/launch/unfreed.c", "-g", "-O1", "-Wall")


def lines():
    """By comment: FILE:LINE."""
    found = {}
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1):
        if m := re.search(r"; // (\w+)$", line):
            found[m[1]] = f"{SOURCE.name}:{number}"
    return found


@pytest.mark.parametrize("paths", ["self,shm", "self,tcp"])
@pytest.mark.parametrize("how", LEFT)
def test_what_is_left_is_reported_with_the_line_that_made_it(left, how, paths):
    p = run(MPIEXEC, "-n", 2, left, how, env={"KW_CHECK": "yes", "KW_PATHS": paths})
    assert p.returncode == 0, dump(p)
    assert p.stderr == HEAD + "  " + LEFT[how].format(**lines()) + "\n", dump(p)


@pytest.mark.parametrize("paths", ["self,shm", "self,tcp"])
def test_messages_that_nobody_receives_are_reported(left, paths):
    p = run(MPIEXEC, "-n", 2, left, "message", env={"KW_CHECK": "yes", "KW_PATHS": paths})
    found = [line.strip() for line in p.stderr.splitlines()[1:]]
    assert (
        "rank 1: a message of rank 0, tag 7, on rows, 12 bytes, was never received (2 times)"
        in found
    ), dump(p)
    assert (
        "rank 1: a message of rank 0, tag 8, on MPI_COMM_WORLD, 4 bytes, was never received"
        in found
    ), dump(p)


@pytest.mark.parametrize("paths", ["self,shm", "self,tcp"])
def test_a_refused_communicator_leaves_no_message_for_the_next_call_with_its_tag(left, paths):
    p = run(MPIEXEC, "-n", 2, left, "refused", env={"KW_CHECK": "yes", "KW_PATHS": paths})
    assert p.returncode == 0 and p.stderr == "", dump(p)


def test_a_rank_that_does_not_call_what_others_call_with_it_is_reported(left):
    p = run(MPIEXEC, "-n", 3, left, "uncalled", env={"KW_CHECK": "yes"})
    said = (
        "  rank 2: rank 0 called MPI_Comm_create_from_group or MPI_Intercomm_create_from_groups "
        "with a group that has this rank, which did not call it (2 times)\n"
    )
    assert p.returncode == 0 and p.stderr == HEAD + said, dump(p)


@pytest.mark.parametrize("how, check", [("nothing", "yes"), ("comm", "no"), ("message", "no")])
def test_nothing_is_reported_where_nothing_is_left_or_nobody_asks(left, how, check):
    p = run(MPIEXEC, "-n", 2, left, how, env={"KW_CHECK": check})
    assert p.returncode == 0 and p.stderr == "", dump(p)


def test_without_mpiexec_the_process_says_it_itself(left):
    p = run(left, "group", env={"KW_CHECK": "yes"})
    # Who has made it is known where the dynamic linker knows the calls (docs/debugging.md).
    said = r"a group( made by MPI_Comm_group at .*)? was never freed \(MPI_Group_free\)"
    assert p.returncode == 0 and re.search(said, p.stderr), dump(p)
