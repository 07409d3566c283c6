"""The package for Debian: made of dist/, installed below a directory of the test by dpkg, tried,
and removed."""

import os
import shutil

import pytest

from jobs import DIST, ROOT, run, dump

COMMANDS = (
    "mpicc mpicxx mpic++ mpijavac mpifort mpif90 mpif77 mpiexec mpirun kwinfo kwtrace".split()
)

pytestmark = [
    pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg is not here"),
    pytest.mark.skipif(os.geteuid() != 0, reason="dpkg installs as root only"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    out = tmp_path_factory.mktemp("deb")
    # how small it is says nothing here
    quick = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
    p = run(ROOT / "scripts/make-deb", DIST, out, cwd=ROOT, env=quick)
    assert p.returncode == 0, dump(p)
    [made] = out.iterdir()
    return made


@pytest.fixture(scope="module")
def dpkg(tmp_path_factory):
    """dpkg(WORD...) below a directory, which is its attribute `root`."""
    root = tmp_path_factory.mktemp("root")
    for place in ("info", "updates", "alternatives", "triggers"):
        (root / "var/lib/dpkg" / place).mkdir(parents=True)
    for name in ("status", "available"):
        (root / "var/lib/dpkg" / name).touch()
    (root / "etc/alternatives").mkdir(parents=True)
    (root / "var/log").mkdir()

    def call(*words):
        # what it depends on is outside of the directory
        p = run(
            "dpkg",
            f"--root={root}",
            "--force-script-chrootless",
            "--force-depends",
            "--log=/dev/null",
            *words,
        )
        assert p.returncode == 0, dump(p)

    call.root = root
    return call


def leads_to(root, path):
    """Where a link leads when `root` is the root of the system."""
    while path.is_symlink():
        target = os.readlink(path)
        path = root / target.lstrip("/") if target.startswith("/") else path.parent / target
    return path.resolve()


def test_it_is_installed_offered_as_an_alternative_and_removed(package, dpkg, tmp_path):
    root = dpkg.root
    dpkg("--install", package)
    home = root / "usr/lib/kittiwake"
    for name in COMMANDS:
        assert leads_to(root, root / "usr/bin" / name) == (home / "bin" / name).resolve(), name
    [libraries] = (root / "usr/lib").glob("*-linux-gnu*")
    assert leads_to(root, libraries / "libmpi.so") == home / "lib/libmpi_abi.so.1"
    assert leads_to(root, libraries / "libmpi_abi.so.1") == home / "lib/libmpi_abi.so.1"
    assert leads_to(root, root / "usr/include" / libraries.name / "mpi") == home / "include"
    for name in ("mpicc", "mpiexec", "mpif90"):
        assert leads_to(root, root / f"usr/share/man/man1/{name}.1.gz").exists(), name

    p = run(home / "bin/mpicc", "-o", tmp_path / "hello", ROOT / "examples/hello.c")
    assert p.returncode == 0, dump(p)
    p = run(home / "bin/mpiexec", "-n", 2, tmp_path / "hello")
    assert p.returncode == 0 and "rank 1 of 2" in p.stdout, dump(p)

    dpkg("--purge", "kittiwake")
    left = [
        path
        for path in root.rglob("*")
        if not path.is_dir() and "var" not in path.relative_to(root).parts
    ]
    assert not left


def test_what_it_says_of_itself(package):
    p = run("dpkg-deb", "--field", package, "Package", "Version", "Depends")
    version = next(
        line.split('"')[1]
        for line in (ROOT / "Cargo.toml").read_text().splitlines()
        if line.startswith("version")
    )
    assert p.returncode == 0 and f"Version: {version}" in p.stdout and "libc6 (>= 2." in p.stdout, (
        dump(p)
    )
