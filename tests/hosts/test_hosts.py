"""The host lab: ranks on different hosts are joined by their network, a command's status is the
lab's, nothing is left behind, interrupted or not."""

import os
import re
import signal
import subprocess

import pytest

from jobs import LAB, MPIEXEC, ROOT, WATCHDOG, lab, run, wait_until

HERE = ROOT / "tests/hosts"


def test_a_host_has_nothing_but_its_interface():
    out, _ = lab("", f"{HERE}/on 1 ip -4 -o address")
    assert "10.77.0.2/24" in out and "10.77.0.1/" not in out, out


def test_a_limit_is_on_it():
    out, _ = lab("--rate 1gbit", f"{HERE}/on 1 tc qdisc show dev eth0")
    assert re.search("tbf.*rate 1Gbit", out), out


def test_the_status_is_the_commands():
    lab("", "exit 7", status=7)


def test_collective_operations_go_through_the_network(program):
    coll = program("bench/coll.c", "-O1", "-lm")
    out, err = lab(
        "--hosts 3",
        f"{HERE}/mpiexec -n 6 {coll} --ms 1 --sizes 8,1048576; {HERE}/on 0 cat /proc/net/dev",
        MPIEXEC=MPIEXEC,
    )
    assert len([line for line in out.splitlines() if line.startswith("{")]) == 13, out + err
    assert int(re.search(r"^ *eth0: *(\d+)", out, re.M)[1]) > 1_000_000, (
        f"nothing went through the network: {out}"
    )


@pytest.mark.parametrize("name", ["coll_move", "coll_reduce"])
def test_a_network_that_loses_packets(name, program):
    """Every twentieth: everything arrives over UDP, and packets were sent again."""
    test = program(f"tests/c/{name}.c", "-O1", "-DSTRICT=1")
    out, err = lab(
        "--hosts 4 --loss 5",
        f"{HERE}/mpiexec -n 4 {test}",
        MPIEXEC=MPIEXEC,
        KW_PATHS="self,udp",
        KW_STATS="yes",
    )
    assert re.search("udp_repeated [1-9]", out + err), (
        f"nothing was sent again at 5 % loss: {out}{err}"
    )


def namespaces(prefix):
    return [
        name
        for name in run("ip", "netns", "list").stdout.splitlines()
        if re.match(f"{prefix}(sw|h)", name)
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left(number):
    """An interrupt ends the command and removes the hosts; so does the next lab after a kill."""
    lab("--hosts 1", "true")  # or why there is none
    p = subprocess.Popen([LAB, "--", "sleep", "60"])
    prefix = f"kwlab{p.pid}"
    wait_until(lambda: run("ip", "netns", "pids", f"{prefix}sw").stdout, "the lab does not start")
    os.kill(p.pid, number)
    p.wait(timeout=WATCHDOG)
    if number == signal.SIGKILL:  # unless a lab of another step has begun since
        run(LAB, "--clean")
    assert not namespaces(prefix)
