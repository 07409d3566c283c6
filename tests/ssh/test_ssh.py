"""mpiexec over hosts. Real sshd, one in each host of the lab (tests/hosts/lab), with keys and
configuration of their own; nothing of the user's ssh is read or written."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from jobs import (
    MPIEXEC,
    WATCHDOG,
    descendants,
    gone,
    hosts,
    living,
    mpiexec,
    named,
    network,
    processes,
    run,
    sh,
    sleepers,
    start,
    tag,
    wait_until,
)

SSHD = "/usr/sbin/sshd"
HOSTS = 3
# 1 on h0, 2 on h1
ADDRESS = "ip -4 -o address show dev eth0 | sed 's/.*10[.]77[.]0[.]\\([0-9]*\\).*/\\1/'"


def helpers():
    ours = descendants()
    return named("mpiexec", [x for x in living("mpiexec\0--helper") if x in ours])


def sleeping(*where, ranks=3):
    """A job that sleeps until it is ended, all of it started."""
    t = tag()
    p = start(
        "--hosts",
        ",".join(where),
        "-n",
        ranks,
        *sh(f"trap '' TERM INT HUP; setsid sleep {t} & sleep {t}; sleep {t}"),
    )
    wait_until(lambda: len(sleepers(t)) == 2 * ranks, "the ranks do not start")
    return p, t


def keys(work):
    for name in ("host", "user", "other"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / name], check=True
        )
    (work / "authorized").write_text((work / "user.pub").read_text())
    common = f"""StrictHostKeyChecking no
UserKnownHostsFile {work}/known
GlobalKnownHostsFile /dev/null
LogLevel ERROR
IdentitiesOnly yes
User root
"""
    ours = "".join(
        f"Host h{n}\n HostName 10.77.0.{n + 1}\n IdentityFile {work}/user\n" for n in range(HOSTS)
    )
    odd = f"""Host refusing
 HostName 10.77.0.1
 Port 9
Host strange
 HostName 10.77.0.1
 IdentityFile {work}/other
Host nowhere
 HostName 10.77.0.99
"""
    (work / "config").write_text(
        ours + odd + "Host *\n" + "".join(f" {line}\n" for line in common.splitlines())
    )
    (work / "sshd").write_text(f"""HostKey {work}/host
AuthorizedKeysFile {work}/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
""")


def start_sshd(lab, work):
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # what its package's service makes
    for n in range(HOSTS):
        with open(work / f"log{n}", "w") as log:
            subprocess.Popen(
                ["ip", "netns", "exec", f"{lab}h{n}", SSHD, "-D", "-e", "-f", work / "sshd"],
                stdout=log,
                stderr=log,
            )
    for n in range(HOSTS):
        wait_until(
            lambda: lets_us_in(n, work), f"sshd of host {n} does not let us in, see {work}/log{n}"
        )


def lets_us_in(host, work):
    return (
        run("ssh", "-F", work / "config", "-o", "BatchMode=yes", f"h{host}", "true").returncode == 0
    )


@pytest.fixture(scope="module", autouse=True)
def three_hosts(tmp_path_factory):
    """We are on the switch of three hosts, with an sshd in each, which lets us in."""
    if not pathlib.Path(SSHD).exists():
        pytest.skip("sshd is not installed (scripts/install-deps, as root)")
    work = tmp_path_factory.mktemp("ssh")
    keys(work)
    with hosts(HOSTS) as lab, network(f"{lab}sw"), pytest.MonkeyPatch.context() as patch:
        start_sshd(lab, work)
        patch.setenv("KW_SSH", f"ssh -F {work}/config -x -T -o BatchMode=yes -o ConnectTimeout=5")
        yield


# ---- where ranks run


def placed(*words):
    p = mpiexec(*words, *sh(f"echo $PMI_RANK $({ADDRESS})"))
    return [
        int(line.split()[1]) - 1
        for line in sorted(p.stdout.splitlines(), key=lambda s: int(s.split()[0]))
    ]


def test_ranks_go_to_their_hosts(tmp_path):
    assert placed("--hosts", "h0,h1:2,h2") == [0, 1, 1, 2]
    assert placed("--hosts", "h0,h1", "-n", 4) == [0, 0, 1, 1]
    assert placed("--hosts", "h0,h1", "-n", 4, "--map-by", "node") == [0, 1, 0, 1]
    assert placed("--hosts", "h2,h1,h0", "-ppn", 2, "-n", 4) == [2, 2, 1, 1]
    file = tmp_path / "hosts"
    file.write_text("# ours\nh1 slots=2\n\nh0:1  # one\nh2\n")
    assert placed("--hostfile", file) == [1, 1, 0, 2]
    assert placed("-f", file, "-n", 2) == [1, 1]


def test_ranks_know_who_is_near():
    p = mpiexec(
        "--hosts", "h0:2,h1", *sh("echo $PMI_RANK $MPI_LOCALRANKID/$MPI_LOCALNRANKS $KW_CPUS")
    )
    usable = str(len(os.sched_getaffinity(0)))
    lines = sorted(p.stdout.split("\n"))[1:]
    assert [line.rsplit(" ", 1)[0] for line in lines] == ["0 0/2", "1 1/2", "2 0/1"], p.stdout
    assert all(int(line.split()[2]) <= int(usable) for line in lines), p.stdout


def test_binding_is_of_each_host():
    # The hosts of the lab share this machine's processors: where the first rank is bound before the
    # second host chooses, the second takes a processor that no rank is bound to.
    p = subprocess.run(
        [
            MPIEXEC,
            "-v",
            "--bind",
            "thread",
            "--hosts",
            "h0,h1",
            *sh("echo $PMI_RANK $(taskset -cp $$)"),
        ],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    told = re.findall(r"rank (\d) on (h\d), CPUs (\d+)", p.stderr)
    assert sorted((r, h) for r, h, _ in told) == [("0", "h0"), ("1", "h1")], p.stderr
    bound = re.findall(r"^(\d) .*: (\d+)$", p.stdout, re.M)
    assert sorted(bound) == sorted((r, cpu) for r, _, cpu in told), p.stdout + p.stderr
    mpiexec(
        "--bind", "core", "--hosts", "h0", "-n", 10000, "true", status=1, sentence="--bind none"
    )


def test_an_mpi_program_over_hosts_and_this_machine(program):
    meet = program("tests/launchers/meet.c")
    for where, n in (("h0,h1", 2), ("h0:2,h1:2,h2:2", 6), ("localhost,h1,h2", 5)):
        p = mpiexec("--hosts", where, "-n", n, meet)
        seen = sorted(re.findall(r"rank (\d+) of (\d+) sum (\d+)", p.stdout))
        assert seen == [(str(r), str(n), str(n * (n - 1) // 2)) for r in range(n)], p.stdout


# ---- what passes


def test_environment_and_directory(tmp_path):
    show = sh(f"echo $A-$B-$SSH_TTY-$PWD-$({ADDRESS})")
    p = mpiexec(
        "--hosts",
        "h0,h1",
        "-env",
        "A",
        "a b",
        *show,
        env={"B": "2", "SSH_TTY": "ours"},
        cwd=tmp_path,
    )
    assert sorted(p.stdout.splitlines()) == [f"a b-2--{tmp_path}-1", f"a b-2--{tmp_path}-2"], (
        p.stdout
    )
    p = mpiexec("--hosts", "h1", "-wdir", "/usr", *show, env={"B": "2"})
    assert p.stdout == "-2--/usr-2\n", p.stdout
    p = mpiexec(
        "--hosts",
        "h0,h1",
        "-envnone",
        "-x",
        "B",
        *sh("echo $B-$USER"),
        env={"B": "2", "USER": "me"},
    )
    assert p.stdout == "2-\n" * 2, p.stdout
    arguments = ("a b", "", "*", "$X", "'", '"')
    assert mpiexec("--hosts", "h1", "printf", "%s|", *arguments).stdout == "|".join(arguments) + "|"


def test_input_goes_to_rank_0(tmp_path):
    big = "x" * 3_000_000
    assert sorted(mpiexec("--hosts", "h1,h0", *sh("wc -c"), input=big).stdout.split()) == [
        "0",
        "3000000",
    ]
    with open(tmp_path / "big", "w") as f:
        f.write(big)
    with open(tmp_path / "big") as f:
        assert mpiexec("--hosts", "h1", *sh("wc -c"), stdin=f).stdout.split() == ["3000000"]
    mpiexec("--hosts", "h1,h0", "true", input=big)


def test_much_output_and_labels():
    p = mpiexec("--hosts", "h0,h1", *sh("head -c 20000000 /dev/zero | tr '\\0' x"))
    assert len(p.stdout) == 40_000_000
    p = mpiexec("-l", "--hosts", "h0,h1", *sh("echo a; echo b >&2"))
    assert sorted(p.stdout.splitlines()) == ["[0] a", "[1] a"] and sorted(
        p.stderr.splitlines()
    ) == ["[0] b", "[1] b"]


def test_a_slow_reader_slows_the_ranks():
    p = start("--hosts", "h0", *sh("head -c 100000000 /dev/zero | tr '\\0' x; echo end >&2"))
    assert os.read(p.stdout.fileno(), 1) == b"x"
    time.sleep(0.5)  # gives wrong code the time to read ahead
    rss = [
        int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{x}/status").read_text())[1])
        for x in [p.pid, *helpers()]
    ]
    out, err = p.communicate(timeout=WATCHDOG)
    assert len(out) == 99_999_999 and err == "end\n" and p.returncode == 0, (
        len(out),
        err,
        p.returncode,
    )
    assert len(rss) == 2 and max(rss) < 60_000, f"memory of mpiexec and its helper in KB: {rss}"


def test_statuses():
    mpiexec(
        "--hosts",
        "h0,h1",
        *sh("exit $((PMI_RANK * 7))"),
        status=7,
        sentence="rank 1 on h1 exited with status 7",
    )
    mpiexec(
        "--hosts",
        "h0,h1",
        *sh("test $PMI_RANK = 1 && kill -9 $$; sleep 1000"),
        status=137,
        sentence="rank 1 on h1 was killed by signal 9 (SIGKILL)",
    )
    mpiexec(
        "--hosts",
        "h0,h1",
        "no-such-program",
        status=127,
        sentence="program 'no-such-program' was not found",
    )
    mpiexec(
        "--hosts",
        "h1",
        "-wdir",
        "/no/such/place",
        "true",
        status=1,
        sentence="'/no/such/place' does not exist",
    )


def test_signals_are_passed_on():
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        p = start(
            "--hosts",
            "h0,h1",
            *sh(
                f"trap 'echo got; exit 0' {number.name[3:]}; echo ready; while :; do sleep 0.02; "
                "done"
            ),
        )
        for _ in range(2):
            assert p.stdout.readline() == "ready\n"
        p.send_signal(number)
        out, err = p.communicate(timeout=WATCHDOG)
        assert out == "got\ngot\n" and p.returncode == 0, (number, out, err, p.returncode)


def test_the_key_is_in_no_argument_and_no_environment():
    p, t = sleeping("h0", "h1")
    digits = re.compile(rb"[0-9A-Fa-f]{64}")
    for entry in processes():
        for what in ("cmdline", "environ"):
            try:
                text = (entry / what).read_bytes()
            except OSError:
                continue
            assert not digits.search(text), f"{entry}/{what} holds something like a key"
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)


# ---- ends


def test_what_outlives_a_job_is_named_on_its_host():
    t = tag()
    p = mpiexec(
        "--hosts",
        "h0,h1",
        "-n",
        2,
        *sh(
            f"setsid sleep {t} >/dev/null 2>&1 & if [ $PMI_RANK = 0 ]; then kill -9 $!; wait; "
            "else echo $!; fi"
        ),
        sentence="",
    )
    left = p.stdout.strip()
    assert f"mpiexec: processes that ranks have started still run on h1: {left}\n" == p.stderr, (
        p.stdout,
        p.stderr,
    )
    os.kill(int(left), signal.SIGKILL)
    gone(t)


def test_what_outlives_a_rank_of_a_failed_job_ends_with_it():
    t = tag()
    mpiexec(
        "--hosts",
        "h0,h1",
        "-n",
        2,
        *sh(
            f"setsid sleep {t} >/dev/null 2>&1 & [ $PMI_RANK = 0 ] && exec sleep {t} || kill -9 $$"
        ),
        status=137,
        sentence="rank 1 on h1 was killed",
    )
    gone(t)


def test_a_killed_mpiexec_leaves_nothing_on_any_host():
    p, t = sleeping("h0", "h1", "h2")
    p.kill()
    p.communicate(timeout=WATCHDOG)
    gone(t)
    wait_until(lambda: not helpers(), "helpers are left")


def test_a_killed_helper_ends_the_job():
    p, t = sleeping("h0", "h1", "h2")
    os.kill(helpers()[0], signal.SIGKILL)
    _, err = p.communicate(timeout=WATCHDOG)
    assert p.returncode == 1 and re.fullmatch(r"mpiexec: host h\d is lost: .*\n", err), (
        p.returncode,
        err,
    )
    gone(t)


def test_an_interrupt_ends_the_job():
    t = tag()
    p = start("--hosts", "h0,h1", "sleep", t)
    wait_until(lambda: len(sleepers(t)) == 2, "the ranks do not start")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=WATCHDOG)
    assert p.returncode == 130 and err == "mpiexec: the job was ended by SIGINT\n", (
        err,
        p.returncode,
    )
    gone(t)


def test_a_host_that_vanishes_is_reported():
    p, t = sleeping("h0", "h1", "h2")
    port("port1", "down")
    began = time.monotonic()
    try:
        _, err = p.communicate(timeout=WATCHDOG)
    finally:
        port("port1", "up")
    assert p.returncode == 1 and "mpiexec: host h1 is lost: it has not answered for 9 s\n" == err, (
        p.returncode,
        err,
    )
    print(f"reported after {time.monotonic() - began:.1f} s")
    gone(t)


def port(name, state):
    subprocess.run(["ip", "link", "set", name, state], check=True)


def test_a_stopped_mpiexec_is_waited_for():
    """Longer than a helper may be silent, and than mpiexec may be."""
    p = start("--hosts", "h0", *sh("echo ready; sleep 12; echo done"))
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGSTOP)
    time.sleep(11)
    p.send_signal(signal.SIGCONT)
    out, err = p.communicate(timeout=WATCHDOG)
    assert out == "done\n" and p.returncode == 0, (out, err, p.returncode)


# ---- mistakes


def test_hosts_that_cannot_be_reached():
    mpiexec(
        "--hosts",
        "h0,no-such-host",
        "true",
        status=1,
        sentence="host no-such-host cannot be reached: ssh: Could not resolve",
    )
    mpiexec(
        "--hosts",
        "h0,refusing",
        "true",
        status=1,
        sentence="host refusing cannot be reached: ssh: connect to host",
    )
    mpiexec(
        "--hosts",
        "h0,strange",
        "true",
        status=1,
        sentence="host strange cannot be reached: root@10.77.0.1: Permission denied",
    )
    mpiexec(
        "--hosts",
        "h0,nowhere",
        "true",
        status=1,
        sentence="host nowhere cannot be reached: ssh: connect to host",
    )
    mpiexec("--ssh", "no-such-ssh", "--hosts", "h0", "true", status=1, sentence="'no-such-ssh'")
    mpiexec(
        "--prefix", "/no/such", "--hosts", "h0", "true", status=1, sentence="/no/such/bin/mpiexec"
    )
    t = tag()
    mpiexec("--hosts", "localhost,h0,refusing", "sleep", t, status=1, sentence="host refusing")
    assert not sleepers(t), "something was started though a host was missing"


def test_files_with_nonsense(tmp_path):
    file = tmp_path / "nonsense"
    for text, sentence in (
        ("h0\nh1 slots=many\n", "line 2 of the host file"),
        ("h0 h1\n", "has 'h1'"),
        ("{h0}\n", "is not a host name"),
        ("# no host\n", "names no host"),
        (b"\xff\xfe\n", "is not text"),
    ):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        mpiexec("--hostfile", file, "true", status=1, sentence=sentence)
    mpiexec("--hostfile", tmp_path / "none", "true", status=1, sentence="cannot be read")
    mpiexec("--hosts", "h0,,h1", "true", status=1, sentence="is not a host name")


def test_two_jobs_on_the_same_hosts(program):
    meet = program("tests/launchers/meet.c")
    both = [start("--hosts", "h0:2,h1:2", meet) for _ in range(2)]
    for p in both:
        out, err = p.communicate(timeout=WATCHDOG)
        assert p.returncode == 0 and out.count("of 4 sum 6") == 4, (out, err)


def test_clocks_an_hour_apart(program):
    meet = program("tests/launchers/meet.c")
    apart = ["unshare", "--time", "--monotonic", "3600", "--boottime", "3600"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("this kernel has no time namespaces")
    p = mpiexec("--hosts", "h0,h1", "-n", 1, meet, ":", "-n", 1, *apart, meet)
    assert p.stdout.count("of 2 sum 1") == 2, p.stdout
