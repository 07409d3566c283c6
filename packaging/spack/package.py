"""Kittiwake for Spack: a virtual package `mpi`. Put this file into a repository of Spack as
packages/kittiwake/package.py, and the archive of `make sdist` where `spack install` is called."""

# ruff: noqa: F403, F405
import os

from spack.package import *

try:  # Spack 1.0 and later; before, it came with the line above
    from spack_repo.builtin.build_systems.generic import Package
except ImportError:
    pass


class Kittiwake(Package):
    """An MPI 5.0 library with the standard ABI for ordinary processors and ordinary Ethernet; runs
    programs that were compiled for MPICH, Intel MPI or Open MPI as they are."""

    license("Apache-2.0 OR MIT")
    manual_download = True
    url = f"file://{os.getcwd()}/kittiwake-0.1.0.tar.gz"

    version("0.1.0")

    provides("mpi@:5.0")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("gmake", type="build")

    executables = ["^kwinfo$"]

    @classmethod
    def determine_version(cls, exe):
        return Executable(exe)("--version", output=str, error=str).split()[-1]

    def install(self, spec, prefix):
        make("build")
        make("install", f"PREFIX={prefix}")

    def setup_run_environment(self, env):
        env.set("MPICC", self.prefix.bin.mpicc)
        env.set("MPICXX", self.prefix.bin.mpicxx)
        env.set("MPIFC", self.prefix.bin.mpifort)
        env.set("MPIF90", self.prefix.bin.mpifort)
        env.set("MPIF77", self.prefix.bin.mpifort)

    def setup_dependent_build_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
        # the wrappers call what Spack compiles the other package with
        module = dependent_spec.package.module
        for name, compiler in ("KW_CC", "spack_cc"), ("KW_CXX", "spack_cxx"), ("KW_FC", "spack_fc"):
            if hasattr(module, compiler):
                env.set(name, getattr(module, compiler))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = self.prefix.bin.mpicc
        self.spec.mpicxx = self.prefix.bin.mpicxx
        self.spec.mpifc = self.prefix.bin.mpifort
        self.spec.mpif77 = self.prefix.bin.mpifort
