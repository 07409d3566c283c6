"""mpiexec, with programs that are no MPI programs and a C program that speaks PMI-1."""

import fcntl
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import time

import pytest

from jobs import (
    MPIEXEC,
    WATCHDOG,
    gone,
    living,
    mpiexec,
    named,
    parents,
    sh,
    sleepers,
    start,
    tag,
    wait_until,
)

HOST = socket.gethostname()


# ---- programs that are not MPI programs


def test_any_program_runs():
    mpiexec("-n", 2, "hostname", out=f"{os.uname().nodename}\n" * 2)
    mpiexec("-n", 3, "true")
    mpiexec("true")


def test_more_ranks_than_processors():
    p = mpiexec("-n", 64, *sh("echo $PMI_RANK"))
    assert sorted(map(int, p.stdout.split())) == list(range(64))


def test_first_failing_status():
    mpiexec(
        "-n",
        3,
        *sh("test $PMI_RANK = 1 && exit 7; exit 0"),
        status=7,
        sentence=f"rank 1 on {HOST} exited with status 7",
    )
    mpiexec("false", status=1, sentence="exited with status 1")
    mpiexec("-n", 1, *sh("exit 200"), status=200, sentence="status 200")


def test_several_programs():
    p = mpiexec(
        "-n",
        1,
        *sh("echo a$PMI_RANK of $PMI_SIZE"),
        ":",
        "-np",
        2,
        *sh("echo b$PMI_RANK of $PMI_SIZE"),
    )
    assert sorted(p.stdout.split("\n"))[1:] == ["a0 of 3", "b1 of 3", "b2 of 3"], p.stdout


def test_arguments_arrive_as_they_are():
    mpiexec("printf", "%s|", "a b", "", "-n", "*", "--help", "$X", out="a b||-n|*|--help|$X|")


# ---- mistakes


def test_missing_programs(tmp_path):
    mpiexec("-n", 2, "no-such-program", status=127, sentence="'no-such-program' was not found")
    mpiexec("./no-such-program", status=127, sentence="program './no-such-program' does not exist")
    mpiexec("/", status=126, sentence="'/' is a directory")
    (tmp_path / "text").write_text("text\n")
    mpiexec(tmp_path / "text", status=126, sentence="not executable")
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    mpiexec("-n", 3, tmp_path / "script", status=127, sentence="interpreter")


def test_a_program_for_another_machine_was_read_by_the_shell(tmp_path):
    other = 183 if os.uname().machine == "x86_64" else 62
    path = tmp_path / "solver"
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + bytes([2, 0, other, 0, 1]) + bytes(43))
    path.chmod(0o755)
    if len(list(pathlib.Path("/proc/sys/fs/binfmt_misc").glob("*"))) > 2:
        pytest.skip("this system has emulators for programs of other machines")
    mpiexec("-n", 2, path, status=126, sentence="and this machine is for")


def test_wrong_options():
    mpiexec(status=1, sentence="no program")
    mpiexec("-n", 2, status=1, sentence="no program")
    mpiexec("-n", 0, "true", status=1, sentence="at least 1")
    mpiexec("-n", "two", "true", status=1, sentence="'two'")
    mpiexec("-n", -3, "true", status=1, sentence="'-3'")
    mpiexec("-n", 99999999999, "true", status=1, sentence="99999999999")
    mpiexec("--lable", "true", status=1, sentence="did you mean '--label'")
    mpiexec("--frobnicate", "true", status=1, sentence="unknown option '--frobnicate'")
    mpiexec("-wdir", "/no/such/place", "true", status=1, sentence="'/no/such/place'")
    mpiexec("true", ":", status=1, sentence="no program")


def test_help_and_version():
    assert "Usage: mpiexec" in mpiexec("--help").stdout
    assert "Kittiwake" in mpiexec("--version").stdout
    with open("/dev/full", "w") as full:
        p = subprocess.run(
            [MPIEXEC, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=WATCHDOG
        )
    assert p.returncode == 1 and "cannot write" in p.stderr


def test_full_disk():
    with open("/dev/full", "w") as full:
        p = subprocess.run(
            [MPIEXEC, "-n", "2", "sh", "-c", "while echo x; do :; done"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WATCHDOG,
        )
    assert p.returncode == 1, p
    assert [
        s for s in p.stderr.splitlines() if "cannot write standard output: No space left" in s
    ], p.stderr


# ---- readers who do not read


def flood(**more):
    """A job whose ranks print more than anything keeps; it is not read. A mark of its processes,
    the reader's end, mpiexec."""
    t = tag()
    reader, writer = os.pipe()
    script = f": {t}; head -c 30000000 /dev/zero | tr '\\0' x; sleep {t}"
    p = subprocess.Popen([MPIEXEC, "-n", "2", *sh(script)], stdout=writer, text=True, **more)
    os.close(writer)

    full(reader)
    return t, reader, p


def full(reader):
    """Waits until a pipe holds all that it can."""

    def held():
        return int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder)

    wait_until(lambda: held() == fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ), "the pipe does not fill")


def shells(t):
    return named("sh", living(t))


def kill_a_rank(t):
    os.kill(shells(t)[0], signal.SIGKILL)


def test_signals_do_not_wait_for_a_reader():
    for number in (signal.SIGTERM, signal.SIGINT):
        t, reader, p = flood(stderr=subprocess.PIPE)
        p.send_signal(number)
        _, err = p.communicate(timeout=WATCHDOG)
        assert p.returncode == 128 + number, (p.returncode, err)
        assert err == f"mpiexec: the job was ended by {number.name}\n", err
        gone(t)
        os.close(reader)


def test_a_death_is_reported_though_nobody_reads(tmp_path):
    said = tmp_path / "said"
    with said.open("w") as errors:
        t, reader, p = flood(stderr=errors)
    kill_a_rank(t)
    wait_until(lambda: said.read_text().endswith("\n"), "nothing is said")
    sentence = said.read_text()
    assert (
        sentence.startswith("mpiexec: rank") and "was killed by signal 9 (SIGKILL)" in sentence
    ), sentence
    assert p.poll() is None, "somebody may read the output yet"
    rest, pipe = 0, fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    while some := os.read(reader, 1 << 20):
        rest += len(some)
    assert rest > pipe, rest
    p.communicate(timeout=WATCHDOG)
    assert p.returncode == 137
    gone(t)
    os.close(reader)


def test_nobody_reads_errors_either():
    t, reader, p = flood(stderr=subprocess.STDOUT)
    kill_a_rank(t)
    assert p.wait(timeout=WATCHDOG) == 137, p.returncode
    gone(t)
    os.close(reader)


def test_output_waits_for_its_reader():
    """A job that is over, and well, stays until all is read; an interrupt says how much was not."""

    def over():
        t = tag()
        p = start("-n", 2, *sh(f": {t}; head -c 1500000 /dev/zero | tr '\\0' x"))
        full(p.stdout.fileno())
        wait_until(lambda: not shells(t), "the ranks do not end")
        return p

    p = over()
    out, err = p.communicate(timeout=WATCHDOG)
    assert len(out) == 3000000 and p.returncode == 0 and err == "", (len(out), err)
    p = over()
    p.send_signal(signal.SIGINT)
    assert p.wait(timeout=WATCHDOG) == 130
    assert re.search(
        r"mpiexec: SIGINT came before \d+ bytes of the job's output were read", p.stderr.read()
    )
    p.stdout.close()


# ---- environment


def test_environment():
    show = sh("echo $A-$B")
    mpiexec("-env", "A", "1", "-genv", "B=2", *show, out="1-2\n")
    mpiexec("-x", "A=3", "-x", "B", *show, out="3-9\n", env={"B": "9"})
    mpiexec("-env", "A", "1", *show, ":", *show, out=None, env={"B": "9"})
    p = mpiexec("-n", 1, "-env", "A", "1", *show, ":", "-genv", "B", "5", *show)
    assert sorted(p.stdout.split()) == ["-5", "1-5"], p.stdout
    mpiexec(
        "-envnone", "-x", "B", "-x", "PATH", *sh("echo $A-$B"), out="-9\n", env={"A": "7", "B": "9"}
    )
    mpiexec("-wdir", "/", "pwd", out="/\n")


def test_ranks_know_their_place():
    p = mpiexec("-n", 2, "-l", *sh("echo $PMI_SIZE $MPI_LOCALNRANKS $MPI_LOCALRANKID $KW_CPUS"))
    cpus = len(os.sched_getaffinity(0))
    for line in p.stdout.splitlines():
        rank, size, local, mine, usable = re.match(
            r"\[(\d)\] (\d+) (\d+) (\d+) (\d+)$", line
        ).groups()
        assert (size, local, mine) == ("2", "2", rank) and 1 <= int(usable) <= cpus, line


def test_hosts_by_setting():
    show = sh("echo $PMI_RANK:$MPI_LOCALRANKID/$MPI_LOCALNRANKS")
    p = mpiexec("-n", 2, "-env", "KW_HOST", "a", *show, ":", "-n", 1, "-env", "KW_HOST", "b", *show)
    assert sorted(p.stdout.split()) == ["0:0/2", "1:1/2", "2:0/1"], p.stdout


def test_traces_of_other_launchers_are_removed():
    foreign = {"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1", "PMI_PORT": "x"}
    mpiexec(*sh("echo $OMPI_COMM_WORLD_SIZE$PMIX_RANK$PMI_PORT$PMI_RANK"), out="0\n", env=foreign)


# ---- output and input


def test_labels():
    p = mpiexec("-n", 2, "--label", *sh("echo a; echo b >&2; printf c"))
    assert (
        sorted(p.stdout.split("\n")) == ["[0] a", "[0] c[1] c", "[1] a"] or "[0] a\n" in p.stdout
    ), p.stdout
    assert sorted(p.stderr.splitlines()) == ["[0] b", "[1] b"], p.stderr


def test_lines_stay_whole():
    line = "x" * 3000
    p = mpiexec(
        "-n",
        8,
        *sh(
            f"for i in 1 2 3 4 5 6 7 8 9 10; do printf {line[:1500]}; "
            f"printf {line[1500:]}$PMI_RANK'\\n'; done"
        ),
    )
    lines = p.stdout.splitlines()
    assert len(lines) == 80 and all(re.fullmatch(line + r"\d", s) for s in lines)


def test_much_output():
    p = mpiexec("-n", 2, *sh("head -c 20000000 /dev/zero | tr '\\0' x"))
    assert len(p.stdout) == 40000000


def test_a_line_without_end_is_passed_on():
    p = start(*sh("printf 'Name? '; read name; echo hello $name"), stdin=subprocess.PIPE)
    assert p.stdout.read(6) == "Name? "
    out, _ = p.communicate("you\n", timeout=WATCHDOG)
    assert out == "hello you\n" and p.returncode == 0


def test_input_goes_to_rank_0():
    mpiexec("-n", 3, *sh("cat"), input="a\nb\n", out="a\nb\n")
    mpiexec("-n", 2, "true", input="x" * 1000000)
    script = (
        f"printf '1\\n2\\n3\\n' | while read n; do {MPIEXEC} -n 2 true < /dev/null; echo $n; done"
    )
    assert (
        subprocess.run(script, shell=True, capture_output=True, text=True, timeout=WATCHDOG).stdout
        == "1\n2\n3\n"
    )
    subprocess.run(
        [MPIEXEC, "-n", "2", "cat"],
        stdin=None,
        close_fds=True,
        timeout=WATCHDOG,
        check=True,
        preexec_fn=lambda: os.close(0),
        capture_output=True,
    )


def test_a_terminal_is_relayed():
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(
            MPIEXEC,
            [MPIEXEC, "-n", "2", "sh", "-c", "test $PMI_RANK = 0 && read a && echo got $a; exit 0"],
        )
    os.write(fd, b"word\n")
    seen = b""
    try:
        while b"got word" not in seen:
            seen += os.read(fd, 1000)
    except OSError:
        pass
    assert b"got word" in seen, seen
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# ---- PMI


def test_a_job_of_the_protocol(pmi):
    mpiexec("-n", 5, pmi, "init", "put", "fence", "get", "fence", "finalize")
    mpiexec("-n", 2, pmi, "init", "fence", "finalize", "init", "fence", "finalize")


def test_aborts(pmi):
    mpiexec(
        "-n",
        3,
        pmi,
        "init",
        "fence",
        "only=1",
        "abort=7",
        "sleep",
        status=7,
        sentence=f"rank 1 on {HOST} aborted the job with status 7: no input",
    )
    mpiexec("-n", 2, pmi, "init", "only=0", "abort=0", "sleep", status=1, sentence="status 0")
    mpiexec("-n", 2, pmi, "only=0", "abort=256", "sleep", status=1, sentence="status 256")


def test_deaths(pmi):
    mpiexec(
        "-n",
        4,
        pmi,
        "init",
        "fence",
        "only=3",
        "kill=9",
        "sleep",
        status=137,
        sentence=f"rank 3 on {HOST} was killed by signal 9 (SIGKILL)",
    )
    mpiexec("-n", 2, pmi, "only=1", "kill=11", "sleep", status=139, sentence="signal 11 (SIGSEGV")
    mpiexec(
        "-n", 2, *sh("test $PMI_RANK = 0 && kill -9 $$; sleep 1000"), status=137, sentence="rank 0"
    )


def test_exits_without_finalize(pmi):
    mpiexec(
        "-n",
        3,
        pmi,
        "init",
        "fence",
        "only=2",
        "exit=0",
        "sleep",
        status=1,
        sentence=f"rank 2 on {HOST} exited with status 0 without calling MPI_Finalize",
    )
    mpiexec("-n", 3, pmi, "init", "only=0", "exit=5", "fence", status=5, sentence="rank 0")


def test_a_rank_that_never_comes(pmi):
    mpiexec("-n", 3, pmi, "only=1", "exit=0", "init", "fence", status=1, sentence="rank 1 on")
    mpiexec(
        "-n",
        3,
        pmi,
        "only=1",
        "exit=4",
        "init",
        "fence",
        status=4,
        sentence="exited with status 4 while rank",
    )
    mpiexec(
        "-n",
        2,
        pmi,
        "init",
        "only=0",
        "finalize",
        "not=0",
        "fence",
        "only=0",
        "sleep",
        status=1,
        sentence="rank 0",
    )


def test_statuses_after_finalize(pmi):
    mpiexec(
        "-n", 3, pmi, "init", "fence", "finalize", "only=1", "exit=3", status=3, sentence="rank 1"
    )


def test_nonsense_on_the_wire(pmi):
    mpiexec("-n", 2, pmi, "init", "only=1", "garbage", "sleep", status=1, sentence="rank 1 on")
    mpiexec("-n", 2, pmi, "init", "fence", "only=1", "half", "finalize", "exit=0", status=None)


def test_a_mute_rank_that_ignores_sigterm_is_killed():
    t = tag()
    mpiexec(
        "-n",
        3,
        *sh(f"trap '' TERM; test $PMI_RANK = 0 && kill -9 $$; sleep {t}; sleep {t}"),
        status=137,
        sentence="rank 0",
    )
    gone(t)


def test_stopped_ranks_end_too():
    t = tag()
    mpiexec(
        "-n",
        2,
        *sh(f"test $PMI_RANK = 1 && kill -STOP $$; kill -9 $$; sleep {t}"),
        status=137,
        sentence="rank 0",
    )
    gone(t)


def test_grandchildren_end_too():
    t = tag()
    mpiexec(
        "-n",
        2,
        *sh(f"setsid sleep {t} & sleep {t} & test $PMI_RANK = 1 && kill -9 $$; wait"),
        status=137,
        sentence="rank 1",
    )
    gone(t)


# ---- signals


def ready(t, n):
    wait_until(lambda: len(sleepers(t)) == n, "the ranks do not start")


def test_signals_are_passed_on():
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        name = number.name[3:]
        p = start(
            "-n",
            2,
            *sh(f"trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.02; done"),
        )
        for _ in range(2):
            assert p.stdout.readline() == "ready\n"
        p.send_signal(number)
        out, err = p.communicate(timeout=WATCHDOG)
        assert out == "got\ngot\n" and p.returncode == 0, (name, out, err, p.returncode)


def test_an_interrupt_ends_the_job():
    for number in (signal.SIGINT, signal.SIGTERM):
        t = tag()
        p = start("-n", 2, "sleep", t)
        ready(t, 2)
        p.send_signal(number)
        _, err = p.communicate(timeout=WATCHDOG)
        assert (
            p.returncode == 128 + number and err == f"mpiexec: the job was ended by {number.name}\n"
        ), (err, p.returncode)
        gone(t)


def test_a_second_interrupt_kills():
    t = tag()
    p = start("-n", 2, *sh(f"trap '' INT; echo ready; sleep {t}; sleep {t}"))
    for _ in range(2):
        assert p.stdout.readline() == "ready\n"
    ready(t, 2)
    end = time.monotonic() + WATCHDOG
    while p.poll() is None and time.monotonic() < end:
        p.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert p.returncode == 130, p.returncode
    gone(t)


def test_killed_launcher_leaves_nothing():
    t = tag()
    p = start("-n", 3, *sh(f"trap '' TERM HUP INT; setsid sleep {t} & sleep {t} & sleep {t}"))
    ready(t, 9)
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)


def test_all_killed_leaves_nothing():
    t = tag()
    p = start("-n", 4, "sleep", t)
    ready(t, 4)
    for pid in [p.pid, *living(t)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    p.communicate(timeout=WATCHDOG)
    gone(t)
    wait_until(lambda: not guards_of(p.pid), "the guard stays")


def guards_of(pid):
    return [guard for guard in named("kw-guard", parents()) if group(guard) == pid]


def group(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError):
        return 0


# ---- binding


def masks(*words):
    p = mpiexec(*words, "grep", "Cpus_allowed_list", "/proc/self/status")
    return sorted(line.split()[-1] for line in p.stdout.splitlines())


def test_binding():
    cpus = sorted(os.sched_getaffinity(0))
    whole = masks("-n", 1, "--bind", "none")
    quota = int(mpiexec(*sh("echo $KW_CPUS")).stdout)
    if len(cpus) > 1:
        assert masks("-n", len(cpus) + 1) == whole * (len(cpus) + 1), (
            "what does not go out evenly is not bound"
        )
    twice = masks("-n", 2 * len(cpus))
    # another job on this machine, or a quota, leaves them free
    if quota == len(cpus) and twice != whole * 2 * len(cpus):
        assert twice == sorted(str(c) for c in cpus * 2), "as many on each processor"
    assert masks("-n", 1) == whole
    if len(cpus) >= 2 and quota >= 2:
        # by default another job on this machine may leave too few
        two = masks("-n", 2, "--bind", "core") if len(cpus) >= 4 else []
        assert len(set(two)) == len(two), f"two ranks share processors: {two}"
        assert len(set(masks("-n", 2, "--bind", "thread"))) == 2
    one = subprocess.run(
        [
            "taskset",
            "-c",
            str(cpus[-1]),
            MPIEXEC,
            "-n",
            "2",
            "grep",
            "Cpus_allowed_list",
            "/proc/self/status",
        ],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    assert {s.split()[-1] for s in one.stdout.splitlines()} == {str(cpus[-1])}, one
    err = mpiexec("-n", 2, "-v", "true").stderr
    assert f"rank 1 on {HOST}" in err, err
    mpiexec("-n", 10000, "--bind", "core", "true", status=1, sentence="--bind none")


def test_jobs_do_not_share_processors():
    """Ranks of a second job are not bound to the processors of the first."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("there is one processor")
    t = tag()
    p = start("-n", 1, "taskset", "-c", str(cpus[0]), "sleep", t)
    wait_until(
        lambda: any(os.sched_getaffinity(pid) == {cpus[0]} for pid in living(t)),
        "the first job is not bound",
    )
    second = masks("-n", 2)
    first, whole = f"{cpus[0]}", masks("-n", 1, "--bind", "none")[0]
    assert all(first not in re.split("[,-]", m) for m in second) or second == [whole] * 2, second
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)


def test_jobs_that_start_at_once_do_not_share_processors():
    """Neither do jobs whose launchers choose at the same time, next to one that is stopped."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one processor")
    whole = masks("-n", 1, "--bind", "none")[0]
    held = start("-n", 2, "sleep", t := tag())
    ready(t, 2)
    held.send_signal(signal.SIGSTOP)
    for _ in range(5):
        show = "grep Cpus_allowed_list /proc/self/status && cat"
        words = [MPIEXEC, "-n", "2", "sh", "-c", show]
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        jobs = [subprocess.Popen(words, **pipe) for _ in range(3)]
        used = [{p.stdout.readline().split()[-1] for _ in range(2)} - {whole} for p in jobs]
        for p in jobs:
            p.communicate(timeout=WATCHDOG)
        every = [c for of_job in used for c in of_job]
        assert len(every) == len(set(every)), used
    held.send_signal(signal.SIGCONT)
    held.kill()
    held.communicate(timeout=WATCHDOG)
    gone(t)


def test_few_open_files(pmi):
    """More ranks than one process may have pipes for: helpers on this host take some each; all are
    ranks of one host."""

    def limited(files, n, *words, **more):
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", MPIEXEC, "-n", str(n), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG, **more)

    p = limited(64, 12, "true")
    assert p.returncode == 0, p
    p = limited(
        64,
        24,
        "sh",
        "-c",
        "echo $PMI_RANK of $MPI_LOCALNRANKS, $(ulimit -n) files; echo error $MPI_LOCALRANKID >&2",
    )
    assert p.returncode == 0, p
    assert sorted(p.stdout.splitlines()) == sorted(f"{r} of 24, 64 files" for r in range(24)), p
    assert sorted(p.stderr.splitlines()) == sorted(f"error {r}" for r in range(24)), p
    p = limited(64, 24, pmi, "init", "fence", "finalize")
    assert p.returncode == 0, p
    p = limited(64, 24, "sh", "-c", "[ $PMI_RANK != 0 ] || cat", input="for rank 0")
    assert p.returncode == 0 and p.stdout == "for rank 0", p
    length = tag()
    p = limited(64, 24, "sh", "-c", f"[ $PMI_RANK = 23 ] && kill -KILL $$; exec sleep {length}")
    assert p.returncode == 137 and "rank 23" in p.stderr, p
    gone(length)
    p = limited(64, 2000, "true")
    assert p.returncode == 1 and re.fullmatch(
        r"mpiexec: 2000 ranks on one host need 3 open files each, and the limit leaves room for "
        r"\d\d\d ranks; .*\n",
        p.stderr,
    ), p


def test_without_hwloc():
    """Where libhwloc is missing, binding works from the kernel's files."""
    needed = subprocess.run(
        ["ldd", MPIEXEC], capture_output=True, text=True, timeout=WATCHDOG
    ).stdout
    assert "hwloc" not in needed, needed


# ---- hosts, with a stand-in for ssh (tests/ssh has the true one)


def test_who_never_comes_is_named(pmi, tmp_path):
    """Rank 1; on a slow machine another one, too."""
    file = tmp_path / "come"
    waits = f"until [ -e {file} ]; do sleep 0.05; done"
    late = f"[ $PMI_RANK != 1 ] || {waits}; exec {pmi} init fence finalize"
    p = start("-n", 3, *sh(late), env={**os.environ, "KW_RENDEZVOUS_WAIT": "1"})
    who = r"mpiexec: ranks? [\d, -]*1[\d, -]* did not call MPI_Init within 1 s of ranks? [02, -]+"
    said = p.stderr.readline()
    assert re.fullmatch(who + ", which waits?\n", said), said
    file.touch()
    assert p.communicate(timeout=WATCHDOG) == ("", "") and p.returncode == 0


def test_hosts_through_helpers(pmi, ssh):
    p = mpiexec("-l", "--hosts", "a,b:2", *sh("echo $MPI_LOCALRANKID/$MPI_LOCALNRANKS"), env=ssh)
    assert sorted(p.stdout.splitlines()) == ["[0] 0/1", "[1] 0/2", "[2] 1/2"] and p.stderr == "", (
        p.stdout,
        p.stderr,
    )
    mpiexec(
        "--hosts", f"a,{HOST}", pmi, "init", "put", "fence", "get", "fence", "finalize", env=ssh
    )
    mpiexec(
        "--hosts",
        "a,b",
        pmi,
        "init",
        "fence",
        "only=1",
        "abort=7",
        "sleep",
        env=ssh,
        status=7,
        sentence="rank 1 on b aborted the job with status 7: no input",
    )
    mpiexec("--hosts", "a,b", "cat", input="x\n", out="x\n", env=ssh)
    t = tag()
    mpiexec(
        "--hosts",
        "a,b",
        *sh(
            f"trap '' TERM; setsid sleep {t} & test $PMI_RANK = 0 && kill -9 $$; sleep {t}; "
            f"sleep {t}"
        ),
        env=ssh,
        status=137,
        sentence="rank 0 on a",
    )
    gone(t)


def test_helpers_that_are_not_ours(ssh):
    mpiexec(
        "--hosts",
        "a,old",
        "true",
        env=ssh,
        status=1,
        sentence="host old cannot be reached: its Kittiwake is 0, this one is",
    )
    mpiexec(
        "--hosts",
        "a,nonsense",
        "true",
        env=ssh,
        status=1,
        sentence="host nonsense cannot be reached: a message between",
    )
    p = start("--hosts", "a,silent", "true", env={**os.environ, **ssh})
    wait_until(lambda: sleepers("1000.5"), "the stand-in does not start")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=WATCHDOG)
    assert p.returncode == 130 and err == "mpiexec: the job was ended by SIGINT\n", (
        err,
        p.returncode,
    )
