#!/usr/bin/env python3
"""Packages of other people that run on mpi4py: their own tests, under our mpiexec. `tests/clients/run`

They are fetched from PyPI into build/clients and use the mpi4py that tests/mpi4py/setup builds.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
MPI4PY = pathlib.Path(os.environ.get("MPI4PY", ROOT / "build" / "mpi4py"))
WORK = ROOT / "build" / "clients"
PYTHON = WORK / "venv" / "bin" / "python"
SECONDS = 120
PACKAGES = ["schwimmbad==0.4.2", "mpi-pytest==2026.0"]

# directory of the source, numbers of processes, arguments behind the interpreter ({n}: number of processes)
RUNS = [
    ("schwimmbad-0.4.2", (2, 4), ["tests/test_mpi.py"]),
    ("schwimmbad-0.4.2", (2, 4), ["tests/test_mpi_with_dill.py"]),
    ("mpi_pytest-2026.0", (1, 2, 3), ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "parallel[{n}]", "tests"]),
]


def setup():
    """The packages, and their sources, which hold the tests."""
    subprocess.run([ROOT / "tests/mpi4py/setup", MPI4PY], check=True, env={**os.environ, "DIST": str(DIST)})
    made = WORK / ".made"
    if made.exists() and made.read_text() == str(PACKAGES):
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", WORK / "venv"], check=True)
    mpi4py = next((MPI4PY / "venv/lib").glob("python*/site-packages"))
    site = next((WORK / "venv/lib").glob("python*/site-packages"))
    (site / "mpi4py.pth").write_text(f"{mpi4py}\n")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "pytest", "dill", *PACKAGES], check=True)
    for package in PACKAGES:
        subprocess.run([*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", WORK / "source", package], check=True)
    for archive in (WORK / "source").glob("*.tar.gz"):
        subprocess.run(["tar", "-xzf", archive, "-C", WORK / "source"], check=True)
    made.write_text(str(PACKAGES))


def run(directory, n, args):
    name = f"{directory} {args[-1]} n={n}"
    words = [str(DIST / "bin/mpiexec"), "-n", str(n), str(PYTHON), *(x.format(n=n) for x in args)]
    p = subprocess.Popen(words, cwd=WORK / "source" / directory, text=True, errors="replace", stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text, _ = p.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        p.terminate()  # mpiexec ends its processes
        text, _ = p.communicate()
        text += f"\nno end within {SECONDS} s"
    print(f"{name:<55} {'ok' if p.returncode == 0 else f'FAILED (status {p.returncode})'}", flush=True)
    if p.returncode != 0:
        print("    " + "\n    ".join(text.splitlines()[-30:]), flush=True)
    return p.returncode == 0


def main():
    setup()
    results = [run(directory, n, args) for directory, sizes, args in RUNS for n in sizes]
    print(f"{sum(results)} of {len(results)} runs of other people's packages are ok")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
