#!/usr/bin/env python3
"""Tests of mpiexec: `tests/launch/run [NAME...]`. Uses the installation in $DIST and a C program that speaks PMI-1."""

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

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import DIST, MPIEXEC, ROOT, WATCHDOG, Skip, gone, living, main, sh, start, tag, test, wait_until  # noqa: E402

OUT = ROOT / "build/tests/launch"
PMI = str(OUT / "pmi")
HOST = socket.gethostname()


def run(*words, status=0, out=None, err=None, sentence=None, env=None, **more):
    """Runs mpiexec; checks exit status, output (exact), a part of its errors, and that it says exactly one sentence."""
    full = {**os.environ, **(env or {})}
    p = subprocess.run(
        [MPIEXEC, *map(str, words)], capture_output=True, text=True, timeout=WATCHDOG, env=full, **more
    )
    told = f"mpiexec {' '.join(map(str, words))}\nstatus {p.returncode}\nout {p.stdout!r}\nerr {p.stderr!r}"
    assert status is None or p.returncode == status, f"status should be {status}: {told}"
    if out is not None:
        assert p.stdout == out, f"output should be {out!r}: {told}"
    if err is not None:
        assert err in p.stderr, f"errors should hold {err!r}: {told}"
    if sentence is not None:
        lines = [line for line in p.stderr.splitlines() if line.startswith("mpiexec: ")]
        assert len(lines) == 1 and sentence in lines[0], f"one sentence should hold {sentence!r}: {told}"
    elif status == 0:
        assert "mpiexec:" not in p.stderr or "-v" in words, f"nothing should be said: {told}"
    return p


# ---- programs that are not MPI programs


@test
def any_program_runs():
    run("-n", 2, "hostname", out=f"{os.uname().nodename}\n" * 2)
    run("-n", 3, "true")
    run("true")


@test
def more_ranks_than_processors():
    p = run("-n", 64, *sh("echo $PMI_RANK"))
    assert sorted(map(int, p.stdout.split())) == list(range(64))


@test
def first_failing_status():
    run("-n", 3, *sh("test $PMI_RANK = 1 && exit 7; exit 0"), status=7, sentence=f"rank 1 on {HOST} exited with status 7")
    run("false", status=1, sentence="exited with status 1")
    run("-n", 1, *sh("exit 200"), status=200, sentence="status 200")


@test
def several_programs():
    p = run("-n", 1, *sh("echo a$PMI_RANK of $PMI_SIZE"), ":", "-np", 2, *sh("echo b$PMI_RANK of $PMI_SIZE"))
    assert sorted(p.stdout.split("\n"))[1:] == ["a0 of 3", "b1 of 3", "b2 of 3"], p.stdout


@test
def arguments_arrive_as_they_are():
    run("printf", "%s|", "a b", "", "-n", "*", "--help", "$X", out="a b||-n|*|--help|$X|")


# ---- mistakes


@test
def missing_programs():
    run("-n", 2, "no-such-program", status=127, sentence="no program 'no-such-program'")
    run("./no-such-program", status=127, sentence="no program './no-such-program'")
    run("/", status=126, sentence="'/' is a directory")
    (OUT / "text").write_text("text\n")
    run(OUT / "text", status=126, sentence="not executable")
    (OUT / "script").write_text("#!/no/such/interpreter\n")
    (OUT / "script").chmod(0o755)
    run("-n", 3, OUT / "script", status=127, sentence="interpreter")


@test
def wrong_options():
    run(status=1, sentence="no program")
    run("-n", 2, status=1, sentence="no program")
    run("-n", 0, "true", status=1, sentence="at least 1")
    run("-n", "two", "true", status=1, sentence="'two'")
    run("-n", -3, "true", status=1, sentence="'-3'")
    run("-n", 99999999999, "true", status=1, sentence="99999999999")
    run("--lable", "true", status=1, sentence="did you mean '--label'")
    run("--frobnicate", "true", status=1, sentence="no option '--frobnicate'")
    run("-wdir", "/no/such/place", "true", status=1, sentence="'/no/such/place'")
    run("true", ":", status=1, sentence="no program")


@test
def help_and_version():
    assert "Usage: mpiexec" in run("--help").stdout
    assert "Kittiwake" in run("--version").stdout
    with open("/dev/full", "w") as full:
        p = subprocess.run([MPIEXEC, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=WATCHDOG)
    assert p.returncode == 1 and "cannot write" in p.stderr


@test
def full_disk():
    with open("/dev/full", "w") as full:
        p = subprocess.run(
            [MPIEXEC, "-n", "2", "sh", "-c", "while echo x; do :; done"],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=WATCHDOG,
        )
    assert p.returncode == 1, p
    assert [s for s in p.stderr.splitlines() if "cannot write standard output: No space left" in s], p.stderr


# ---- readers who do not read


def flood(**more):
    """A job whose ranks print more than anybody keeps; nobody reads it. A mark of its processes, the reader's end, mpiexec."""
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
    return [pid for pid in living(t) if comm(pathlib.Path("/proc") / str(pid)) == "sh"]


def kill_a_rank(t):
    os.kill(shells(t)[0], signal.SIGKILL)


@test
def signals_do_not_wait_for_a_reader():
    for number in (signal.SIGTERM, signal.SIGINT):
        t, reader, p = flood(stderr=subprocess.PIPE)
        p.send_signal(number)
        _, err = p.communicate(timeout=WATCHDOG)
        assert p.returncode == 128 + number, (p.returncode, err)
        assert err == f"mpiexec: the job was ended by {number.name}\n", err
        gone(t)
        os.close(reader)


@test
def a_death_is_told_though_nobody_reads():
    said = OUT / "said"
    with said.open("w") as errors:
        t, reader, p = flood(stderr=errors)
    kill_a_rank(t)
    wait_until(lambda: said.read_text().endswith("\n"), "nothing is said")
    sentence = said.read_text()
    assert sentence.startswith("mpiexec: rank") and "was killed by signal 9 (SIGKILL)" in sentence, sentence
    assert p.poll() is None, "somebody may read the output yet"
    rest, pipe = 0, fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)
    while some := os.read(reader, 1 << 20):
        rest += len(some)
    assert rest > pipe, rest
    p.communicate(timeout=WATCHDOG)
    assert p.returncode == 137
    gone(t)
    os.close(reader)


@test
def nobody_reads_errors_either():
    t, reader, p = flood(stderr=subprocess.STDOUT)
    kill_a_rank(t)
    assert p.wait(timeout=WATCHDOG) == 137, p.returncode
    gone(t)
    os.close(reader)


@test
def output_waits_for_its_reader():
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
    assert re.search(r"mpiexec: SIGINT came before \d+ bytes of the job's output were read", p.stderr.read())
    p.stdout.close()


# ---- environment


@test
def environment():
    show = sh("echo $A-$B")
    run("-env", "A", "1", "-genv", "B=2", *show, out="1-2\n")
    run("-x", "A=3", "-x", "B", *show, out="3-9\n", env={"B": "9"})
    run("-env", "A", "1", *show, ":", *show, out=None, env={"B": "9"})
    p = run("-n", 1, "-env", "A", "1", *show, ":", "-genv", "B", "5", *show)
    assert sorted(p.stdout.split()) == ["-5", "1-5"], p.stdout
    run("-envnone", "-x", "B", "-x", "PATH", *sh("echo $A-$B"), out="-9\n", env={"A": "7", "B": "9"})
    run("-wdir", "/", "pwd", out="/\n")


@test
def ranks_know_their_place():
    p = run("-n", 2, "-l", *sh("echo $PMI_SIZE $MPI_LOCALNRANKS $MPI_LOCALRANKID $KW_CPUS"))
    cpus = len(os.sched_getaffinity(0))
    for line in p.stdout.splitlines():
        rank, size, local, mine, usable = re.match(r"\[(\d)\] (\d+) (\d+) (\d+) (\d+)$", line).groups()
        assert (size, local, mine) == ("2", "2", rank) and 1 <= int(usable) <= cpus, line


@test
def hosts_by_knob():
    show = sh("echo $PMI_RANK:$MPI_LOCALRANKID/$MPI_LOCALNRANKS")
    p = run("-n", 2, "-env", "KW_HOST", "a", *show, ":", "-n", 1, "-env", "KW_HOST", "b", *show)
    assert sorted(p.stdout.split()) == ["0:0/2", "1:1/2", "2:0/1"], p.stdout


@test
def traces_of_other_launchers_are_removed():
    foreign = {"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1", "PMI_PORT": "x"}
    run(*sh("echo $OMPI_COMM_WORLD_SIZE$PMIX_RANK$PMI_PORT$PMI_RANK"), out="0\n", env=foreign)


# ---- output and input


@test
def labels():
    p = run("-n", 2, "--label", *sh("echo a; echo b >&2; printf c"))
    assert sorted(p.stdout.split("\n")) == ["[0] a", "[0] c[1] c", "[1] a"] or "[0] a\n" in p.stdout, p.stdout
    assert sorted(p.stderr.splitlines()) == ["[0] b", "[1] b"], p.stderr


@test
def lines_stay_whole():
    line = "x" * 3000
    p = run("-n", 8, *sh(f"for i in 1 2 3 4 5 6 7 8 9 10; do printf {line[:1500]}; printf {line[1500:]}$PMI_RANK'\\n'; done"))
    lines = p.stdout.splitlines()
    assert len(lines) == 80 and all(re.fullmatch(line + r"\d", s) for s in lines)


@test
def much_output():
    p = run("-n", 2, *sh("head -c 20000000 /dev/zero | tr '\\0' x"))
    assert len(p.stdout) == 40000000


@test
def a_line_without_end_is_passed_on():
    p = start(*sh("printf 'Name? '; read name; echo hello $name"), stdin=subprocess.PIPE)
    assert p.stdout.read(6) == "Name? "
    out, _ = p.communicate("you\n", timeout=WATCHDOG)
    assert out == "hello you\n" and p.returncode == 0


@test
def input_goes_to_rank_0():
    run("-n", 3, *sh("cat"), input="a\nb\n", out="a\nb\n")
    run("-n", 2, "true", input="x" * 1000000)
    script = f"printf '1\\n2\\n3\\n' | while read n; do {MPIEXEC} -n 2 true < /dev/null; echo $n; done"
    assert subprocess.run(script, shell=True, capture_output=True, text=True, timeout=WATCHDOG).stdout == "1\n2\n3\n"
    subprocess.run([MPIEXEC, "-n", "2", "cat"], stdin=None, close_fds=True, timeout=WATCHDOG, check=True,
                   preexec_fn=lambda: os.close(0), capture_output=True)


@test
def a_terminal_is_relayed():
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(MPIEXEC, [MPIEXEC, "-n", "2", "sh", "-c", "test $PMI_RANK = 0 && read a && echo got $a; exit 0"])
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


@test
def a_job_of_the_protocol():
    run("-n", 5, PMI, "init", "put", "fence", "get", "fence", "finalize")
    run("-n", 2, PMI, "init", "fence", "finalize", "init", "fence", "finalize")


@test
def aborts():
    run("-n", 3, PMI, "init", "fence", "only=1", "abort=7", "sleep", status=7,
        sentence=f"rank 1 on {HOST} aborted the job with status 7: no input")
    run("-n", 2, PMI, "init", "only=0", "abort=0", "sleep", status=1, sentence="status 0")
    run("-n", 2, PMI, "only=0", "abort=256", "sleep", status=1, sentence="status 256")


@test
def deaths():
    run("-n", 4, PMI, "init", "fence", "only=3", "kill=9", "sleep", status=137,
        sentence=f"rank 3 on {HOST} was killed by signal 9 (SIGKILL)")
    run("-n", 2, PMI, "only=1", "kill=11", "sleep", status=139, sentence="signal 11 (SIGSEGV")
    run("-n", 2, *sh("test $PMI_RANK = 0 && kill -9 $$; sleep 1000"), status=137, sentence="rank 0")


@test
def exits_without_finalize():
    run("-n", 3, PMI, "init", "fence", "only=2", "exit=0", "sleep", status=1,
        sentence=f"rank 2 on {HOST} exited with status 0 without calling MPI_Finalize")
    run("-n", 3, PMI, "init", "only=0", "exit=5", "fence", status=5, sentence="rank 0")


@test
def a_rank_that_never_comes():
    run("-n", 3, PMI, "only=1", "exit=0", "init", "fence", status=1, sentence="rank 1 on")
    run("-n", 3, PMI, "only=1", "exit=4", "init", "fence", status=4, sentence="exited with status 4 while rank")
    run("-n", 2, PMI, "init", "only=0", "finalize", "not=0", "fence", "only=0", "sleep", status=1, sentence="rank 0")


@test
def statuses_after_finalize():
    run("-n", 3, PMI, "init", "fence", "finalize", "only=1", "exit=3", status=3, sentence="rank 1")


@test
def nonsense_on_the_wire():
    run("-n", 2, PMI, "init", "only=1", "garbage", "sleep", status=1, sentence="rank 1 on")
    run("-n", 2, PMI, "init", "fence", "only=1", "half", "finalize", "exit=0", status=None)


@test
def a_mute_rank_that_ignores_sigterm_is_killed():
    t = tag()
    run("-n", 3, *sh(f"trap '' TERM; test $PMI_RANK = 0 && kill -9 $$; sleep {t}; sleep {t}"), status=137, sentence="rank 0")
    gone(t)


@test
def stopped_ranks_end_too():
    t = tag()
    run("-n", 2, *sh(f"test $PMI_RANK = 1 && kill -STOP $$; kill -9 $$; sleep {t}"), status=137, sentence="rank 0")
    gone(t)


@test
def grandchildren_end_too():
    t = tag()
    run("-n", 2, *sh(f"setsid sleep {t} & sleep {t} & test $PMI_RANK = 1 && kill -9 $$; wait"), status=137, sentence="rank 1")
    gone(t)


# ---- signals


def ready(t, n):
    wait_until(lambda: len(living(t)) >= n, "the ranks do not start")


@test
def signals_are_passed_on():
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        name = number.name[3:]
        p = start("-n", 2, *sh(f"trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.02; done"))
        for _ in range(2):
            assert p.stdout.readline() == "ready\n"
        p.send_signal(number)
        out, err = p.communicate(timeout=WATCHDOG)
        assert out == "got\ngot\n" and p.returncode == 0, (name, out, err, p.returncode)


@test
def an_interrupt_ends_the_job():
    for number in (signal.SIGINT, signal.SIGTERM):
        t = tag()
        p = start("-n", 2, "sleep", t)
        ready(t, 3)
        p.send_signal(number)
        _, err = p.communicate(timeout=WATCHDOG)
        assert p.returncode == 128 + number and err == f"mpiexec: the job was ended by {number.name}\n", (err, p.returncode)
        gone(t)


@test
def a_second_interrupt_kills():
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


@test
def killed_launcher_leaves_nothing():
    t = tag()
    p = start("-n", 3, *sh(f"trap '' TERM HUP INT; setsid sleep {t} & sleep {t} & sleep {t}"))
    ready(t, 9)
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)


@test
def all_killed_leaves_nothing():
    t = tag()
    p = start("-n", 4, "sleep", t)
    ready(t, 5)
    for pid in [p.pid, *living(t)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    p.communicate(timeout=WATCHDOG)
    gone(t)
    wait_until(lambda: not guards_of(p.pid), "the guard stays")


def guards_of(pid):
    return [e for e in pathlib.Path("/proc").iterdir() if e.name.isdigit() and comm(e) == "kw-guard" and group(e) == pid]


def comm(entry):
    try:
        return (entry / "comm").read_text().strip()
    except OSError:
        return ""


def group(entry):
    try:
        return int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError):
        return 0


# ---- binding


def masks(*words):
    p = run(*words, "grep", "Cpus_allowed_list", "/proc/self/status")
    return sorted(line.split()[-1] for line in p.stdout.splitlines())


@test
def binding():
    cpus = sorted(os.sched_getaffinity(0))
    whole = masks("-n", 1, "--bind", "none")
    assert masks("-n", len(cpus) + 1) == whole * (len(cpus) + 1), "oversubscribed ranks are not bound"
    assert masks("-n", 1) == whole
    quota = run(*sh("echo $KW_CPUS")).stdout.strip()
    if len(cpus) >= 2 and int(quota) >= 2:
        # by default another job on this machine may leave too few
        two = masks("-n", 2, "--bind", "core") if len(cpus) >= 4 else []
        assert len(set(two)) == len(two), f"two ranks share processors: {two}"
        assert len(set(masks("-n", 2, "--bind", "thread"))) == 2
    one = subprocess.run(["taskset", "-c", str(cpus[-1]), MPIEXEC, "-n", "2", "grep", "Cpus_allowed_list", "/proc/self/status"],
                         capture_output=True, text=True, timeout=WATCHDOG)
    assert {s.split()[-1] for s in one.stdout.splitlines()} == {str(cpus[-1])}, one
    err = run("-n", 2, "-v", "true").stderr
    assert f"rank 1 on {HOST}" in err, err
    run("-n", 10000, "--bind", "core", "true", status=1, sentence="--bind none")


@test
def jobs_do_not_share_processors():
    """Ranks of a second job are not bound to the processors of the first."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("there is one processor")
    t = tag()
    p = start("-n", 1, "taskset", "-c", str(cpus[0]), "sleep", t)
    wait_until(lambda: any(os.sched_getaffinity(pid) == {cpus[0]} for pid in living(t)), "the first job is not bound")
    second = masks("-n", 2)
    first, whole = f"{cpus[0]}", masks("-n", 1, "--bind", "none")[0]
    assert all(first not in re.split("[,-]", m) for m in second) or second == [whole] * 2, second
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)


@test
def few_open_files():
    """More ranks than one process may have pipes for: helpers on this host take some each; all are ranks of one host."""
    def limited(files, n, *words, **more):
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", MPIEXEC, "-n", str(n), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG, **more)

    p = limited(64, 12, "true")
    assert p.returncode == 0, p
    p = limited(64, 24, "sh", "-c", 'echo $PMI_RANK of $MPI_LOCALNRANKS, $(ulimit -n) files; echo error $MPI_LOCALRANKID >&2')
    assert p.returncode == 0, p
    assert sorted(p.stdout.splitlines()) == sorted(f"{r} of 24, 64 files" for r in range(24)), p
    assert sorted(p.stderr.splitlines()) == sorted(f"error {r}" for r in range(24)), p
    p = limited(64, 24, PMI, "init", "fence", "finalize")
    assert p.returncode == 0, p
    p = limited(64, 24, "sh", "-c", "[ $PMI_RANK != 0 ] || cat", input="for rank 0")
    assert p.returncode == 0 and p.stdout == "for rank 0", p
    length = tag()
    p = limited(64, 24, "sh", "-c", f"[ $PMI_RANK = 23 ] && kill -KILL $$; exec sleep {length}")
    assert p.returncode == 137 and "rank 23" in p.stderr, p
    gone(length)
    p = limited(64, 2000, "true")
    assert p.returncode == 1 and re.fullmatch(
        r"mpiexec: 2000 ranks on one host need 3 open files each, and the limit leaves room for \d\d\d ranks; .*\n", p.stderr), p


@test
def without_hwloc():
    """Where libhwloc is missing, binding works from the kernel's files."""
    needed = subprocess.run(["ldd", MPIEXEC], capture_output=True, text=True, timeout=WATCHDOG).stdout
    assert "hwloc" not in needed, needed


# ---- hosts, with a stand-in for ssh (tests/ssh has the true one)


def stand_in():
    """A command that runs what ssh would run, here; it greets first, as login scripts may."""
    path = OUT / "ssh"
    path.write_text("""#!/bin/sh
host=$1
shift
case $host in
silent) exec sleep 1000 ;;
old) exec printf '\\n\\000kw-helper-1\\000\\r\\n\\012\\000\\000\\000\\000\\377\\000\\000\\000\\001\\000\\000\\0000' ;;
nonsense) exec printf '\\n\\000kw-helper-1\\000\\r\\n\\377\\377\\377\\377\\377' ;;
esac
echo "Welcome to $host"
echo "$host: a warning" >&2
exec sh -c "$*"
""")
    path.chmod(0o755)
    return {"KW_SSH": str(path)}


@test
def who_never_comes_is_named():
    late = f"[ $PMI_RANK = 1 ] && sleep 3; exec {PMI} init fence finalize"
    run("-n", 3, "sh", "-c", late, env={"KW_RENDEZVOUS_WAIT": "1"}, sentence="rank 1 did not call MPI_Init within 1 s of ranks 0, 2, which wait")


@test
def hosts_through_helpers():
    env = stand_in()
    p = run("-l", "--hosts", "a,b:2", *sh("echo $MPI_LOCALRANKID/$MPI_LOCALNRANKS"), env=env)
    assert sorted(p.stdout.splitlines()) == ["[0] 0/1", "[1] 0/2", "[2] 1/2"] and p.stderr == "", (p.stdout, p.stderr)
    run("--hosts", f"a,{HOST}", PMI, "init", "put", "fence", "get", "fence", "finalize", env=env)
    run("--hosts", "a,b", PMI, "init", "fence", "only=1", "abort=7", "sleep", env=env, status=7,
        sentence="rank 1 on b aborted the job with status 7: no input")
    run("--hosts", "a,b", "cat", input="x\n", out="x\n", env=env)
    t = tag()
    run("--hosts", "a,b", *sh(f"trap '' TERM; setsid sleep {t} & test $PMI_RANK = 0 && kill -9 $$; sleep {t}; sleep {t}"),
        env=env, status=137, sentence="rank 0 on a")
    gone(t)


@test
def helpers_that_are_not_ours():
    env = stand_in()
    run("--hosts", "a,old", "true", env=env, status=1, sentence="host old cannot be reached: its Kittiwake is 0, this one is")
    run("--hosts", "a,nonsense", "true", env=env, status=1, sentence="host nonsense cannot be reached: a message between")
    p = start("--hosts", "a,silent", "true", env={**os.environ, **env})
    wait_until(lambda: living(f"{OUT}/ssh\0silent") or living("sleep\0001000"), "the stand-in does not start")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=WATCHDOG)
    assert p.returncode == 130 and err == "mpiexec: the job was ended by SIGINT\n", (err, p.returncode)


# ---- what runs the steps of `make check`


def step(silent, *words):
    log = OUT / "step.log"
    p = subprocess.run([ROOT / "scripts/run-step", log, str(silent), "1000", *map(str, words)], capture_output=True, text=True,
                       timeout=WATCHDOG)
    return p, log.read_text()


@test
def a_step_leaves_nothing():
    t = tag()
    p, log = step(60, *sh(f"{MPIEXEC} -n 2 setsid sleep {t} & setsid sleep {t} & sleep {t} & echo said; exit 5"))
    assert p.returncode == 5 and "said\n" in log and "left behind, and ended: " in p.stderr, (p, log)
    gone(t)
    p, log = step(1, MPIEXEC, "-n", 2, *sh(f"trap '' TERM; setsid sleep {t}"))
    assert p.returncode == 124 and "its log has not grown for 1 s" in log and f"sleep {t}" in log, (p, log)
    gone(t)
    p = subprocess.Popen([ROOT / "scripts/run-step", OUT / "step.log", "60", "1000", MPIEXEC, "-n", "2", "setsid", "sleep", t],
                         stderr=subprocess.DEVNULL)
    ready(t, 3)
    p.terminate()
    assert p.wait(timeout=WATCHDOG) == 124
    gone(t)
    p, log = step(60, "sh", "-c", "echo fine")
    assert p.returncode == 0 and log == "fine\n" and p.stderr == "", (p, log)


# ---- the library itself


def program(name):
    """A program of this directory, built with the library."""
    path = OUT / name
    subprocess.run([DIST / "bin/mpicc", "-g", "-O0", "-Wall", "-Wno-infinite-recursion", "-pthread", "-o", path, HERE / f"{name}.c"],
                   check=True)
    return path


def crash(how, status, *words, env=None):
    p = run("-n", 2, *words, program("crash"), how, status=status, env=env)
    return [line for line in p.stderr.splitlines() if not line.startswith("mpiexec: ")], p


@test
def a_crash_says_where():
    said, p = crash("segv", 139)
    assert len(said) > 3 and said[0] == "rank 1: SIGSEGV at address 0x10, which is not mapped, in", p.stderr
    for number, function in enumerate(["innermost", "inner", "main"]):
        assert re.fullmatch(rf"rank 1:   #{number} {function} at .*crash\.c:\d+", said[number + 1]), p.stderr
    assert p.stderr.count("mpiexec: ") == 1 and f"rank 1 on {HOST} was killed by signal 11 (SIGSEGV" in p.stderr, p.stderr
    for how, status, first in (("abort", 134, "SIGABRT, in"), ("divide", 136, "SIGFPE, in"), ("sent", 139, "SIGSEGV, in"),
                               ("deep", 139, "SIGSEGV at address 0x"), ("thread", 139, "SIGSEGV at address 0x10")):
        said, p = crash(how, status)
        assert said and said[0].startswith(f"rank 1: {first}"), p.stderr
        function = {"thread": "in_a_thread", "deep": "deeper"}.get(how, "main")
        assert any(f" {function} at " in line for line in said), p.stderr


@test
def a_crash_is_left_to_whom_it_belongs():
    said, p = crash("handler", 3)
    assert said == ["my own handler"], p.stderr
    said, p = crash("child", 0)
    assert said == [] and p.stdout == "the child was killed by 11\n", (p.stdout, p.stderr)
    said, p = crash("finalized", 139)
    assert said == [], p.stderr
    said, p = crash("segv", 139, env={"KW_BACKTRACE": "no"})
    assert said == [], p.stderr
    said, p = crash("segv", 139, "--hosts", f"{HOST},b", env=stand_in())
    assert any(re.fullmatch(r"rank 1:   #0 innermost at .*crash\.c:\d+", line) for line in said), p.stderr


@test
def pythons_faulthandler_is_undisturbed():
    start_mpi = f"import ctypes, faulthandler; mpi = ctypes.CDLL('{DIST}/lib/libmpi_abi.so.1'); "
    before = "faulthandler.enable(); mpi.MPI_Init(None, None); faulthandler._sigsegv()"
    after = "mpi.MPI_Init(None, None); faulthandler.enable(); faulthandler._sigsegv()"
    for order, ours in ((before, False), (after, True)):
        p = run("-n", 1, sys.executable, "-c", start_mpi + order, status=139)
        assert "Fatal Python error: Segmentation fault" in p.stderr, p.stderr
        assert ("rank 0: SIGSEGV" in p.stderr) == ours, p.stderr


@test
def a_crash_without_a_launcher_is_readable():
    p = subprocess.run([program("crash"), "segv"], capture_output=True, text=True, timeout=WATCHDOG)
    lines = p.stderr.splitlines()
    assert p.returncode == -11 and len(lines) > 1 and lines[0].startswith("rank 0: killed by signal 11 (SIGSEGV) at address 0x10"), p
    file, offset = re.fullmatch(r"rank 0:  #0 (\S+) (0x[0-9a-f]+)", lines[1]).groups()
    assert file == str(program("crash")) and int(offset, 16) > 0, p


LEFT = r"rank [12] on \S+( and rank [12])? aborted the job with status 58: MPI_\w+: rank 0 has called MPI_Finalize: "


@test
def who_waits_for_a_rank_that_has_finished_is_named():
    for how, env in (("collective", {}), ("collective", {"KW_PATHS": "self,tcp"}), ("receive", {"KW_SPIN": "1000000000"})):
        p = run("-n", 3, program("left"), how, 1, status=58, env=env)
        assert re.search(LEFT, p.stderr) and p.stderr.count("mpiexec: ") == 1, p.stderr


@test
def misspelt_knobs_are_named():
    p = run("-n", 2, program("crash"), "not", env={"KW_SPIM": "3"})
    assert p.stderr == f"rank 0 on {HOST}: KW_SPIM is no knob, and has no effect; did you mean KW_SPIN?\n", p.stderr
    p = run("-n", 2, program("crash"), "not", env={"KW_SPIM": "3", "KW_LOG": "error"}, err="")
    assert p.stderr == "", p.stderr


@test
def programs_of_another_mpi_are_found_out():
    """A library with the name of Open MPI's, whose ranks know nothing of mpiexec."""
    library, other = OUT / "libmpi.so", OUT / "other"
    source = "int MPI_Init(int *a, char ***b) { return 0; }"
    for words in (["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o", library, "-xc", "-"],
                  ["-o", other, "-xc", "-", "-L", OUT, f"-Wl,-rpath,{OUT}", "-lmpi"]):
        subprocess.run(["cc", *words], input=source, text=True, check=True)
        source = "int MPI_Init(int *, char ***); int main(int n, char **v) { return MPI_Init(&n, &v); }"
    (OUT / "libmpi.so.40").unlink(missing_ok=True)
    (OUT / "libmpi.so.40").symlink_to("libmpi.so")
    run("-n", 2, other, sentence=f"no rank has joined the job: '{other}' is linked with libmpi.so.40 of Open MPI, not with Kittiwake")
    run("-n", 1, other)


@test
def handles_of_mpich_are_known():
    p = run("-n", 1, program("crash"), "foreign", status=None)
    assert p.returncode != 0 and "0x44000000, which names no communicator (a constant of MPICH: " in p.stderr, p


@test
def networks_are_reported_where_there_are_none():
    p = run("-n", 2, "--report-network", program("crash"), "not")
    told = "no network is used: all ranks are on this host and share memory"
    assert sorted(line for line in p.stderr.splitlines() if "network" in line) == [f"rank {r} on {HOST}: {told}" for r in range(2)], p.stderr


@test
def each_level_of_the_log_says_more():
    said = []
    for level in ("error", "warn", "info", "debug", "trace"):
        p = run("-n", 2, program("crash"), "not", env={"KW_SPIM": "3", "KW_LOG": level}, err="")
        said.append(p.stderr.splitlines())
        assert all(re.match(rf"(rank [01]|process \d+) on {HOST}: ", line) for line in said[-1]), p.stderr
    error, warn, info, debug, trace = map(len, said)
    assert error == 0 and warn == 1 and warn < info < debug < trace, [error, warn, info, debug, trace]
    for text, lines in (("joined a job of 2", said[2]), ("KW_LOG is debug", said[3]), (" by Shm", said[3]), ("to rank 1: Header {", said[4])):
        assert any(text in line for line in lines), f"{text}: {lines}"


OUT.mkdir(parents=True, exist_ok=True)
subprocess.run(["cc", "-O1", "-Wall", "-o", PMI, str(HERE / "pmi.c")], check=True)
sys.exit(main("mpiexec"))
