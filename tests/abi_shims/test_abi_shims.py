"""Programs compiled for MPICH, Intel MPI or Open MPI run unchanged: the conformance programs of
tests/c, compiled with a mpi.h of that ABI, on our libmpi.so.12 and libmpi.so.40; what mpiexec puts
in front of which program, and what it refuses; mpi4py's stock wheel."""

import platform
import re
import subprocess
import sys

import pytest

from builds import LIBRARIES, prefix
from environments import MPI4PY, environment
from jobs import ROOT, mpiexec, run, dump

DIRECTORIES = [library.parent.resolve() for library in LIBRARIES.values()]
# the last has copies of the library's objects
BUILDS = [("mpich", ()), ("openmpi", ()), ("openmpi", ("-fno-pic", "-no-pie"))]


def build(abi, options, out):
    program = out / "foreign"
    p = run(
        prefix(abi) / "bin/mpicc",
        "-std=c99",
        "-Wall",
        "-Werror",
        *options,
        "-o",
        program,
        ROOT / "tests/abi_shims/foreign.c",
    )
    assert p.returncode == 0, dump(p)
    return program


@pytest.fixture(scope="module", params=BUILDS, ids=["mpich", "openmpi", "openmpi fixed"])
def any_foreign(request, tmp_path_factory):
    """(ABI, program)"""
    abi, options = request.param
    return abi, build(abi, options, tmp_path_factory.mktemp("foreign"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return build("mpich", (), tmp_path_factory.mktemp("foreign"))


@pytest.mark.limit(880)  # many programs; a step may be silent for 900 s
@pytest.mark.parametrize("abi", LIBRARIES)
def test_conformance(abi):
    """The programs of tests/c that call functions which differ between ABIs (all of them in `make
    check-all`); -DSTRICT as for our own library."""
    p = run(
        ROOT / "tests/run-c",
        "--foreign",
        "--mpi",
        prefix(abi),
        "--smallest",
        "--build",
        ROOT / "build/abi_shims/c" / abi,
        timeout=870,
    )
    assert p.returncode == 0, p.stdout[-8000:] + p.stderr
    passed = re.search(r"(\d+) passed", p.stdout.splitlines()[-1])
    assert int(passed[1]) >= 60, p.stdout.splitlines()[-1]
    print(p.stdout.splitlines()[-1])


@pytest.mark.parametrize("abi", LIBRARIES)
def test_every_function_has_a_name_for_tools(abi):
    lines = run("nm", "-D", "--defined-only", LIBRARIES[abi]).stdout.splitlines()
    names = {name for _, kind, name in map(str.split, lines) if kind == "T"}
    functions = {name for name in names if re.match(r"MPIX?_[A-Z][a-z]", name)}
    assert len(functions) > 600 and not functions - {name[1:] for name in names}


def test_functions_are_called_back_with_their_own_handles(any_foreign):
    mpiexec("-n", 2, any_foreign[1], "callbacks", out="")


def test_handles_that_are_none_are_errors(any_foreign):
    abi, program = any_foreign
    kind = {
        "mpich": "(the program gave 0x4c000405: of another kind, or freed?",
        "openmpi": "(freed?",
    }[abi]
    constant = "(the program gave 0x101: a constant of another ABI"
    for what, why in (("standard", constant), ("number", constant), ("kind", kind)):
        p = mpiexec("-n", 1, program, what, status=None)
        assert p.returncode != 0 and "names no communicator " + why in p.stderr, dump(p)


def test_datatypes_beyond_mpi_work(any_foreign):
    mpiexec("-n", 2, any_foreign[1], "extensions", out="")


def test_an_operation_beyond_mpi_compares(any_foreign):
    mpiexec("-n", 2, any_foreign[1], "equal", out="")


def test_functions_beyond_mpi_say_that_they_are_not_there(any_foreign):
    p = mpiexec("-n", 1, any_foreign[1], "beyond", out="unsupported\n")
    assert "MPIX_Comm_agree is not an MPI function" in p.stderr, dump(p)


@pytest.mark.parametrize("name", ("libmpi.so.12", "libmpi.so.40"))
def test_a_function_that_no_library_of_ours_has_is_named_before_the_program_runs(linked, name):
    p = mpiexec("-n", 2, linked(name, beyond="MPIX_Of_tomorrow"), status=127)
    lacks = f"needs MPIX_Of_tomorrow, which Kittiwake's {name} does not define"
    assert p.stderr.count(lacks) == 1, dump(p)
    assert p.stderr.index("needs MPIX_Of_tomorrow") < p.stderr.index(
        "undefined symbol: MPIX_Of_tomorrow"
    ), dump(p)
    p = mpiexec("-n", 2, linked(name))
    assert "needs" not in p.stderr, dump(p)


def test_mpiexec_says_which_library_it_puts_in_front(any_foreign, program):
    abi, foreign = any_foreign
    p = mpiexec("-v", "-n", 1, foreign)
    library = LIBRARIES[abi]
    assert f", with {library.name} in {library.parent.resolve()}\n" in p.stderr, dump(p)
    p = mpiexec("-v", "-n", 1, program("tests/abi/swap.c", "-std=c99"))
    assert "libmpi.so." not in p.stderr, dump(p)


def test_the_library_of_the_environment_comes_behind_ours(foreign, tmp_path):
    (tmp_path / "libmpi.so.12").write_text("no library")
    mpiexec("-n", 2, foreign, "callbacks", env={"LD_LIBRARY_PATH": str(tmp_path)})
    p = mpiexec("-n", 1, "-env", "LD_LIBRARY_PATH", tmp_path, "sh", "-c", "echo $LD_LIBRARY_PATH")
    assert p.stdout == ":".join(map(str, [*DIRECTORIES, tmp_path])) + "\n", dump(p)


def test_without_mpiexec_there_is_one_rank(any_foreign):
    abi, program = any_foreign
    p = run(program, "callbacks", env={"LD_LIBRARY_PATH": str(LIBRARIES[abi].parent)})
    assert p.returncode == 0, dump(p)


@pytest.fixture
def linked(tmp_path):
    """linked(LIBRARY, OPTION...): a program that needs an MPI library of this name. One lies in
    tmp_path that is no MPI: with that one the program fails. `beyond`: a function that the program
    calls, too, and that only that library has."""

    def link(name, *options, beyond=None):
        source = "".join(
            (
                f"int {start}MPI_Init(int *a, char ***b) {{ return 1; }}\n"
                f"int {start}MPI_Finalize(void) {{ return 1; }}\n"
            )
            for start in ("", "P")
        ) + (f"int {beyond}(void) {{ return 0; }}\n" if beyond else "")
        call = f"""int MPI_Init(int *, char ***), MPI_Finalize(void), {beyond or "main"}(void);
int run(void) {{ return MPI_Init(0, 0) || MPI_Finalize(){f" || {beyond}()" if beyond else ""}; }}
int main(void) {{ return run(); }}
"""
        library, program = tmp_path / name, tmp_path / f"needs-{name}"
        words = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library, "-xc", "-"]
        subprocess.run(["cc", *words], input=source, text=True, check=True)
        inside = name == "inside.so"
        words = ["-o", program, "-xc", "-", *options] + ([] if inside else ["-xnone", library])
        subprocess.run(
            ["cc", *words], input=(source if inside else "") + call, text=True, check=True
        )
        return program

    return link


def test_what_cannot_be_served_is_refused(linked, tmp_path):
    mpiexec(
        "-n",
        2,
        linked("libmpi.so.20"),
        status=126,
        sentence="is linked with libmpi.so.20 of Open MPI, in whose place",
    )
    mpiexec(
        "-n",
        2,
        linked("libmpi_java.so.40"),
        status=126,
        sentence="needs libmpi_java.so.40, which this installation of Kittiwake does not",
    )
    mpiexec(
        "-n",
        2,
        linked("inside.so"),
        status=126,
        sentence="has an MPI library inside, linked statically",
    )


AUDITED = ("libmpi.so.12", "libmpi.so.40")


def without_glibc_2_35():
    name, version = platform.libc_ver()
    return name != "glibc" or tuple(map(int, version.split("."))) < (2, 35)


audited = pytest.mark.skipif(
    without_glibc_2_35(), reason="LD_AUDIT is used with glibc 2.35 and later"
)


def rpath(directory):
    return ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{directory}"]


@audited
@pytest.mark.parametrize("name", AUDITED)
def test_a_program_with_an_rpath(linked, tmp_path, name):
    program = linked(name, *rpath(tmp_path))
    assert run(program).returncode == 1
    p = mpiexec("-v", "-n", 2, program)
    assert "by LD_AUDIT" in p.stderr, dump(p)


@audited
@pytest.mark.parametrize("name", AUDITED)
def test_a_module_with_an_rpath(linked, tmp_path, name):
    # as the packages of Conda have them
    module = linked(name, "-shared", "-fPIC", *rpath(tmp_path))
    mpiexec(
        "-n",
        2,
        sys.executable,
        "-c",
        f"import ctypes; raise SystemExit(ctypes.CDLL('{module}').run())",
    )


@audited
@pytest.mark.parametrize("name", AUDITED)
def test_a_script_that_puts_its_libraries_first(linked, tmp_path, name):
    # as R does
    program = linked(name)
    mpiexec("-n", 2, "sh", "-c", f"LD_LIBRARY_PATH={tmp_path}:$LD_LIBRARY_PATH exec {program}")


@audited
@pytest.mark.parametrize("name", AUDITED)
def test_a_library_that_is_opened_by_its_path(linked, tmp_path, name):
    # as Julia does; the name without a version is a link, or follows one that is loaded already, as
    # in R
    linked(name)
    (tmp_path / "libmpi.so").symlink_to(f"{name}.3.4")
    (tmp_path / name).rename(tmp_path / f"{name}.3.4")
    for before in ("", f"ctypes.CDLL('{name}'); "):
        asked = "libmpi.so" if before else tmp_path / "libmpi.so"
        mpiexec(
            "-n",
            2,
            sys.executable,
            "-c",
            f"import ctypes; {before}m = ctypes.CDLL('{asked}'); "
            "raise SystemExit(m.MPI_Init(None, None) or m.MPI_Finalize())",
        )


@audited
def test_auditors_of_the_user_stay():
    p = mpiexec("-n", 1, "-env", "LD_AUDIT", "/no/such", "sh", "-c", "echo $LD_AUDIT", status=None)
    assert p.stdout.endswith("libkw_audit.so:/no/such\n"), dump(p)


def test_two_abis_in_a_process_are_found_out(any_foreign, tmp_path):
    abi, foreign = any_foreign
    own, other = LIBRARIES[abi].name, LIBRARIES["mpich" if abi == "openmpi" else "openmpi"]
    made = tmp_path / "libmpi.so.20"
    subprocess.run(
        ["cc", "-shared", "-Wl,-soname,libmpi.so.20", "-o", made, "-xc", "/dev/null"], check=True
    )
    for library in (made, other):
        p = mpiexec("-n", 1, foreign, status=None, env={"LD_PRELOAD": str(library)})
        sentence = r"this program uses both (\S+) and (\S+), whose"
        said = re.search(sentence, p.stderr)
        assert p.returncode != 0 and said and set(said.groups()) == {library.name, own}, dump(p)


def test_options_of_other_launchers(foreign):
    p = mpiexec(
        "--oversubscribe",
        "--mca",
        "btl",
        "self,vader",
        "-iface",
        "eth0",
        "-n",
        2,
        foreign,
        "callbacks",
        status=None,
    )
    said = [line for line in p.stderr.splitlines() if line.startswith("mpiexec: ")]
    assert p.returncode == 0 and said == [
        "mpiexec: --mca btl self,vader has no meaning here, and is ignored",
        "mpiexec: -iface eth0 has no meaning here, and is ignored",
    ], dump(p)


@pytest.fixture(scope="module")
def wheel():
    """A Python with mpi4py's stock wheel, which has a module for MPICH's ABI."""
    home = ROOT / "build/abi_shims/mpi4py"
    if not (home / MPI4PY).exists():
        environment(home, MPI4PY)
        (home / MPI4PY).touch()
    return home / "bin/python"


@pytest.mark.parametrize("abi", LIBRARIES)
def test_the_stock_wheel_of_mpi4py_finds_the_library(wheel, abi):
    code = (
        "from mpi4py import MPI, rc; import mpi4py; "
        "print(MPI.__file__.split('/')[-1].split('.')[1], MPI.Get_library_version().split()[0])"
    )
    env = {"MPI4PY_MPIABI": abi}
    p = mpiexec("-n", 2, wheel, "-c", code, status=0, env=env)
    assert p.stdout == f"{abi} Kittiwake\n" * 2, dump(p)
    p = mpiexec("-n", 3, wheel, "-m", "mpi4py.bench", "helloworld", env=env)
    assert len(p.stdout.splitlines()) == 3, dump(p)


def test_the_stock_wheel_of_mpi4py_knows_half_precision(wheel):
    code = (
        "from mpi4py import MPI; t = MPI.FLOAT16_T; "
        "a, b = bytearray(2), bytearray(2); a[:] = b'\\x00\\x3c'; "
        "MPI.COMM_WORLD.Allreduce([a, 1, t], [b, 1, t], MPI.SUM); "
        "print(t.Get_name(), t.Get_size(), b.hex())"
    )
    p = mpiexec("-n", 2, wheel, "-c", code, status=0, env={"MPI4PY_MPIABI": "mpich"})
    assert p.stdout == "MPIX_C_FLOAT16 2 0040\n" * 2, dump(p)
