"""What an attack costs: an alltoall of 4 KB between two hosts, attacked, beside the same attack on
a decoy.

Two ranks, each on a host of tests/hosts/lab with a processor of its own, exchange all the time
(bench/steady.c) while strangers (bench/strangers.c) come to their ports, then as many to a port of
somebody else on the same host, in turns: what the packets and the attacker's own work cost is in
both, what the ranks do about strangers in one. Told are, of each pair of neighbouring turns, ratios
of time and of the ranks' processor time for a round: the median, and an interval that holds the
true median with 95 % (of the ratios in order, as the sign test has it). The first third of each
turn is left out. It takes 2 x window x pairs seconds and wants the rights to make network
namespaces."""

import importlib.machinery
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time

from .libraries import FLAGS, HOSTS, ROOT, WORK, Unavailable

OUT = WORK / "attack"
SAID = 152  # bytes of a true rank's hello and proof


def tool():
    """tests/network/attack, which knows how to listen in."""
    loader = importlib.machinery.SourceFileLoader("attack", str(ROOT / "tests/network/attack"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("attack", loader))
    loader.exec_module(module)
    return module


def build(dist):
    OUT.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [dist / "bin/mpicc", *FLAGS, "-o", OUT / "steady", ROOT / "bench/steady.c"], check=True
    )
    subprocess.run(["gcc", *FLAGS, "-o", OUT / "strangers", ROOT / "bench/strangers.c"], check=True)


def inside(rate, window, pairs):
    """In the lab: overhears the ranks' start, then has them attacked. Prints the lines of both."""
    attack = tool()
    sniff, talks = attack.sniffer(), {}
    seconds = 2 * window * pairs + 4
    line = [HOSTS / "mpiexec", "-n", "2", OUT / "steady", seconds, 1024]
    job = subprocess.Popen([str(word) for word in line], stdout=subprocess.PIPE, text=True)
    begin, at = time.monotonic(), []
    while time.monotonic() < begin + 1:
        attack.overhear(sniff, talks)
        at = at if len(at) == 2 else sorted(attack.listeners(None))
        time.sleep(0.001)
    sniff.close()
    (OUT / "hellos").write_bytes(
        b"".join(talk[:SAID] for talk in talks.values() if len(talk) >= SAID)
    )
    spaces = [f"/run/netns/{os.environ['LAB']}h{host}" for host in range(2)]
    where = [word for space, (host, port) in zip(spaces, at) for word in (space, f"{host}:{port}")]
    words = [OUT / "strangers", OUT / "hellos", rate, window, pairs, *where]
    strangers = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True
    )
    said, _ = job.communicate()
    print(strangers.stdout + "steady\n" + said, end="")
    sys.exit(job.returncode)


def per_round(samples, begin, end):
    """Time and processor time of a round, us, of both ranks together, between two times."""
    skip = begin + (end - begin) / 3
    of = [[s for s in samples if s[0] == rank and skip < s[1] <= end] for rank in (0, 1)]
    time_us = (of[0][-1][1] - of[0][0][1]) * 1e6 / sum(s[2] for s in of[0][1:])
    return time_us, sum(s[3] for rank in of for s in rank) / sum(s[2] for s in of[0])


def interval(ratios):
    """Median, and the ratios in order between which the true median is with 95 %."""
    ratios, n, tail, k = sorted(ratios), len(ratios), 0.0, 0
    while (tail := tail + math.comb(n, k) / 2**n) < 0.025:
        k += 1
    return statistics.median(ratios), ratios[max(k - 1, 0)], ratios[n - max(k, 1)]


def report(text):
    """Lines for people."""
    windows, _, samples = text.partition("steady\n")
    windows = [
        (float(b), float(e), who, int(n)) for b, e, who, n in map(str.split, windows.splitlines())
    ]
    samples = [
        (int(r), float(t), float(n), float(us))
        for r, t, n, us in map(str.split, samples.splitlines())
    ]
    costs = [per_round(samples, b, e) for b, e, _, _ in windows]
    came = {
        who: sum(w[3] for w in windows if w[2] == who)
        / sum(w[1] - w[0] for w in windows if w[2] == who)
        for who in ("ranks", "decoy")
    }
    yield (
        f"connections a second: ranks {came['ranks']:.0f}, decoy {came['decoy']:.0f}; "
        f"{len(windows) // 2} pairs of turns"
    )
    for k, what in enumerate(("time of a round", "processor time of a round")):
        ratios, us = [], {"ranks": [], "decoy": []}
        for i in range(0, len(windows), 2):
            pair = {windows[j][2]: costs[j][k] for j in (i, i + 1)}
            ratios.append(pair["ranks"] / pair["decoy"])
            for who, cost in pair.items():
                us[who].append(cost)
        middle, low, high = interval(ratios)
        yield (
            f"{what}: attacked {statistics.median(us['ranks']):.2f} us, "
            f"decoy {statistics.median(us['decoy']):.2f} us; "
            f"ratio {middle:.4f} ({low:.4f} to {high:.4f})"
        )


def cost(dist, rate, window, pairs):
    """Measures; lines for people. Raises Unavailable where there can be no host lab."""
    build(dist)
    words = ["-m", "kwlab.attack", rate, window, pairs]
    line = [HOSTS / "lab", "--hosts", 2, "--", sys.executable, *words]
    env = {
        **os.environ,
        "LAB_PIN": "yes",
        "MPIEXEC": str(dist / "bin/mpiexec"),
        "LD_LIBRARY_PATH": str(dist / "lib"),
        "KW_STATS": "yes",
        "PYTHONPATH": str(ROOT / "lab"),
    }
    done = subprocess.run([str(word) for word in line], env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Unavailable(f"the attack in the host lab ended with status {done.returncode}")
    yield from report(done.stdout)


if __name__ == "__main__":
    inside(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
