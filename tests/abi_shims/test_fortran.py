"""Fortran programs compiled for MPICH, Intel MPI or Open MPI run unchanged: the conformance
programs of tests/fortran that include mpif.h, compiled with that ABI's, on our libmpifort.so.12 and
libmpi_mpifh.so.40."""

import re
import shutil
import subprocess
import sys

import pytest

from builds import FORTRAN, LIBRARIES, STATUS_SIZE, conditions, prefix
from jobs import ROOT, mpiexec, run, dump

SOURCES = ROOT / "tests/fortran"
sys.path.append(str(SOURCES))
from calls import CHAPTERS, linker_names, read  # noqa: E402

ABIS = sorted(STATUS_SIZE)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(ABI, NAME, SOURCE...): a program with mpif.h of another ABI; once."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    place, made = tmp_path_factory.mktemp("fortran"), {}

    def compile(abi, name, *sources):
        program = place / abi / name
        if program not in made:
            program.parent.mkdir(exist_ok=True)
            words = [*conditions(abi, "KW_MPIF"), "-o", program, *sources, LIBRARIES[abi]]
            made[program] = run(
                prefix(abi) / "bin/mpifort", *words, cwd=program.parent, timeout=300
            )
        assert made[program].returncode == 0, dump(made[program])
        return program

    return compile


@pytest.fixture(scope="module")
def suite(compiled, tmp_path_factory):
    """suite(ABI): the conformance programs."""
    place = tmp_path_factory.mktemp("c")

    def get(abi):
        crossing = place / f"{abi}.o"
        if not crossing.exists():
            subprocess.run(
                [
                    "cc",
                    f"-I{prefix(abi)}/include",
                    "-O1",
                    "-c",
                    "-o",
                    crossing,
                    SOURCES / "crossing.c",
                ],
                check=True,
            )
        return compiled(
            abi,
            "suite",
            *(SOURCES / f"{name}.F90" for name in ["checks", *CHAPTERS, "suite"]),
            crossing,
        )

    return get


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("abi", ABIS)
def test_a_chapter(abi, chapter, n, suite):
    mpiexec("-n", n, suite(abi), chapter, out="passed\n")


@pytest.mark.parametrize("abi", ABIS)
def test_an_abort(abi, suite):
    mpiexec(
        "-n", 2, suite(abi), "abort", status=7, sentence="MPI_Abort was called with error code 7"
    )


@pytest.mark.parametrize("abi", ABIS)
def test_what_the_standard_abi_has_not(abi, compiled):
    mpiexec("-n", 2, compiled(abi, "old", ROOT / "tests/abi_shims/old.F90"), out="passed\n")


def test_the_descriptors_of_mpi_f08(compiled):
    mpiexec(
        "-n",
        2,
        compiled("mpich", "descriptors", ROOT / "tests/abi_shims/descriptors.f90"),
        out="passed\n",
    )


@pytest.mark.parametrize("abi", ABIS)
def test_a_program_that_needs_the_library_of_fortran_alone(abi, tmp_path, compiled):
    source = tmp_path / "alone.f90"
    source.write_text(
        "include 'mpif.h'\ninteger :: ierr\ncall MPI_Init(ierr)\ncall MPI_Finalize(ierr)\n"
        "print '(a)', 'passed'\nend\n"
    )
    program = tmp_path / "alone"
    p = run(
        "gfortran",
        f"-I{prefix(abi)}/include",
        "-o",
        program,
        source,
        FORTRAN[abi],
        "-Wl,--allow-shlib-undefined",
        cwd=tmp_path,
    )
    assert p.returncode == 0, dump(p)
    needed = re.findall(r"NEEDED.*\[(libmpi.*)\]", run("readelf", "-d", program).stdout)
    assert needed == [FORTRAN[abi].name]
    mpiexec("-n", 1, program, out="passed\n")
    p = mpiexec("-v", "-n", 1, program)
    assert f"with {LIBRARIES[abi].name} in {LIBRARIES[abi].parent.resolve()}" in p.stderr, dump(p)


def exported(abi):
    return {
        line.split()[-1]
        for line in run("nm", "-D", "--defined-only", FORTRAN[abi]).stdout.splitlines()
    }


@pytest.mark.parametrize("abi", ABIS)
def test_every_function_has_its_names(abi):
    names = exported(abi)
    functions = [f for f in read() if not f.twin_of]
    plain = [name[:-1] for f in functions for name in linker_names(f, "mpif.h")]
    assert len(plain) > 400
    for name in (word for plain_name in plain for word in (plain_name, f"p{plain_name}")):
        written = {name, f"{name}_", f"{name}__", name.upper()}
        assert written <= names, written - names


@pytest.mark.parametrize("abi", ABIS)
def test_nothing_else_is_exported(abi):
    known = re.compile(
        r"p?mpix?_\w+|P?MPIX?_[A-Z0-9_]+|mpi(priv|fcmb)\w_|pmpir_\w+_f08(ts)?_(large_)?|__mpi_\w+_MOD_\w+|MPIR_F08_MPI_\w+|"
        r"ompi_f08_mpi_\w+"
    )
    others = {name for name in exported(abi) if not known.fullmatch(name)}
    assert not others, others
