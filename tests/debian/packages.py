"""Programs of Debian's packages as they come, on the library for the ABI that each was compiled
for. The packages are unpacked, not installed, so root is not needed. Programs that do not verify
their own results run under the MPI library that they were compiled for, too, and must compute the
same."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from jobs import MPIEXEC, run, dump

SECONDS = 300
# The MPI libraries themselves: a program finds these under its own, and ours where they would be.
LIBRARIES = re.compile(
    r"lib(mpi|mpich|mpichfort|mpichcxx|mpi_\w+(-gfortran)?|open-rte|open-pal|ompitrace)\.so"
)
OWN = {"mpich": ["mpich", "libmpich12"], "openmpi": ["openmpi-bin", "libopenmpi3"]}


@dataclasses.dataclass
class Client:
    """A program: the package that it comes from, what it is called with, and what of its output are
    results. `inputs` are files that it finds where it runs: texts, or paths in the packages, which
    may hold a `*`. `before` is what a shell does there first, with the packages' commands; `env`
    are variables, in which {root} stands for where the packages are. A program whose name begins
    with `./` is where it runs: `before` has made it."""

    name: str
    mpi: str  # the library that it was compiled for
    packages: list
    program: str
    arguments: str = ""
    results: str = ""  # what must be the same under both, without times; nothing: it judges itself
    well: str = ""  # a line that says that all is well
    output: str = ""  # the file that it writes to, if not its standard output
    inputs: dict = dataclasses.field(default_factory=dict)
    before: str = ""
    env: dict = dataclasses.field(default_factory=dict)
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

MOLECULE = """
&GLOBAL
  PROJECT h2o
  RUN_TYPE ENERGY
  PRINT_LEVEL LOW
&END GLOBAL
&FORCE_EVAL
  METHOD Quickstep
  &DFT
    BASIS_SET_FILE_NAME BASIS_SET
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 200
    &END MGRID
    &SCF
      EPS_SCF 1.0E-6
      MAX_SCF 30
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 6.0 6.0 6.0
    &END CELL
    &COORD
    O 0.000000 0.000000 -0.065587
    H 0.000000 -0.757136 0.520545
    H 0.000000 0.757136 0.520545
    &END COORD
    &KIND H
      BASIS_SET DZVP-GTH-PADE
      POTENTIAL GTH-PADE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-GTH-PADE
      POTENTIAL GTH-PADE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
"""

CRYSTAL = """
pp_dirpath "."
pseudos "14si.pspnc"
acell 3*10.18
rprim 0.0 0.5 0.5 0.5 0.0 0.5 0.5 0.5 0.0
ntypat 1
znucl 14
natom 2
typat 1 1
xred 0.0 0.0 0.0 0.25 0.25 0.25
kptopt 1
ngkpt 4 4 4
nshiftk 4
shiftk 0.5 0.5 0.5 0.5 0.0 0.0 0.0 0.5 0.0 0.0 0.0 0.5
ecut 8.0
nstep 10
toldfe 1.0d-8
diemac 12.0
"""

WATER = """
integrator = md
dt = 0.002
nsteps = 10000
nstlog = 1000
nstenergy = 100
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-seed = 1
ld-seed = 1
constraints = h-bonds
"""

TOPOLOGY = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""

DECOMPOSITION = """FoamFile { version 2.0; format ascii; class dictionary;
  object decomposeParDict; }
numberOfSubdomains 2;
method simple;
simpleCoeffs { n (2 1 1); delta 0.001; }
"""
CAVITY = "usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity"

IN_R = """suppressMessages(library(Rmpi))
r <- mpi.comm.rank(0); n <- mpi.comm.size(0)
s <- mpi.allreduce(as.double(r + 1), type=2, op="sum", comm=0)
x <- mpi.bcast(if (r == 0) as.double(1:5) * pi else double(5), type=2, rank=0, comm=0)
if (r == 0) mpi.send.Robj(list(a="text", b=matrix(1:6, 2)), 1, 7, comm=0)
if (r == 1) { o <- mpi.recv.Robj(0, 7, comm=0); mpi.send.Robj(dim(o$b), 0, 8, comm=0) }
g <- mpi.gather(as.integer(r * r), type=1, rdata=integer(n), root=0, comm=0)
b <- mpi.allgather.Robj(r, comm=0)
if (r == 0) cat("result", n, s, sum(x), mpi.recv.Robj(1, 8, comm=0), g, unlist(b), "\\n")
mpi.quit()
"""

IN_BOOST = """
import boost.mpi as mpi
w = mpi.world
total = mpi.all_reduce(w, w.rank + 1, lambda a, b: a + b)
ranks = mpi.all_gather(w, {"rank": w.rank})
text = mpi.broadcast(w, [1.5, "text"] if w.rank == 0 else None, 0)
if w.rank == 1:
    w.send(0, 3, [1, 2, 3])
if w.rank == 0:
    print("result", total, ranks, text, w.recv(1, 3))
"""

IN_SLEPC = """
import sys, slepc4py
slepc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc
n = 100
a = PETSc.Mat().createAIJ([n, n], nnz=3)
a.setUp()
for i in range(*a.getOwnershipRange()):
    for j, value in ((i - 1, -1), (i, 2), (i + 1, -1)):
        if 0 <= j < n:
            a[i, j] = value
a.assemble()
e = SLEPc.EPS().create()
e.setOperators(a)
e.setProblemType(SLEPc.EPS.ProblemType.HEP)
e.setDimensions(4)
e.solve()
for i in range(4):
    PETSc.Sys.Print("result %.10f" % e.getEigenvalue(i).real)
b = a.createVecRight()
b.set(1)
x = b.duplicate()
k = PETSc.KSP().create()
k.setOperators(a)
k.setType("cg")
k.getPC().setType("jacobi")
k.setTolerances(rtol=1e-12)
k.solve(b, x)
PETSc.Sys.Print("result", k.getIterationNumber(), "%.10e" % x.norm())
"""
PYTHON = {"program": "/usr/bin/python3", "arguments": "program.py", "results": r"^result.*"}
PACKAGES_OF_PYTHON = "{root}/usr/lib/python3/dist-packages"

NETPIPE = {
    "arguments": "-u 8192 -o netpipe.out",
    "output": "netpipe.out",
    "well": r"^ *8192 ",
    "ranks": (2,),
}
MUMPS = {
    "mpi": "openmpi",
    "packages": ["mumps-test"],
    "arguments": "<input",
    "results": r"Solution is.*",
}
SCALAPACK = {
    "packages": ["scalapack-mpi-test", "scalapack-test-common"],
    "well": r"^ *0 tests completed and failed",
    "ranks": (4,),
}
TESTS = "usr/lib/*/scalapack/{mpi}-tests"

OURS = pathlib.Path(__file__).parent / "files"


def compiled(name, libraries):
    """How a program of `files` is made with the headers and libraries of the packages."""
    place = "$ROOT/usr/lib/*-linux-gnu"
    headers = [f"{place}/openmpi/include", f"{place}/netcdf/mpi/include"]
    return (
        f"cc -Wall -Werror -O1 -o {name} {name}.c -I$ROOT/usr/include "
        f"-I$ROOT/usr/include/hdf5/openmpi {' '.join(f'-I$(echo {h})' for h in headers)} "
        f"{' '.join(f'{place}/{library}' for library in libraries.split())} "
        "$LIBRARIES/libmpi.so.40 -Wl,--allow-shlib-undefined"
    )


def of_files(name, packages, libraries):
    """A program of `files` on a library for parallel files, which was compiled for Open MPI."""
    return Client(
        name,
        "openmpi",
        ["libopenmpi-dev", *packages],
        f"./{name}",
        results=r"^result.*",
        inputs={file: (OURS / file).read_text() for file in (f"{name}.c", "verify.h")},
        before=compiled(name, libraries),
        env={"OMPI_MCA_rmaps_base_oversubscribe": "1"},
    )


HDF5 = ["libhdf5-openmpi-dev", "libhdf5-openmpi-103-1"]
FILES = [
    of_files("hdf5", HDF5, "libhdf5_openmpi.so.103"),
    of_files("pnetcdf", ["libpnetcdf-dev", "libpnetcdf0d"], "libpnetcdf.so.0d"),
    of_files(
        "netcdf",
        ["libnetcdf-mpi-dev", "libnetcdf-mpi-19", "libnetcdf-dev", *HDF5],
        "libnetcdf_mpi.so.19",
    ),
    Client(
        "h5py",
        "openmpi",
        ["python3-h5py-mpi", "python3-h5py", "python3-mpi4py", "python3-numpy", *HDF5],
        inputs={"program.py": (OURS / "h5py_files.py").read_text()},
        env={"PYTHONPATH": PACKAGES_OF_PYTHON},
        **PYTHON,
    ),
]

CLIENTS = [
    *FILES,
    Client("netpipe", "mpich", ["netpipe-mpich2"], "usr/bin/NPmpich2", **NETPIPE),
    Client("netpipe", "openmpi", ["netpipe-openmpi"], "usr/bin/NPopenmpi", **NETPIPE),
    Client(
        "hpcc",
        "openmpi",
        ["hpcc"],
        "usr/bin/hpcc",
        well=r"Success=1",
        results=r"PASSED|FAILED|\d+ tests completed.*|Success=\d",
        output="hpccoutf.txt",
        inputs={"hpccinf.txt": "usr/share/doc/hpcc/examples/_hpccinf.txt"},
        ranks=(4,),
    ),
    Client(
        "lammps",
        "openmpi",
        ["lammps"],
        "usr/bin/lmp",
        "-in melt",
        r"^ +\d+ +[-\d.]+ +[-\d.]+ +[-\d.]+ +[-\d.]+ +[-\d.]+ *$",
        inputs={"melt": MELT},
    ),
    # a molecule in water with PPPM: distributed FFTs, constraints
    Client(
        "peptide",
        "openmpi",
        ["lammps", "lammps-examples"],
        "usr/bin/lmp",
        "-in in.peptide",
        r"^(TotEng|PotEng|E_bond|E_impro|E_coul) .*",
        inputs={
            name: f"usr/share/lammps/examples/peptide/{name}"
            for name in ("in.peptide", "data.peptide")
        },
    ),
    Client(
        "silicon",
        "openmpi",
        ["quantum-espresso", "quantum-espresso-data"],
        "usr/bin/pw.x",
        "-in silicon",
        r"^! +total energy.*",
        inputs={"silicon": SILICON, "pseudo.UPF": "usr/share/espresso/pseudo/Si*.UPF"},
    ),
    # the last digits of a sum depend on the order, which differs
    Client(
        "molecule",
        "openmpi",
        ["cp2k", "cp2k-data"],
        "usr/bin/cp2k.psmp",
        "-i molecule",
        r"ENERGY.*: +-[\d.]{14}",
        inputs={"molecule": MOLECULE},
        env={"CP2K_DATA_DIR": "{root}/usr/share/cp2k"},
    ),
    Client(
        "crystal",
        "openmpi",
        ["abinit", "abinit-data"],
        "usr/bin/abinit",
        "crystal.abi",
        r"^ +etotal.*",
        output="crystal.abo",
        inputs={"crystal.abi": CRYSTAL, "14si.pspnc": "usr/share/abinit/psp/14si.pspnc"},
    ),
    Client(
        "water",
        "openmpi",
        ["gromacs", "gromacs-data"],
        "usr/bin/gmx_mpi",
        "-quiet mdrun -s water.tpr -g water.log -ntomp 1 -reprod",
        r"^ +LJ \(SR\).*\n.*\n.*\n.*",
        output="water.log",
        inputs={"water.mdp": WATER, "topol.top": TOPOLOGY},
        env={"GMXLIB": "{root}/usr/share/gromacs/top"},
        before=(
            "gmx -quiet solvate -cs spc216.gro -box 2.5 2.5 2.5 -o water.gro -p topol.top && "
            "gmx -quiet grompp -f water.mdp -c water.gro -o water.tpr -maxwarn 2"
        ),
    ),
    Client(
        "cavity",
        "openmpi",
        ["openfoam", "openfoam-examples"],
        "usr/bin/icoFoam",
        "-parallel",
        r"^.*Solving for.*",
        ranks=(2,),
        inputs={"decomposition": DECOMPOSITION},
        env={"WM_PROJECT_DIR": "{root}/usr/share/openfoam"},
        before=(
            f"cp -r $ROOT/{CAVITY}/* . && find . -name '*.gz' -exec gunzip {{}} + && "
            "cp decomposition system/decomposeParDict && blockMesh && decomposePar"
        ),
    ),
    Client(
        "rmpi",
        "openmpi",
        ["r-cran-rmpi", "r-base-core"],
        "usr/lib/R/bin/exec/R",
        "--no-echo --no-save --no-environ --file=program.R",
        well=r"^result (2 3 47.12389 2 3 0 1 0 1|4 10 47.12389 2 3 0 1 4 9 0 1 2 3) $",
        inputs={"program.R": IN_R},
        env={
            "R_HOME": "{root}/usr/lib/R",
            "EDITOR": "vi",
            "PAGER": "cat",
            "R_LIBS": "{root}/usr/lib/R/site-library:{root}/usr/lib/R/library",
        },
    ),
    Client(
        "boost",
        "openmpi",
        ["libboost-mpi-python1.74.0"],
        inputs={"program.py": IN_BOOST},
        env={"PYTHONPATH": PACKAGES_OF_PYTHON},
        **PYTHON,
    ),
    Client(
        "slepc",
        "openmpi",
        ["python3-slepc4py-real3.18", "python3-petsc4py-real3.18"],
        inputs={"program.py": IN_SLEPC},
        env={"PYTHONPATH": f"{PACKAGES_OF_PYTHON}:{{slepc}}:{{petsc}}"},
        **PYTHON,
    ),
    *(
        Client(
            f"mumps-{kind}",
            program=f"usr/lib/mumps/{kind}simpletest",
            inputs={
                "input": f"usr/lib/mumps/input_simpletest_{'real' if kind in 'sd' else 'cmplx'}"
            },
            **MUMPS,
        )
        for kind in "sdcz"
    ),
    *(
        Client(
            f"scalapack-{kind}",
            mpi,
            program=f"{TESTS.format(mpi=mpi)}/x{kind}",
            inputs={data: f"{TESTS.format(mpi=mpi)}/{data}"},
            **SCALAPACK,
        )
        for mpi in ("mpich", "openmpi")
        for kind, data in (
            ("dlu", "LU.dat"),
            ("sinv", "INV.dat"),
            ("zqr", "QR.dat"),
            ("dsep", "SEP.dat"),
        )
    ),
]


def one(root, pattern):
    """The file of the packages that a pattern means."""
    found = sorted(root.glob(pattern)) if not pattern.startswith("/") else [pattern]
    assert found, f"no package has {pattern}"
    return found[0]


def unpacked(clients, work):
    """Has the packages of these clients in work/root, and in work/libs, links to all
    libraries but MPI's. Gives work."""
    if not shutil.which("apt-get"):
        pytest.skip("this system has no packages of Debian")
    wanted = sorted(
        {
            name
            for client in clients
            for name in (*client.packages, *(OWN[client.mpi] if client.results else ()))
        }
    )
    stamp = work / "unpacked"
    if not stamp.exists() or stamp.read_text() != str(wanted):
        shutil.rmtree(work, ignore_errors=True)
        unpack(wanted, work)
        stamp.write_text(str(wanted))
    return work


def apt(*words, **more):
    """What apt-get has printed. Skips the test where it gives no packages: it has no lists of them,
    or they are others."""
    p = run("apt-get", *words, timeout=SECONDS, **more)
    if p.returncode:
        pytest.skip(
            "apt-get has not these packages: "
            + (p.stderr.strip().splitlines() or ["it says nothing"])[-1]
        )
    return p.stdout


def unpack(wanted, work):
    """Downloads and unpacks packages, and those that they need and this system does not have."""
    debs = work / "debs"
    debs.mkdir(parents=True)
    names = {
        line.split()[1]
        for line in apt("--simulate", "--no-install-recommends", "install", *wanted).splitlines()
        if line.startswith("Inst ")
    }
    apt("-qq", "download", *sorted(names | set(wanted)), cwd=debs)
    for deb in debs.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", deb, work / "root"], check=True)
        deb.unlink()
    for kind in ("libs", "own"):
        (work / kind).mkdir()
    # also those in directories that alternatives would choose: linear algebra
    for path in sorted((work / "root/usr/lib").rglob("*.so*")) + sorted(
        (work / "root/lib").rglob("*.so*")
    ):
        if (
            len(path.relative_to(work / "root").parts) > 5
            or "dummy" in path.parts
            or not re.search(r"\.so(\.[\da-z.]+)?$", path.name)
        ):
            continue
        link = work / ("own" if LIBRARIES.match(path.name) else "libs") / path.name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(path)


def own(mpi, work):
    """How to start programs under the library that they were compiled for: words and
    environment."""
    root = work / "root"
    libraries = next((root / "usr/lib").glob("*-linux-gnu"))
    env = {"LD_LIBRARY_PATH": f"{work}/own:{work}/libs:{libraries}"}
    if mpi == "mpich":
        return [root / "usr/bin/mpiexec.hydra"], env
    places = {
        "OPAL_PREFIX": root / "usr",
        "OPAL_LIBDIR": libraries,
        "OPAL_PKGLIBDIR": libraries / "openmpi",
        "OMPI_MCA_mca_base_component_path": libraries / "openmpi/lib/openmpi3",
    }
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return [root / "usr/bin/orterun", "--oversubscribe"], {
        **env,
        **allowed,
        **{k: str(v) for k, v in places.items()},
    }


def ran(client, work, place, words, env):
    """What a client has said in a directory of its own."""
    root = work / "root"
    place.mkdir()
    for name, what in client.inputs.items():
        if "\n" in what:
            (place / name).write_text(what)
        else:
            shutil.copy(one(root, what), place / name)
    python = {
        name: ":".join(map(str, root.glob(f"usr/lib/{name}dir/*/*-real/lib/python3/dist-packages")))
        for name in ("petsc", "slepc")
    }
    env = {
        **env,
        "OMP_NUM_THREADS": "1",
        **{name: value.format(root=root, **python) for name, value in client.env.items()},
    }
    if client.before:
        tools = {
            "ROOT": str(root),
            "PATH": f"{root}/usr/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": own("openmpi", work)[1]["LD_LIBRARY_PATH"],
            "LIBRARIES": str(work / "own"),
        }
        p = run(
            "sh",
            "-c",
            client.before,
            cwd=place,
            env={**env, **tools},
            timeout=SECONDS,
            errors="replace",
        )
        assert p.returncode == 0, dump(p)
    arguments = [word for word in client.arguments.split() if not word.startswith("<")]
    given = (
        open(place / client.arguments.split("<")[1])
        if "<" in client.arguments
        else subprocess.DEVNULL
    )
    p = run(
        *words,
        place / client.program if client.program.startswith("./") else one(root, client.program),
        *arguments,
        cwd=place,
        env=env,
        stdin=given,
        timeout=SECONDS,
        errors="replace",
    )
    assert p.returncode == 0, dump(p)
    return (place / client.output).read_text(errors="replace") if client.output else p.stdout


def results(client, text):
    return [found.group().strip() for found in re.finditer(f"(?m){client.results}", text)]


def check(client, text):
    assert re.search(client.well, text, re.MULTILINE), (
        f"it does not say {client.well!r}: {text[-3000:]}"
    )


def same(client, n, work, place):
    """The client computes on n ranks what it computes under its own library."""
    ours = ran(
        client, work, place / "ours", [MPIEXEC, "-n", n], {"LD_LIBRARY_PATH": str(work / "libs")}
    )
    check(client, ours)
    if not client.results:
        return  # it judges itself
    words, env = own(client.mpi, work)
    theirs = ran(client, work, place / "theirs", [*words, "-n", n], env)
    check(client, theirs)
    assert results(client, theirs), f"no results: {theirs[-3000:]}"
    assert results(client, ours) == results(client, theirs)


def each(clients):
    """Clients with their numbers of ranks, as cases of a test."""
    return pytest.mark.parametrize(
        "client, n",
        [pytest.param(c, n, id=f"{c.mpi}-{c.name}-{n}") for c in clients for n in c.ranks],
    )
