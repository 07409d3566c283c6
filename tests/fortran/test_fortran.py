"""Fortran: the conformance programs with each interface (mpi_f08, mpi, mpif.h) and compiler, every function by a call, what compilers have
to refuse, tools, the wrapper and the modules that it makes, and the example."""

import re
import shutil
import subprocess

import pytest

import calls
from builds import CHAPTERS, COMPILERS, HERE, INTERFACES, NOT_IN, find
from jobs import DIST, ROOT, mpiexec, run, told

MPIFORT = DIST / "bin/mpifort"
RUNS = [(i, c) for i in INTERFACES for c in CHAPTERS if c not in NOT_IN[i]]


def need(compiler):
    if not find(compiler):
        pytest.skip(f"{compiler} is not installed")
    return {"KW_FC": find(compiler)}


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("interface, chapter", RUNS)
def test_a_chapter(interface, chapter, n, built):
    mpiexec("-n", n, built("gfortran", interface, "suite"), chapter, out="passed\n")


@pytest.mark.parametrize("interface, chapter", RUNS)
def test_a_chapter_with_a_second_compiler(interface, chapter, built):
    mpiexec("-n", 2, built("flang", interface, "suite"), chapter, out="passed\n")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("interface", INTERFACES)
def test_every_function_can_be_called_and_refuses_null_handles(compiler, interface, built, builder):
    p = mpiexec("-n", 1, built(compiler, interface, "every_call"))
    classes = dict(map(int, line.split()) for line in p.stdout.splitlines())
    names = {builder.numbers[number].name for number in classes}
    assert len(names) > (650 if interface == "mpi_f08" else 440) - len(calls.NOT_CALLED) - 140, len(names)
    for number, got in classes.items():
        f = builder.numbers[number]
        assert got != -1, f"{f.name} has not set ierror"
        assert got != 0 or not calls.fails_without_handles(f), f"{f.name} takes null handles"
        assert f.code, f.name


def test_every_function_has_its_names_in_the_library():
    p = run("nm", "-D", "--defined-only", DIST / "lib/libmpifort_abi.so.1")
    names = {line.split()[-1] for line in p.stdout.splitlines()}
    functions = {f.name: f for f in calls.read()}
    for f in functions.values():
        choice = any(p.kind == "BUFFER" for p in f.params)
        small = f.name.lower()
        wanted = [] if f.twin_of else [f"{small}_", f"{small}_fts_" if choice else f"{small}_"]
        twin_is_the_same = f.twin_of and calls.signature(f) == calls.signature(functions[f.twin_of])
        if f.name not in calls.NOT_IN_F08 and not twin_is_the_same:
            wanted.append(f"{small}_f08ts_" if choice else f"{small}_f08_")
        missing = [w for name in wanted for w in (name, f"p{name}") if w not in names]
        assert not missing, missing


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("source", ["wrong_f08.f90", "wrong_mpi.f90"])
def test_wrong_calls_do_not_compile(compiler, source, tmp_path, builder):
    env = need(compiler)
    quiet = ["-fmax-errors=0"] if compiler == "gfortran" else []
    p = run(MPIFORT, "-fsyntax-only", *quiet, HERE / source, cwd=tmp_path, env=env)
    found = {int(n) for n in re.findall(rf"{source}:(\d+):", p.stderr)}
    lines = (HERE / source).read_text().splitlines()
    wanted = {n for n, line in enumerate(lines, 1) if "! wrong:" in line}
    assert found >= wanted, f"{[lines[n - 1] for n in sorted(wanted - found)]} compiles"
    assert found == wanted, f"{[lines[n - 1] for n in sorted(found - wanted)]} does not compile: {told(p)}"


def test_a_program_in_fixed_form(tmp_path, builder):
    p = run(DIST / "bin/mpif77", "-std=legacy", "-Wall", "-o", tmp_path / "fixed", HERE / "fixed.f", cwd=tmp_path)
    assert p.returncode == 0 and "mpif.h" not in p.stderr, told(p)
    mpiexec("-n", 3, tmp_path / "fixed", out="passed\n")


@pytest.mark.parametrize("interface, of_fortran", [("mpif.h", 2), ("mpi", 1), ("mpi_f08", 0)])
def test_tools_see_the_calls(interface, of_fortran, builder):
    program = builder.compile("gfortran", interface, "tooled", "counted.f90", "tool.f90", "tool.o", "tooled.F90")
    mpiexec("-n", 2, program, out=f"of Fortran {of_fortran}, of C 2\n")


def test_the_library_needs_no_run_time_of_a_compiler():
    p = run("readelf", "-d", DIST / "lib/libmpifort_abi.so.1")
    needed = re.findall(r"NEEDED.*\[(.*)\]", p.stdout)
    assert "libmpi_abi.so.1" in needed and not [n for n in needed if "fortran" in n.lower() or "flang" in n.lower()], needed


def test_interfaces_meet_in_one_program(tmp_path, builder):
    for name, text in {
        "a.f90": "subroutine a(comm)\n use mpi_f08\n type(MPI_Comm) :: comm\n call MPI_Comm_dup(MPI_COMM_WORLD, comm)\nend subroutine\n",
        "b.f90": "subroutine b(comm, size)\n use mpi\n integer :: comm, size, ierr\n call MPI_Comm_size(comm, size, ierr)\nend subroutine\n",
        "c.f": "      PROGRAM C\n      INCLUDE 'mpif.h'\n      INTEGER COMM, N, IERR\n      CALL MPI_INIT(IERR)\n      CALL A(COMM)\n"
               "      CALL B(COMM, N)\n      CALL MPI_COMM_FREE(COMM, IERR)\n      CALL MPI_FINALIZE(IERR)\n      PRINT '(I0)', N\n      END\n",
    }.items():
        (tmp_path / name).write_text(text)
    p = run(MPIFORT, "-o", tmp_path / "c", "a.f90", "b.f90", "c.f", cwd=tmp_path)
    assert p.returncode == 0, told(p)
    mpiexec("-n", 2, tmp_path / "c", out="2\n2\n")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_example(compiler, tmp_path, builder):
    env = need(compiler)
    p = run(MPIFORT, "-O2", "-o", tmp_path / "heat2d", ROOT / "examples/heat2d.f90", cwd=tmp_path, env=env)
    assert p.returncode == 0 and not [line for line in p.stderr.splitlines() if "making the modules" not in line], told(p)
    for n in (1, 3, 4):
        p = mpiexec("-n", n, tmp_path / "heat2d")
        assert "as it must be" in p.stdout, told(p)


def test_a_compiler_that_is_not_there(tmp_path):
    p = run(MPIFORT, "x.f90", cwd=tmp_path, env={"KW_FC": "no-such-compiler"})
    assert p.returncode == 127 and "no compiler 'no-such-compiler'" in p.stderr and "gfortran" in p.stderr, told(p)


def test_a_compiler_that_cannot_compile_the_modules(tmp_path):
    compiler = tmp_path / "oldfortran"
    compiler.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Old Fortran 1.0' && exit\necho 'error: type(*) is new to me' >&2\nexit 1\n")
    compiler.chmod(0o755)
    p = run(MPIFORT, "x.f90", cwd=tmp_path, env={"KW_FC": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert p.returncode != 0 and "type(*) is new to me" in p.stderr and "cannot compile" in p.stderr, told(p)
    assert not list((tmp_path / "cache").rglob("*.mod")) and not list((tmp_path / "cache").rglob("*.*.*")), "something is left"


def test_a_module_of_another_compiler_is_named(tmp_path, builder):
    env = need("flang")
    (tmp_path / "mine.f90").write_text("module mine\n integer :: x = 1\nend module\n")
    (tmp_path / "main.f90").write_text("program main\n use mine\n use mpi_f08\n print *, x\nend program\n")
    assert run(MPIFORT, "-c", "mine.f90", cwd=tmp_path).returncode == 0
    p = run(MPIFORT, "-c", "main.f90", cwd=tmp_path, env=env)
    assert p.returncode != 0 and "mpifort: ./mine.mod is a GFORTRAN module" in p.stderr, told(p)
    assert run(MPIFORT, "-c", "mine.f90", cwd=tmp_path, env=env).returncode == 0
    p = run(MPIFORT, "-c", "main.f90", cwd=tmp_path)
    assert p.returncode != 0 and "mpifort: ./mine.mod is a flang module" in p.stderr, told(p)


def test_the_modules_of_a_compiler_are_made_once(tmp_path):
    env = {**need("flang"), "XDG_CACHE_HOME": str(tmp_path)}
    both = [subprocess.Popen([MPIFORT, "-showme:incdirs"], env={**subprocess.os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for _ in range(2)]
    outs = [p.communicate(timeout=300) for p in both]
    assert [p.returncode for p in both] == [0, 0] and outs[0][0] == outs[1][0], outs
    assert str(tmp_path) in outs[0][0], outs
    p = run(MPIFORT, "-showme:incdirs", env=env)
    assert p.stdout == outs[0][0] and not p.stderr, told(p)
    assert len([d for d in tmp_path.glob("kittiwake/*/*")]) == 1, list(tmp_path.glob("kittiwake/*/*"))


def test_the_tree_may_be_moved(tmp_path, builder):
    moved = tmp_path / "moved tree"
    shutil.copytree(DIST, moved, symlinks=True)
    p = run(moved / "bin/mpifort", "-o", tmp_path / "heat2d", ROOT / "examples/heat2d.f90", cwd=tmp_path)
    assert p.returncode == 0, told(p)
    p = run(moved / "bin/mpiexec", "-n", 2, tmp_path / "heat2d")
    assert p.returncode == 0 and "as it must be" in p.stdout, told(p)
