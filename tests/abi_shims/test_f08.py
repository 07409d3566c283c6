"""Fortran programs with Open MPI's modules run unchanged on our libmpi_usempif08.so.40: the
conformance programs of tests/fortran, compiled with a module mpi_f08 that wants the same of the
library, and, where its package is installed, with Open MPI's own by its wrapper."""

import re
import shutil

import pytest

import calls
from builds import F08, FORTRAN, LIBRARIES, conditions, module, prefix
from jobs import ROOT, mpiexec, run, dump

SOURCES = ROOT / "tests/fortran"
CHAPTERS = [*calls.CHAPTERS, "modern"]
# What Open MPI 4's own modules can compile: the others use sessions, MPI_ABI_VERSION or texts that
# are shorter than its names. And with its module mpi gfortran does not see that a variable whose
# address MPI has got changes.
BOTH = ["point", "complete", "numbers", "collectives", "forms", "attributes", "topologies"]
WITH_ITS_OWN = {"KW_F08": [*BOTH, "plain"], "KW_MPI": [*BOTH, "datatypes", "callbacks", "rest"]}
WRAPPER = "mpif90.openmpi"  # Debian's name: the package libopenmpi-dev
LIBRARY = "/usr/lib/x86_64-linux-gnu/libmpi_{}.so.40"


def link(place, name, words):
    p = run(*words, "-o", place / name, cwd=place, timeout=300)
    assert p.returncode == 0, dump(p)
    return place / name


def needed(program):
    return re.findall(r"NEEDED.*\[(libmpi.*)\]", run("readelf", "-d", program).stdout)


def ours(place, name, *sources):
    """A program with the module that apigen writes."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    libraries = [F08, LIBRARIES["openmpi"], "-Wl,--allow-shlib-undefined"]
    return link(
        place, name, ["gfortran", *module(), *conditions("openmpi", "KW_F08"), *sources, *libraries]
    )


def theirs(place, name, *words, interface="KW_F08"):
    """A program that Open MPI's own wrapper compiles."""
    if not shutil.which(WRAPPER):
        pytest.skip(f"{WRAPPER} is not installed")
    return link(place, name, [WRAPPER, *conditions("openmpi", interface), *words])


@pytest.fixture(scope="module")
def crossing(tmp_path_factory):
    made = tmp_path_factory.mktemp("crossing") / "crossing.o"
    assert (
        run(
            "cc", f"-I{prefix('openmpi')}/include", "-O1", "-c", "-o", made, SOURCES / "crossing.c"
        ).returncode
        == 0
    )
    return made


def programs(chapters):
    return [SOURCES / f"{name}.F90" for name in ["checks", *chapters, "suite"]]


@pytest.fixture(scope="module")
def suite(tmp_path_factory, crossing):
    return ours(tmp_path_factory.mktemp("ours"), "suite", *programs(CHAPTERS), crossing)


@pytest.fixture(scope="module")
def debian(tmp_path_factory, crossing):
    """debian(INTERFACE): what Open MPI 4 has not, the program finds in ours; the chapters that
    cannot be compiled are empty."""
    made = {}

    def get(interface):
        if interface not in made:
            place, chapters = tmp_path_factory.mktemp("theirs"), WITH_ITS_OWN[interface]
            absent = [chapter for chapter in CHAPTERS if chapter not in chapters]
            (place / "absent.f90").write_text(
                "".join(f"subroutine test_{chapter}\nend subroutine\n" for chapter in absent)
            )
            libraries = [
                LIBRARY.format("usempif08"),
                FORTRAN["openmpi"],
                LIBRARIES["openmpi"],
                "-Wl,--allow-shlib-undefined",
            ]
            order = sorted(chapters, key=CHAPTERS.index)  # one has a module for another
            made[interface] = theirs(
                place,
                "suite",
                *programs(order),
                "absent.f90",
                crossing,
                *libraries,
                interface=interface,
            )
        return made[interface]

    return get


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter(chapter, n, suite):
    mpiexec("-n", n, suite, chapter, out="passed\n")


@pytest.mark.parametrize(
    "interface, chapter",
    [(i, chapter) for i, chapters in WITH_ITS_OWN.items() for chapter in chapters],
)
def test_a_chapter_compiled_with_its_own_module(interface, chapter, debian):
    program = debian(interface)
    assert F08.name in needed(program)  # which has MPI_Sizeof of module mpi, too
    mpiexec("-n", 2, program, chapter, out="passed\n")


@pytest.mark.parametrize("kernel", ["cg", "mg"])
def test_a_kernel_of_nas_compiled_with_its_own_module(kernel, tmp_path):
    if not shutil.which(WRAPPER):
        pytest.skip(f"{WRAPPER} is not installed")
    p = run(
        ROOT / "apps/build",
        ROOT / "apps/nas",
        tmp_path,
        kernel,
        env={"MPIFC": WRAPPER, "FLAGS": "-O1"},
        timeout=300,
    )
    assert p.returncode == 0, dump(p)
    assert F08.name in needed(tmp_path / kernel)
    p = mpiexec("-n", 4, tmp_path / kernel, "S")
    assert p.stdout.splitlines()[-1] == "verified", dump(p)


def test_every_function_can_be_called_and_refuses_null_handles(tmp_path):
    text, numbers = calls.program()
    (tmp_path / "calls.F90").write_text(text)
    p = mpiexec("-n", 1, ours(tmp_path, "every_call", "calls.F90"))
    classes = dict(map(int, line.split()) for line in p.stdout.splitlines())
    assert len({numbers[number].name for number in classes}) > 300
    for number, got in classes.items():
        f = numbers[number]
        assert got != -1, f"{f.name} has not set ierror"
        assert got == 0 or number <= calls.FITS, f"{f.name} refuses fitting arguments: class {got}"
        assert got != 0 or number > calls.FITS or not calls.fails_without_handles(f), (
            f"{f.name} takes null handles"
        )


def test_what_the_modules_have_beside_procedures(tmp_path):
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    words = [
        "-fallow-argument-mismatch",
        "-w",
        f"-I{prefix('openmpi')}/include",
        ROOT / "tests/abi_shims/modules.f90",
        F08,
        LIBRARIES["openmpi"],
    ]
    # the last has copies of the library's variables
    for how in (["-fpie", "-pie"], ["-fno-pic", "-no-pie"]):
        program = link(
            tmp_path, "modules", ["gfortran", *how, *words, "-Wl,--allow-shlib-undefined"]
        )
        mpiexec("-n", 2, program, out="passed\n")


def test_a_program_gets_each_library_that_it_names(tmp_path):
    """Stubs with Open MPI's names in the libraries' place while it is linked."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    names = [
        "libmpi_usempif08.so.40",
        "libmpi_usempi_ignore_tkr.so.40",
        "libmpi_mpifh.so.40",
        "libmpi.so.40",
    ]
    (tmp_path / "stub.c").write_text(
        "void mpi_init_f08_(void) {}\nvoid mpi_finalize_f08_(void) {}\n"
    )
    for name in names:
        assert (
            run(
                "cc",
                "-shared",
                f"-Wl,-soname,{name}",
                "-o",
                tmp_path / name,
                "stub.c",
                cwd=tmp_path,
            ).returncode
            == 0
        )
    (tmp_path / "named.f90").write_text(
        "use mpi_f08\ncall MPI_Init()\ncall MPI_Finalize()\nprint '(a)', 'passed'\nend\n"
    )
    for some in (names, names[:1]):
        words = ["gfortran", *module(), "named.f90", "-Wl,--no-as-needed", *some]
        program = link(tmp_path, "named", words)
        assert needed(program) == some
        p = mpiexec("-v", "-n", 1, program)
        assert (
            p.stdout == "passed\n" and f"with libmpi.so.40 in {F08.parent.resolve()}" in p.stderr
        ), dump(p)


def test_what_its_own_wrapper_links(tmp_path):
    (tmp_path / "sized.f90").write_text(
        "use mpi\nreal :: x(2)\ninteger :: n, ierr\ncall MPI_Init(ierr)\n"
        "call MPI_Sizeof(x, n, ierr)\n"
        "call MPI_Finalize(ierr)\nprint '(i0)', n\nend\n"
    )
    program = theirs(tmp_path, "sized", "sized.f90")
    assert F08.name in needed(program)
    mpiexec("-n", 1, program, out="4\n")


def defined(library):
    return {
        line.split()[-1].split("@")[0]
        for line in run("nm", "-D", "--defined-only", library).stdout.splitlines()
    }


# what no program calls: inside Open MPI, one library calls it in another
INSIDE = re.compile(
    r"p?ompix?_\w+_f(08)?|ompi_intercept_extra_state_t_class|mpiext_pcollreq_mpifh_dummy|P?MPIX?_[A-Z]\w*_f(08)?"
)


@pytest.mark.parametrize("name", ["usempif08", "usempi_ignore_tkr", "mpifh"])
def test_its_own_library_has_no_name_that_ours_has_not(name):
    if not shutil.which(WRAPPER):
        pytest.skip("Open MPI's libraries are not installed")
    has = defined(LIBRARY.format(name))
    lacking = {n for n in has - defined(F08) if not INSIDE.fullmatch(n)}
    assert len(has) > 350 and not lacking, sorted(lacking)


def test_variables_are_as_long_as_its_own():
    """Programs that are not position-independent have copies of them."""
    if not shutil.which(WRAPPER):
        pytest.skip("Open MPI's libraries are not installed")

    def sizes(library):
        lines = map(str.split, run("nm", "-DS", "--defined-only", library).stdout.splitlines())
        return {w[3].split("@")[0]: int(w[1], 16) for w in lines if len(w) == 4 and w[2] in "BDR"}

    has, wanted = sizes(FORTRAN["openmpi"]), sizes(LIBRARY.format("usempif08"))
    assert len(wanted) > 200 and not {
        name for name, size in wanted.items() if has.get(name) != size
    }
