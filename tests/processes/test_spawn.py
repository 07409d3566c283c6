"""Processes that are spawned: what is refused and how soon, what is left behind, which processes
end together, and what hang reports say of several jobs."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from jobs import DIST, LIMITS, MPIEXEC, WATCHDOG, run, dump, wait_until

PATIENCE = {"KW_CONNECT_WAIT": "1"}


@pytest.fixture
def spawns(program):
    return program("tests/processes/spawns.c", "-O1", "-Wall", "-pthread")


@pytest.fixture
def no_program(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program\n")
    return {
        "missing": (tmp_path / "missing", str(tmp_path / "missing")),
        "not executable": (plain, str(plain)),
        "dies early": ("/bin/false", "exited with status 1"),
    }


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("what", ["missing", "not executable", "dies early"])
def test_what_cannot_be_spawned_has_a_class_and_a_sentence(spawns, no_program, what, ranks):
    command, sentence = no_program[what]
    p = run(MPIEXEC, "-n", ranks, spawns, "class", command)
    assert p.returncode == 0, dump(p)
    wanted = [f"{rank}: spawn" for rank in range(ranks)] + ["2 codes"] * ranks
    assert sorted(p.stdout.splitlines()) == sorted(wanted), dump(p)
    assert sentence in p.stderr, dump(p)


def test_a_host_that_is_not_there_has_a_class_and_a_sentence(spawns):
    p = run(MPIEXEC, "-n", 1, spawns, "class", spawns, "no-such-host.invalid")
    assert p.returncode == 0 and "0: spawn" in p.stdout, dump(p)
    assert "no-such-host.invalid" in p.stderr, dump(p)


def test_soft_starts_the_largest_number_of_its_set_and_codes_tell_which_were_left_out(spawns):
    p = run(MPIEXEC, "-n", 2, spawns, "keys", 4, "soft", "1:9:2,7")
    assert p.returncode == 0 and "3 processes," in p.stdout, dump(p)
    for rank in range(2):
        assert f"{rank}: ok ok ok spawn\n" in p.stdout, dump(p)


def test_a_set_of_soft_that_has_no_number_is_an_error_on_all_ranks(spawns):
    p = run(MPIEXEC, "-n", 2, spawns, "keys", 4, "soft", "5:9")
    assert p.returncode == 0, dump(p)
    for rank in range(2):
        assert re.search(
            rf"{rank}: info value, .*soft \('5:9'\) allows no number of processes from 1 to 4",
            p.stdout,
        ), dump(p)


def test_the_file_of_info_keys_is_read_and_the_info_counts_more(spawns, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# of the child\nwdir = /nowhere\nenv = A=one\nenv = B=two words\nsoft=1\n")
    p = run(MPIEXEC, "-n", 1, spawns, "keys", 2, "file", keys, "wdir", tmp_path)
    assert p.returncode == 0, dump(p)
    assert f"1 processes, {cpus()} CPUs, in {tmp_path}, A=one, B=two words\n" in p.stdout, dump(p)
    missing = tmp_path / "missing"
    p = run(MPIEXEC, "-n", 1, spawns, "keys", 2, "file", missing)
    assert "info value, " in p.stdout and f"the file '{missing}' of the info key file" in p.stdout


def cpus():
    return len(os.sched_getaffinity(0))


@pytest.mark.parametrize("keys", [["bind_to", "thread"], ["map_by", "hwthread"]])
def test_keys_that_bind_do_so(spawns, keys):
    p = run(MPIEXEC, "--bind", "none", "-n", 1, spawns, "keys", 1, *keys)
    assert p.returncode == 0 and "1 processes, 1 CPUs" in p.stdout, dump(p)


def test_the_keys_of_other_libraries_name_hosts_and_variables(spawns, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=3\n")
    p = run(
        MPIEXEC, "-n", 1, spawns, "keys", 2, "hostfile", hosts, "npernode", 2, "env", "A=1\nB=2"
    )
    assert p.returncode == 0, dump(p)
    assert re.search(r"2 processes, \d+ CPUs, in .*, A=1, B=2\n", p.stdout), dump(p)
    p = run(MPIEXEC, "-n", 1, spawns, "keys", 2, "hostfile", tmp_path / "missing")
    assert p.returncode == 0 and f"{tmp_path}/missing" in p.stderr, dump(p)
    assert f"the host file '{tmp_path}/missing'" in p.stdout, "the error does not say the reason"


def test_spawned_jobs_are_recorded_as_their_parents_job_is(spawns, tmp_path):
    trace, profile = tmp_path / "trace", tmp_path / "profile"
    p = run(
        MPIEXEC,
        "--trace",
        trace,
        "--profile-json",
        profile,
        "-n",
        1,
        spawns,
        "keys",
        2,
        cwd=tmp_path,
    )
    assert p.returncode == 0, dump(p)
    both = r"job kw-\S+, spawned by rank 0 of job kw-\S+"
    assert "mpiexec: the profile:\n" in p.stderr, dump(p)
    assert re.search(rf"mpiexec: {both}: the profile:\n", p.stderr), dump(p)
    assert not list(tmp_path.glob("trace.*")), "a trace beside the one of both jobs"
    told_by_trace(trace, both)
    (child,) = tmp_path.glob("profile.*")
    assert "MPI_Barrier" in child.read_text()
    assert "MPI_Comm_spawn" in profile.read_text()


def told_by_trace(trace, both):
    """Rank 0 is the parent, ranks 1 and 2 are its children."""
    p = run(DIST / "bin/kwtrace", "summary", trace)
    page = " ".join(p.stdout.split())
    assert p.returncode == 0 and re.search(
        rf"Note: Ranks 1 to 2 are those of \S+ of {both}\. .*3 ranks ran for", page
    ), dump(p)
    p = run(DIST / "bin/kwtrace", "export", "--json", trace)
    assert p.returncode == 0, dump(p)
    called = {(call["rank"], call["function"]) for call in json.loads(p.stdout)["calls"]}
    assert (0, "MPI_Comm_spawn") in called and (1, "MPI_Comm_spawn") not in called, called
    assert {(rank, "MPI_Barrier") for rank in range(3)} <= called, called


def test_a_program_that_never_calls_init_is_ended(spawns, tmp_path):
    script, said = tmp_path / "forever", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\necho $$ > {said}\nexec sleep 1000\n")
    script.chmod(0o755)
    for seconds in LIMITS:
        p = run(MPIEXEC, "-n", 1, spawns, "class", script, env={"KW_CONNECT_WAIT": str(seconds)})
        assert p.returncode == 0 and "0: spawn" in p.stdout, dump(p)
        if said.exists() and said.read_text().endswith("\n"):
            break
    pid = int(said.read_text())
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "a process is left")


def test_ports_that_nobody_serves_have_a_class_and_a_sentence(spawns):
    p = run(MPIEXEC, "-n", 1, spawns, "port", env=PATIENCE)
    assert p.returncode == 0 and p.stdout == "0: port\n0: port\n", dump(p)


def test_a_port_that_is_closed_ends_the_accept_that_waits_there(spawns):
    p = run(MPIEXEC, "-n", 1, spawns, "shut")
    assert p.returncode == 0 and p.stdout == "0: port\n", dump(p)


def test_ranks_that_disagree_on_the_root_are_reported(spawns):
    p = run(MPIEXEC, "-n", 3, spawns, "roots")
    assert p.returncode == 0, dump(p)
    assert sorted(p.stdout.splitlines()) == ["0: root", "1: root", "2: root"], dump(p)


def test_spawning_in_a_loop_leaves_nothing(spawns):
    """In the rank and in its mpiexec. malloc keeps nothing of what threads have freed, so that what
    it has given out can be compared."""
    first, rounds = (400, 10_000) if os.environ.get("CHECK_ALL") else (10, 25)
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    p = run(MPIEXEC, "-n", 1, spawns, "loop", first, rounds, env=tunables, timeout=1800)
    assert p.returncode == 0, dump(p)
    found = re.fullmatch(
        r"rank: files (-?\d+), shared memory (-?\d+), kilobytes (-?\d+)\n"
        r"mpiexec: files (-?\d+), shared memory (-?\d+), kilobytes (-?\d+)\n"
        r"bytes (-?\d+)\n",
        p.stdout,
    )
    assert found, dump(p)
    files, shared, kb, their_files, their_shared, their_kb, allocated = map(int, found.groups())
    # The connection of the last child may still be open.
    assert files <= 3 and their_files <= 0, dump(p)
    assert shared <= 0 and their_shared <= 0, dump(p)
    # One allocation of each tenth round would be more than this in the long run.
    assert allocated < 32 << 10, dump(p)
    # Pages are counted as well, of which heaps of threads may touch another few.
    assert kb < 512 and their_kb < 256, dump(p)


def test_a_child_that_fails_ends_its_parent_and_both_jobs_are_named(spawns):
    p = run(MPIEXEC, "-n", 2, spawns, "child-fails")
    assert p.returncode == 7, dump(p)
    assert re.search(
        r"job kw-\S+ \(.*spawns\), which rank 0 of job kw-\S+ has spawned and is connected with, "
        "has failed",
        p.stderr,
    ), dump(p)


def test_a_child_that_fails_after_it_disconnected_does_not_end_its_parent(spawns):
    p = run(MPIEXEC, "-n", 1, spawns, "child-fails-apart")
    assert p.returncode == 0 and p.stdout == "the parent goes on\n", dump(p)


def child_of(p):
    return int(re.search(r"child (\d+)", p.stdout)[1])


def test_a_parent_that_fails_ends_its_child(spawns):
    p = run(MPIEXEC, "-n", 1, spawns, "parent-fails", "connected")
    assert p.returncode == 5, dump(p)
    child = child_of(p)
    wait_until(lambda: not pathlib.Path(f"/proc/{child}").exists(), "the child goes on")


def test_a_parent_that_fails_after_it_disconnected_does_not_end_its_child(spawns, tmp_path):
    out = tmp_path / "out"
    with out.open("w") as file:
        p = subprocess.Popen(
            [MPIEXEC, "-n", "1", spawns, "parent-fails", "apart"],
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    assert p.wait(timeout=WATCHDOG) == 5
    wait_until(lambda: "child" in out.read_text(), "the child has not begun")
    child = int(out.read_text().split()[1])
    assert pathlib.Path(f"/proc/{child}").exists()
    os.kill(child, signal.SIGKILL)


def test_a_hang_report_says_on_which_port_nobody_has_connected(spawns):
    said = (
        r"rank 0 is in MPI_Comm_accept.* and waits on port \S+:\d+\S*; no one has connected "
        r"for \d+ s"
    )
    for limit in LIMITS:
        p = run(MPIEXEC, "--timeout", limit, "-n", 2, spawns, "waits")
        assert p.returncode == 124, dump(p)
        if re.search(said, p.stderr):
            break
    assert re.search(said, p.stderr), dump(p)


def test_a_hang_report_covers_parent_and_child(spawns, tmp_path):
    err = tmp_path / "err"
    with err.open("w") as file:
        p = subprocess.Popen([MPIEXEC, "-n", "1", spawns, "child-waits"], stderr=file)
    pages = [
        r"a message of rank 0 of job kw-\S+, tag 3",
        r"rank 0 has spawned the job of mpiexec with process id \d+",
        r"job kw-\S+, spawned by rank 0 of job kw-\S+: where every rank is",
        r"a message of rank 0 of job kw-\S+, tag 0",
    ]

    asked = 0

    def told_all():
        nonlocal asked
        if err.read_text().count("mpiexec: where every rank is") == asked:
            # An mpiexec that has only just begun refuses.
            asked += run(DIST / "bin/kwinfo", "--job", p.pid).returncode == 0
        return all(re.search(page, err.read_text()) for page in pages)

    try:
        wait_until(told_all, "a page is missing")
    except AssertionError as e:
        raise AssertionError(f"{e}: asked {asked} times: {err.read_text()}") from None
    finally:
        p.terminate()
        p.wait(timeout=WATCHDOG)
