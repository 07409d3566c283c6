"""mpiexec --trace: what stands in the file is what was called, sent and received, however the job
ends."""

import collections
import json
import re
import shutil
import signal
import sys

import pytest

from environments import MPI4PY, environment
from jobs import DIST, ROOT, hosts, mpiexec, run, dump
from packets import Trace

sys.path.insert(0, str(ROOT / "tests/abi_shims"))
from builds import FORTRAN, GFORTRAN, LIBRARIES, prefix  # noqa: E402

HERE = ROOT / "tests/trace"

# (source, dest, tag, bytes) of each message of calls.c, by the first two ranks in MPI_COMM_WORLD
MESSAGES = [(0, 1, 7, 12)] * 5 + [(0, 1, 8, 8), (1, 0, 40, 4)]
for me in (0, 1):
    for tag, amounts in {
        20: [16],
        21: [20],
        22: [24],
        23: [28],
        24: [4, 8, 12],
        25: [20],
        26: [24],
        27: [16],
        30: [28] * 3,
        31: [36] * 2,
        41: [4],
    }.items():
        MESSAGES += [(me, 1 - me, tag, amount) for amount in amounts]


def trace(tmp_path, *words, status=0, **more):
    """What stands in the trace of a job, and what mpiexec said."""
    file = tmp_path / "job.trace"
    p = mpiexec("--trace", file, *words, status=None, **more)
    assert p.returncode == status, dump(p)
    return Trace(file.read_bytes()), p


def sane(t, ranks):
    """What holds of every trace of a job that has ended."""
    assert sorted(t.processes) == ranks
    assert sorted(e["rank"] for e in t.ends) == ranks
    for c in t.calls:
        assert (c["rank"], c["thread"]) in t.threads, c
        assert "end" not in c or c["time"] <= c["end"], c
    for m in t.received:
        assert m["posted"] <= m["time"], m
        end = max(
            c["end"]
            for c in t.of(m["rank"])
            if c["thread"] == m["thread"] and c["time"] <= m["time"] and "end" in c
        )
        assert m["time"] == end, m


def joined(t):
    """Every arrow has both ends, and they say the same."""
    begins = {f: c for c in t.calls for f in c["flows"]}
    ends = {f: m for m in t.received for f in m["flows"]}
    # Clocks of several hosts are compared as well as they were measured.
    error = max(1000, sum(e["clock_error"] for e in t.ends))
    assert len(begins) == sum(len(c["flows"]) for c in t.calls)
    assert set(begins) == set(ends) and len(ends) == len(t.received)
    for flow, m in ends.items():
        c = begins[flow]
        assert c["rank"] == m["source"], (c, m)
        if not c["name"].startswith("MPI_Start"):
            assert (c["dest"], c["tag"], c["comm_id"]) == (m["rank"], m["tag"], m["comm_id"]), (
                c,
                m,
            )
            assert c["bytes"] == m["bytes"], (c, m)
        assert c["time"] <= m["time"] + error, (c, m, error)
    return begins, ends


def known(t):
    """The messages and calls of calls.c."""
    found = collections.Counter((m["source"], m["rank"], m["tag"], m["bytes"]) for m in t.received)
    assert found == collections.Counter(MESSAGES), found - collections.Counter(MESSAGES)
    joined(t)
    # an arrow for each message, of the kind of call that sends it
    assert [c["mode"] for c in t.of(0, "MPI_Ssend")] == ["synchronous"]
    assert [(c["dest"], c["tag"], c["bytes"]) for c in t.of(0, "MPI_Send")[:5]] == [(1, 7, 12)] * 5
    assert [c.get("source") for c in t.of(1, "MPI_Recv")] == [0, 0, 0, 0, -1, -1]
    assert [c["tag"] for c in t.of(1, "MPI_Recv")] == [7] * 5 + [-1]
    null = [c for c in t.of(0, "MPI_Send") if "dest" not in c]
    assert len(null) == 1 and null[0]["flows"] == []
    assert {c["requests"] for c in t.of(0, "MPI_Waitall")} == {8, 2}


def collectives(t, ranks):
    """Members agree on communicators and on which collective is which."""
    for rank in ranks:
        root = [(c["comm"], c["root"], c["bytes"]) for c in t.of(rank, "MPI_Bcast")]
        world = ("MPI_COMM_WORLD", 0, 24)
        assert root == ([("copy", 1, 24), world] if rank < 2 else [world]), root
    by_member = [
        [
            (c["name"], c["comm_id"], c["coll"])
            for c in t.of(r)
            if "coll" in c and c["comm"] != "copy"
        ]
        for r in ranks
    ]
    world = t.of(0, "MPI_Barrier")[0]["comm_id"]
    of_world = [[c for c in calls if c[1] == world] for calls in by_member]
    assert [c[0] for c in of_world[0]] == [
        "MPI_Comm_split",
        "MPI_Barrier",
        "MPI_Bcast",
        "MPI_Allreduce",
    ]
    assert [c[2] for c in of_world[0]] == [0, 1, 2, 3]
    assert all(calls == of_world[0] for calls in of_world)
    ids = {c["comm_id"] for c in t.calls if c.get("tag") in (40, 41)}
    assert len(ids) == 2 and world not in ids


def test_operations_on_windows_have_their_target_and_bytes(program, tmp_path):
    t, _ = trace(tmp_path, "-n", 2, program("tests/trace/windows.c", "-g"))
    sane(t, [0, 1])
    for name, length in {
        "MPI_Win_lock": 0,
        "MPI_Put": 24,
        "MPI_Accumulate": 64,
        "MPI_Win_flush": 0,
        "MPI_Win_unlock": 0,
    }.items():
        (call,) = t.of(1, name)
        assert (call["target"], call.get("bytes", 0), "dest" in call) == (0, length, False), call
    assert t.of(1, "MPI_Win_lock")[0]["mode"] == "exclusive"
    for rank in 0, 1:
        (get,) = t.of(rank, "MPI_Get")
        assert (get["target"], get["bytes"], get["flows"]) == (1 - rank, 16, []), get
        before, after = t.of(rank, "MPI_Win_fence")
        assert before["end"] <= get["time"] and get["end"] <= after["time"]
        assert "target" not in before and (before["coll"], after["coll"]) == (0, 1)
    # all of this is on one window, whose number differs from that of its communicator
    ids = {
        c["comm_id"] for c in t.calls if c["name"].startswith(("MPI_Win_", "MPI_Put", "MPI_Get"))
    }
    (created,) = {c["comm_id"] for c in t.calls if c["name"] == "MPI_Win_create"}
    assert len(ids - {created}) == 1, ids
    names = {c["comm"] for c in t.calls if c.get("comm_id") in ids - {created}}
    assert len(names) == 1 and re.fullmatch("window [0-9a-f]{4}", *names), names


@pytest.fixture(scope="module")
def calls(program):
    return program("tests/trace/calls.c", "-g")


def test_calls_and_messages(calls, tmp_path):
    t, p = trace(tmp_path, "-n", 2, calls)
    sane(t, [0, 1])
    known(t)
    collectives(t, [0, 1])
    assert all("end" in c for c in t.calls) and all(e["lost"] == 0 for e in t.ends)
    assert [(c["rank"], c["level"]) for c in t.phases] in ([(0, 2), (1, 2)], [(1, 2), (0, 2)])
    assert {c["name"] for c in t.calls if c["rank"] == 0} >= {
        "MPI_Init",
        "MPI_Finalize",
        "MPI_Cancel",
        "MPI_Mrecv",
    }
    send = next(
        n
        for n, line in enumerate((HERE / "calls.c").read_text().splitlines(), 1)
        if "MPI_Send(a, 3" in line
    )
    assert t.of(0, "MPI_Send")[0]["at"] == f"calls.c:{send} (blocking)"
    name, labels = t.processes[1]
    assert name.startswith("rank 1 on ") and str(calls) in labels
    assert p.stderr == "", dump(p)


def test_three_ranks(calls, tmp_path):
    """The third one is in the collectives only."""
    t, _ = trace(tmp_path, "--bind", "none", "-n", 3, calls)
    sane(t, [0, 1, 2])
    known(t)
    collectives(t, [0, 1, 2])


@pytest.mark.parametrize("abi", LIBRARIES)
def test_a_program_of_another_abi(abi, tmp_path):
    foreign = tmp_path / "calls"
    p = run(prefix(abi) / "bin/mpicc", "-g", "-o", foreign, HERE / "calls.c")
    assert p.returncode == 0, dump(p)
    t, _ = trace(tmp_path, "-n", 2, foreign)
    sane(t, [0, 1])
    known(t)
    collectives(t, [0, 1])


def test_threads(program, tmp_path):
    t, _ = trace(
        tmp_path, "--bind", "none", "-n", 2, program("tests/trace/threads.c", "-g", "-pthread")
    )
    sane(t, [0, 1])
    joined(t)
    for rank in (0, 1):
        assert len({t.threads[c["rank"], c["thread"]] for c in t.of(rank, "MPI_Send")}) == 3
        assert (
            len(t.of(rank, "MPI_Send"))
            == len([m for m in t.received if m["rank"] == rank])
            == 3 * 50
        )


@pytest.fixture
def gfortran():
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")


def fortran(t):
    sane(t, [0, 1])
    joined(t)
    got = sorted((m["source"], m["rank"], m["tag"], m["bytes"]) for m in t.received)
    assert got == sorted([(0, 1, 3, 40)] * 4 + [(0, 1, 4, 8), (1, 0, 4, 8)])
    assert t.of(0, "MPI_Send")[0]["at"].startswith("calls.F90:")


def test_fortran(gfortran, program, tmp_path):
    t, _ = trace(
        tmp_path, "-n", 2, program("tests/trace/calls.F90", "-g", compiler=DIST / "bin/mpifort")
    )
    fortran(t)


@pytest.mark.parametrize("abi", FORTRAN)
def test_fortran_of_another_abi(abi, gfortran, tmp_path):
    foreign = tmp_path / "calls"
    p = run(
        prefix(abi) / "bin/mpifort",
        *GFORTRAN,
        "-g",
        "-o",
        foreign,
        HERE / "calls.F90",
        LIBRARIES[abi],
        cwd=tmp_path,
    )
    assert p.returncode == 0, dump(p)
    t, _ = trace(tmp_path, "-n", 2, foreign)
    fortran(t)


def test_python(tmp_path):
    """Its MPI is opened by an extension, so that nothing else finds it."""
    python = environment(tmp_path / "venv", MPI4PY) / "python"
    script = (
        "from mpi4py import MPI\nc = MPI.COMM_WORLD\nprint(c.sendrecv('hello', 1 - c.rank, 3, "
        "None, 1 - c.rank, 3))"
    )
    t, _ = trace(
        tmp_path, "-n", 2, python, "-c", script, env={"LD_LIBRARY_PATH": str(DIST / "lib")}
    )
    joined(t)
    assert sorted((m["source"], m["rank"], m["tag"]) for m in t.received) == [(0, 1, 3), (1, 0, 3)]


def test_a_rank_that_is_killed(calls, tmp_path):
    t, _ = trace(tmp_path, "-n", 2, calls, "kill", status=128 + signal.SIGKILL)
    sane(t, [0, 1])
    begins, ends = joined(t)
    assert len(ends) == 6
    assert [c["name"] for c in t.of(1) if "end" not in c] == ["MPI_Reduce_local"]
    assert len([c for c in t.of(0) if "end" not in c]) <= 1


def test_a_rank_that_exits(calls, tmp_path):
    t, _ = trace(tmp_path, "-n", 2, calls, "exit", status=5)
    assert len(t.received) <= 6 and t.of(0, "MPI_Send")


def test_a_file_that_is_torn(calls, tmp_path):
    trace(tmp_path, "-n", 2, calls)
    data = (tmp_path / "job.trace").read_bytes()
    whole = Trace(data)
    half = Trace(data[: len(data) // 2])
    assert 0 < half.packets < whole.packets and half.calls[0] | {"end": 0} == whole.calls[0] | {
        "end": 0
    }


def test_rings_that_are_full_lose_events_and_count_them(calls, tmp_path):
    """However fast they are emptied: what is there and what is lost are all."""
    t, _ = trace(tmp_path, "-n", 2, calls, "flood")
    for rank in (0, 1):
        (end,) = [e for e in t.ends if e["rank"] == rank]
        calls_there = [c for c in t.of(rank) if c["name"] == "MPI_Comm_rank"]
        assert len(calls_there) <= 80001 <= len(calls_there) + end["lost"], end
    for m in t.received:  # an arrow is right or not there
        assert len(m["flows"]) <= 1


@pytest.fixture(scope="module")
def waited(program, tmp_path_factory):
    """The trace of waits.c: its path, and what stands in it."""
    there = tmp_path_factory.mktemp("waits")
    program = program("tests/trace/waits.c", "-g")
    t, _ = trace(there, "--bind", "none", "-genv", "KW_EVENT_THREAD", "no", "-n", 3, program)
    return there / "job.trace", t


def test_whom_ranks_wait_for(waited):
    """kwtrace finds what waits.c has arranged; other waits are as they come."""
    file, t = waited
    sane(t, [0, 1, 2])
    joined(t)
    p = run(DIST / "bin/kwtrace", "export", "--json", file)
    assert p.returncode == 0, dump(p)
    calls = json.loads(p.stdout)["calls"]
    place = lambda c: re.sub(r".*\((.*)\)", r"\1", c["at"])
    found = collections.Counter(
        (c["rank"], c["function"], place(c), c["wait"]) for c in calls if c.get("wait")
    )
    for rank, function, place, wait, count in [
        (0, "MPI_Wait", "late_receiver", "late receiver", 1),
        (1, "MPI_Probe", "probes", "late sender", 1),
        (1, "MPI_Mprobe", "probes", "late sender", 1),
        (1, "MPI_Recv", "wrong_order", "late sender, messages in wrong order", 1),
        (2, "MPI_Allreduce", "reductions", "wait at n-to-n", 5),
        (2, "MPI_Reduce", "reductions", "early reduce", 5),
        (1, "MPI_Scan", "scan", "early scan", 1),
        (1, "MPI_Neighbor_allgather", "neighbours", "late neighbour", 5),
        (1, "MPI_Win_unlock", "windows", "wait for lock", 1),
        (1, "MPI_Win_fence", "fences", "late fence", 1),
        (1, "MPI_Win_start", "posts", "late post", 1),
        (1, "MPI_Win_complete", "posts", "late post", 1),
        (2, "MPI_Win_wait", "completes", "late complete", 1),
    ]:
        assert found[rank, function, place, wait] == count, found
    assert not any(c.get("wait") for c in calls if c["rank"] == 2 and c["function"] == "MPI_Scan")


def test_targets_and_groups_of_windows_are_ranks_of_the_job(program, tmp_path):
    """In a window whose ranks are in reverse order; it has a name."""
    t, _ = trace(tmp_path, "-n", 3, program("tests/trace/windows.c", "-g"), "groups")
    for rank, other in (0, 2), (2, 0):
        assert [c["target"] for c in t.of(rank, "MPI_Put")] == [other]
        for name in "MPI_Win_start", "MPI_Win_post":
            (call,) = t.of(rank, name)
            assert (call["member"], call["comm"]) == ([other, 1], "reversed"), call


def neighbours(t):
    """Sources, and no rank twice or itself; copies have those of what they are copies of."""
    directed, beside = {(0, 1), (1, 2)}, {(0, 1), (1, 0), (1, 2), (2, 1)}
    used = [c["comm_id"] for c in t.of(0, "MPI_Neighbor_allgather")]
    assert len(used) == len(set(used)) == 5 and {n["comm_id"] for n in t.neighbours} == set(used)
    for comm, expected in zip(used, [directed, beside, beside, beside, directed]):
        found = [(n["rank"], n["source"]) for n in t.neighbours if n["comm_id"] == comm]
        assert sorted(found) == sorted(expected)


def test_neighbours_of_every_topology(waited):
    neighbours(waited[1])


@pytest.mark.parametrize("abi", LIBRARIES)
def test_neighbours_in_another_abi(abi, tmp_path):
    foreign = tmp_path / "waits"
    p = run(prefix(abi) / "bin/mpicc", "-g", "-o", foreign, HERE / "waits.c")
    assert p.returncode == 0, dump(p)
    t, _ = trace(tmp_path, "--bind", "none", "-genv", "KW_EVENT_THREAD", "no", "-n", 3, foreign)
    neighbours(t)


def test_what_the_library_says(waited):
    """Long messages are offered, and the one whose receive is late waits for it."""
    _, t = waited
    said = [
        (m["rank"], m["name"], m.get("dest"), m.get("source"), m["tag"], m["bytes"])
        for m in t.library
        if m["tag"] == 1
    ]
    assert sorted(said) == [
        (0, "rendezvous", 1, None, 1, 4 << 20),
        (1, "rendezvous waits", None, 0, 1, 4 << 20),
    ]
    (receive,) = [c for c in t.of(1, "MPI_Recv") if c["tag"] == 1]
    (send,) = [c for c in t.of(0, "MPI_Isend") if c["tag"] == 1]
    assert all(send["time"] <= m["time"] <= receive["end"] for m in t.library if m["tag"] == 1)


def test_counters(waited):
    """Sums over time never fall, and end with what the run was."""
    _, t = waited
    names = {
        "bytes sent",
        "bytes received",
        "unexpected messages",
        "unexpected bytes",
        "unexpected messages waiting",
        "progress thread woke",
    }
    for rank in (0, 1, 2):
        for name in names:
            values = t.counters[rank, name]
            assert [at for at, _ in values] == sorted(at for at, _ in values)
            if name != "unexpected messages waiting":
                assert [v for _, v in values] == sorted(v for _, v in values), name
    last = lambda rank, name: t.counters[rank, name][-1][1]
    assert last(0, "bytes sent") >= 4 << 20 > last(2, "bytes sent") > 0
    received = sum(m["bytes"] for m in t.received if m["rank"] == 1)
    assert last(1, "bytes received") == received > 4 << 20
    assert last(1, "unexpected messages") > 0 and last(1, "unexpected bytes") >= 4 << 20


def test_access_to_files(program, tmp_path):
    """Counters of files: what each rank wrote and read, who is the aggregator. A rank that opens
    no file has none (waits.c)."""
    t, _ = trace(tmp_path, "-n", 3, program("tests/trace/files.c", "-g"), tmp_path / "data")
    last = lambda rank, name: t.counters[rank, name][-1][1]
    for rank in (0, 1, 2):
        assert last(rank, "file bytes written") == 64_000
        assert last(rank, "file bytes read") == 32_000
        assert last(rank, "file access time") > 0
        (call,) = t.of(rank, "MPI_File_write_all")
        assert call["bytes"] == 64_000
    others = [last(rank, "file bytes for other ranks") for rank in (0, 1, 2)]
    assert others == [128_000, 0, 0]
    assert last(0, "file system calls") >= 2


def test_a_file_that_cannot_be_written(calls, tmp_path):
    file = tmp_path / "no/such/directory"
    p = mpiexec("--trace", file, "-n", 2, calls, status=None)
    assert p.returncode == 1 and p.stderr.startswith(
        f"mpiexec: the trace cannot be written to '{file}': "
    ), dump(p)
    assert len(p.stderr.splitlines()) == 1, dump(p)


def test_a_disk_that_is_full(calls, tmp_path):
    p = mpiexec("--trace", "/dev/full", "-n", 2, calls, "exit", status=None)
    assert p.returncode == 5, dump(p)
    said = [line for line in p.stderr.splitlines() if "no longer be written" in line]
    assert len(said) == 1 and said[0].startswith(
        "mpiexec: the trace can no longer be written to '/dev/full': "
    ), dump(p)


def test_the_variable(calls, tmp_path):
    file = tmp_path / "by.variable"
    p = mpiexec(
        "-n",
        2,
        "sh",
        "-c",
        f"echo ${{KW_TRACE-none}}; {calls}",
        status=None,
        env={"KW_TRACE": str(file)},
    )
    assert p.returncode == 0 and p.stdout == "none\nnone\n", dump(p)
    known(Trace(file.read_bytes()))


def test_with_a_profile(calls, tmp_path):
    t, p = trace(tmp_path, "--profile", "-n", 2, calls)
    known(t)
    assert "mpiexec: the profile:\n" in p.stderr, dump(p)


def test_nothing_is_loaded_without_it(calls):
    p = mpiexec(
        "-n",
        1,
        "sh",
        "-c",
        "echo $LD_PRELOAD $MPIEXEC_PROFILE; ls -l /proc/self/fd | grep -c memfd",
        status=None,
    )
    assert p.stdout == "\n0\n", dump(p)


def test_programs_without_mpi(tmp_path):
    t, _ = trace(tmp_path, "-n", 2, "true")
    assert t.calls == [] and sorted(e["rank"] for e in t.ends) == [0, 1]


def test_two_hosts(calls, tmp_path):
    with hosts(2) as lab:
        reach = tmp_path / "reach"
        reach.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec ip netns exec "{lab}$host" sh -c "$*"\n')
        reach.chmod(0o755)
        t, _ = trace(tmp_path, "--ssh", reach, "--hosts", "h0,h1", calls)
    sane(t, [0, 1])
    known(t)
    collectives(t, [0, 1])
    assert all(0 < e["clock_error"] for e in t.ends)
    begins, ends = joined(t)
    error = sum(e["clock_error"] for e in t.ends)
    assert all(begins[f]["time"] <= m["time"] + error for f, m in ends.items())
