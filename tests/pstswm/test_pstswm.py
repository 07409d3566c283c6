"""PSTSWM (apps/pstswm): its transforms, its two cases, and that every algorithm and protocol
computes what one rank does."""

import os
import re
import shutil
import struct
import subprocess

import pytest

from jobs import DIST, MPIEXEC, ROOT, mpiexec, run, dump

BUILD = ROOT / "build/pstswm"
SHORT = "case=6 truncation=21 levels=2 steps=8".split()
PROTOCOLS = "sendrecv ordered isend irecv nonblocking ready native sockets".split()


@pytest.fixture(scope="module")
def pstswm():
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    subprocess.run(
        [
            ROOT / "apps/build",
            ROOT / "apps/pstswm",
            BUILD,
            "pstswm",
            ROOT / "tests/pstswm/transforms.f90",
        ],
        env={
            **os.environ,
            "MPIFC": str(DIST / "bin/mpifort"),
            "MPICC": str(DIST / "bin/mpicc"),
            "FLAGS": "-O1",
        },
        check=True,
    )
    return BUILD / "pstswm"


@pytest.fixture(scope="module")
def transforms(pstswm):
    return BUILD / "transforms"


@pytest.fixture(scope="module")
def state(pstswm, tmp_path_factory):
    """state(MESH, OPTION...): the coefficients that the program ends with, as bytes."""
    path = tmp_path_factory.mktemp("state") / "state"

    def computed(mesh, *options):
        nx, ny = map(int, mesh.split("x"))
        path.unlink(missing_ok=True)
        p = mpiexec("-n", nx * ny, pstswm, *SHORT, f"mesh={mesh}", *options, f"state={path}")
        assert p.stdout.endswith("\nverified\n"), dump(p)
        return path.read_bytes()

    return computed


@pytest.fixture(scope="module")
def serial(state):
    return state("1x1")


def differ(a, b):
    """The largest difference of two states, each variable relative to its largest coefficient."""
    assert len(a) == len(b) and a[:8] == b[:8]
    a, b = ([x for x in struct.iter_unpack("4d", s[8:])] for s in (a, b))  # 2 levels x (re, im)
    worst = 0
    for variable in range(3):
        mine, others = a[variable::3], b[variable::3]
        largest = max(abs(x) for four in mine for x in four)
        worst = max(
            worst, max(abs(x - y) for p, q in zip(mine, others) for x, y in zip(p, q)) / largest
        )
    return worst


@pytest.mark.parametrize(
    "ranks,options",
    [
        (1, "truncation=85 levels=2"),
        (2, "truncation=31 levels=2 mesh=2x1"),
        (4, "truncation=21 levels=2 mesh=2x2 algorithm=DP"),
        (3, "truncation=21 levels=4 mesh=3x1"),
    ],
)
def test_transforms_are_exact(transforms, ranks, options):
    mpiexec("-n", ranks, transforms, *options.split())


@pytest.mark.parametrize("options", ["truncation=42 levels=2", "truncation=21 levels=2 angle=45"])
def test_solid_body_rotation_stays_for_five_days(pstswm, options):
    p = mpiexec("-n", 2, pstswm, *options.split())
    error = float(re.search(r"maximum *(\S+)", p.stdout)[1])
    assert error < 1e-12 and p.stdout.endswith("\nverified\n"), dump(p)


def test_rossby_haurwitz_wave_keeps_mass_energy_and_enstrophy(pstswm):
    p = mpiexec("-n", 2, pstswm, "case=6", "truncation=42", "levels=2")
    changes = [abs(float(c)) for c in re.findall(r"change *(\S+)", p.stdout)]
    assert len(changes) == 3 and changes[0] < 1e-13 and changes[1] < 5e-5 and changes[2] < 5e-4, (
        dump(p)
    )


@pytest.mark.parametrize(
    "mesh,options",
    [
        ("1x2", ""),
        ("2x1", ""),
        ("3x1", ""),
        ("1x3", ""),
        ("4x1", ""),
        ("1x4", ""),
        ("2x2", ""),
        ("2x2", "order=column batch=4"),
        ("3x1", "batch=6 transpose=hand pattern=ring overlap=yes"),
        ("2x2", "algorithm=TP batch=2 transpose=alltoallv_init"),
        ("2x2", "order=cart"),
        ("2x2", "algorithm=TP"),
        ("2x2", "algorithm=DN"),
        ("4x1", "algorithm=DP"),
        ("1x3", "algorithm=DP overlap=yes"),
        *[
            ("2x2", f"transpose={t} sum={s}")
            for t, s in (
                ("alltoallv_init", "allreduce_init"),
                ("neighbor", "reduce_scatter"),
                ("neighbor_init", "reduce_scatter_init"),
            )
        ],
    ],
)
def test_every_algorithm_computes_what_one_rank_does(state, serial, mesh, options):
    assert differ(serial, state(mesh, *options.split())) < 1e-11


@pytest.mark.parametrize(
    "mesh,options",
    [
        ("2x2", "algorithm=DP"),
        ("2x2", "transpose=hand sum=ring"),
        ("1x4", "sum=halving"),
        ("3x1", "transpose=hand pattern=ring"),
    ],
)
def test_every_protocol_computes_the_same_bits(state, serial, mesh, options):
    first = state(mesh, *options.split())
    assert differ(serial, first) < 1e-11
    for i, protocol in enumerate(PROTOCOLS):
        ahead, overlap = (i // 2 + 1) % 2, i % 2
        for more in ((ahead, overlap), (1 - ahead, 1 - overlap)):
            chosen = [
                f"protocol={protocol}",
                *(f"{n}={'yes' if m else 'no'}" for n, m in zip(("ahead", "overlap"), more)),
            ]
            assert state(mesh, *options.split(), *chosen) == first, chosen


@pytest.mark.parametrize(
    "mesh,sum_by",
    [
        ("1x4", "halving"),
        ("1x3", "ring"),
        ("2x2", "reduce_scatter"),
        ("1x5", "reduce_scatter_init"),
    ],
)
def test_it_does_not_matter_who_steps_a_coefficient_forward(state, mesh, sum_by):
    assert state(mesh, f"sum={sum_by}", "update=own") == state(mesh, f"sum={sum_by}")


def test_wrong_results_are_called_wrong(pstswm):
    p = run(MPIEXEC, "-n", 2, pstswm, "case=6", "truncation=21", "levels=2", "dt=7200", "days=20")
    assert p.returncode == 1 and p.stdout.endswith("\nNOT VERIFIED\n"), dump(p)


@pytest.mark.parametrize(
    "option,sentence",
    [
        ("nonsense", 'an option has the form NAME=VALUE, "nonsense" has not; help lists them'),
        ("speed=3", 'there is no option "speed"; help lists them'),
        (
            "truncation=43",
            "truncation=43 is not possible: truncation must be one of 21 31 42 63 85 106 170",
        ),
        (
            "levels=3",
            "levels=3 is not possible: levels must be even: two levels are one complex line",
        ),
        ("levels=", "levels= is not possible: levels must be a whole number from 2 to 1000"),
        ("dt=fast", "dt=fast is not possible: dt must be a number from 1 to 86400"),
        ("ahead=maybe", "ahead=maybe is not possible: ahead must be yes or no"),
        (
            "sum=hand",
            (
                "sum=hand is not possible: sum must be one of allreduce allreduce_init "
                "reduce_scatter reduce_scatter_init halving ring"
            ),
        ),
        ("mesh=2by2", "mesh=2by2 is not possible: mesh must be two numbers of ranks, such as 2x4"),
        ("mesh=2x2", "mesh=2x2 needs 4 ranks, but there are 3"),
        (
            "mesh=3x1 algorithm=DP",
            "algorithm=DP needs a PX that is a power of 2 and divides the 128 longitudes, PX is 3",
        ),
        (
            "mesh=3x1 transpose=hand",
            "pattern=swap needs a PX that is a power of 2, PX is 3: take pattern=ring",
        ),
        (
            "mesh=1x3 sum=halving",
            "sum=halving needs a PY that is a power of 2, PY is 3: take sum=ring",
        ),
        ("update=own", "update=own needs a sum in two halves: not sum=allreduce"),
        ("truncation=21 levels=2 steps=1 state=/nowhere/state", "cannot write /nowhere/state: "),
    ],
)
def test_wrong_options_give_a_sentence(pstswm, option, sentence):
    p = run(MPIEXEC, "-n", 3, pstswm, *option.split())
    lines = [line for line in p.stderr.splitlines() if not line.startswith("mpiexec: ")]
    assert p.returncode == 2 and len(lines) == 1 and lines[0].startswith(f"pstswm: {sentence}"), (
        dump(p)
    )


def test_help_lists_every_option(pstswm):
    p = mpiexec("-n", 2, pstswm, "help")
    assert p.stdout.count("mpiexec -n RANKS pstswm") == 1
    source = (ROOT / "apps/pstswm/options.f90").read_text()
    for name in re.findall(r"^    case \('(\w+)'\)", source, re.M):
        assert f"  {name}=" in p.stdout, f"help should tell of {name}"
