"""What the libraries' programs say, and how each is started and compiled for."""

from pathlib import Path

import pytest
from conftest import script

from kwlab import fortran, libraries, plan, runner
from kwlab.store import Store


def test_what_a_library_says_at_its_end_is_reported_without_its_drawn_rules():
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
                "kittiwake-java": "--hosts a,b --map-by node",
                "mpich": "-hosts a,b -ppn 1",
                "impi": "-hosts a,b -ppn 1",
                "openmpi": "--host a:1024,b:1024 --map-by node --oversubscribe",
            },
        ),
        (
            "slurm",
            {
                "kittiwake": "--map-by node",
                "kittiwake-java": "--map-by node",
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
    [
        ("a b", "'a b' is not a list of hosts"),
        ("a,", "not a list of"),
        ("slurm", "not in an allocation of Slurm"),
    ],
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
    out, _ = ours.run(ours.build("p2p"), 2, "cluster", "--ms", "1", "--sizes", "8", timeout=300)
    assert runner.parse(out)[0]["op"] == "pingpong"


WRAPPER = """#!/bin/sh
echo called >>"$0.calls"
while [ "$1" != -o ]; do shift; done
grep -q 'use mpi_f08' "$3" || exit 9
{}
"""


@pytest.mark.parametrize(
    "text, why",
    [
        ("touch $2", ""),
        ("echo 'cannot open module file'; exit 1", "cannot compile `use mpi_f08`: cannot open mod"),
        (None, "there is no "),
    ],
)
def test_a_library_has_fortran_when_its_wrapper_compiles_a_small_program(
    tmp_path, monkeypatch, text, why
):
    """It is tried once."""
    monkeypatch.setattr(libraries, "WORK", tmp_path / "work")
    wrapper = tmp_path / "mpifort"
    if text:
        script(wrapper, WRAPPER.format(text))
    library = libraries.Library("openmpi", "mpicc", "mpiexec", fortran=wrapper)
    said = library.lacks_fortran()
    assert said == library.lacks_fortran() and bool(said) == bool(why) and why in said
    if text:
        assert (tmp_path / "mpifort.calls").read_text() == "called\n"
    assert "no mpifort for it" in libraries.Library("impi", "mpicc", "mpiexec").lacks_fortran()


def test_an_installation_of_mpich_is_asked_for_its_own_fortran(tmp_path, monkeypatch):
    """The wheel has none: it is given ours. Intel MPI is given MPICH's, or Debian's."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    asked = lambda: {one.name: one.fortran for one in libraries.here(tmp_path, tmp_path)}
    assert asked() == {
        "kittiwake": tmp_path / "bin/mpifort",
        "mpich": tmp_path / "bin/mpifort",
        "openmpi": tmp_path / "openmpi/bin/mpifort",
        "impi": Path("/usr/bin/mpifort.mpich"),
    }
    own = script(tmp_path / "mpich/bin/mpifort", "")
    assert asked()["mpich"] == asked()["impi"] == own


def test_programs_in_fortran_run_on_the_library_of_intel(tmp_path, monkeypatch):
    """MPICH's library for Fortran is theirs, what it stands on is Intel's."""
    monkeypatch.setattr(libraries, "WORK", tmp_path / "work")
    needed = {
        "libmpichfort.so.12": "/usr/lib/libmpichfort.so.12",
        "libmpich.so.12": "/usr/lib/libmpich.so.12",
        "libm.so.6": "/usr/lib/libm.so.6",
    }
    monkeypatch.setattr(fortran, "needed", lambda program: needed)
    *_, intel = libraries.here(tmp_path, tmp_path)
    links, *places = map(Path, intel.under("program"))
    assert places == [tmp_path / "impi/lib", tmp_path / "impi/opt/mpi/libfabric/lib"]
    assert {link.name: str(link.readlink()) for link in links.iterdir()} == {
        "libmpichfort.so.12": "/usr/lib/libmpichfort.so.12",
        "libmpich.so.12": f"{tmp_path}/impi/lib/libmpi.so.12",
    }


def test_a_library_without_fortran_is_left_out_of_programs_in_fortran(tmp_path, monkeypatch, fake):
    """IS is in C, and runs; who is not installed has rows that say so."""
    monkeypatch.setattr(libraries.Library, "lacks_fortran", lambda self: "there is no mpifort")
    text = 'title = "t"\nlibraries = ["mpich", "openmpi", "impi"]\n'
    for name in ("is", "cg"):
        text += f'[[application]]\nname = "{name}"\nbuild = "nas"\nargs = ["S"]\n'
    how = {"mpich": "fine", "openmpi": "fine", "impi": "missing"}
    known = [fake(name, behaviour) for name, behaviour in how.items()]
    one = runner.Runner(plan.parse(text, "p"), Store(tmp_path / "d.sqlite"), known)
    assert one.leave_out() == {"mpich": "there is no mpifort", "openmpi": "there is no mpifort"}
    assert [(cell.library, cell.program) for cell in one.cells] == [
        ("mpich", "is"),
        ("openmpi", "is"),
        ("impi", "is"),
        ("impi", "cg"),
    ]
