"""Environments of Python with packages of the index. A test that wants one is skipped where the
index cannot be reached."""

import re
import subprocess
import sys

import pytest

from jobs import ROOT, run, dump

MPI4PY = (
    "mpi4py==" + re.search(r"^version=(.*)$", (ROOT / "tests/mpi4py/setup").read_text(), re.M)[1]
)
# what pip warns of when nothing answers
UNREACHABLE = re.compile(r"broken by '\w*(Connection|Timeout|ProxyError|NameResolution)")


def pip(commands, *words):
    """Runs the pip that lies in this directory of commands."""
    p = run(
        commands / "python", "-m", "pip", "--disable-pip-version-check", "-q", *words, timeout=300
    )
    if p.returncode != 0 and UNREACHABLE.search(p.stderr):
        pytest.skip(
            f"the index of Python's packages cannot be reached: {p.stderr.strip().splitlines()[-1]}"
        )
    assert p.returncode == 0, dump(p)


def environment(place, *packages):
    """A fresh environment with these; its directory of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
    if packages:
        pip(place / "bin", "install", "--no-compile", "--only-binary", ":all:", *packages)
    return place / "bin"
