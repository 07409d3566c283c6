"""Fortran: the conformance programs with each interface (mpi_f08, mpi, mpif.h) and compiler, every
function by a call, what compilers have to refuse, tools, the wrapper and the modules that it makes,
and the example."""

import gzip
import re
import shutil
import subprocess

import pytest

import calls
from builds import CHAPTERS, COMPILERS, HERE, INTERFACES, NOT_IN, find
from jobs import DIST, ROOT, mpiexec, run, dump

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


@pytest.mark.parametrize("interface", ["mpi_f08", "mpi"])
def test_sections_on_another_library_of_the_standard_abi(interface, built, tmp_path):
    """One that does not report its requests: what Fortran completes is written back, what C does is
    not."""
    text = (DIST / "lib/libmpi_abi.so.1").read_bytes()
    assert b"kw_MPI_Request_hook" in text
    (tmp_path / "libmpi_abi.so.1").write_bytes(
        text.replace(b"kw_MPI_Request_hook", b"no_MPI_Request_hook")
    )
    words = ["-genv", "LD_LIBRARY_PATH", tmp_path, "-n", 2, built("gfortran", interface, "suite")]
    mpiexec(*words, "sections", out="passed\n")
    p = run(DIST / "bin/mpiexec", *words, "completed_in_c")
    assert p.returncode == 1 and "MPI_Wait: the first receive" in p.stderr, dump(p)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("interface", INTERFACES)
def test_every_function_can_be_called_and_refuses_null_handles(compiler, interface, built, builder):
    p = mpiexec("-n", 1, built(compiler, interface, "every_call"))
    classes = dict(map(int, line.split()) for line in p.stdout.splitlines())
    names = {builder.numbers[number].name for number in classes}
    assert len(names) > (650 if interface == "mpi_f08" else 440) - len(calls.NOT_CALLED) - 140, len(
        names
    )
    for number, got in classes.items():
        f = builder.numbers[number]
        assert got != -1, f"{f.name} has not set ierror"
        if number > calls.FITS:
            assert got == 0, f"{f.name} refuses fitting arguments: class {got}"
        else:
            assert got != 0 or not calls.fails_without_handles(f), f"{f.name} takes null handles"


@pytest.mark.parametrize("interface", INTERFACES)
def test_every_built_function_is_called_with_fitting_arguments(interface, built, builder):
    """By a chapter's program (the linker's names that it wants), or by every_call."""
    lines = run(DIST / "bin/kwinfo", "--coverage").stdout.splitlines()
    functions = {f.name: f for f in calls.read()}
    there = {
        line.split()[1]
        for line in lines
        if re.match(rf"built .*[ ;]{re.escape(interface)}[ )]", line)
    }
    wanted = {
        line.split()[-1].split("@")[0]
        for line in run("nm", "-u", built("gfortran", interface, "suite")).stdout.splitlines()
    }
    called = {
        name for name in there if set(calls.linker_names(functions[name], interface)) & wanted
    }
    told_numbers = map(
        str.split, mpiexec("-n", 1, built("gfortran", interface, "every_call")).stdout.splitlines()
    )
    called |= {
        builder.numbers[int(number)].name for number, _ in told_numbers if int(number) > calls.FITS
    }
    # twins that nothing can tell from their bases are called as these
    called |= {
        name
        for name in there
        if (base := functions[name].twin_of) in called
        and calls.signature(functions[base]) == calls.signature(functions[name])
    }
    assert len(there) > 300
    print(f"{interface}: {len(called & there)} of {len(there)} called with fitting arguments")
    assert there <= called, sorted(there - called)


@pytest.mark.parametrize("interface", INTERFACES)
def test_an_abort(interface, built):
    p = mpiexec(
        "-n",
        2,
        built("gfortran", interface, "suite"),
        "abort",
        status=7,
        sentence="MPI_Abort was called with error code 7",
    )
    assert not p.stdout, dump(p)


def test_every_function_has_its_names_in_the_library():
    p = run("nm", "-D", "--defined-only", DIST / "lib/libmpifort_abi.so.1")
    names = {line.split()[-1] for line in p.stdout.splitlines()}
    functions = {f.name: f for f in calls.read()}
    for f in functions.values():
        twin_is_the_same = f.twin_of and calls.signature(f) == calls.signature(functions[f.twin_of])
        wanted = (
            []
            if twin_is_the_same
            else [name for interface in INTERFACES for name in calls.linker_names(f, interface)]
        )
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
    assert found == wanted, (
        f"{[lines[n - 1] for n in sorted(found - wanted)]} does not compile: {dump(p)}"
    )


def test_a_program_in_fixed_form(tmp_path, builder):
    p = run(
        DIST / "bin/mpif77",
        "-std=legacy",
        "-Wall",
        "-o",
        tmp_path / "fixed",
        HERE / "fixed.f",
        cwd=tmp_path,
    )
    assert p.returncode == 0 and "mpif.h" not in p.stderr, dump(p)
    mpiexec("-n", 3, tmp_path / "fixed", out="passed\n")


@pytest.mark.parametrize("interface, of_fortran", [("mpif.h", 2), ("mpi", 1), ("mpi_f08", 0)])
def test_tools_see_the_calls(interface, of_fortran, builder):
    program = builder.compile(
        "gfortran", interface, "tooled", "counted.f90", "tool.f90", "tool.o", "tooled.F90"
    )
    mpiexec("-n", 2, program, out=f"of Fortran {of_fortran}, of C 2\n")


def test_the_library_needs_no_run_time_of_a_compiler():
    p = run("readelf", "-d", DIST / "lib/libmpifort_abi.so.1")
    needed = re.findall(r"NEEDED.*\[(.*)\]", p.stdout)
    assert "libmpi_abi.so.1" in needed and not [
        n for n in needed if "fortran" in n.lower() or "flang" in n.lower()
    ], needed


def test_interfaces_meet_in_one_program(tmp_path, builder):
    for name, text in {
        "a.f90": (
            "subroutine a(comm)\n use mpi_f08\n type(MPI_Comm) :: comm\n"
            " call MPI_Comm_dup(MPI_COMM_WORLD, comm)\nend subroutine\n"
        ),
        "b.f90": (
            "subroutine b(comm, size)\n use mpi\n integer :: comm, size, ierr\n"
            " call MPI_Comm_size(comm, size, ierr)\nend subroutine\n"
        ),
        "c.f": "      PROGRAM C\n      INCLUDE 'mpif.h'\n      INTEGER COMM, N, IERR\n"
        "      CALL MPI_INIT(IERR)\n      CALL A(COMM)\n"
        "      CALL B(COMM, N)\n      CALL MPI_COMM_FREE(COMM, IERR)\n"
        "      CALL MPI_FINALIZE(IERR)\n      PRINT '(I0)', N\n      END\n",
    }.items():
        (tmp_path / name).write_text(text)
    p = run(MPIFORT, "-o", tmp_path / "c", "a.f90", "b.f90", "c.f", cwd=tmp_path)
    assert p.returncode == 0, dump(p)
    mpiexec("-n", 2, tmp_path / "c", out="2\n2\n")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_example(compiler, tmp_path, builder):
    env = need(compiler)
    p = run(
        MPIFORT,
        "-O2",
        "-o",
        tmp_path / "heat2d",
        ROOT / "examples/heat2d.f90",
        cwd=tmp_path,
        env=env,
    )
    assert p.returncode == 0 and not [
        line for line in p.stderr.splitlines() if "making the modules" not in line
    ], dump(p)
    for n in (1, 3, 4):
        p = mpiexec("-n", n, tmp_path / "heat2d")
        assert "as it must be" in p.stdout, dump(p)


def test_the_measuring_program_compares_each_pair_of_ways(tmp_path, builder):
    assert (
        run(DIST / "bin/mpicc", "-O2", "-c", ROOT / "bench/fortran.c", cwd=tmp_path).returncode == 0
    )
    p = run(MPIFORT, "-O2", "-o", "fortran", ROOT / "bench/fortran.f90", "fortran.o", cwd=tmp_path)
    assert p.returncode == 0 and not p.stderr, dump(p)
    p = mpiexec("-n", 2, tmp_path / "fortran", 2)
    assert len(re.findall(r"^ +\S.*(?: +[\d.]+){5}$", p.stdout, re.M)) == 4, dump(p)


def test_a_compiler_that_is_not_there(tmp_path):
    p = run(MPIFORT, "x.f90", cwd=tmp_path, env={"KW_FC": "no-such-compiler"})
    assert (
        p.returncode == 127
        and "no compiler 'no-such-compiler'" in p.stderr
        and "gfortran" in p.stderr
    ), dump(p)


def test_more_procedures_than_there_are_places_are_refused_in_a_sentence(tmp_path, builder):
    names = [f"operator_{n}" for n in range(129)]
    head = (
        "subroutine {}(a, b, n, t)\n use, intrinsic :: iso_c_binding\n"
        " use mpi_f08, only: MPI_Datatype\n type(c_ptr), value :: a, b\n"
        " integer :: n\n type(MPI_Datatype) :: t\nend subroutine\n"
    )
    calls = "".join(f" call made({name}, {number})\n" for number, name in enumerate(names, 1))
    (tmp_path / "many.f90").write_text(
        "module operators\ncontains\n"
        + "".join(map(head.format, names))
        + "end module\nprogram many\n use mpi_f08\n use operators\n"
        " integer :: ierr, class, length\n character(MPI_MAX_ERROR_STRING) :: text\n"
        " type(MPI_Op) :: op\n call MPI_Init()\n"
        " call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)\n"
        + calls
        + calls.splitlines()[0]
        + "\n call MPI_Finalize()\n"
        "contains\n subroutine made(operator, number)\n"
        "  procedure(MPI_User_function) :: operator\n  integer :: number\n"
        "  call MPI_Op_create(operator, .true., op, ierr)\n  if (ierr == MPI_SUCCESS) return\n"
        "  call MPI_Error_class(ierr, class)\n"
        "  call MPI_Error_string(ierr, text, length)\n"
        "  print '(i0, 1x, l1, 1x, a)', number, class == MPI_ERR_INTERN, trim(text)\n"
        " end subroutine\nend program\n"
    )
    assert run(MPIFORT, "-o", tmp_path / "many", "many.f90", cwd=tmp_path).returncode == 0
    p = mpiexec("-n", 1, tmp_path / "many")
    assert (
        p.stdout.startswith("129 T ")
        and "128 different procedures" in p.stdout
        and len(p.stdout.splitlines()) == 1
    ), dump(p)


@pytest.mark.parametrize(
    "wrapper, calls",
    [("mpicc", ["-c x.c"]), ("mpicxx", ["-c x.cc"]), ("mpifort", ["--version", "-c x.f90"])],
)
def test_a_wrapper_starts_nothing_but_the_compiler(wrapper, calls, tmp_path, builder):
    there = tmp_path / "bin"
    there.mkdir()
    command = (
        f"echo 'GNU Fortran (no such) {modules_of_gfortran()[0]}.1.0'; "
        f'echo "$*" >>{tmp_path}/calls'
    )
    for compiler in ("cc", "c++", "gfortran"):
        (there / compiler).write_text(f"#!/bin/sh\n{command}\n")
        (there / compiler).chmod(0o755)
    # nothing else can be found
    p = run(DIST / "bin" / wrapper, *calls[-1].split(), env={"PATH": str(there)}, cwd=tmp_path)
    assert p.returncode == 0 and not p.stderr, dump(p)
    lines = (tmp_path / "calls").read_text().splitlines()
    assert [line[: len(call)] for line, call in zip(lines, calls)] == calls and len(lines) == len(
        calls
    ), lines


def modules_of_gfortran():
    """The version of the gfortran that modules are installed for, and their directory."""
    there = next((DIST / "lib/fortran").glob("gfortran-*"), None)
    if not there:
        pytest.skip("no modules are installed for gfortran")
    return there.name.split("-")[1], there


@pytest.mark.parametrize("module, size", [("mpi", 800_000), ("mpi_f08", 1_100_000)])
def test_a_module_makes_public_only_what_programs_call(module, size, builder):
    text = gzip.decompress((modules_of_gfortran()[1] / f"{module}.mod").read_bytes()).decode()
    public = re.findall(r"'([^']*)'\s+0\s+\d+", text[text.rindex("\n(") :])
    assert len(public) > 300 and not [
        name for name in public if re.search("mpi_.*_(f08|f08ts|fts|ts_at|cptr|eq|ne)$", name)
    ], public
    # gfortran reads all of it for each file that it compiles
    assert len(text) < size


def test_a_compiler_that_cannot_compile_the_modules(tmp_path):
    compiler = tmp_path / "oldfortran"
    compiler.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Old Fortran 1.0' && exit\n"
        "echo 'error: type(*) is new to me' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    p = run(
        MPIFORT,
        "x.f90",
        cwd=tmp_path,
        env={"KW_FC": str(compiler), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert (
        p.returncode != 0 and "type(*) is new to me" in p.stderr and "cannot compile" in p.stderr
    ), dump(p)
    assert not list((tmp_path / "cache").rglob("*.mod")) and not list(
        (tmp_path / "cache").rglob("*.*.*")
    ), "something is left"


def test_a_module_of_another_compiler_is_named(tmp_path, builder):
    env = need("flang")
    (tmp_path / "mine.f90").write_text("module mine\n integer :: x = 1\nend module\n")
    (tmp_path / "main.f90").write_text(
        "program main\n use mine\n use mpi_f08\n print *, x\nend program\n"
    )
    assert run(MPIFORT, "-c", "mine.f90", cwd=tmp_path).returncode == 0
    p = run(MPIFORT, "-c", "main.f90", cwd=tmp_path, env=env)
    assert p.returncode != 0 and "mpifort: ./mine.mod is a GFORTRAN module" in p.stderr, dump(p)
    assert run(MPIFORT, "-c", "mine.f90", cwd=tmp_path, env=env).returncode == 0
    p = run(MPIFORT, "-c", "main.f90", cwd=tmp_path)
    assert p.returncode != 0 and "mpifort: ./mine.mod is a flang module" in p.stderr, dump(p)


def test_the_modules_of_a_compiler_are_made_once(tmp_path):
    env = {**need("flang"), "XDG_CACHE_HOME": str(tmp_path)}
    both = [
        subprocess.Popen(
            [MPIFORT, "-showme:incdirs"],
            env={**subprocess.os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outs = [p.communicate(timeout=300) for p in both]
    assert [p.returncode for p in both] == [0, 0] and outs[0][0] == outs[1][0], outs
    assert str(tmp_path) in outs[0][0], outs
    p = run(MPIFORT, "-showme:incdirs", env=env)
    assert p.stdout == outs[0][0] and not p.stderr, dump(p)
    assert len([d for d in tmp_path.glob("kittiwake/*/*")]) == 1, list(
        tmp_path.glob("kittiwake/*/*")
    )


def test_the_tree_may_be_moved(tmp_path, builder):
    moved = tmp_path / "moved tree"
    shutil.copytree(DIST, moved, symlinks=True)
    p = run(
        moved / "bin/mpifort", "-o", tmp_path / "heat2d", ROOT / "examples/heat2d.f90", cwd=tmp_path
    )
    assert p.returncode == 0, dump(p)
    p = run(moved / "bin/mpiexec", "-n", 2, tmp_path / "heat2d")
    assert p.returncode == 0 and "as it must be" in p.stdout, dump(p)
