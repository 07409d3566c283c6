"""Kittiwake from Java: what it is said to lack, what it builds, and that a plan has it only where
the plan names it."""

import pytest

from kwlab import grande, libraries, plan, programs
from kwlab.java import JavaLibrary
from kwlab.libraries import JAVA, Unavailable


def test_what_is_missing_is_reported_with_its_remedy(tmp_path, monkeypatch):
    library = JavaLibrary(tmp_path)
    assert "install-deps - java" in library.lacks()
    library.jar.parent.mkdir(parents=True)
    library.jar.touch()
    monkeypatch.setenv("KW_JAVA", "no-such-java")
    assert "no-such-java" in library.lacks()


def test_a_program_without_a_java_source_is_unavailable(tmp_path, monkeypatch):
    monkeypatch.setattr(libraries, "WORK", tmp_path)
    with pytest.raises(Unavailable, match="there is no Overlap.java"):
        JavaLibrary(tmp_path).build("overlap")


def test_every_program_of_the_papers_plan_has_a_java_source():
    bench = libraries.ROOT / "bench"
    for work in plan.load("seed002-models").work:
        assert (bench / f"java/{work.program.capitalize()}.java").exists(), work.program
    kernels = libraries.ROOT / "apps/grande"
    for work in plan.load("seed002-grande").work:
        name = work.application.name
        assert (kernels / f"{name}.c").exists() and (
            kernels / f"java/{name.capitalize()}.java"
        ).exists(), name


def test_java_takes_part_only_where_a_plan_names_it():
    assert JAVA not in {cell.library for cell in plan.cells(plan.load("quick"))}
    assert JAVA in {cell.library for cell in plan.cells(plan.load("seed002-models"))}


def test_ours_from_java_is_known_on_every_network(tmp_path):
    known = {one.name: one for one in libraries.known(tmp_path, tmp_path, hosts="a,b")}
    assert known[JAVA].args[libraries.CLUSTER] == known["kittiwake"].args[libraries.CLUSTER]
    assert known[JAVA].args["tcp"] == known["kittiwake"].args["tcp"]


def test_several_ranks_of_a_host_are_ours_alone(tmp_path):
    known = {one.name: one for one in libraries.known(tmp_path, tmp_path)}
    for name, network, hosts in [
        (JAVA, "gigabit", 8),
        (JAVA, "gigabit2", 4),
        ("kittiwake", "gigabit4", 2),
    ]:
        line, _ = known[name].command("program", 8, network)
        assert line[line.index("--hosts") + 1] == str(hosts), line
    with pytest.raises(Unavailable, match="gigabit2"):
        known["mpich"].command("program", 8, "gigabit2")


def test_speed_ups_are_those_of_figure_5():
    figure = lambda seconds: programs.Figure({0: seconds}, {})
    found = {
        ("lufact", "A", "shm", 1): {"kittiwake": figure(2.0), JAVA: figure(3.0)},
        ("lufact", "A", "shm", 2): {"kittiwake": figure(1.0)},
        ("lufact", "A", "gigabit", 2): {"kittiwake": figure(1.6), JAVA: figure(2.0)},
        ("lufact", "A", "gigabit", 4): {"kittiwake": figure(1.5)},
        ("lufact", "A", "gigabit2", 4): {"kittiwake": figure(1.25), "mpich": figure(1)},
    }
    assert grande.speed_ups(found, "lufact") == {
        "A1": {"kittiwake": 1.25, JAVA: 1.5},
        "A2": {"kittiwake": 1.6},
    }
    assert grande.today(found) == [
        ("lufact", "A", "kittiwake", "1.20", "1.28"),
        ("lufact", "A", "mpich", None, None),
    ]
