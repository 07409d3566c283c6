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
    assert plan.cells(found) and len({cell.key() for cell in plan.cells(found)}) == len(plan.cells(found))


def test_there_is_a_plan_for_each_table_and_figure_that_can_be_run_here():
    assert {"quick", "cluster", "seed000-table1", "seed001-overlap", "seed001-figure4.9", "seed001-bandwidth", "seed002-models", "seed004-broadcast",
            "seed004-product", "oversubscription", "startup"} <= set(plan.names())


@pytest.mark.parametrize("text, field", [
    ("", "title"), ('title = "t"', "work"), ("title = 3\n" + WORK, "title"), ("rounds = 0\n" + GOOD, "rounds"), ('rounds = "3"\n' + GOOD, "rounds"),
    ("rounds = true\n" + GOOD, "rounds"), ("limit = -1\n" + GOOD, "limit"), ("color = 3\n" + GOOD, "color"), ('libraries = ["lam"]\n' + GOOD, "libraries"),
    (GOOD + "ranks = 2\n", "ranks"), (GOOD + "ranks = [0]\n", "ranks"), (GOOD + "ranks = [true]\n", "ranks"), (GOOD + "ranks = [2000]\n", "ranks"),
    (GOOD + 'network = ["gigabit"]\nranks = [300]\n', "ranks"), (GOOD + 'network = ["infiniband"]\n', "network"), (GOOD + "args = [3]\n", "args"),
    (GOOD + 'only = ["lam"]\n', "only"), (GOOD + "variants = { a = 3 }\n", "variants.a"), (GOOD + "variants = { a = { K = 3 } }\n", "variants.a"),
    ('title = "t"\n[[work]]\nprogram = "rm"\n', "program"), ('title = "t"\n[[work]]\n', "program"), (GOOD + "size = [3]\n", "size")])
def test_a_wrong_field_is_refused_with_its_name(text, field):
    with pytest.raises(plan.PlanError, match=f"'{field}'"):
        plan.parse(text, "p")


def test_what_is_no_toml_is_refused_with_the_line():
    with pytest.raises(plan.PlanError, match="line 1"):
        plan.parse("title == 3", "p")


def test_lists_begin_with_what_to_begin_with_and_end_with_the_papers():
    found = plan.names()
    assert found[:3] == ["quick", "cluster", "grid"] and sorted(found) == sorted(set(found))
    assert all(name.startswith("seed") for name in found[[name.startswith("seed") for name in found].index(True):])


def test_a_plan_says_briefly_what_it_is_about():
    assert plan.parse('about = "One thing. And another."\n' + GOOD, "p").brief() == "t. One thing." and plan.parse(GOOD, "p").brief() == "t"


def test_kwlab_lists_plans_tells_of_one_and_knows_its_version():
    say = lambda *words: CliRunner().invoke(cli.app, words).output
    assert "3 min" in say("plans") and "Runs" in say("plans")
    told = " ".join(say("plans", "quick").split())
    assert "under ten minutes" in told and "156 runs in 3 rounds of 3 min" in told and "ranks 1, 2, 4, 16; networks shm, tcp" in told
    assert say("--version") == f"kwlab {VERSION}\n"


def test_the_package_takes_its_version_from_the_module():
    packed = tomllib.loads((libraries.ROOT / "lab/pyproject.toml").read_text())
    assert packed["project"]["dynamic"] == ["version"] and "version" not in packed["project"]
    module, _, name = packed["tool"]["setuptools"]["dynamic"]["version"]["attr"].rpartition(".")
    assert getattr(importlib.import_module(module), name) == VERSION


@pytest.mark.parametrize("head, fields", [("at the top", plan.PLAN_FIELDS), ("in `[[work]]`", plan.WORK_FIELDS), ("in `[[application]]`", plan.APPLICATION_FIELDS),
                                          ("in `[[timeline]]`", plan.TIMELINE_FIELDS)])
def test_the_page_of_the_laboratory_has_a_row_for_every_field(head, fields):
    page = (libraries.ROOT / "docs/lab.md").read_text()
    rows = page.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])) == sorted(fields)


def test_random_sizes_stand_in_order_among_others():
    found = plan.parse(GOOD + 'args = ["--sizes", "8,4096,@random"]\n', "p").work[0].args
    sizes = [int(size) for size in found[1].split(",")]
    assert found[0] == "--sizes" and sizes == sorted([8, 4096, *plan.RANDOM])
    with pytest.raises(plan.PlanError, match="'args'"):
        plan.parse(GOOD + 'args = ["--ops", "bcast,@random"]\n', "p")


def test_the_random_sizes_are_no_sizes_that_plans_fit_to():
    assert len(set(plan.RANDOM)) == 20
    assert all(size % 8 == 0 and size & (size - 1) for size in plan.RANDOM)
