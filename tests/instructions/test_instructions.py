"""How many instructions an 8-byte call executes that does not have to wait, between two ranks of one host: counts, not times, so they
are the same on a busy machine. The cheapest of many calls counts, by valgrind's callgrind. A bound is a tenth above what was
counted when it was set; raise one only with the reason in the commit's message, lower it when a call has become cheaper."""
import re
import shutil
import subprocess

import pytest

from jobs import DIST, MPIEXEC, ROOT, WATCHDOG, run

# instructions of one call, with the three or so that hand it its arguments; waitall: of 40 receives that have ended
BOUNDS = {"send": 415, "recv": 410, "bcast": 615, "allreduce": 765, "isend": 425, "irecv": 550, "waitall": 40 * 300}
RECORDED = 155  # what mpiexec --profile adds to each of them
# what Fortran adds to C's call, with what the program does to describe its buffers; at most as much again as a tenth of it. A scalar
# from either module comes with a descriptor.
FORTRAN = {"mpi_f08": {"send": 46, "recv": 54, "bcast": 44, "allreduce": 66, "isend": 78, "irecv": 78},
           "mpi": {"send": 46, "recv": 54}, "mpif.h": {"send": 37, "recv": 44}}
MACROS = {"mpi_f08": "-DKW_F08", "mpi": "-DKW_MPI", "mpif.h": "-DKW_MPIF"}

needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed (scripts/install-deps - valgrind)")


def counts(program, call, work, *options):
    """Instructions of each call of this function that rank 0 made."""
    profile, there = work / call, work / "there"
    watched = ["valgrind", "--tool=callgrind", "-q", "--collect-atstart=no", f"--toggle-collect=watched_{call}", f"--dump-after=watched_{call}",
               f"--callgrind-out-file={profile}"]
    # the other rank never sleeps while it waits for this slow one: who sleeps is rung, which is not the price of a call
    settings = ["-genv", "KW_PATHS", "self,shm", "-genv", "KW_EVENT_THREAD", "no", "-genv", "KW_SPIN", "10000000"]
    done = run(MPIEXEC, *options, *settings, "-n", "1", *watched, program, call, there, ":", "-n", "1", program, call, there, timeout=2 * WATCHDOG)
    assert done.returncode == 0, f"{call} ended with {done.returncode}: {done.stderr}"
    texts = [dump.read_text() for dump in work.glob(f"{call}.*")]
    found = [int(n) for text in texts for n in re.findall(r"^(?:summary|totals): (\d+)", text, re.M)]
    return [n for n in found if n > 0]


@needs_valgrind
@pytest.mark.parametrize("call", BOUNDS)
def test_an_8_byte_call(call, program, tmp_path):
    executed = min(counts(program("tests/instructions/program.c", "-O2"), call, tmp_path), default=0)
    print(f"{call}: {executed} instructions, {BOUNDS[call]} at most")
    assert 0 < executed <= BOUNDS[call], f"an 8-byte {call} executes {executed} instructions, {BOUNDS[call]} at most are allowed"


@needs_valgrind
@pytest.mark.parametrize("call", ["send", "allreduce"])
def test_what_recording_adds(call, program, tmp_path):
    executed = min(counts(program("tests/instructions/program.c", "-O2"), call, tmp_path, "--profile"), default=0)
    print(f"{call}: {executed} instructions, recorded")
    assert 0 < executed <= BOUNDS[call] + RECORDED, f"a recorded {call} executes {executed} instructions"


@pytest.fixture(scope="session")
def in_fortran(tmp_path_factory):
    """in_fortran(INTERFACE): the program whose counted functions are Fortran."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")

    def build(interface):
        there, source = tmp_path_factory.mktemp("fortran"), ROOT / "tests/instructions"
        subprocess.run([DIST / "bin/mpicc", "-O2", "-DFORTRAN", "-c", "-o", "program.o", source / "program.c"], check=True, cwd=there)
        subprocess.run([DIST / "bin/mpifort", "-O2", MACROS[interface], "-o", "program", source / "watched.F90", "program.o"], check=True, cwd=there)
        return there / "program"
    return build


@needs_valgrind
@pytest.mark.parametrize("interface, call", [(interface, call) for interface, calls in FORTRAN.items() for call in calls])
def test_what_fortran_adds(interface, call, program, in_fortran, tmp_path):
    own, bound = tmp_path / "own", FORTRAN[interface][call]
    own.mkdir()
    plain = min(counts(program("tests/instructions/program.c", "-O2"), call, tmp_path), default=0)
    executed = min(counts(in_fortran(interface), call, own), default=0)
    print(f"{call} from {interface}: {executed} instructions, {executed - plain} more than from C, {bound} at most")
    assert plain > 0 and executed > 0 and executed - plain <= bound, f"{call} from {interface}: {executed - plain} instructions more than from C"
