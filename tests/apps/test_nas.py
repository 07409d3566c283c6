"""The NAS kernels of apps/nas: class S is verified on every network and number of ranks, a wrong
result is told, what cannot be asked for is refused in a sentence."""

import re
import shutil

import pytest

from jobs import DIST, ROOT, mpiexec, run, dump

NAS = ROOT / "apps/nas"
KERNELS = ["ep", "is", "cg", "mg", "ft", "lu", "bt", "btio", "sp"]
SQUARE = ["bt", "btio", "sp"]  # go on 1, 4, 9 ... ranks
PLACES = [
    (kernel, network, ranks * ranks if kernel in SQUARE else ranks)
    for kernel in KERNELS
    for network, ranks in [
        ("shm", 1),
        ("shm", 2),
        *([] if kernel in SQUARE else [("shm", 4)]),
        ("tcp", 2),
    ]
]
# A published value of class S, and another in its place.
OTHER = {
    "ep": ("-3.247834652034740e3_dp", "-3.247834752034740e3_dp"),
    "is": ("{0, 18, 346, 64917, 65463}", "{0, 18, 346, 64918, 65463}"),
    "cg": ("8.5971775078648_dp", "8.5971775178648_dp"),
    "mg": ("0.5307707005734e-04", "0.5307708005734e-04"),
    "ft": ("4.932597244941e+02", "4.932597245941e+02"),
    "lu": ("8.4144342047347926e-05", "8.4144352047347926e-05"),
    "bt": ("4.9976913345811579e-04", "4.9976923345811579e-04"),
    "btio": ("0.1149036328945e+02", "0.1149036428945e+02"),
    "sp": ("1.0360746705285417e-02", "1.0360756705285417e-02"),
}


def build(source, place, *programs, **env):
    p = run(
        ROOT / "apps/build",
        source,
        place,
        *programs,
        env={"MPIFC": DIST / "bin/mpifort", "MPICC": DIST / "bin/mpicc", **env},
    )
    assert p.returncode == 0, dump(p)
    return place


@pytest.fixture(scope="session")
def nas(tmp_path_factory):
    """A directory with the kernels."""
    if not shutil.which("gfortran"):
        pytest.skip("gfortran is not installed")
    return build(NAS, tmp_path_factory.mktemp("nas"))


def further(kernel, directory):
    """The arguments of a kernel after its class."""
    return ["full", directory / "records"] if kernel == "btio" else []


def figures(out):
    """The figures of a kernel's report, by their names."""
    return {
        name: float(value)
        for name, value in re.findall(r"^(ranks|seconds|Mop/s) +(\d+(?:\.\d+)?)$", out, re.M)
    }


@pytest.mark.parametrize("kernel, network, ranks", PLACES)
def test_class_s_is_verified(nas, kernel, network, ranks, tmp_path):
    words = [nas / kernel, "S", *further(kernel, tmp_path)]
    p = mpiexec("-n", ranks, *words, env={"KW_PATHS": f"self,{network}"})
    assert p.stdout.splitlines()[-1] == "verified", dump(p)
    found = figures(p.stdout)
    assert found["ranks"] == ranks and found["seconds"] > 0 and found["Mop/s"] > 0, dump(p)


@pytest.mark.parametrize(
    "kernel, ranks",
    [
        ("ep", 3),
        ("is", 3),
        ("is", 7),
        ("cg", 8),
        ("mg", 8),
        ("mg", 16),
        ("ft", 8),
        ("lu", 6),
        ("lu", 9),
        ("bt", 9),
        ("btio", 9),
        ("sp", 16),
    ],
)
def test_more_ranks_of_other_shapes(nas, kernel, ranks, tmp_path):
    words = [nas / kernel, "S", *further(kernel, tmp_path)]
    assert mpiexec("-n", ranks, *words).stdout.endswith("\nverified\n")


def test_btio_writes_every_line_by_itself(nas, tmp_path):
    p = mpiexec("-n", 4, nas / "btio", "S", "simple", tmp_path / "records")
    assert p.stdout.endswith("\nverified\n"), dump(p)
    assert "0.83 MB" in p.stdout and not list(tmp_path.iterdir()), dump(p)


def test_a_variant_of_btio_that_is_not_there_is_refused(nas, tmp_path):
    why = "btio takes full or simple as its second argument"
    words = ["-n", 1, nas / "btio", "S", "fully", tmp_path / "records"]
    mpiexec(*words, status=2, out="", err=why, sentence="exited with status 2")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    "what, right",
    [("R", True), ("E", True), ("W", False), ("N", False), ("L", False), ("P", False)],
)
def test_verdict(verdict, what, right, ranks):
    p = mpiexec(
        "-n",
        ranks,
        verdict,
        what,
        status=0 if right else 1,
        sentence=None if right else "exited with status 1",
    )
    assert p.stdout.splitlines()[-1] == ("verified" if right else "NOT VERIFIED"), dump(p)


@pytest.fixture(scope="session")
def verdict(nas, tmp_path_factory):
    return (
        build(NAS, tmp_path_factory.mktemp("verdict"), ROOT / "tests/apps/verdict.f90", FLAGS="-O1")
        / "verdict"
    )


@pytest.fixture(scope="session")
def mistaken(nas, tmp_path_factory):
    """The kernels, each made of a source in which one published value is another."""
    source = shutil.copytree(NAS, tmp_path_factory.mktemp("mistaken") / "source")
    for kernel, (value, other) in OTHER.items():
        name = {"bt": "bt_lines.f90", "is": "is.c"}.get(kernel, f"{kernel}.f90")
        path = source / name
        text = path.read_text()
        assert text.count(value) == 1, f"{value} should stand once in {path}"
        path.write_text(text.replace(value, other))
    # which the compiler does sooner
    return build(source, tmp_path_factory.mktemp("mistaken-nas"), FLAGS="-O1")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_result_that_is_not_the_published_one_is_reported(mistaken, kernel, tmp_path):
    p = mpiexec(
        "-n",
        1 if kernel in SQUARE else 2,
        mistaken / kernel,
        "S",
        *further(kernel, tmp_path),
        status=1,
        sentence="exited with status 1",
    )
    assert p.stdout.splitlines()[-1] == "NOT VERIFIED", dump(p)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_class_that_is_not_there_is_refused(nas, kernel):
    p = mpiexec("-n", 2, nas / kernel, "Q", status=2, out="", sentence="exited with status 2")
    assert f"{kernel} takes the class of the problem as its argument: one of S, W, A" in p.stderr, (
        dump(p)
    )
    mpiexec(
        "-n",
        1,
        nas / kernel,
        status=2,
        out="",
        err="one of S, W, A",
        sentence="exited with status 2",
    )


@pytest.mark.parametrize("kernel", ["cg", "mg", "ft", "bt", "sp"])
def test_ranks_that_the_problem_does_not_allow_are_refused(nas, kernel):
    which = "square" if kernel in SQUARE else "power of two"
    mpiexec(
        "-n",
        3,
        nas / kernel,
        "S",
        status=2,
        out="",
        err=f"{kernel} goes on a number of ranks that is a {which}",
        sentence="exited with status 2",
    )


@pytest.mark.parametrize("kernel", ["lu", "bt"])
def test_a_problem_that_is_too_small_for_the_ranks_is_refused(nas, kernel):
    mpiexec(
        "-n",
        25,
        nas / kernel,
        "S",
        status=2,
        out="",
        err=f"{kernel} has too few points in this class for this many ranks",
        sentence="exited with status 2",
    )
