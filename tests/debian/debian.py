"""Programs of Debian's packages as they come, on the library for the ABI that each was compiled for: `make debian` (20 minutes, a gigabyte, so
no part of `make check`).

The packages are unpacked into build/debian, not installed, so root is not needed. Programs that do not verify their own results run under
the MPI library that they were compiled for, too, and must compute the same.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess

import pytest

from jobs import MPIEXEC, ROOT, run, told

WORK = ROOT / "build/debian"
SECONDS = 300
# The MPI libraries themselves: a program finds these under its own, and ours where they would be.
LIBRARIES = re.compile(r"lib(mpi|mpich|mpichfort|mpichcxx|mpi_\w+(-gfortran)?|open-rte|open-pal|ompitrace)\.so")
OWN = {"mpich": ["mpich", "libmpich12"], "openmpi": ["openmpi-bin", "libopenmpi3"]}


@dataclasses.dataclass
class Client:
    """A program: the package that it comes from, what it is called with, and what of its output are results. `inputs` are files that it
    finds where it runs: texts, or paths in the packages, which may hold a `*`."""
    name: str
    mpi: str  # the library that it was compiled for
    packages: list
    program: str
    arguments: str = ""
    results: str = ""  # what must be the same under both, without times; nothing: it judges itself
    well: str = ""  # a line that says that all is well
    output: str = ""  # the file that it writes to, if not its standard output
    inputs: dict = dataclasses.field(default_factory=dict)
    ranks: tuple = (2, 4)


MELT = """
units lj
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 5 every 1
fix 1 all nve
thermo 50
run 250
"""

SILICON = """
&control
  calculation = 'scf', prefix = 'silicon', pseudo_dir = '.', outdir = '.'
/
&system
  ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = 18.0
/
&electrons
/
ATOMIC_SPECIES
 Si 28.086 pseudo.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS automatic
 4 4 4 1 1 1
"""

NETPIPE = {"arguments": "-u 8192 -o netpipe.out", "output": "netpipe.out", "well": r"^ *8192 ", "ranks": (2,)}
MUMPS = {"mpi": "openmpi", "packages": ["mumps-test"], "arguments": "<input", "results": r"Solution is.*"}
SCALAPACK = {"packages": ["scalapack-mpi-test", "scalapack-test-common"], "well": r"^ *0 tests completed and failed", "ranks": (4,)}
TESTS = "usr/lib/*/scalapack/{mpi}-tests"

CLIENTS = [
    Client("netpipe", "mpich", ["netpipe-mpich2"], "usr/bin/NPmpich2", **NETPIPE),
    Client("netpipe", "openmpi", ["netpipe-openmpi"], "usr/bin/NPopenmpi", **NETPIPE),
    Client("hpcc", "openmpi", ["hpcc"], "usr/bin/hpcc", well=r"Success=1", results=r"PASSED|FAILED|\d+ tests completed.*|Success=\d",
           output="hpccoutf.txt", inputs={"hpccinf.txt": "usr/share/doc/hpcc/examples/_hpccinf.txt"}, ranks=(4,)),
    Client("lammps", "openmpi", ["lammps"], "usr/bin/lmp", "-in melt", r"^ +\d+ +[-\d.]+ +[-\d.]+ +[-\d.]+ +[-\d.]+ +[-\d.]+ *$", inputs={"melt": MELT}),
    Client("silicon", "openmpi", ["quantum-espresso", "quantum-espresso-data"], "usr/bin/pw.x", "-in silicon", r"^! +total energy.*",
           inputs={"silicon": SILICON, "pseudo.UPF": "usr/share/espresso/pseudo/Si*.UPF"}),
    *(Client(f"mumps-{kind}", program=f"usr/lib/mumps/{kind}simpletest",
             inputs={"input": f"usr/lib/mumps/input_simpletest_{'real' if kind in 'sd' else 'cmplx'}"}, **MUMPS) for kind in "sdcz"),
    *(Client(f"scalapack-{kind}", mpi, program=f"{TESTS.format(mpi=mpi)}/x{kind}", inputs={data: f"{TESTS.format(mpi=mpi)}/{data}"}, **SCALAPACK)
      for mpi in ("mpich", "openmpi")
      for kind, data in (("dlu", "LU.dat"), ("sinv", "INV.dat"), ("zqr", "QR.dat"), ("dsep", "SEP.dat"))),
]


def one(root, pattern):
    """The file of the packages that a pattern means."""
    found = sorted(root.glob(pattern))
    assert found, f"no package has {pattern}"
    return found[0]


@pytest.fixture(scope="session")
def root():
    """Where the packages are, and besides, in libs, links to all libraries but MPI's."""
    if not shutil.which("apt-get"):
        pytest.skip("this system has no packages of Debian")
    wanted = sorted({name for client in CLIENTS for name in (*client.packages, *OWN[client.mpi])})
    stamp = WORK / "unpacked"
    if not stamp.exists() or stamp.read_text() != str(wanted):
        shutil.rmtree(WORK, ignore_errors=True)
        unpack(wanted)
        stamp.write_text(str(wanted))
    return WORK / "root"


def unpack(wanted):
    """Downloads and unpacks packages, and those that they need and this system does not have."""
    debs = WORK / "debs"
    debs.mkdir(parents=True)
    said = subprocess.run(["apt-get", "--simulate", "--no-install-recommends", "install", *wanted], check=True, capture_output=True, text=True).stdout
    names = {line.split()[1] for line in said.splitlines() if line.startswith("Inst ")}
    subprocess.run(["apt-get", "-qq", "download", *sorted(names | set(wanted))], cwd=debs, check=True, capture_output=True)
    for deb in debs.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", deb, WORK / "root"], check=True)
        deb.unlink()
    for kind in ("libs", "own"):
        (WORK / kind).mkdir()
    # also those in directories that alternatives would choose: linear algebra
    for path in sorted((WORK / "root/usr/lib").rglob("*.so*")) + sorted((WORK / "root/lib").rglob("*.so*")):
        if len(path.relative_to(WORK / "root").parts) > 5 or not re.search(r"\.so(\.[\d.]+)?$", path.name):
            continue
        link = WORK / ("own" if LIBRARIES.match(path.name) else "libs") / path.name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(path)


def own(mpi, root):
    """How to start programs under the library that they were compiled for: words and environment."""
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    env = {"LD_LIBRARY_PATH": f"{WORK}/own:{WORK}/libs:{libraries}"}
    if mpi == "mpich":
        return [root / "usr/bin/mpiexec.hydra"], env
    places = {"OPAL_PREFIX": root / "usr", "OPAL_LIBDIR": libraries, "OPAL_PKGLIBDIR": libraries / "openmpi",
              "OMPI_MCA_mca_base_component_path": libraries / "openmpi/lib/openmpi3"}
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return [root / "usr/bin/orterun", "--oversubscribe"], {**env, **allowed, **{k: str(v) for k, v in places.items()}}


def ran(client, root, place, words, env):
    """What a client has said in a directory of its own."""
    place.mkdir()
    for name, what in client.inputs.items():
        if "\n" in what:
            (place / name).write_text(what)
        else:
            shutil.copy(one(root, what), place / name)
    arguments = [word for word in client.arguments.split() if not word.startswith("<")]
    given = open(place / client.arguments.split("<")[1]) if "<" in client.arguments else subprocess.DEVNULL
    env = {**env, "OMP_NUM_THREADS": "1"}
    p = run(*words, one(root, client.program), *arguments, cwd=place, env=env, stdin=given, timeout=SECONDS, errors="replace")
    assert p.returncode == 0, told(p)
    return (place / client.output).read_text(errors="replace") if client.output else p.stdout


def results(client, text):
    return [found.group().strip() for found in re.finditer(f"(?m){client.results}", text)]


def check(client, text):
    assert re.search(client.well, text, re.MULTILINE), f"it does not say {client.well!r}: {text[-3000:]}"


@pytest.mark.limit(3 * SECONDS)
@pytest.mark.parametrize("client, n", [pytest.param(c, n, id=f"{c.mpi}-{c.name}-{n}") for c in CLIENTS for n in c.ranks])
def test_it_computes_what_it_computes_under_its_own(client, n, root, tmp_path):
    ours = ran(client, root, tmp_path / "ours", [MPIEXEC, "-n", n], {"LD_LIBRARY_PATH": str(WORK / "libs")})
    check(client, ours)
    if not client.results:
        return  # it judges itself
    words, env = own(client.mpi, root)
    theirs = ran(client, root, tmp_path / "theirs", [*words, "-n", n], env)
    check(client, theirs)
    assert results(client, theirs), f"no results: {theirs[-3000:]}"
    assert results(client, ours) == results(client, theirs)
