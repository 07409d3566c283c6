"""Jobs that were started apart meet by a published name; what they refuse."""

import subprocess

import pytest

from jobs import MPIEXEC, WATCHDOG, run, dump

PATHS = ["self,shm,tcp", "self,tcp"]


@pytest.fixture
def meets(program):
    return program("tests/processes/meets.c", "-O1", "-Wall")


def serve(meets, ranks, clients, env):
    """A job that waits for clients; returns when its name is published."""
    command = [MPIEXEC, "-n", str(ranks), meets, "serve", "ocean", str(clients)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert server.stdout.readline() == "ready\n"
    return server


@pytest.fixture
def names(tmp_path, monkeypatch):
    monkeypatch.setenv("KW_NAMES", str(tmp_path / "names"))
    return tmp_path / "names"


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_jobs_that_were_started_apart_meet(meets, names, paths, ranks, monkeypatch):
    monkeypatch.setenv("KW_PATHS", paths)
    server = serve(meets, 2, 2, None)
    for _ in range(2):
        p = run(MPIEXEC, "-n", ranks, meets, "call", "ocean")
        assert p.returncode == 0 and p.stdout == "met 2\n", dump(p)
    rest, _ = server.communicate(timeout=WATCHDOG)
    assert server.returncode == 0 and rest == f"met {ranks}\n" * 2, rest
    assert not list(names.iterdir()), "a name stays published"


def test_a_name_that_nobody_has_published_ends_the_job_with_a_sentence(meets, names):
    p = run(MPIEXEC, "-n", 1, meets, "call", "ocean")
    assert p.returncode != 0
    assert "no service of this name is published" in p.stderr, dump(p)


def test_names_are_for_their_user_alone(meets, names):
    server = serve(meets, 1, 1, None)
    assert names.stat().st_mode & 0o077 == 0
    assert all(f.stat().st_mode & 0o077 == 0 for f in names.iterdir())
    assert run(MPIEXEC, "-n", 1, meets, "call", "ocean").returncode == 0
    assert server.wait(timeout=WATCHDOG) == 0


def test_jobs_that_compare_calls_and_jobs_that_do_not_refuse_each_other(meets, names, monkeypatch):
    server = serve(meets, 1, 1, None)
    monkeypatch.setenv("KW_CHECK", "yes")
    p = run(MPIEXEC, "-n", 1, meets, "call", "ocean")
    assert p.returncode != 0 and "same KW_CHECK" in p.stderr, dump(p)
    server.communicate(timeout=WATCHDOG)
    assert server.returncode != 0


def test_jobs_without_a_network_say_so(meets, names, monkeypatch):
    server = serve(meets, 1, 1, None)
    monkeypatch.setenv("KW_PATHS", "self,shm")
    p = run(MPIEXEC, "-n", 1, meets, "call", "ocean")
    assert p.returncode != 0 and "KW_PATHS allows none" in p.stderr, dump(p)
    server.kill()
    server.wait()
