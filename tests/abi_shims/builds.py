"""Programs of another ABI without that library: a mpi.h, a mpif.h and a module mpi_f08 that apigen
writes from the table of the ABI, and ours in the libraries' place."""

import functools
import os
import subprocess

from jobs import DIST, ROOT, apigen

LIBRARIES = {"mpich": DIST / "lib/mpich/libmpi.so.12", "openmpi": DIST / "lib/openmpi/libmpi.so.40"}
FORTRAN = {
    "mpich": DIST / "lib/mpich/libmpifort.so.12",
    "openmpi": DIST / "lib/openmpi/libmpi_mpifh.so.40",
}
F08 = FORTRAN["openmpi"].with_name("libmpi_usempif08.so.40")
STATUS_SIZE = {"mpich": 5, "openmpi": 6}
# mpif.h declares no buffers, so a scalar and an array may stand in the same place
GFORTRAN = [
    "-O1",
    "-cpp",
    "-w",
    "-fallow-argument-mismatch",
    "-ffree-line-length-none",
    "-fcray-pointer",
]


def put(file, text, mode=0o644):
    """Writes a file if it is not there, whole: another step may be about to read or run it. What is
    the same stays as old as it is."""
    if file.exists() and file.read_text() == text:
        return
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_text(text)
    new.chmod(mode)
    new.replace(file)


def link(at, to):
    """Makes a symbolic link, for another step that may be about to use it, too."""
    if at.is_symlink() and at.readlink() == to:
        return
    new = at.with_name(f"{at.name}.{os.getpid()}")
    new.symlink_to(to)
    new.replace(at)


def generated(file, what, abi):
    """Writes what apigen says."""
    put(file, apigen(what, abi))


@functools.cache
def prefix(abi):
    """What `tests/run-c --mpi` takes for an installation: mpicc and mpifort for the other ABI, our
    mpiexec and kwinfo."""
    home = ROOT / "build/abi_shims" / abi
    for directory in ("bin", "include"):
        (home / directory).mkdir(parents=True, exist_ok=True)
    generated(home / "include/mpi.h", "abi-header", abi)
    generated(home / "include/mpif.h", "abi-mpif", abi)
    for name, compiler, library in [
        ("mpicc", "cc", LIBRARIES[abi]),
        ("mpifort", "gfortran", FORTRAN[abi]),
    ]:
        words = f'"-I{home}/include" "$@" "{library}" -Wl,--allow-shlib-undefined'
        put(home / "bin" / name, f"#!/bin/sh\nexec {compiler} {words}\n", 0o755)
    for name in ("mpiexec", "kwinfo"):
        link(home / "bin" / name, DIST / "bin" / name)
    return home


@functools.cache
def module():
    """The options with which gfortran finds a module mpi_f08 whose programs want of Open MPI's
    library what those want that were compiled with its own."""
    home = prefix("openmpi") / "f08"
    home.mkdir(exist_ok=True)
    generated(home / "mpi_f08.f90", "abi-f08", "openmpi")
    # it has interfaces and constants: there is nothing to link
    subprocess.run(["gfortran", "-w", "-fsyntax-only", home / "mpi_f08.f90"], cwd=home, check=True)
    return [f"-I{home}"]


def conditions(abi, interface):
    """For the preprocessor: which interface the programs of tests/fortran are compiled for, and
    whose."""
    return [
        *GFORTRAN,
        f"-D{interface}",
        "-DKW_FOREIGN",
        f"-DKW_STATUS_SIZE={STATUS_SIZE[abi]}",
        f"-I{ROOT / 'tests/fortran'}",
    ]
