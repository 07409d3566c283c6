"""Programs of Debian's packages: those that are small (libraries for parallel files among them), or
all of packages.py where CLIENTS is `all` (`make debian`: 25 minutes, two gigabytes), or those that
CLIENTS names, with commas between."""

import functools
import os

import pytest

from jobs import MPIEXEC, ROOT
from packages import CLIENTS, FILES, SECONDS, each, ran, results, same, unpacked

WHICH = os.environ.get("CLIENTS", "small")
SMALL = ("netpipe", "mumps-d", *(client.name for client in FILES))
NAMES = SMALL if WHICH == "small" else WHICH.split(",")
CHOSEN = [client for client in CLIENTS if WHICH == "all" or client.name in NAMES]


@pytest.fixture(scope="session")
def work():
    return unpacked(CHOSEN, ROOT / "build/debian" / WHICH)


@pytest.mark.limit(3 * SECONDS)
@each(CHOSEN)
def test_it_computes_what_it_computes_under_its_own(client, n, work, tmp_path):
    same(client, n, work, tmp_path)


@pytest.fixture(scope="session")
def over_shared_memory(work, tmp_path_factory):
    """over_shared_memory(NAME): what the client has said of its files on four ranks; once."""
    clients = {client.name: client for client in FILES}

    @functools.cache
    def said(name):
        there = tmp_path_factory.mktemp("shared") / name
        env = {"LD_LIBRARY_PATH": str(work / "libs")}
        return ran(clients[name], work, there, [MPIEXEC, "-n", 4], env)

    return said


@pytest.mark.limit(3 * SECONDS)
@pytest.mark.parametrize(
    "client, paths",
    [
        pytest.param(client, paths, id=f"{client.name}-{paths}")
        for client in CHOSEN
        if client in FILES
        for paths in ("self,tcp", "self,udp")
    ]
    or [pytest.param(None, None, marks=pytest.mark.skip("no program for files was chosen"))],
)
def test_files_hold_the_same_over_a_network(client, paths, work, tmp_path, over_shared_memory):
    env = {"LD_LIBRARY_PATH": str(work / "libs"), "KW_PATHS": paths}
    other = ran(client, work, tmp_path / "other", [MPIEXEC, "-n", 4], env)
    shared = results(client, over_shared_memory(client.name))
    assert shared and results(client, other) == shared
