"""Builds the programs of this directory: each once, side by side, before the first test."""

import concurrent.futures
import os

import pytest

from builds import COMPILERS, INTERFACES, Builder, find


@pytest.fixture(scope="session")
def builder(tmp_path_factory):
    """Builds what most tests want, side by side; what does not compile is told by the tests that
    want it."""
    if not find("gfortran"):
        pytest.skip("gfortran is not installed")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    builder = Builder(tmp_path_factory.mktemp("fortran"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for compiler in filter(find, COMPILERS):
            for interface in INTERFACES:
                for what in ("suite", "every_call"):
                    builder.made[compiler, interface, what] = pool.submit(
                        getattr(builder, what), compiler, interface
                    )
    return builder


@pytest.fixture
def built(builder):
    """built(COMPILER, INTERFACE, PROGRAM): the path of a program of the session. Skips where there
    is no such compiler."""

    def get(compiler, interface, what):
        if not find(compiler):
            pytest.skip(f"{compiler} is not installed")
        return builder.made[compiler, interface, what].result()

    return get
