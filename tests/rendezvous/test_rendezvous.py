"""Processes that are started one by one form a job (KW_RENDEZVOUS). The last tests run in the host
lab (tests/hosts/lab): a set of pods with names that become known late, in any order, one started
again; and containers, made of namespaces and a filter of system calls."""

import os
import platform
import re
import socket
import subprocess
import threading
import time

import pytest

from jobs import MPIEXEC, ROOT, WATCHDOG, hosts, wait_until

KEY = "a secret of thirty-two bytes ...\n"


# Below those that the system gives to connections, and not the same twice: tests run side by side.
PORTS = iter(range(15000 + os.getpid() % 800 * 20, 32000))


def free_port():
    for port in PORTS:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)):
                return port


class Set:
    """Processes of one job, here, each as on a host of its own."""

    def __init__(self, program, size, **env):
        self.port = free_port()
        self.size, self.program, self.env = size, program, env

    def start(self, rank, bound=None, log=None, **more):
        """Starts a rank; `log`: a file that it tells how it gets on."""
        env = {
            "KW_RENDEZVOUS": f"localhost:{self.port}",
            "KW_SIZE": str(self.size),
            "KW_RANK": str(rank),
            "KW_KEY": KEY,
            "KW_HOST": f"h{rank}",
            **({"KW_LOG": "debug"} if log else {}),
            **self.env,
            **more,
        }
        words = [self.program] if bound is None else [self.program, str(bound)]
        said = open(log, "w") if log else subprocess.PIPE
        return subprocess.Popen(
            words, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=said, text=True
        )


def says(log, sentence, times=1):
    """Waits until a rank has said this in its log so often."""
    wait_until(
        lambda: log.read_text().count(sentence) >= times, f"'{sentence}' is not said {times} times"
    )


@pytest.fixture
def meet(program):
    return program("tests/launchers/meet.c")


@pytest.fixture
def cores(program):
    return program("tests/launchers/cores.c")


@pytest.fixture
def alltoall(program):
    return program("tests/network/alltoall.c")


def ends(processes):
    return [(*p.communicate(timeout=WATCHDOG), p.returncode) for p in processes]


def met(results, n):
    text = "".join(out for out, _, _ in results)
    seen = sorted(re.findall(r"rank (\d+) of (\d+) sum (\d+)", text))
    assert seen == [(str(r), str(n), str(n * (n - 1) // 2)) for r in range(n)], results
    assert all(status == 0 and not err for _, err, status in results), results


def test_they_come_in_any_order(meet):
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1], [0]):
        job = Set(meet, len(order))
        met(ends([job.start(r) for r in order]), len(order))


def test_some_share_a_host(meet):
    job = Set(meet, 4)
    met(ends([job.start(r, KW_HOST=f"h{r // 2}") for r in range(4)]), 4)


def test_one_is_started_anew_before_the_job_forms(meet, tmp_path):
    job, log = Set(meet, 3), tmp_path / "log"
    first = [job.start(0, log=log), job.start(2)]
    says(log, "rank 2 has come to the rendezvous")
    first[1].kill()
    first[1].communicate()
    met(ends([first[0], job.start(2), job.start(1)]), 3)


def test_rank_0_is_started_anew_before_the_job_forms(meet, tmp_path):
    job, log = Set(meet, 3), tmp_path / "log"
    others = [job.start(1)]
    zero = job.start(0, log=log)
    says(log, "rank 1 has come to the rendezvous")
    zero.kill()
    zero.communicate()
    met(ends([*others, job.start(2), job.start(0)]), 3)


def test_mpiexec_says_it_with_options(meet):
    job = Set(meet, 3)
    env = {**os.environ, "KW_KEY": KEY}

    def begin(*words):
        at = f"localhost:{job.port}"
        return subprocess.Popen(
            [MPIEXEC, "--rendezvous", at, *words],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    met(
        ends(
            [
                begin("-n", "3", "--rank", str(r), "-env", "KW_HOST", f"h{r}", meet)
                for r in (2, 0, 1)
            ]
        ),
        3,
    )
    for words, status, sentence in (
        (["--rank", "0", "--hosts", "a", meet], 1, "so hosts, binding"),
        (["-n", "2", meet, ":", meet], 1, "one program"),
        (["/no/such/program"], 127, "/no/such/program"),
    ):
        [(_, err, got)] = ends([begin(*words)])
        assert got == status and sentence in err and err.count("\n") == 1, (words, got, err)


def test_who_waits_for_a_rank_that_has_finished_hears_of_it(program):
    for host, how in (("h0", "collective"), ("h{}", "collective")):
        job = Set(program("tests/launch/left.c"), 3)
        ended = ends([job.start(r, how, KW_HOST=host.format(r)) for r in range(3)])
        assert all(status != 0 for _, _, status in ended), ended
        assert any("rank 0 has called MPI_Finalize: " in err for _, err, _ in ended[1:]), ended


def test_who_never_comes_is_named(meet):
    job = Set(meet, 4, KW_RENDEZVOUS_WAIT="10")
    for out, err, status in ends([job.start(r) for r in (0, 2)]):
        assert (
            status != 0
            and "ranks 1, 3 did not come to the rendezvous" in err
            and "ranks 0, 2 did" in err
        ), (out, err, status)
    for _, err, status in ends([job.start(1, KW_RENDEZVOUS_WAIT="2")]):
        assert (
            status != 0 and "rank 1 did not find rank 0 at localhost" in err and "refused" in err
        ), err


def test_mistakes_get_one_sentence(meet):
    job = Set(meet, 2, KW_RENDEZVOUS_WAIT="2")
    for rank, change, sentence in (
        (5, {}, "rank 5 of 2"),
        (1, {"KW_RENDEZVOUS": "here"}, "NAME:PORT"),
        (1, {"KW_RENDEZVOUS": "no-such-host.invalid:7000"}, "its host name cannot be resolved"),
        (1, {"KW_KEY": "short"}, "5 bytes"),
        (1, {"KW_KEY_FILE": "/no/such/file"}, "'/no/such/file', which cannot be read"),
        (1, {"KW_SIZE": "many"}, "KW_SIZE is 'many'"),
    ):
        [(_, err, status)] = ends([job.start(rank, **change)])
        assert status != 0 and sentence in err, (change, err)
    with socket.socket() as s:
        s.bind(("", job.port))
        s.listen()
        [(_, err, status)] = ends([job.start(0)])
    assert status != 0 and f"rank 0 cannot listen on port {job.port}" in err, err
    late = {"KW_RENDEZVOUS_WAIT": "60"}
    results = ends([job.start(0, KW_RENDEZVOUS_WAIT="10"), job.start(1, KW_SIZE="3", **late)])
    assert "rank 1 has 3 ranks as job size (KW_SIZE), but rank 0 has 2" in results[1][1], results


def test_another_key_is_a_stranger(meet):
    job = Set(meet, 2, KW_RENDEZVOUS_WAIT="3")
    zero, one = ends([job.start(0), job.start(1, KW_KEY="another secret of some length")])
    assert zero[2] != 0 and "rank 1 did not come" in zero[1], zero
    assert one[2] != 0 and "did not find rank 0" in one[1], one


def reach(port, held):
    """Connects to a port, if somebody listens there."""
    try:
        held.append(socket.create_connection(("127.0.0.1", port), timeout=5))
        return True
    except (ConnectionRefusedError, TimeoutError):
        return False


def test_strangers_change_nothing(meet):
    job = Set(meet, 2)
    zero = job.start(0)
    held = []
    for what in (
        b"",
        b"GET / HTTP/1.0\r\n\r\n",
        os.urandom(300),
        b"KWhs",
        b"KWhs" + os.urandom(92),
    ) * 10:
        wait_until(lambda: reach(job.port, held), "rank 0 does not listen")
        held[-1].send(what)
    met(ends([zero, job.start(1)]), 2)


def test_ranks_may_run_on_different_processors(cores):
    cpus = sorted(os.sched_getaffinity(0))
    job = Set(cores, 2, KW_HOST="one")
    results = ends([job.start(0), job.start(1, bound=cpus[-1])])
    assert all(status == 0 for _, _, status in results) and "rank 1 of 2 right" in results[1][0], (
        results
    )


def test_settings_that_differ_are_named(meet):
    for setting, own in (
        ("KW_CHECK", "yes"),
        ("KW_PATHS", "self,tcp"),
        ("KW_COLL", "bcast - - any any any linear"),
        ("KW_CPUS", "77"),
    ):
        job = Set(meet, 3, KW_HOST="one")
        results = ends([job.start(r, **({setting: own} if r == 1 else {})) for r in range(3)])
        assert all(status != 0 for _, _, status in results), results
        said = results[0][1]
        assert (
            f"{setting} must be the same on all ranks" in said
            and f"'{own}' on rank 1" in said
            and "on ranks 0, 2" in said
        ), results


def test_slow_strangers_take_no_place(meet):
    """More than find room at once (34) hold their connections with a byte now and then, and come
    again when they are hung up on."""
    job = Set(meet, 2)
    zero = job.start(0)
    over = threading.Event()
    held = []

    def keep_on():
        sent = {}  # bytes of a hello, and when the last of them went
        while not over.wait(0.02):
            for stranger in list(held):
                count, when = sent.get(stranger, (0, 0))
                try:
                    if time.monotonic() > when + 2:
                        stranger.send((b"KWhs" + bytes(92))[count : count + 1])
                        sent[stranger] = count + 1, time.monotonic()
                    stranger.setblocking(False)
                    gone = stranger.recv(1) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    held.remove(stranger)
                    stranger.close()
                    reach(job.port, held)

    for _ in range(60):
        wait_until(lambda: reach(job.port, held), "rank 0 does not listen")
    keeper = threading.Thread(target=keep_on)
    keeper.start()
    try:
        met(ends([zero, job.start(1)]), 2)
    finally:
        over.set()
        keeper.join()
        for stranger in held:
            stranger.close()


def relay(port, inject):
    """A man in the middle of all who connect to the port that is returned: passes on what they and
    rank 0 say. `inject` is asked after each piece, with the speaker and what has been said, for
    what he adds himself on the same way."""
    outside = socket.create_server(("127.0.0.1", 0))

    def pass_on(whence, to, who):
        said = b""
        try:
            while piece := whence.recv(4096):
                said += piece
                to.sendall(piece + inject(who, said))
        except OSError:
            pass
        for one in (whence, to):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept():
        while True:
            guest, _ = outside.accept()
            try:
                host = socket.create_connection(("127.0.0.1", port))
            except OSError:
                guest.close()
                continue
            for one in ((guest, host, "guest"), (host, guest, "host")):
                threading.Thread(target=pass_on, args=one, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return outside.getsockname()[1]


def test_a_man_in_the_middle_is_not_obeyed(meet):
    for who, word, lie, sentence in (
        (None, None, None, None),
        (
            "guest",
            b"cmd=get_maxes",
            b"cmd=abort exitcode=9\n",
            (0, "the connection of rank 1 is broken: a message failed"),
        ),
        (
            "host",
            b"cmd=response_to_init",
            b"cmd=maxes kvsname_max=1 keylen_max=1 vallen_max=1\n",
            (1, "the connection of rank 1 to rank 0 is broken: a message failed"),
        ),
    ):
        told = []

        def inject(speaker, said):
            if lie and speaker == who and word in said and not told:
                told.append(lie)
                return lie
            return b""

        job = Set(meet, 2)
        through = relay(job.port, inject)
        results = ends([job.start(0), job.start(1, KW_RENDEZVOUS=f"localhost:{through}")])
        if not lie:
            met(results, 2)
            continue
        rank, expected = sentence
        assert told and all(status != 0 for _, _, status in results), (told, results)
        assert expected in results[rank][1] and "aborted it" not in results[0][1], (
            expected,
            results,
        )


def test_an_end_is_the_end_of_all(program):
    for how in ("kill", "abort"):
        job = Set(program("tests/rendezvous/waiting.c"), 3)
        processes = [job.start(r, END=how if r == 1 else "") for r in range(3)]
        results = ends(processes)
        assert all(status != 0 for _, _, status in results), results
        assert "the job has failed: rank 1" in results[0][1], results


def test_a_set_of_pods_with_late_names(meet, tmp_path):
    """Three. Only rank 0's name is needed, and no rank knows it in the beginning."""
    (tmp_path / "key").write_text(KEY)
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n")

    def pod(number, log=None):
        script = f"hostname solver-{number}; mount --bind {names} /etc/hosts; exec {meet}"
        env = {
            **os.environ,
            "KW_RENDEZVOUS": "solver-0.solver:7000",
            "KW_SIZE": "3",
            "KW_KEY_FILE": str(tmp_path / "key"),
            **({"KW_LOG": "debug"} if log else {}),
        }
        words = [
            "ip",
            "netns",
            "exec",
            f"{lab}h{number}",
            "unshare",
            "--uts",
            "--mount",
            "sh",
            "-c",
            script,
        ]
        said = open(log, "w") if log else subprocess.PIPE
        return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=said, text=True)

    with hosts(3) as lab:
        logs = [tmp_path / "early", tmp_path / "late"]
        unknown = "rank 0 is not at the rendezvous yet: its host name cannot be resolved"
        early = [pod(2, logs[0]), pod(0)]
        says(logs[0], unknown)
        early[0].kill()
        early[0].communicate()
        processes = [early[1], pod(1), pod(2, logs[1])]
        says(logs[1], unknown, times=3)
        with open(names, "a") as f:
            f.write("10.77.0.1 solver-0.solver\n")
        met(ends(processes), 3)


def container(host, name, *words, **env):
    """A command in a container with the network of a host of the lab; it is process 1 there."""
    namespaces = [
        "unshare",
        "--uts",
        "--mount",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    return subprocess.Popen(
        [
            "ip",
            "netns",
            "exec",
            host,
            *namespaces,
            ROOT / "tests/rendezvous/container",
            name,
            *map(str, words),
        ],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def took(err, name):
    return sum(int(n) for n in re.findall(rf"{name}\D+(\d+)", err)) > 0


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"),
    reason="the numbers of this processor's system calls are not known here",
)
def test_containers_of_every_kind(alltoall):
    """Programs that exchange long messages in them."""

    def both(where, names, ranks):
        def one(number):
            start = "".join(
                f'KW_RANK={number * ranks + r} {alltoall} 5 100000 & pids="$pids $!"; '
                for r in range(ranks)
            )
            wait = "for pid in $pids; do wait $pid || exit; done"
            env = {
                "KW_RENDEZVOUS": "10.77.0.1:7000",
                "KW_SIZE": str(2 * ranks),
                "KW_KEY": KEY,
                "KW_STATS": "yes",
            }
            return container(
                f"{lab}h{where[number]}", names[number], "sh", "-c", start + wait, **env
            )

        results = ends([one(1), one(0)])
        assert all(status == 0 for *_, status in results) and "right" in results[1][0], results
        return "".join(err for _, err, _ in results)

    with hosts(2) as lab:
        [(out, err, status)] = ends(
            [
                container(
                    f"{lab}h0", "alone", MPIEXEC, "-n", "4", alltoall, "5", "100000", KW_STATS="yes"
                )
            ]
        )
        assert status == 0 and "right" in out and not took(err, "tcp_sent"), (
            "one container",
            out,
            err,
            status,
        )
        err = both((0, 1), ("one", "two"), 2)
        assert took(err, "shm_sent") and took(err, "tcp_sent"), ("a bridge", err)
        err = both((0, 0), ("same", "same"), 1)
        assert took(err, "shm_sent") and not took(err, "tcp_sent"), (
            "the host's network and name",
            err,
        )
        err = both((0, 0), ("one", "two"), 1)
        assert took(err, "tcp_sent"), ("the host's network, names of their own", err)
