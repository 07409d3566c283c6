"""mpi4py.futures, whose workers MPI_Comm_spawn starts: from a script, with and without mpiexec, as
a module, over a communicator, from pytest, and from a Jupyter kernel; Dask (dask-mpi)."""

import os
import pathlib
import subprocess
import sys

import pytest

from jobs import MPIEXEC, ROOT, run, dump

EXECUTORS = pathlib.Path(__file__).parent / "executors.py"
RESULT = f"{[x * x for x in range(20)]}\nKeyError(7)\n"
WITH_MPIEXEC = [MPIEXEC, "-n", 1]
ALL = bool(os.environ.get("CHECK_ALL"))
DASK = ["dask-mpi==2026.3.0", "distributed==2026.8.0"]
JUPYTER = ["ipykernel==7.4.0", "jupyter_client==8.10.0"]
NOTEBOOK = """\
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel()


def interrupt_when_it_waits(message):
    text = message["content"].get("text", "")
    print(text, end="", flush=True)
    if text.startswith("waits"):  # the end of the line may come by itself
        manager.interrupt_kernel()


def cell(*lines):
    client.execute_interactive("\\n".join(lines), output_hook=interrupt_when_it_waits, timeout=60)


cell(
    "import math, time",
    "from mpi4py.futures import MPIPoolExecutor",
    "pool = MPIPoolExecutor(max_workers=2)",
    "print(list(pool.map(math.sqrt, [1, 4, 9])))",
)
cell(
    "try:",
    "    print('waits')",
    "    time.sleep(1000)",
    "except KeyboardInterrupt:",
    "    print('interrupted')",
)
cell("print(list(pool.map(math.sqrt, [1, 4, 9])))", "pool.shutdown()")
client.stop_channels()
manager.shutdown_kernel()
"""


@pytest.mark.parametrize("start", [WITH_MPIEXEC, []], ids=["mpiexec", "alone"])
def test_a_pool_of_a_script(start, python):
    p = run(*start, python, EXECUTORS, "pool", stdin=subprocess.DEVNULL)
    assert p.returncode == 0 and p.stdout == 2 * RESULT, dump(p)


def test_a_pool_of_the_module(python):
    p = run(MPIEXEC, "-n", 3, python, "-m", "mpi4py.futures", EXECUTORS, "module")
    assert p.returncode == 0 and p.stdout == RESULT, dump(p)


@pytest.mark.parametrize("n", [1, 3] if ALL else [3])
def test_an_executor_over_a_communicator(n, python):
    p = run(MPIEXEC, "-n", n, python, EXECUTORS, "comm")
    assert p.returncode == 0 and p.stdout == RESULT, dump(p)


@pytest.mark.parametrize("start", [WITH_MPIEXEC, []] if ALL else [[]])
def test_a_pool_of_pytest(start, python, tmp_path):
    test = tmp_path / "test_pool.py"
    test.write_text(
        "from mpi4py.futures import MPIPoolExecutor\n"
        "import math\n\n\n"
        "def test_pool():\n"
        "    with MPIPoolExecutor(max_workers=2) as pool:\n"
        "        assert list(pool.map(math.sqrt, [1, 4, 9])) == [1, 2, 3]\n"
    )
    p = run(*start, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", test, cwd=tmp_path)
    assert p.returncode == 0 and "1 passed" in p.stdout, dump(p)


def with_packages(python, name, packages):
    """An interpreter that has mpi4py and these packages from PyPI."""
    venv = ROOT / "build" / "clients" / name
    made = venv / ".made"
    if not made.exists() or made.read_text() != str(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        site = next((python.parent.parent / "lib").glob("python*/site-packages"))
        others = [site, *(line.strip() for line in (site / "mpi4py.pth").open())]
        own = next((venv / "lib").glob("python*/site-packages"))
        (own / "mpi4py.pth").write_text("".join(f"{path}\n" for path in others))
        pip = [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", "-q", "install"]
        subprocess.run([*pip, *packages], check=True)
        made.write_text(str(packages))
    return venv / "bin/python"


@pytest.mark.skipif(not ALL, reason="make check-all runs it")
def test_a_pool_of_a_notebook_survives_an_interrupt(python, tmp_path):
    """A cell that is interrupted interrupts the kernel, which is in no process group with the
    workers."""
    jupyter = with_packages(python, "jupyter", JUPYTER)
    script = tmp_path / "notebook.py"
    script.write_text(NOTEBOOK)
    p = run(jupyter, script, cwd=tmp_path)
    assert p.returncode == 0, dump(p)
    said = [line for line in p.stdout.splitlines() if line]
    assert said == ["[1.0, 2.0, 3.0]", "waits", "interrupted", "[1.0, 2.0, 3.0]"], dump(p)


@pytest.mark.skipif(not ALL, reason="make check-all runs it")
def test_dask_mpi_starts_a_scheduler_and_workers(python, tmp_path):
    dask = with_packages(python, "dask", DASK)
    script = tmp_path / "sums.py"
    script.write_text(
        "from dask_mpi import initialize\n"
        "from distributed import Client\n\n"
        'if __name__ == "__main__":\n'
        f"    initialize(dashboard=False, local_directory={str(tmp_path)!r})\n"
        "    with Client() as client:\n"
        "        client.wait_for_workers(2)\n"
        "        print('sum', client.submit(sum, [1, 2, 3]).result(), flush=True)\n"
    )
    p = run(MPIEXEC, "-n", 4, dask, script, cwd=tmp_path)
    assert p.returncode == 0 and "sum 6\n" in p.stdout, dump(p)
