"""ScaLAPACK and its BLACS with our compilers, and their own testers on four ranks: `make scalapack`
(some minutes, so no part of `make check`). The BLACS are in C and called from C and from Fortran,
so that handles go both ways.

The source is Debian's source package, or the directory that SCALAPACK names (`make scalapack
SCALAPACK=DIR`; nothing is written there).
"""

import os
import re
import shutil
import subprocess

import pytest

from jobs import DIST, ROOT, run, dump

WORK = ROOT / "build" / "scalapack"
SOURCE = WORK / "source"
PRECISIONS = {"d": "double", "z": "complex16"}
MAKE_INC = f"""
CDEFS = -DAdd_
FC = {DIST}/bin/mpifort
CC = {DIST}/bin/mpicc
NOOPT = -O0 -w
FCFLAGS = -O1 -w
CCFLAGS = -O1 -w -Wno-implicit-function-declaration -Wno-implicit-int
FCLOADER = $(FC)
CCLOADER = $(CC)
FCLOADFLAGS = $(FCFLAGS)
CCLOADFLAGS = $(CCFLAGS)
ARCH = ar
ARCHFLAGS = cr
RANLIB = ranlib
SCALAPACKLIB = libscalapack.a
LIBS = -llapack -lblas
"""
PROGRAMS = {
    "BLACS/TESTING": ["xFbtest", "xCbtest"],
    "PBLAS/TESTING": [f"x{letter}pblas{level}tst" for letter in PRECISIONS for level in (1, 2, 3)],
    "REDIST/TESTING": [
        f"x{letter}{what}mr" for letter in ("i", *PRECISIONS) for what in ("ge", "tr")
    ],
    "LIN": [f"x{letter}{what}" for letter in PRECISIONS for what in ("lu", "llt")],
}
# passed, skipped and failed in what a tester prints: one line for many tests, or each
COUNTS = [
    re.compile(
        r"TESTS;\s+(?P<passed>\d+) PASSED,\s+(?P<skipped>\d+) SKIPPED,\s+(?P<failed>\d+) FAILED"
    ),
    re.compile(
        r"^\s*\|\s+\w+\s+\d+\s+(?P<passed>\d+)\s+(?P<failed>\d+)\s+(?P<skipped>\d+)\s*$", re.M
    ),
    re.compile(r"(?P<passed>\d+) tests completed and passed"),
    re.compile(r"(?P<failed>\d+) tests completed and failed"),
    re.compile(r"(?P<skipped>\d+) tests skipped"),
]
LINES = {
    "passed": r"^TEST PASSED OK|^ PASSED ",
    "skipped": r"^ SKIPPED ",
    "failed": r"^TEST FAILED|^ FAILED ",
}


def counted(text):
    counts = {what: len(re.findall(pattern, text, re.M)) for what, pattern in LINES.items()}
    for pattern in COUNTS:
        for found in pattern.finditer(text):
            for what, n in found.groupdict().items():
                counts[what] += int(n)
    return counts


def get_source():
    """A copy of the source, without what was built there."""
    if given := os.environ.get("SCALAPACK"):
        shutil.copytree(
            given, SOURCE, ignore=shutil.ignore_patterns("*.o", "*.a", "x[Ficdsz]*", ".git")
        )
        return
    said = run("apt-get", "source", "--download-only", "scalapack", cwd=WORK)
    archives = sorted(WORK.glob("scalapack_*.orig.tar.*"))
    if not archives:
        pytest.skip(
            "ScaLAPACK's source cannot be had: "
            f"'apt-get source scalapack' says '{said.stderr.strip().splitlines()[-1]}'; "
            "add Debian's sources (deb-src), or name a directory: make scalapack SCALAPACK=DIR"
        )
    SOURCE.mkdir()
    subprocess.run(["tar", "-xf", archives[-1], "--strip-components=1", "-C", SOURCE], check=True)


def make(where, *targets):
    with open(WORK / "make.log", "a") as log:
        status = subprocess.run(
            ["make", "-C", SOURCE / where, *targets], stdout=log, stderr=subprocess.STDOUT
        ).returncode
    assert status == 0, "".join(open(WORK / "make.log", errors="replace").readlines()[-20:])


def linear():
    """Where the testers of LU and Cholesky are."""
    return next(
        place for place in ("TESTING/traditional", "TESTING") if (SOURCE / place / "LIN").exists()
    )


@pytest.fixture(scope="module")
def scalapack():
    """ScaLAPACK, built with dist/bin/mpicc and mpifort from its beginning."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    get_source()
    (SOURCE / "SLmake.inc").write_text(MAKE_INC)
    precisions = PRECISIONS.values()
    make("BLACS", "lib")
    for room in ("TOOLS", "PBLAS/SRC", "SRC"):
        make(room, *precisions)
    make("REDIST/SRC", "integer", *precisions)
    make("BLACS", "tester")
    make("PBLAS/TESTING", *precisions)
    make("REDIST/TESTING", "integer", *precisions)
    make(f"{linear()}/LIN", *(f"../{program}" for program in PROGRAMS["LIN"]))


@pytest.mark.parametrize(
    "room, program",
    [(room, program) for room, programs in PROGRAMS.items() for program in programs],
)
def test_a_tester(room, program, scalapack):
    p = run(
        DIST / "bin/mpiexec",
        "-n",
        4,
        f"./{program}",
        cwd=SOURCE / (linear() if room == "LIN" else room),
        timeout=570,
    )
    (WORK / f"{program}.log").write_text(p.stdout + p.stderr)
    counts = counted(p.stdout)
    print(f"{program}: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    # the last test of the BLACS' is that BLACS_ABORT ends the job
    aborts = room.startswith("BLACS")
    assert (p.returncode != 0) == aborts and (not aborts or "BLACS_ABORT" in p.stdout), dump(p)
    assert counts["passed"] and not counts["failed"], f"{counts}: see build/scalapack/{program}.log"
