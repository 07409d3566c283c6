"""Plans: those that ship can be read, and a wrong field is refused with its name."""

import importlib
import re
import tomllib

import pytest
from typer.testing import CliRunner

from kwlab import VERSION, cli, libraries, plan

WORK = '[[work]]\nprogram = "p2p"\n'
GOOD = 'title = "t"\n' + WORK


@pytest.mark.parametrize("name", plan.names())
def test_shipped_plans_have_cells(name):
    found = plan.load(name)
    assert plan.cells(found) and len({cell.key() for cell in plan.cells(found)}) == len(
        plan.cells(found)
    )


def test_there_is_a_plan_for_each_table_and_figure_that_can_be_run_here():
    assert {
        "quick",
        "cluster",
        "seed000-table1",
        "seed001-overlap",
        "seed001-figure4.9",
        "seed001-bandwidth",
        "seed002-models",
        "seed004-broadcast",
        "seed004-product",
        "oversubscription",
        "startup",
    } <= set(plan.names())


@pytest.mark.parametrize(
    "text, field",
    [
        ("", "title"),
        ('title = "t"', "work"),
        ("title = 3\n" + WORK, "title"),
        ("rounds = 0\n" + GOOD, "rounds"),
        ('rounds = "3"\n' + GOOD, "rounds"),
        ("rounds = true\n" + GOOD, "rounds"),
        ("limit = -1\n" + GOOD, "limit"),
        ("color = 3\n" + GOOD, "color"),
        ('libraries = ["lam"]\n' + GOOD, "libraries"),
        (GOOD + "ranks = 2\n", "ranks"),
        (GOOD + "ranks = [0]\n", "ranks"),
        (GOOD + "ranks = [true]\n", "ranks"),
        (GOOD + "ranks = [2000]\n", "ranks"),
        (GOOD + 'network = ["gigabit"]\nranks = [300]\n', "ranks"),
        (GOOD + 'network = ["infiniband"]\n', "network"),
        (GOOD + "args = [3]\n", "args"),
        (GOOD + 'only = ["lam"]\n', "only"),
        (GOOD + "variants = { a = 3 }\n", "variants.a"),
        (GOOD + "variants = { a = { K = 3 } }\n", "variants.a"),
        ('title = "t"\n[[work]]\nprogram = "rm"\n', "program"),
        ('title = "t"\n[[work]]\n', "program"),
        (GOOD + "size = [3]\n", "size"),
    ],
)
def test_a_wrong_field_is_refused_with_its_name(text, field):
    with pytest.raises(plan.PlanError, match=f"'{field}'"):
        plan.parse(text, "p")


def test_what_is_no_toml_is_refused_with_the_line():
    with pytest.raises(plan.PlanError, match="line 1"):
        plan.parse("title == 3", "p")


def test_lists_begin_with_what_to_begin_with_and_end_with_the_papers():
    found = plan.names()
    assert found[:3] == ["quick", "cluster", "grid"] and sorted(found) == sorted(set(found))
    assert all(
        name.startswith("seed")
        for name in found[[name.startswith("seed") for name in found].index(True) :]
    )


def test_a_plan_says_briefly_what_it_is_about():
    assert (
        plan.parse('about = "One thing. And another."\n' + GOOD, "p").brief() == "t. One thing."
        and plan.parse(GOOD, "p").brief() == "t"
    )


def test_kwlab_lists_plans_tells_of_one_and_knows_its_version():
    say = lambda *words: CliRunner().invoke(cli.app, words).output
    assert "3 min" in say("plans") and "Runs" in say("plans")
    told = " ".join(say("plans", "quick").split())
    assert (
        "under ten minutes" in told
        and "156 runs in 3 rounds of 3 min" in told
        and "ranks 1, 2, 4, 16; networks shm, tcp" in told
    )
    assert say("--version") == f"kwlab {VERSION}\n"


def test_the_package_takes_its_version_from_the_module():
    packed = tomllib.loads((libraries.ROOT / "lab/pyproject.toml").read_text())
    assert packed["project"]["dynamic"] == ["version"] and "version" not in packed["project"]
    module, _, name = packed["tool"]["setuptools"]["dynamic"]["version"]["attr"].rpartition(".")
    assert getattr(importlib.import_module(module), name) == VERSION


@pytest.mark.parametrize(
    "head, fields",
    [
        ("at the top", plan.PLAN_FIELDS),
        ("in `[[work]]`", plan.WORK_FIELDS),
        ("in `[[application]]`", plan.APPLICATION_FIELDS),
        ("in `[[timeline]]`", plan.TIMELINE_FIELDS),
        ("in `[[library]]`", plan.LIBRARY_FIELDS),
    ],
)
def test_the_page_of_the_laboratory_has_a_row_for_every_field(head, fields):
    page = (libraries.ROOT / "docs/lab.md").read_text()
    rows = page.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    assert sorted(
        name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ) == sorted(fields)


def test_random_sizes_stand_in_order_among_others():
    found = plan.parse(GOOD + 'args = ["--sizes", "8,4096,@random"]\n', "p").work[0].args
    sizes = [int(size) for size in found[1].split(",")]
    assert found[0] == "--sizes" and sizes == sorted([8, 4096, *plan.RANDOM])
    with pytest.raises(plan.PlanError, match="'args'"):
        plan.parse(GOOD + 'args = ["--ops", "bcast,@random"]\n', "p")


def test_the_random_sizes_are_no_sizes_that_plans_fit_to():
    assert len(set(plan.RANDOM)) == 20
    assert all(size % 8 == 0 and size & (size - 1) for size in plan.RANDOM)


OWN = """[[library]]
name = "mvapich"
launcher = "./mpirun -np {ranks} -x"
"""


def more(fields):
    """The plan with these fields in its library."""
    return OWN_PLAN.replace('-x"', f'-x"\n{fields}')


OWN_PLAN = 'title = "t"\nrounds = 1\nlibraries = ["kittiwake", "mvapich"]\n' + OWN + WORK


def test_a_plan_describes_a_library(tmp_path):
    text = more(
        'env = { E = "1" }\nshm = ["--near"]\ntcp = ["FAR=1"]\nlab = ["--lab"]\n'
        'cluster = ["-H", "{hosts}"]'
    )
    found = plan.parse(text, "p", tmp_path)
    assert {cell.library for cell in plan.cells(found)} == {"kittiwake", "mvapich"}
    mvapich = libraries.known(tmp_path, tmp_path, "a,b", found.own)[-1]
    words = lambda network: " ".join(mvapich.command("prog", 3, network, "arg")[0])
    launcher = tmp_path / "mpirun"
    assert words("shm") == f"{launcher} --near -np 3 -x prog arg"
    assert words("cluster") == f"{launcher} -H a,b -np 3 -x prog arg"
    line, env = mvapich.command("prog", 3, "tcp")
    assert "FAR=1" not in line and env["FAR"] == "1" and env["E"] == "1"
    assert f"-- {launcher} --lab -np 3 -x {libraries.HOSTS}/on prog arg" in words("gigabit")
    assert str(launcher) in mvapich.lacks()


def test_a_library_of_a_plan_stands_beside_the_four_unless_the_plan_chooses():
    all_of_them = OWN_PLAN.replace('libraries = ["kittiwake", "mvapich"]', "")
    assert plan.parse(all_of_them, "p").libraries == (*plan.KNOWN, "mvapich")
    only = plan.parse(OWN_PLAN + 'only = ["mvapich"]\n', "p")
    assert [cell.library for cell in plan.cells(only)] == ["mvapich"]


def test_a_library_of_a_plan_wants_words_for_real_hosts(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    (without,) = plan.parse(OWN_PLAN, "p", tmp_path).own
    with pytest.raises(libraries.Unavailable, match="no words `cluster` for mvapich"):
        libraries.known(tmp_path, tmp_path, "a,b", [without])[-1].command("prog", 2, "cluster")
    (named,) = plan.parse(more('cluster = ["{hosts}"]'), "p", tmp_path).own
    with pytest.raises(ValueError, match="mvapich want {hosts}"):
        libraries.known(tmp_path, tmp_path, "slurm", [named])
    (bare,) = plan.parse(more("cluster = []"), "p", tmp_path).own
    line, _ = libraries.known(tmp_path, tmp_path, "slurm", [bare])[-1].command("prog", 2, "cluster")
    assert line[1:] == ["-np", "2", "-x", "prog"]


@pytest.mark.parametrize(
    "old, new, field",
    [
        ('name = "mvapich"', "", "name"),
        ('name = "mvapich"', 'name = "mpich"', "name"),
        ('name = "mvapich"', 'name = "kittiwake-old"', "name"),
        ('name = "mvapich"', 'name = "a b"', "name"),
        ("-np {ranks}", "-np 2", "launcher"),
        ('launcher = "./mpirun -np {ranks} -x"', "", "launcher"),
        ("./mpirun", "'./mpirun", "launcher"),
        ('-x"', '-x"\nenv = { E = 1 }', "env"),
        ('-x"', '-x"\nshm = "--near"', "shm"),
        ('-x"', '-x"\nmpicc = 3', "mpicc"),
        ('-x"', '-x"\nudp = []', "udp"),
        ("[[library]]", OWN + "[[library]]", "name"),
        ('"kittiwake", "mvapich"', '"kittiwake", "mvapich2"', "libraries"),
    ],
)
def test_a_wrong_library_is_refused_with_the_field(old, new, field):
    assert OWN_PLAN.count(old) == 1
    with pytest.raises(plan.PlanError, match=f"'{field}'"):
        plan.parse(OWN_PLAN.replace(old, new), "p")
