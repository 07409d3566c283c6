"""What pip calls to make a wheel of the sources, or an archive of them (PEP 517): `pip install .`
in a clone, and `pip install kittiwake-VERSION.tar.gz`. Rust and a C compiler must be there.

`--config-settings tree=DIR` packs an installation that `make stage` has made, and builds nothing.
"""

import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def requirements():
    lines = (ROOT / "scripts/wheel-tools.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def get_requires_for_build_wheel(config_settings=None):
    return requirements()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The name of a wheel in that directory. What make says goes to standard error, as pip wants
    it."""
    tree = (config_settings or {}).get("tree")
    out = ROOT / "build/wheel-by-pip"
    subprocess.run(["rm", "-rf", out], check=True)
    if tree:
        words = ["scripts/make-wheel", os.path.abspath(tree), out, sys.executable]
    else:
        words = ["make", "packed-wheel", f"WHEELS={out}", f"PYTHON={sys.executable}"]
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    subprocess.run(words, cwd=ROOT, stdout=sys.stderr, env={**os.environ, "PATH": path}, check=True)
    [made] = out.glob("*.whl")
    made.replace(pathlib.Path(wheel_directory) / made.name)
    return made.name


def build_sdist(sdist_directory, config_settings=None):
    """The name of an archive in that directory: what git knows, with what pip wants beside it."""
    version = next(
        line.split('"')[1]
        for line in (ROOT / "Cargo.toml").read_text().splitlines()
        if line.startswith("version")
    )
    name = f"kittiwake-{version}"
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    information = ROOT / "build/PKG-INFO"
    information.parent.mkdir(exist_ok=True)
    information.write_text(f"Metadata-Version: 2.1\nName: kittiwake\nVersion: {version}\n")
    with tarfile.open(pathlib.Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(information, f"{name}/PKG-INFO")
        for file in filter(None, files):
            archive.add(ROOT / file, f"{name}/{file}")
    return f"{name}.tar.gz"
