"""What a call costs more in a Fortran program that was compiled for another MPI than in one of the
standard ABI, in instructions."""

import shutil

import pytest

from builds import F08, LIBRARIES, module, prefix
from counting import counts, in_fortran, needs_valgrind
from jobs import DIST

# a tenth above what was counted in the build of make check: both handles and the status are
# converted, by functions of the library for C
BOUNDS = {
    ("openmpi", "mpi_f08"): {"send": 105, "recv": 120},
    ("openmpi", "mpif.h"): {"send": 130, "recv": 145},
    ("mpich", "mpif.h"): {"send": 52, "recv": 91},
}


@needs_valgrind
@pytest.mark.skipif(not shutil.which("gfortran"), reason="gfortran is not installed")
@pytest.mark.parametrize(
    "abi, interface, call", [(*which, call) for which, calls in BOUNDS.items() for call in calls]
)
def test_an_8_byte_call(abi, interface, call, tmp_path):
    home, theirs, own = prefix(abi), tmp_path / "theirs", tmp_path / "own"
    options = [*module(), F08] if interface == "mpi_f08" else []
    executed = []
    for there, mpicc, mpifort, options in [
        (own, DIST / "bin/mpicc", DIST / "bin/mpifort", []),
        (theirs, home / "bin/mpicc", home / "bin/mpifort", [*options, LIBRARIES[abi]]),
    ]:
        there.mkdir()
        executed.append(
            min(
                counts(in_fortran(there, interface, mpicc, mpifort, *options), call, there),
                default=0,
            )
        )
    standard, foreign = executed
    print(
        f"{call} from {abi}'s {interface}: {foreign} instructions, "
        f"{foreign - standard} more than in a program of the standard ABI"
    )
    assert 0 < standard and 0 < foreign and foreign - standard <= BOUNDS[abi, interface][call]
