"""How many instructions an 8-byte call executes that does not have to wait, between two ranks of
one host: counts, not times, so they are the same on a busy machine. The cheapest of many calls
counts, by valgrind's callgrind. A bound is a tenth above what was counted when it was set; raise
one only with the reason in the commit's message, lower it when a call has become cheaper."""

import functools
import os
import shutil

import pytest

from counting import cheapest, in_fortran, needs_valgrind
from jobs import DIST

# instructions of one call, with the three or so that hand it its arguments; waitall: of 40 receives
# that have ended
RELEASE = {
    "send": 415,
    "recv": 410,
    "bcast": 615,
    "allreduce": 765,
    "isend": 425,
    "irecv": 620,
    "waitall": 40 * 300,
}
# the same in the build that `make check` tests, where each crate is optimised by itself
CHECKED = {
    "send": 850,
    "recv": 630,
    "bcast": 820,
    "allreduce": 1080,
    "isend": 900,
    "irecv": 775,
    "waitall": 40 * 380,
}
# what mpiexec --profile adds to each of them, and what --trace adds
RECORDED = {"release": 155, "checked": 335}
TRACED_RELEASE = {
    "rank": 235,
    "send": 325,
    "recv": 420,
    "bcast": 295,
    "allreduce": 295,
    "isend": 335,
    "irecv": 700,
}
TRACED_CHECKED = {
    "rank": 290,
    "send": 615,
    "recv": 800,
    "bcast": 560,
    "allreduce": 560,
    "isend": 620,
    "irecv": 870,
}
# what Fortran adds to C's call, with what the program does to describe its buffers; at most as much
# again as a tenth of it. A scalar from either module comes with a descriptor.
FORTRAN_RELEASE = {
    "mpi_f08": {"send": 46, "recv": 54, "bcast": 44, "allreduce": 66, "isend": 78, "irecv": 78},
    "mpi": {"send": 46, "recv": 54},
    "mpif.h": {"send": 37, "recv": 44},
}
FORTRAN_CHECKED = {
    "mpi_f08": {"send": 73, "recv": 80, "bcast": 64, "allreduce": 106, "isend": 110, "irecv": 110},
    "mpi": {"send": 75, "recv": 83},
    "mpif.h": {"send": 61, "recv": 68},
}
# `make check` says which build it has put into $DIST; `make stage` puts the release there
BUILD = "checked" if os.environ.get("PROFILE") == "checked" else "release"
BOUNDS = {"release": RELEASE, "checked": CHECKED}[BUILD]
TRACED = {"release": TRACED_RELEASE, "checked": TRACED_CHECKED}[BUILD]
FORTRAN = {"release": FORTRAN_RELEASE, "checked": FORTRAN_CHECKED}[BUILD]


@pytest.fixture(scope="session")
def counted(program, tmp_path_factory):
    """counted(CALLS, OPTION...): what these calls cost in C, under these options of mpiexec, by
    their names; counted once."""

    @functools.cache
    def count(calls, *options):
        work = tmp_path_factory.mktemp("counted")
        words = [word for option in options for word in option(work)]
        return cheapest(program("tests/instructions/program.c", "-O2"), calls, work, *words)

    return count


@pytest.fixture(scope="session")
def from_fortran(tmp_path_factory):
    """from_fortran(INTERFACE): the same from Fortran, for the calls that have a bound."""

    @functools.cache
    def count(interface):
        work = tmp_path_factory.mktemp("fortran")
        program = in_fortran(work, interface, DIST / "bin/mpicc", DIST / "bin/mpifort")
        return cheapest(program, tuple(FORTRAN[interface]), work)

    return count


def recorded(work):
    return ["--profile"]


def traced(work):
    return ["--trace", work / "trace"]


ALL = tuple(call for call in {**BOUNDS, **TRACED} if call != "waitall")
# In a job of its own: after other collectives a barrier takes in no messages, MPI_Waitall does.
ALONE = ("waitall",)


@needs_valgrind
@pytest.mark.parametrize("call", BOUNDS)
def test_an_8_byte_call(call, counted):
    executed = counted(ALONE if call in ALONE else ALL)[call]
    print(f"{call}: {executed} instructions, {BOUNDS[call]} at most")
    assert executed <= BOUNDS[call], (
        f"an 8-byte {call} executes {executed} instructions, {BOUNDS[call]} at most are allowed"
    )


@needs_valgrind
@pytest.mark.parametrize("call", ["send", "allreduce"])
def test_what_recording_adds(call, counted):
    executed = counted(("send", "allreduce"), recorded)[call]
    print(f"{call}: {executed} instructions, recorded")
    assert executed <= BOUNDS[call] + RECORDED[BUILD], (
        f"a recorded {call} executes {executed} instructions"
    )


@needs_valgrind
@pytest.mark.parametrize("call", TRACED)
def test_what_a_trace_adds(call, counted):
    plain, executed = counted(ALL)[call], counted(tuple(TRACED), traced)[call]
    more = executed - plain
    print(f"{call}: {executed} instructions, traced, {more} more, {TRACED[call]} at most")
    assert plain < executed <= plain + TRACED[call], (
        f"a traced {call} executes {more} instructions more"
    )


@needs_valgrind
@pytest.mark.parametrize(
    "interface, call", [(interface, call) for interface, calls in FORTRAN.items() for call in calls]
)
@pytest.mark.skipif(not shutil.which("gfortran"), reason="gfortran is not installed")
def test_what_fortran_adds(interface, call, counted, from_fortran):
    more, bound = from_fortran(interface)[call] - counted(ALL)[call], FORTRAN[interface][call]
    print(f"{call} from {interface}: {more} instructions more than from C, {bound} at most")
    assert more <= bound, f"{call} from {interface}: {more} instructions more than from C"
