"""The programs of examples/ that use windows: right on every number of ranks and over every path,
and free of conflicting accesses (KW_CHECK)."""

import pytest

from jobs import MPIEXEC, run, dump

PATHS = ["self,shm", "self,tcp"]


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("check", ["no", "yes"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_hash_table_counts_right(program, ranks, check, paths):
    table = program("examples/hash_table.c", "-O2", "-Wall", "-Wextra")
    p = run(MPIEXEC, "-n", ranks, table, env={"KW_PATHS": paths, "KW_CHECK": check})
    assert p.returncode == 0 and p.stdout.endswith("the counts are right\n"), dump(p)
    assert not p.stderr, dump(p)


@pytest.mark.parametrize("paths", PATHS)
@pytest.mark.parametrize("check", ["no", "yes"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_work_that_is_stolen_is_done_once(program, ranks, check, paths):
    queens = program("examples/work_stealing.c", "-O2", "-Wall", "-Wextra")
    p = run(MPIEXEC, "-n", ranks, queens, 9, env={"KW_PATHS": paths, "KW_CHECK": check})
    assert p.returncode == 0 and p.stdout.startswith("9 queens: 352 ways; "), dump(p)
    assert not p.stderr, dump(p)
