"""What a call costs more in a Fortran program that was compiled for another MPI than in one of the
standard ABI, in instructions."""

import functools
import shutil

import pytest

from builds import F08, LIBRARIES, module, prefix
from counting import cheapest, in_fortran, needs_valgrind
from jobs import DIST

# a tenth above what was counted in the build of make check: both handles and the status are
# converted, by functions of the library for C
BOUNDS = {
    ("openmpi", "mpi_f08"): {"send": 105, "recv": 120},
    ("openmpi", "mpif.h"): {"send": 130, "recv": 145},
    ("mpich", "mpif.h"): {"send": 52, "recv": 91},
}


@pytest.fixture(scope="session")
def counted(tmp_path_factory):
    """counted(INTERFACE, ABI): what the calls cost from Fortran, by their names, in a program of
    the standard ABI or of another; counted once."""

    @functools.cache
    def count(interface, abi=None):
        work = tmp_path_factory.mktemp("counted")
        home = prefix(abi) if abi else DIST
        options = [LIBRARIES[abi]] if abi else []
        if abi and interface == "mpi_f08":
            options = [*module(), F08, *options]
        program = in_fortran(work, interface, home / "bin/mpicc", home / "bin/mpifort", *options)
        return cheapest(program, ("send", "recv"), work)

    return count


@needs_valgrind
@pytest.mark.skipif(not shutil.which("gfortran"), reason="gfortran is not installed")
@pytest.mark.parametrize(
    "abi, interface, call", [(*which, call) for which, calls in BOUNDS.items() for call in calls]
)
def test_an_8_byte_call(abi, interface, call, counted):
    standard, foreign = counted(interface)[call], counted(interface, abi)[call]
    print(
        f"{call} from {abi}'s {interface}: {foreign} instructions, "
        f"{foreign - standard} more than in a program of the standard ABI"
    )
    assert foreign - standard <= BOUNDS[abi, interface][call]
