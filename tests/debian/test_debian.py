"""Programs of Debian's packages: those that are small, or all of packages.py where CLIENTS is `all`
(`make debian`: 25 minutes, two gigabytes), or those that CLIENTS names, with commas between."""

import os

import pytest

from jobs import ROOT
from packages import CLIENTS, SECONDS, each, same, unpacked

WHICH = os.environ.get("CLIENTS", "small")
CHOSEN = [
    client
    for client in CLIENTS
    if WHICH == "all"
    or client.name in (("netpipe", "mumps-d") if WHICH == "small" else WHICH.split(","))
]


@pytest.fixture(scope="session")
def work():
    return unpacked(CHOSEN, ROOT / "build/debian" / WHICH)


@pytest.mark.limit(3 * SECONDS)
@each(CHOSEN)
def test_it_computes_what_it_computes_under_its_own(client, n, work, tmp_path):
    same(client, n, work, tmp_path)
