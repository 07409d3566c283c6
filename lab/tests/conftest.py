"""Libraries made of small shell scripts: a compiler that makes a program of one line, and a
launcher that behaves as told."""

import pytest

from kwlab import libraries, processes

LINE = (
    '{"bench": "p2p", "op": "pingpong", "mode": "send", "bytes": 8, "ranks": 2, "us": {"min": '
    '1, "median": 2, "low": 1, "high": 3, "batches": [2, 1, 3]}}'
)
COMPILER = (
    """#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho '"'%s'"'\\n' '"""
    + LINE
    + """' >"$2"
chmod +x "$2"
"""
)
# What the launcher does after its options.
BEHAVIOUR = {
    "fine": 'exec "$@"',
    "crashes": 'echo "rank 1: segmentation fault" >&2; exit 139',
    "breaks off": """printf '4.1, 5.2]}, "cpu1_us": {"min": 4\\n'; exit 1""",
    "hangs": "trap '' TERM; sleep 1000 & sleep 1000",
    "hangs later": '"$@"; exec sleep 1000',
    "is slow": 'while "$@"; do sleep 0.1; done',
    "tells its turns": 'while echo "# turn"; do sleep 0.1; done',
    "nonsense": "printf 'Assertion \\377\\376 ok\\n'",
    "broken line": 'echo \'{"bench": "p2p", "us": {"median": "quick"}}\'',
    "not a number": 'echo \'{"bench": "p2p", "us": NaN}\'',
    "silent": "true",
    "endless": "exec yes",
}


def script(path, text):
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def launcher(behaviour):
    """A launcher's text."""
    return (
        f'#!/bin/sh\n[ "$1" != --version ] || {{ echo "made of shell 1.0"; exit; }}\nshift 2\n'
        f"{BEHAVIOUR[behaviour]}\n"
    )


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """fake(name, behaviour): a library that behaves so."""
    monkeypatch.setattr(libraries, "WORK", tmp_path / "work")
    monkeypatch.setattr(processes, "KIND", 0.3)

    def make(name, behaviour):
        home = tmp_path / name
        compiler, run = script(home / "bin/mpicc", COMPILER), home / "bin/mpiexec"
        if behaviour != "missing":
            script(run, launcher(behaviour))
        return libraries.Library(name, compiler, run)

    return make
