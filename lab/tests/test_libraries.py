"""What the libraries' programs say."""

import pytest
from conftest import script

from kwlab import libraries, plan, runner


def test_what_a_library_says_at_its_end_is_told_without_its_drawn_rules():
    said = (
        "=====\n==========\n= BAD TERMINATION\n= RANK 1 ===\n"
        "MPI_Wait(59933)........: MPI_Wait(request=0x7) failed\n"
    )
    assert str(libraries.Failed(255, "x", "", said)) == (
        "status 255: … = BAD TERMINATION = RANK 1 === MPI_Wait(59933)… MPI_Wait(request=0x7) failed"
    )


@pytest.mark.parametrize(
    "hosts, words",
    [
        (
            "a,b",
            {
                "kittiwake": "--hosts a,b --map-by node",
                "mpich": "-hosts a,b -ppn 1",
                "impi": "-hosts a,b -ppn 1",
                "openmpi": "--host a:1024,b:1024 --map-by node --oversubscribe",
            },
        ),
        (
            "slurm",
            {
                "kittiwake": "--map-by node",
                "mpich": "-ppn 1",
                "impi": "-ppn 1",
                "openmpi": "--map-by node --oversubscribe",
            },
        ),
    ],
)
def test_each_library_is_started_on_real_hosts_in_its_own_way(tmp_path, monkeypatch, hosts, words):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    for library in libraries.known(tmp_path / "dist", tmp_path / "peers", hosts):
        line, _ = library.command("p2p", 4, "cluster", "--ms", "1")
        assert " ".join(line) == f"{library.launcher} {words[library.name]} -n 4 p2p --ms 1"


def test_each_allocation_is_a_cluster_of_its_own(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-4]")
    assert (
        libraries.cluster("slurm") == "n[1-4]"
        and libraries.cluster("a,b") == "a,b"
        and libraries.cluster("") == ""
    )


@pytest.mark.parametrize(
    "hosts, words",
    [("a b", "'a b' is no list of hosts"), ("a,", "no list"), ("slurm", "no allocation of Slurm")],
)
def test_hosts_that_are_none_are_refused(monkeypatch, tmp_path, hosts, words):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(ValueError, match=words):
        libraries.known(tmp_path, tmp_path, hosts)


def test_hosts_that_ssh_does_not_reach_are_named_before_anything_runs(monkeypatch, tmp_path):
    stand_in = script(
        tmp_path / "ssh",
        '#!/bin/sh\n[ "$1 $2" != "b true" ] || { echo "port 22: No route" >&2; exit 255; }\n',
    )
    monkeypatch.setenv("KW_SSH", str(stand_in))
    libraries.reach("a,c")
    with pytest.raises(
        libraries.Unavailable,
        match=r"--hosts: b cannot be reached \(port 22: No route\). .*`ssh b true`",
    ):
        libraries.reach("a,b,c")
    monkeypatch.setenv("KW_SSH", str(tmp_path / "nonesuch"))
    libraries.reach("localhost")
    with pytest.raises(libraries.Unavailable, match="a cannot be reached .*nonesuch: No such file"):
        libraries.reach("a")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    libraries.reach("slurm")


def test_without_hosts_a_cluster_is_missing(tmp_path):
    with pytest.raises(libraries.Unavailable, match="no hosts were named"):
        libraries.known(tmp_path, tmp_path)[0].command("p2p", 2, "cluster")


def test_a_plan_runs_over_real_hosts_where_it_has_a_network():
    found = plan.on_cluster(plan.load("cluster"))
    assert {cell.network for cell in plan.cells(found)} == {"shm", "cluster"}
    assert (
        len(plan.cells(found))
        == len(set(plan.cells(found)))
        < len(plan.cells(plan.load("cluster")))
    )


def test_this_library_runs_on_hosts_by_their_names(tmp_path, monkeypatch):
    """Both are this machine: what stands for ssh runs what it is told here."""
    stand_in = script(tmp_path / "ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
    monkeypatch.setenv("KW_SSH", str(stand_in))
    monkeypatch.setattr(libraries, "WORK", tmp_path / "work")
    ours = libraries.known(libraries.ROOT / "dist", tmp_path, "a,b")[0]
    out, _ = ours.run(ours.build("p2p"), 2, "cluster", "--ms", "1", "--sizes", "8", timeout=60)
    assert runner.parse(out)[0]["op"] == "pingpong"
