"""The examples of dynamic processes: a task farm that starts its workers on demand, a server with
clients that come and go, two coupled programs in C and Fortran."""

import shutil
import subprocess

import pytest

from jobs import DIST, MPIEXEC, ROOT, WATCHDOG, run, dump, wait_until

FLAGS = ("-O1", "-Wall", "-Wextra", "-Werror")


def primes_below(most):
    sieve = bytearray([1]) * most
    sieve[:2] = b"\0\0"
    for n in range(2, int(most**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, most, n)))
    return sum(sieve)


@pytest.mark.parametrize("tasks, most, workers", [(1, 4, 1), (20, 3, 3), (7, 64, 2)])
def test_the_task_farm_starts_as_many_workers_as_there_is_work_for(program, tasks, most, workers):
    p = run(MPIEXEC, "-n", 1, program("examples/farm.c", *FLAGS), tasks, most)
    count = primes_below(20000 * tasks)
    wanted = f"{count} primes below {20000 * tasks}, counted by {workers} workers\n"
    assert p.returncode == 0 and p.stdout == wanted, dump(p)


def test_the_service_serves_clients_that_come_and_go(program, tmp_path, monkeypatch):
    monkeypatch.setenv("KW_NAMES", str(tmp_path / "names"))
    service = program("examples/service.c", *FLAGS)
    command = [MPIEXEC, "-n", "1", service, "serve", "square", "2"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    # clients look for ten seconds
    wait_until(lambda: list(tmp_path.glob("names/*")), "the service is not published")
    for ranks in (3, 1):
        p = run(MPIEXEC, "-n", ranks, service, "ask", "square", 5)
        wanted = {f"the square of {5 + r} is {(5 + r) ** 2}" for r in range(ranks)}
        assert p.returncode == 0 and set(p.stdout.splitlines()) == wanted, dump(p)
    out, _ = server.communicate(timeout=WATCHDOG)
    assert out == "client 0 had 3 processes\nclient 1 had 1 processes\n"
    assert server.returncode == 0


@pytest.mark.parametrize("airs, seas", [(1, 1), (2, 3)])
def test_programs_in_c_and_fortran_are_coupled(program, tmp_path, airs, seas):
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    sea = tmp_path / "coupled_sea"
    made = run(DIST / "bin/mpifort", "-o", sea, ROOT / "examples/coupled_sea.f90", cwd=tmp_path)
    assert made.returncode == 0, dump(made)
    p = run(MPIEXEC, "-n", airs, program("examples/coupled_air.c", *FLAGS), sea, seas, 4)
    # Both sides lose a tenth of the difference, 10 degrees at the start, every step.
    air = 15 - 5 * 0.8**4
    wanted = f"after 4 steps the air has {air:.3f} degrees, the sea {30 - air:.3f}\n"
    assert p.returncode == 0 and p.stdout == wanted, dump(p)
