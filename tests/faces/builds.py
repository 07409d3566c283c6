"""Programs of another ABI without that library: a mpi.h, a mpif.h and a module mpi_f08 that apigen
writes from the table of the ABI, and ours in the libraries' place."""

import functools
import os
import subprocess

from jobs import DIST, ROOT, cargo

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


def generated(file, what, abi):
    """Writes what apigen says, if it is not there; what is the same stays as old as it is."""
    # what the step `stage` has built needs no cargo, which other steps may keep waiting
    built = ROOT / "target" / os.environ.get("PROFILE", "checked") / "apigen"
    apigen = [built] if built.exists() else cargo("run", "-p", "kw-apigen", "--")
    made = subprocess.run(
        [*apigen, what, abi], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    if not file.exists() or file.read_text() != made:
        file.write_text(made)


@functools.cache
def prefix(abi):
    """What `tests/run-c --mpi` takes for an installation: mpicc and mpifort for the other ABI, our
    mpiexec and kwinfo."""
    home = ROOT / "build/faces" / abi
    for directory in ("bin", "include"):
        (home / directory).mkdir(parents=True, exist_ok=True)
    generated(home / "include/mpi.h", "abi-header", abi)
    generated(home / "include/mpif.h", "abi-mpif", abi)
    mpifort = home / "bin/mpifort"
    mpifort.write_text(
        f'#!/bin/sh\nexec gfortran "-I{home}/include" "$@" "{FORTRAN[abi]}" '
        "-Wl,--allow-shlib-undefined\n"
    )
    mpifort.chmod(0o755)
    mpicc = home / "bin/mpicc"
    mpicc.write_text(
        f'#!/bin/sh\nexec cc "-I{home}/include" "$@" "{LIBRARIES[abi]}" '
        "-Wl,--allow-shlib-undefined\n"
    )
    mpicc.chmod(0o755)
    for name in ("mpiexec", "kwinfo"):
        link = home / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(DIST / "bin" / name)
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
