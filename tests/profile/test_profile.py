"""mpiexec --profile: what is recorded is what was called, from anywhere and however the job ends;
who asks meanwhile gets an answer."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from environments import MPI4PY, environment
from jobs import DIST, MPIEXEC, ROOT, WATCHDOG, hosts, mpiexec, run, start, dump, wait_until

sys.path.insert(0, str(ROOT / "tests/abi_shims"))
from builds import FORTRAN, GFORTRAN, LIBRARIES, prefix  # noqa: E402

HERE = ROOT / "tests/profile"


def profile(tmp_path, *words, status=0, **more):
    """The JSON of a job, and what mpiexec said."""
    file = tmp_path / "profile.json"
    p = mpiexec("--profile-json", file, *words, status=None, **more)
    assert p.returncode == status, dump(p)
    assert "mpiexec: the profile:\n" in p.stderr, dump(p)
    return json.loads(file.read_text()), p


def expected(source):
    """{line: (function, calls, bytes)} of the lines of a source that say so."""
    lines = enumerate((HERE / source).read_text().splitlines(), 1)
    marked = ((n, re.search(r"(MPI_\w+) ?\(.*PROFILE: (\d+) (\d+)", line)) for n, line in lines)
    return {n: (m[1], int(m[2]), int(m[3])) for n, m in marked if m}


def found(told_by_json, source):
    """The same as the profile tells it; the layer of Fortran calls functions of its own."""
    calls = {}
    for call in told_by_json["calls"]:
        if call["source"] == source:
            calls.setdefault(call["line"], []).append(
                (call["function"], call["count"], call["bytes"])
            )
    return calls


def same(told_by_json, source):
    wanted, calls = expected(source), found(told_by_json, source)
    assert len(wanted) >= 3
    for line, (function, count, amount) in wanted.items():
        name = function if source.endswith((".c", ".cc")) else None  # Fortran has other capitals
        here = [
            c
            for c in calls.get(line, [])
            if name in (c[0], None) and (name or c[0].upper() == function.upper())
        ]
        assert [c[1:] for c in here] == [(count, amount)], (
            f"{source}:{line}: {function} {count} {amount}, but it tells {calls.get(line)}"
        )


def sane(told_by_json, ranks):
    """What holds of every profile."""
    assert [r["rank"] for r in told_by_json["ranks"]] == ranks
    for r in told_by_json["ranks"]:
        assert 0 < r["mpi"] and r["waiting"] <= r["mpi"] and r["run"] > 0, r
        assert 0 <= r["files"] <= r["mpi"], r
        assert 0 <= r["file_access"] and 0 <= r["file_exchange"], r
    for c in told_by_json["calls"]:
        assert c["count"] > 0 and c["most"] <= c["time"] and c["most_rank"] in ranks, c


@pytest.fixture(scope="module")
def calls(program):
    return program("tests/profile/calls.c", "-g")


def test_access_to_files_is_distinguished_from_communication(program, tmp_path):
    """A rank that is late: the others wait, and access the file only afterwards."""
    test = program("tests/profile/late_file.c", "-g")
    got, p = profile(tmp_path, "-n", 2, test, tmp_path / "data")
    first, late = got["ranks"]
    assert first["file_exchange"] > 10 * late["file_exchange"], dump(p)
    assert all(0 < r["file_access"] < r["files"] for r in got["ranks"]), dump(p)
    assert all(r["file_access"] + r["file_exchange"] <= r["files"] for r in got["ranks"]), dump(p)
    for line in ("file access", "file exchange"):
        assert re.search(rf"^  {line} +\d+\.\d % mean", p.stderr, re.M), dump(p)


def test_calls_and_bytes_by_place(calls, tmp_path):
    got, p = profile(tmp_path, "-n", 2, calls)
    same(got, "calls.c")
    sane(got, [0, 1])
    assert all(r["finalized"] and r["mpi"] <= r["run"] for r in got["ranks"])
    assert all(r["files"] > 0 for r in got["ranks"])
    assert re.search(r"^  in files +\d+\.\d % mean", p.stderr, re.M), dump(p)
    # a function of the program's that MPI calls: its calls are part of the call that called it
    assert "MPI_Type_size" not in [c["function"] for c in got["calls"]]
    barrier = next(c for c in got["calls"] if c["function"] == "MPI_Barrier")
    assert barrier["waits"] and barrier["caller"] == "collective" and barrier["file"] == str(calls)
    assert not next(c for c in got["calls"] if c["function"] == "MPI_Isend")["waits"]
    line = next(n for n, line in expected("calls.c").items() if line[0] == "MPI_Barrier")
    assert re.search(
        rf"^ +\d+\.\d % .* 2 +0 +MPI_Barrier +calls.c:{line} \(collective\)$", p.stderr, re.M
    ), dump(p)
    assert re.search(r"^  in MPI +\d+\.\d % mean", p.stderr, re.M) and "2 of 2 ranks" in p.stderr, (
        dump(p)
    )


@pytest.mark.parametrize("abi", LIBRARIES)
def test_a_program_of_another_abi(abi, tmp_path):
    foreign = tmp_path / "calls"
    p = run(prefix(abi) / "bin/mpicc", "-g", "-o", foreign, HERE / "calls.c")
    assert p.returncode == 0, dump(p)
    got, _ = profile(tmp_path, "-n", 2, foreign)
    same(got, "calls.c")
    sane(got, [0, 1])


def test_threads(program, tmp_path):
    got, _ = profile(
        tmp_path, "--bind", "none", "-n", 2, program("tests/profile/threads.c", "-g", "-pthread")
    )
    same(got, "threads.c")


def test_exceptions(program, tmp_path):
    got, _ = profile(tmp_path, "-n", 2, program("tests/profile/exceptions.cc", "-g"))
    same(got, "exceptions.cc")


@pytest.fixture
def gfortran():
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")


def test_fortran(gfortran, program, tmp_path):
    got, _ = profile(
        tmp_path,
        "-n",
        2,
        program("tests/profile/calls.F90", "-g", "-O1", compiler=DIST / "bin/mpifort"),
    )
    same(got, "calls.F90")
    assert {c["caller"] for c in got["calls"] if c["function"] == "MPI_Sendrecv"} == {"again_"}


@pytest.mark.parametrize("abi", FORTRAN)
def test_fortran_of_another_abi(abi, gfortran, tmp_path):
    foreign = tmp_path / "calls"
    p = run(
        prefix(abi) / "bin/mpifort",
        *GFORTRAN,
        "-DKW_MPIF",
        "-g",
        "-o",
        foreign,
        HERE / "calls.F90",
        LIBRARIES[abi],
        cwd=tmp_path,
    )
    assert p.returncode == 0, dump(p)
    got, _ = profile(tmp_path, "-n", 2, foreign)
    same(got, "calls.F90")


def test_python(tmp_path):
    """Its MPI is opened by an extension, so that nothing else finds it."""
    python = environment(tmp_path / "venv", MPI4PY) / "python"
    script = (
        "from mpi4py import MPI\nfor i in range(5): MPI.COMM_WORLD.bcast(i)\n"
        "MPI.COMM_WORLD.Barrier()"
    )
    got, _ = profile(
        tmp_path, "-n", 2, python, "-c", script, env={"LD_LIBRARY_PATH": str(DIST / "lib")}
    )
    barriers = [c for c in got["calls"] if c["function"] == "MPI_Barrier"]
    assert sum(c["count"] for c in barriers) == 2, barriers


@pytest.mark.parametrize(
    "end, status", [("abort", 7), ("exit", 5), ("crash", 128 + signal.SIGKILL)]
)
def test_a_job_that_does_not_finalize(end, status, calls, tmp_path):
    got, p = profile(tmp_path, "-n", 2, calls, end, status=status)
    sane(got, [0, 1])
    assert not any(r["finalized"] for r in got["ranks"])
    assert "ranks 0, 1 did not reach the end of MPI_Finalize" in p.stderr, dump(p)
    if end == "abort":  # what was under way counts until the end
        assert [c["count"] for c in got["calls"] if c["function"] == "MPI_Abort"] == [1]


def test_programs_without_mpi(tmp_path):
    got, p = profile(tmp_path, "-n", 2, "true")
    assert got == {"version": 1, "size": 2, "ranks": [], "calls": []}
    assert "ranks 0, 1 called no function of MPI" in p.stderr, dump(p)


def test_one_rank_of_two_without_mpi(program, tmp_path):
    got, p = profile(
        tmp_path, "-n", 1, "true", ":", "-n", 1, program("tests/profile/alone.c", "-g")
    )
    assert [r["rank"] for r in got["ranks"]] == [1]
    assert "  rank 0 called no function of MPI\n" in p.stderr, dump(p)


def test_a_shell_before_the_program(calls, tmp_path):
    got, _ = profile(tmp_path, "-n", 2, "sh", "-c", f"{calls}; exit 3", status=3)
    same(got, "calls.c")


def test_a_file_that_cannot_be_written(calls, tmp_path):
    file = tmp_path / "no/such/directory"
    for words, status in (([calls], 0), ([calls, "exit"], 5)):
        p = mpiexec("--profile-json", file, "-n", 2, *words, status=None)
        assert p.returncode == status, dump(p)
        sentences = [line for line in p.stderr.splitlines() if "cannot be written" in line]
        assert len(sentences) == 1 and sentences[0].startswith(
            f"mpiexec: the profile cannot be written to '{file}': "
        ), dump(p)


def test_what_the_user_loads_before_the_program(calls, tmp_path):
    tool = tmp_path / "tool.so"
    subprocess.run(
        [DIST / "bin/mpicc", "-shared", "-fPIC", "-o", tool, HERE / "tool.c"], check=True
    )
    got, p = profile(tmp_path, "-n", 2, "-env", "LD_PRELOAD", tool, calls)
    same(got, "calls.c")
    assert sorted(p.stdout.splitlines()) == ["15 sends", "15 sends"], dump(p)


def test_a_job_whose_other_ranks_are_started_elsewhere(calls):
    p = mpiexec("--profile", "--rendezvous", "localhost:1", "-n", 2, calls, status=None)
    assert (
        p.returncode != 0
        and "hosts, binding, labels, profile and time limits are not supported" in p.stderr
    ), dump(p)


def test_a_limit_of_file_sizes(calls):
    p = run("sh", "-c", f"ulimit -f 100; exec {MPIEXEC} --profile -n 2 {calls}")
    assert p.returncode == 1 and p.stderr.startswith("mpiexec: --profile needs a file of "), dump(p)


def test_nothing_is_loaded_without_it(calls):
    p = mpiexec(
        "-n",
        1,
        "sh",
        "-c",
        "echo $LD_PRELOAD $MPIEXEC_PROFILE; ls -l /proc/self/fd | grep -c memfd",
        status=None,
    )
    assert p.stdout == "\n0\n" and "profile" not in p.stderr, dump(p)


def test_a_job_within_a_job_is_not_recorded_as_its_rank(calls, tmp_path):
    got, _ = profile(tmp_path, "-n", 1, "sh", "-c", f"{MPIEXEC} -n 2 {calls}")
    assert got["ranks"] == []


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory):
    """A command that reaches h0 and h1, which are networks on this machine."""
    with hosts(2) as lab:
        reach = tmp_path_factory.mktemp("hosts") / "reach"
        reach.write_text(f'#!/bin/sh\nhost=$1\nshift\nexec ip netns exec "{lab}$host" sh -c "$*"\n')
        reach.chmod(0o755)
        yield ["--ssh", reach, "--hosts", "h0,h1"]


def test_two_hosts(two_hosts, calls, tmp_path):
    got, _ = profile(tmp_path, *two_hosts, calls)
    same(got, "calls.c")
    sane(got, [0, 1])


class Live:
    """A job with a profile whose rank 0 waits for rank 1, which waits for a signal."""

    def __init__(self, *words):
        self.p = start("--profile", *words, "wait")
        self.said = []
        self.reader = threading.Thread(
            target=lambda: self.said.extend(iter(self.p.stderr.readline, ""))
        )
        self.reader.start()

    def asked(self):
        """What mpiexec says when it is asked once more."""
        before = self.pages()
        wait_until(lambda: self.asks() and self.pages() > before, "mpiexec does not answer")
        return "".join(self.said).split("mpiexec: the profile so far:\n")[-1]

    def asks(self):
        """Asks; an mpiexec that has only just begun does not hear it."""
        return run(DIST / "bin/kwinfo", "--job", self.p.pid).returncode == 0

    def pages(self):
        return "".join(self.said).count("mpiexec: the profile so far:\n")

    def receives(self):
        """How long the rank has waited, as it is told; nothing before it does."""
        rows = re.findall(
            r"^ +\d+[.]\d % +([\d.]+) .* 1 +0 +MPI_Recv +calls[.]c:\d+ \(main\)$",
            self.asked(),
            re.M,
        )
        return [float(seconds) for seconds in rows]

    def end(self):
        self.p.send_signal(signal.SIGTERM)
        self.reader.join()
        self.p.communicate(timeout=WATCHDOG)
        return "".join(self.said).split("mpiexec: the profile:\n")[-1]


@pytest.fixture(params=["here", "elsewhere"])
def live(request, calls):
    words = ["-n", 2] if request.param == "here" else request.getfixturevalue("two_hosts")
    job = Live(*words, calls)
    yield job
    if job.p.poll() is None:
        job.end()


def test_a_job_that_runs_is_asked(live):
    first = []
    wait_until(lambda: first or first.extend(live.receives()) or first, "the receive is not told")
    # a page that has only begun to be printed says nothing of it
    wait_until(
        lambda: max(live.receives(), default=0) > first[0],
        "the time of the call under way stands still",
    )
    # the recorder is between the program and the library, and not what waits
    waits = re.compile(r"in MPI_Recv for [\d.]+ s, at calls[.]c:\d+$", re.M)
    wait_until(lambda: waits.search("".join(live.said)), "no report says where the rank waits")
    page = live.end()
    assert "MPI_Recv" in page and "did not reach the end of MPI_Finalize" in page, page
