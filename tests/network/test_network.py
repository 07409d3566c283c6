"""Which network a job uses, in the host lab (tests/hosts/lab): interfaces that mislead, IPv6, two
links, none, and strangers on the network."""

import pathlib
import re
import time

import pytest

from jobs import MPIEXEC, ROOT, lab

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def job(program, monkeypatch):
    """job(RANKS, ROUNDS, COUNT): the words that start an alltoall on the hosts of the lab."""
    monkeypatch.setenv("MPIEXEC", MPIEXEC)
    alltoall = program("tests/network/alltoall.c", "-O1")
    return lambda ranks, rounds=20, count=1000: (
        f"{ROOT}/tests/hosts/mpiexec -n {ranks} {alltoall} {rounds} {count}"
    )


def networks(errors):
    """Of each connection that was made: our address, interface, the peer's address, and the rest of
    the line."""
    return re.findall(
        r"^rank \d+ on \S+: tcp to rank \d+: (\S+) \((\w+)\) to ([^\s;]+)(.*)$", errors, re.M
    )


def test_interfaces_that_mislead_are_not_used(job):
    out, err = lab("--hosts 3 --mislead", job(6), KW_LOG="info")
    used = networks(err)
    assert out.startswith("right") and len(used) == 12, (out, err)  # pairs of ranks on two hosts
    assert all(here.startswith("10.77.0.") and device == "eth0" for here, device, _, _ in used), err
    assert all("10.1.0.1 (both hosts have it)" in rest for _, _, _, rest in used), err


def test_hosts_with_ipv6_alone_or_beside(job):
    out, err = lab("--hosts 2 --family 6", job(4), KW_LOG="info")
    assert (
        out.startswith("right")
        and all(here.startswith("fd77::") for here, _, _, _ in networks(err))
        and networks(err)
    ), err
    out, err = lab("--hosts 2 --family both", job(2), KW_LOG="info")
    assert out.startswith("right") and len(networks(err)) == 1, err


def test_one_of_two_links_is_enough(job):
    """Whichever it is: the other is down on one host, so that nothing of its addresses answers."""
    for dead, alive in (("port1", "10.78.0."), ("link1", "10.77.0.")):
        out, err = lab("--hosts 2 --links 2", f"ip link set {dead} down; {job(2)}", KW_LOG="info")
        used = networks(err)
        assert out.startswith("right") and len(used) == 1 and used[0][0].startswith(alive), (
            dead,
            out,
            err,
        )


def test_a_setting_pins_the_network(job):
    for device, prefix in (("eth0", "10.77.0."), ("eth1", "10.78.0.")):
        out, err = lab("--hosts 2 --links 2", job(2), KW_LOG="info", KW_INTERFACES=device)
        assert out.startswith("right") and [
            here.startswith(prefix) for here, *_ in networks(err)
        ] == [True], (device, err)
    _, err = lab("--hosts 2", job(2), status=None, KW_INTERFACES="ib7")
    assert "KW_INTERFACES names 'ib7', but this host has" in err and "eth0 (10.77.0." in err, err


def test_a_setting_chooses_networks_and_leaves_others_out(job):
    for options, text, prefix in (
        ("--links 2", "10.78.0.0/16", "10.78.0."),
        ("--links 2", "!eth0,!ib7", "10.78.0."),
        ("--links 2", "auto,!10.78.0.0/24", "10.77.0."),
        ("--family both", "fd77::/64", "fd77::"),
        ("--family both", "!0.0.0.0/0", "fd77::"),
    ):
        out, err = lab(f"--hosts 2 {options}", job(2), KW_LOG="info", KW_INTERFACES=text)
        assert out.startswith("right") and [
            here.startswith(prefix) for here, *_ in networks(err)
        ] == [True], (text, err)
    for text, sentence in (
        ("10.77.0.0/33", "'10.77.0.0/33', which is not a network"),
        ("10.9.0.0/16", "'10.9.0.0/16', but this host has"),
    ):
        _, err = lab("--hosts 2", job(2), status=None, KW_INTERFACES=text)
        assert f"KW_INTERFACES names {sentence}" in err, err


def test_a_setting_says_the_ports(job, tmp_path):
    """That they are the range's is seen by taking them away. The second job of two meets what the
    kernel keeps of the first."""
    holder = (
        "import socket; s = socket.socket(); s.bind(('10.77.0.1', 40001)); s.listen(); "
        "u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('10.77.0.1', 40001)); "
        "print('held', flush=True); input()"
    )
    taken = (
        f'mkfifo $0.go $0.is; {ROOT}/tests/hosts/on 0 python3 -c "{holder}" <$0.go >$0.is & '
        "exec 3>$0.go; read held <$0.is; "
    )
    for paths in ("self,shm,tcp", "self,udp"):
        out, err = lab("--hosts 2", f"{job(4)}; {job(4)}", KW_PORTS="40000-40001", KW_PATHS=paths)
        assert out.count("right") == 2, (paths, out, err)
        script = taken.replace("$0", f"{tmp_path}/{paths}") + job(4)
        _, err = lab("--hosts 2", script, status=None, KW_PORTS="40000-40001", KW_PATHS=paths)
        assert (
            "all ports of KW_PORTS, 40000-40001, are in use, "
            "but each of the job's 2 ranks on this host needs one"
        ) in err, (paths, err)
    _, err = lab("--hosts 2", job(2), status=None, KW_PORTS="40100-40000")
    assert (
        "KW_PORTS is '40100-40000', but must be a range of ports from 1 to 65535, "
        "such as 40000-40100"
    ) in err, err


def test_no_way_is_reported_with_every_pair(job):
    for options, dead, pairs in (
        ("--hosts 2", ("port1",), ["10.77.0.[12] to 10.77.0.[12]:"]),
        (
            "--hosts 2 --links 2",
            ("port1", "link1"),
            [f"10.7{a}.0.[12] to 10.7{b}.0.[12]:" for a in (7, 8) for b in (7, 8)],
        ),
    ):
        began = time.monotonic()
        down = "".join(f"ip link set {port} down; " for port in dead)
        _, err = lab(options, down + job(2), status=None)
        lines = [line for line in err.splitlines() if line.startswith("mpiexec:")]
        assert len(lines) == 1 and re.search(
            "none of its addresses on host h[01] could be reached", lines[0]
        ), err
        assert all(re.search(pair, lines[0]) for pair in pairs), (pairs, lines)
        print(f"said after {time.monotonic() - began:.1f} s: {lines[0]}")


def test_strangers_change_nothing(job, tmp_path):
    calm, _ = lab("--hosts 2", job(4, 5000))
    attack = f"{HERE}/attack 12 >{tmp_path}/said & until grep -q ready {tmp_path}/said"
    script = f"{attack}; do sleep 0.1; done; {job(4, 5000)}; wait; cat {tmp_path}/said"
    out, err = lab("--hosts 2", script, KW_STATS="yes")
    print(f"alone: {calm.strip()}; under attack: {out.strip()}")
    refused = [int(n) for n in re.findall(r"connections_refused\D+(\d+)", err)]
    assert "right in" in out and "right in" in calm, (out, err)
    assert sum(refused) > 0, f"the attack reached no rank: {err}"
    for kind in ("scan", "silent", "noise", "truncated", "replay", "forged"):
        assert f"'{kind}'" in out, f"no attack of the kind {kind}: {out}"
