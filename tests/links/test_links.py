"""Links that fail, in the host lab (tests/hosts/lab): connections that are reset in the middle of
messages, hosts that vanish, processes that are stopped, too few open files."""

import pathlib
import re

import pytest

from jobs import MPIEXEC, ROOT, lab, run, dump

ON_HOSTS = ROOT / "tests/hosts/mpiexec"


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    monkeypatch.setenv("MPIEXEC", MPIEXEC)


@pytest.fixture
def soak(program):
    return program("tests/links/soak.c", "-O2")


@pytest.fixture
def alltoall(program):
    return program("tests/network/alltoall.c", "-O2")


# Ends every TCP connection of every host with a reset, again and again, until the file is gone;
# says how many.
RESET = r"""
touch $FILE
( n=0
  while [ -e $FILE ]; do
    for host in $(seq 0 $((LAB_HOSTS - 1))); do
      [ $((n % 2)) = $((host % 2)) ] || continue
      ip netns exec ${LAB}h$host ss -K -t -H state established 2>/dev/null |
        grep -c . >> $FILE.count || true
    done
    n=$((n + 1)); sleep 0.08
  done ) &
"""


# Waits until the ranks of hosts 0 and 1 have a connection: a slow machine starts them late.
CONNECTED = (
    "until ip netns exec ${LAB}h0 ss -tnH state established | grep -q '10[.]7[78][.]0[.]2'; "
    "do sleep 0.1; done"
)


@pytest.fixture
def under_resets(tmp_path):
    """under_resets(JOB): what a job of two hosts says while connections are reset all the time, and
    how many were."""

    def begin(job, status=0, **env):
        file = tmp_path / "resets"
        script = (
            f"FILE={file}; {RESET} sleep 0.3; {job}; status=$?; rm -f $FILE; wait; exit $status"
        )
        out, err = lab("--hosts 2", script, status=status, **env)
        count = pathlib.Path(f"{file}.count")
        return out, err, sum(int(n) for n in count.read_text().split()) if count.exists() else 0

    return begin


@pytest.mark.parametrize("name, arguments", [("soak", "4"), ("alltoall", "1000 3000")])
def test_connections_that_are_reset_lose_nothing(name, arguments, under_resets, request):
    out, err, resets = under_resets(f"{ON_HOSTS} -n 4 {request.getfixturevalue(name)} {arguments}")
    if resets == 0:
        pytest.skip("this kernel resets no connections for 'ss -K'")
    print(f"{out.strip()}; {resets} ends of connections were reset")
    assert out.startswith("right") and resets > 10, (out, err, resets)


@pytest.fixture
def accumulates(program):
    return program("tests/links/accumulates.c", "-O2")


def test_connections_that_are_reset_have_nothing_accumulated_twice(under_resets, accumulates):
    out, err, resets = under_resets(f"{ON_HOSTS} -n 4 {accumulates} 4", KW_PATHS="self,tcp")
    if resets == 0:
        pytest.skip("this kernel resets no connections for 'ss -K'")
    print(f"{out.strip()}; {resets} ends of connections were reset")
    assert out.startswith("right") and resets > 10, (out, err, resets)


@pytest.mark.parametrize("paths", ["tcp", "udp"])
def test_a_link_that_is_down_again_and_again_has_nothing_accumulated_twice(accumulates, paths):
    script = f"""{ON_HOSTS} -n 2 {accumulates} 8 & sleep 1
        for turn in 1 2 3; do
            ip link set port1 down; sleep 0.7; ip link set port1 up; sleep 1
        done
        wait $!"""
    out, err = lab("--hosts 2", script, KW_PATHS=f"self,{paths}", KW_STATS="yes")
    print(out.strip())
    assert out.startswith("right"), (out, err)


def test_packets_that_are_lost_have_nothing_accumulated_twice(accumulates):
    job = f"{ON_HOSTS} -n 2 {accumulates} 4"
    out, err = lab("--hosts 2 --loss 2", job, KW_PATHS="self,udp", KW_STATS="yes")
    print(f"{out.strip()}; {counted('udp_repeated', err)} packets were sent again")
    assert out.startswith("right") and counted("udp_repeated", err) > 0, (out, err)


def test_without_it_a_reset_is_an_error_that_names_both(under_resets, soak):
    _, err, _ = under_resets(f"{ON_HOSTS} -n 2 {soak} 10", status=None, KW_RELIABLE="no")
    assert re.search(
        r"the connection of ranks \d and \d \(10\.77\.0\.\d to 10\.77\.0\.\d\)", err
    ), err


def vanishes(soak, arguments):
    """The link of host 1 goes down while a job runs; how long the job's end takes, and its
    sentences."""
    script = (
        f"{ON_HOSTS} -n 2 {soak} {arguments} & {CONNECTED}; sleep 2; ip link set port1 down; "
        "date +%s.%N; wait $!; date +%s.%N"
    )
    out, err = lab("--hosts 2", script, status=0)
    times = [float(line) for line in out.split() if re.fullmatch(r"\d+\.\d+", line)]
    return times[1] - times[0], err


@pytest.mark.parametrize("arguments", ["60", "1 60"])
def test_a_host_that_vanishes_is_reported(arguments, soak):
    """In the middle of messages, and while its rank is waited for."""
    took, err = vanishes(soak, arguments)
    said = [line for line in err.splitlines() if "reconnecting failed" in line]
    print(f"after {took:.1f} s: {said[0] if said else err}")
    assert said and re.search(r"its host h[01] has probably died", said[0]), err
    assert re.search(
        r"rank [01] .*ranks [01] and [01] \(10\.77\.0\.[12] to 10\.77\.0\.[12]\)", said[0]
    ), err
    assert re.search(r"to 10\.77\.0\.[12]:\d+: (No route to host|no answer in 5 s)", said[0]), err


def test_a_network_that_is_gone_for_a_while_is_waited_for(soak):
    """Longer than the kernel's patience, so that the connection ends and is made again."""
    script = (
        f"{ON_HOSTS} -n 2 {soak} 14 & {CONNECTED}; sleep 2; ip link set port1 down; sleep 10; "
        "ip link set port1 up; wait $!"
    )
    out, _ = lab("--hosts 2", script)
    assert out.startswith("right"), out
    print(out.strip())


def test_traffic_moves_to_the_other_of_two_links(soak):
    """The link that the connection uses goes down, on the side of host 1. It is left before the
    kernel gives it up."""
    script = f"""{ON_HOSTS} -n 2 {soak} 14 & {CONNECTED}; sleep 2
        dead=link1
        if ip netns exec ${{LAB}}h0 ss -tnH state established | grep -q 10.77.0.2; then
            dead=port1
        fi
        ip link set $dead down; echo $dead; wait $!"""
    out, err = lab("--hosts 2 --links 2", script, KW_LOG="info", KW_STATS="yes")
    dead, said = out.splitlines()
    alive = "10.78.0." if dead == "port1" else "10.77.0."
    assert said.startswith("right") and re.search(
        rf"^rank \d on \S+: tcp to rank \d: {re.escape(alive)}", err, re.M
    ), (out, err)
    assert counted("silent_left", err) > 0, err
    print(f"{dead} died; {said}")


def counted(name, err):
    """A counter, of all ranks together."""
    return sum(int(n) for n in re.findall(rf"\b{name} (\d+)", err))


def striped(err):
    """Of all ranks together: long messages that went over both links, their bytes on the further
    link, and pieces that went again."""
    return [counted(f"striped_{what}", err) for what in ("sent", "bytes", "again")]


def test_long_messages_go_over_both_links_and_over_one_when_the_other_dies(soak):
    """The further link, which there is none of at first, goes down while long messages are under
    way: all arrive, and what it carried goes again over the first one."""
    script = f"""ip link set link1 down; {ON_HOSTS} -n 2 {soak} 20 & {CONNECTED}; sleep 1
        ip link set link1 up; sleep 6
        ip netns exec ${{LAB}}h0 ss -tnH state established | grep -o '10.7[78].0.2' | sort | uniq -c
        ip link set link1 down; wait $!"""
    out, err = lab("--hosts 2 --links 2 --rate 1gbit", script, KW_STATS="yes")
    sent, bytes_there, again = striped(err)
    assert "right" in out and "10.77.0.2" in out and "10.78.0.2" in out, (out, err)
    assert sent > 20 and bytes_there > 20 << 20 and again > 0 and counted("silent_left", err) > 0, (
        out,
        err,
    )
    print(
        f"{out.splitlines()[-1]}; {sent} over both links, "
        f"{bytes_there >> 20} MB of them on the further one, {again} pieces again"
    )


@pytest.mark.parametrize("setting", ["KW_STRIPE=no", "KW_INTERFACES=eth1"])
def test_a_setting_keeps_long_messages_on_one_link(setting, soak):
    out, err = lab(
        "--hosts 2 --links 2",
        f"{ON_HOSTS} -n 2 {soak} 1",
        KW_STATS="yes",
        **dict([setting.split("=")]),
    )
    assert out.startswith("right") and striped(err) == [0, 0, 0], (out, err)


def test_a_stopped_process_is_waited_for(soak):
    """Nor is it taken for a dead link, where there are two."""
    stop, go = ("kill -%s $(ip netns pids ${LAB}h1)" % s for s in ("STOP", "CONT"))
    job = f"{ON_HOSTS} -n 2 {soak} 36"
    script = f"{job} & {CONNECTED}; sleep 2; {stop}; sleep 32; {go}; wait $!"
    out, err = lab("--hosts 2 --links 2", script, KW_STATS="yes")
    assert out.startswith("right") and counted("silent_left", err) == 0, (out, err)
    print(out.strip())


def with_files(files, ranks, program, **env):
    """A job over TCP of ranks that may open this many files (the launcher may open as many as it
    wants)."""
    return run(
        "sh",
        "-c",
        f"ulimit -Sn {files} && exec {MPIEXEC} -n {ranks} {program} 4 500",
        env={"KW_PATHS": "self,tcp", **env},
    )


def test_few_open_files_are_enough_for_many_ranks(alltoall):
    """64 ranks with room for far fewer connections than peers."""
    p = with_files(40, 64, alltoall)
    assert p.returncode == 0 and p.stdout.startswith("right"), dump(p)


def test_too_few_open_files_are_an_error_where_links_may_not_rest(alltoall):
    p = with_files(16, 16, alltoall, KW_RELIABLE="no")
    assert p.returncode != 0 and "room for connections to all 15 others" in p.stderr, dump(p)
