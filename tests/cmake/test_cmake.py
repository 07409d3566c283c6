"""CMake's FindMPI, pkg-config and the wrappers' questions, against the installation in $DIST."""

import pathlib
import shutil

import pytest

from jobs import DIST, run, dump

PROJECT = pathlib.Path(__file__).resolve().parent / "project"
FORTRAN = PROJECT.parent / "fortran"
gfortran = pytest.mark.skipif(
    not shutil.which("gfortran"),
    reason="gfortran is not installed (scripts/install-deps - fortran)",
)


def mpicc(*words, **how):
    return run(DIST / "bin/mpicc", *words, **how)


# the words by which wrappers show what they would run
SHOWING = [
    "-show",
    "-showme",
    "-compile_info",
    "-link_info",
    "-showme:compile",
    "-showme:link",
    "-showme:libdirs",
]


def good(*words, **how):
    """What a command prints that has ended well."""
    p = run(*words, **how)
    assert p.returncode == 0, dump(p)
    return p.stdout


@pytest.mark.parametrize("word", SHOWING)
def test_mpicc_names_the_installation(word):
    assert str(DIST) in mpicc(word).stdout


@gfortran
@pytest.mark.parametrize("name", ["mpifort", "mpif90", "mpif77"])
@pytest.mark.parametrize("word", SHOWING)
def test_mpifort_names_the_installation(name, word):
    assert str(DIST) in good(DIST / "bin" / name, word)


@gfortran
def test_mpifort_says_what_it_links_and_where_modules_are():
    mpifort = DIST / "bin/mpifort"
    assert good(mpifort, "-showme:libs").split() == ["mpifort_modules", "mpifort_abi", "mpi_abi"]
    include, modules = good(mpifort, "-showme:incdirs").split()
    assert (pathlib.Path(include) / "mpif.h").exists() and (
        pathlib.Path(modules) / "mpi_f08.mod"
    ).exists()
    assert good(mpifort, "-showme:version").startswith("mpifort (Kittiwake) ")
    assert good(mpifort, "-fc=gfortran-of-mine", "-showme:command").strip() == "gfortran-of-mine"
    assert "KW_FC" in good(mpifort, "-help")
    assert not [
        word for word in good(mpifort, "-c", "-show", "x.f90").split() if word.startswith("-l")
    ]


def test_mpicc_says_where_headers_are():
    assert mpicc("-showme:incdirs").stdout.strip() == f"{DIST}/include"


def test_a_compiler_that_is_not_there():
    p = mpicc("x.c", env={"KW_CC": "no-such-compiler"})
    assert p.returncode != 0 and "no compiler 'no-such-compiler'" in p.stderr, dump(p)


def test_compile_link_and_run(tmp_path):
    good(DIST / "bin/mpicc", "-c", "-o", tmp_path / "hello.o", PROJECT / "hello.c")
    good(DIST / "bin/mpicc", "-o", tmp_path / "hello", tmp_path / "hello.o")
    good(tmp_path / "hello")
    good(DIST / "bin/mpicxx", "-o", tmp_path / "hello++", PROJECT / "hello.cpp")
    good(tmp_path / "hello++")


def test_mpi_1_is_declared_when_asked_for_and_warned_of_with_its_successor(tmp_path):
    source = tmp_path / "mpi1.c"
    source.write_text("""#include <mpi.h>
int main(void) {
    static MPI_Datatype types[2] = {MPI_INT, MPI_UB};
    MPI_Aint extent;
    return MPI_Type_extent(types[0], &extent);
}
""")
    p = mpicc("-c", "-o", tmp_path / "mpi1.o", source)
    assert p.returncode != 0, f"MPI_UB is there unasked: {dump(p)}"
    p = mpicc("-mpi1", "-o", tmp_path / "mpi1", source)
    assert p.returncode == 0, dump(p)
    lines = [line for line in p.stderr.splitlines() if "deprecated" in line]
    for successor in ("MPI_Type_get_extent", "MPI_Type_create_resized"):
        assert any(f"use {successor}" in line for line in lines), dump(p)
    good(DIST / "bin/mpicxx", "-DMPI1_COMPAT", "-x", "c++", "-c", "-o", tmp_path / "mpi1.o", source)


def test_what_is_deprecated_is_warned_of_where_that_is_asked_for(tmp_path):
    source = tmp_path / "old.c"
    source.write_text("""#include <mpi.h>
int main(void) {
    void *value;
    int flag;
    return MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
}
""")
    p = mpicc("-c", "-o", tmp_path / "old.o", source)
    assert p.returncode == 0 and not p.stderr, dump(p)
    p = mpicc("-DKITTIWAKE_WARN_DEPRECATED", "-c", "-o", tmp_path / "old.o", source)
    warned = any(
        "deprecated" in line and "use MPI_Comm_get_attr" in line for line in p.stderr.splitlines()
    )
    assert p.returncode == 0 and warned, dump(p)


def test_the_tree_may_be_moved_and_commands_may_be_links(tmp_path):
    moved, link = tmp_path / "moved tree", tmp_path / "mpicc-link"
    shutil.copytree(DIST, moved, symlinks=True)
    link.symlink_to(moved / "bin/mpicc")
    assert f"{moved}/include" in good(link, "-showme:incdirs").splitlines()


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config(tmp_path):
    flags = good(
        "pkg-config",
        "--cflags",
        "--libs",
        "kittiwake",
        env={"PKG_CONFIG_PATH": f"{DIST}/lib/pkgconfig"},
    ).split()
    good("cc", "-o", tmp_path / "hello", PROJECT / "hello.c", *flags)
    good(tmp_path / "hello")


@gfortran
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_for_fortran(tmp_path):
    flags = good(
        "pkg-config",
        "--cflags",
        "--libs",
        "kittiwake-fortran",
        env={"PKG_CONFIG_PATH": f"{DIST}/lib/pkgconfig"},
    ).split()
    good("gfortran", "-o", tmp_path / "hello", FORTRAN / "hello.f90", *flags)
    good(tmp_path / "hello")


@gfortran
@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
@pytest.mark.parametrize("before", ["nothing", "modules of another version"])
def test_pkg_config_for_a_gfortran_installed_later(tmp_path, before):
    there, description = tmp_path / "installed", "lib/pkgconfig/kittiwake-fortran.pc"
    shutil.copytree(DIST, there, symlinks=True)
    (there / description).unlink()
    if before == "nothing":
        shutil.rmtree(there / "lib/fortran")
    else:
        for stamp in (there / "lib/fortran").glob("*/stamp"):
            stamp.write_text("older\n")
            (stamp.parent / "mpi_f08.mod").write_text("no module")
    good(there / "bin/mpifort", "-show")
    assert (there / description).read_text() == (DIST / description).read_text()
    env = {"PKG_CONFIG_PATH": str(there / "lib/pkgconfig")}
    flags = good("pkg-config", "--cflags", "--libs", "kittiwake-fortran", env=env).split()
    good("gfortran", "-o", tmp_path / "hello", FORTRAN / "hello.f90", *flags)
    good(tmp_path / "hello")
    p = run(there / "bin/mpifort", "-show")
    assert p.returncode == 0 and not p.stderr, dump(p)


@gfortran
@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake_finds_all_three_interfaces_of_fortran(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{DIST}/bin", prepend=":")
    good("cmake", "-S", FORTRAN, "-B", tmp_path)
    assert str(DIST) in (tmp_path / "CMakeCache.txt").read_text(), "CMake found another MPI"
    good("cmake", "--build", tmp_path)
    good("ctest", "--test-dir", tmp_path)


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_cmake_finds_it_builds_and_tests(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{DIST}/bin", prepend=":")
    good("cmake", "-S", PROJECT, "-B", tmp_path)
    assert str(DIST) in (tmp_path / "CMakeCache.txt").read_text(), "CMake found another MPI"
    good("cmake", "--build", tmp_path)
    good("ctest", "--test-dir", tmp_path)
