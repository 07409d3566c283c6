"""Programs with elevated privileges open no file and no library that
their caller names. As root only: a copy of a program with the set-user-id bit is started by another
user."""

import os
import pathlib
import subprocess
import tempfile

import pytest

from jobs import DIST, MPIEXEC, WATCHDOG

HERE = pathlib.Path(__file__).resolve().parent
NOBODY = 65534
SECRET = "the-first-line-of-a-file-that-only-root-may-read"
IGNORED = "runs with elevated privileges"


class Place:
    """A directory that everybody may enter, with the program, the library and the secret in it."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.chmod(0o755)
        self.program = self.directory / "program"
        self.library = self.directory / "named.so"
        self.secret = self.directory / "secret"
        mpicc = str(DIST / "bin/mpicc")
        subprocess.run([mpicc, "-o", self.program, HERE / "program.c"], check=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, HERE / "named.c"], check=True)
        self.secret.write_text(SECRET + "\n")
        self.secret.chmod(0o600)
        self.program.chmod(0o4755)

    def run(self, *words, **env):
        """Runs a command as another user: its status, and what it printed."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("KW_", "PMI"))}
        p = subprocess.run(
            [str(w) for w in words],
            env={**clean, **env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WATCHDOG,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
        return p.returncode, p.stdout


@pytest.fixture(scope="module")
def place():
    if os.geteuid() != 0:
        pytest.skip("only root can make a program that runs as another user")
    with tempfile.TemporaryDirectory(prefix="kw-setuid-") as directory:
        place = Place(directory)
        status, text = place.run(place.program, "rights")
        if (status, text) != (0, f"uid {NOBODY} rights 0\n"):
            pytest.skip(f"no set-user-id programs here: {text.strip()}")
        yield place


def untouched(text):
    assert "LOADED" not in text, f"the library that the caller named was loaded: {text}"
    assert SECRET not in text, f"the file that the caller named was shown: {text}"


def test_a_library_that_the_caller_names_is_not_loaded(place):
    for name in "KW_PMIX", "LD_PRELOAD":
        status, text = place.run(
            place.program, **{name: str(place.library)}, PMIX_NAMESPACE="job", PMIX_RANK="0"
        )
        untouched(text)
        assert status != 0 and "PMIx" in text, f"it says why there is no PMIx: {text}"


def test_the_first_line_of_a_file_is_not_printed(place):
    status, text = place.run(place.program, KW_COLL=f"@{place.secret}")
    untouched(text)
    assert status == 0 and "started, 1 of 1" in text, (
        f"the setting does not count, the program runs: {text}"
    )
    assert text.count(IGNORED) == 1 and "KW_COLL" in text, f"one sentence says so: {text}"


def test_the_figures_of_the_caller_are_not_used(place):
    cache = place.directory / "cache"
    cache.mkdir(mode=0o777, exist_ok=True)
    cache.chmod(0o777)
    at = {"XDG_CACHE_HOME": str(cache), "KW_LOG": "debug"}
    status, text = place.run(DIST / "bin/kwinfo", "--calibrate", "--no-verify", **at)
    assert status == 0 and "Saved in" in text, text
    status, text = place.run(place.program, **at)
    assert status == 0 and "built-in prices are used: a program with elevated privileges" in text, (
        text
    )


def test_the_file_of_a_secret_is_not_read(place):
    at = {
        "KW_RENDEZVOUS": "localhost:1",
        "KW_SIZE": "1",
        "KW_RANK": "0",
        "KW_KEY_FILE": str(place.secret),
    }
    status, text = place.run(place.program, **at)
    untouched(text)
    assert status != 0 and IGNORED in text and "KW_KEY" in text, text


def test_other_settings_count_and_launchers_reach_it(place):
    if place.run("test", "-x", MPIEXEC)[0] != 0:
        pytest.skip(f"another user cannot reach {MPIEXEC}")
    status, text = place.run(MPIEXEC, "-n", "2", place.program, KW_STATS="yes")
    assert status == 0 and text.count("started, 2 of 2") == 2 and "rank 1: " in text, text
