"""Which programs this directory has, and how they are built: in a directory of its own for each
interface and compiler."""

import pathlib
import shutil
import subprocess

import calls
from jobs import DIST, run, dump

HERE = pathlib.Path(__file__).resolve().parent
INTERFACES = {"mpi_f08": "-DKW_F08", "mpi": "-DKW_MPI", "mpif.h": "-DKW_MPIF"}
CHAPTERS = [*calls.CHAPTERS, "sections", "completed_in_c", "modern", "large"]
SOURCES = [
    "checks.F90",
    *(f"{chapter}.F90" for chapter in CHAPTERS),
    "suite.F90",
    "crossing.o",
    "completed_in_c.o",
]
NOT_IN = {
    "mpif.h": ["sections", "completed_in_c", "modern", "large"],
    "mpi": ["modern", "large"],
    "mpi_f08": [],
}
COMPILERS = ["gfortran", "flang"]


def find(compiler):
    """The command of a compiler, or None."""
    names = (
        ["gfortran"]
        if compiler == "gfortran"
        else [
            "flang-new",
            "flang",
            *(f"flang-new-{n}" for n in range(30, 14, -1)),
            *(f"flang-{n}" for n in range(30, 14, -1)),
        ]
    )
    return next(filter(None, map(shutil.which, names)), None)


def options(compiler):
    """What keeps a compiler quiet about lines that macros have made long, and about what mpif.h
    cannot declare."""
    return [
        "-O1",
        "-cpp",
        *(
            ["-w", "-ffree-line-length-none", "-fcray-pointer"]
            if compiler == "gfortran"
            else ["-w"]
        ),
    ]


class Builder:
    """Programs by compiler, interface and name."""

    def __init__(self, place):
        self.place, self.made = place, {}
        for name in ("crossing", "completed_in_c", "tool"):
            subprocess.run(
                [DIST / "bin/mpicc", "-O1", "-c", "-o", place / f"{name}.o", HERE / f"{name}.c"],
                check=True,
            )
        text, self.numbers = calls.program()
        (place / "calls.F90").write_text(text)

    def directory(self, compiler, interface):
        there = self.place / f"{compiler}-{interface}"
        there.mkdir(exist_ok=True)
        return there

    def compile(self, compiler, interface, program, *sources):
        """The path of a program; fails with what the compiler says."""
        there = self.directory(compiler, interface)
        words = [self.place / s if (self.place / s).exists() else HERE / s for s in sources]
        p = run(
            DIST / "bin/mpifort",
            *options(compiler),
            INTERFACES[interface],
            f"-I{HERE}",
            "-o",
            there / program,
            *words,
            cwd=there,
            env={"KW_FC": find(compiler)},
            timeout=300,
        )
        assert p.returncode == 0, dump(p)
        return there / program

    def suite(self, compiler, interface):
        absent = [f"{chapter}.F90" for chapter in NOT_IN[interface]]
        return self.compile(compiler, interface, "suite", *(s for s in SOURCES if s not in absent))

    def every_call(self, compiler, interface):
        return self.compile(compiler, interface, "every_call", "calls.F90")
