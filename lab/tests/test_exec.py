"""kwlab exec: any program by the launcher of a library. A script stands for that launcher, and
prints what it was called with."""

import os
import shlex
import subprocess
import sys

import pytest
from conftest import script

TELLS = '#!/bin/sh\necho "$LD_LIBRARY_PATH"; printf "%s|" "$@"; exit 7\n'


def kwlab(tmp_path, *words):
    for name in ("mpich", "openmpi", "impi"):
        script(tmp_path / "peers" / name / "bin/mpicc", "#!/bin/sh\n")
        script(tmp_path / "peers" / name / "bin/mpiexec", TELLS)
    command = [sys.executable, "-m", "kwlab", "exec", *words]
    env = {**os.environ, "LD_LIBRARY_PATH": f"{tmp_path}/dist/lib/mpich:/other"}
    return subprocess.run(
        [str(word) for word in command], cwd=tmp_path, env=env, capture_output=True, text=True
    )


def places(tmp_path):
    return ["--peers", tmp_path / "peers", "--dist", tmp_path / "dist"]


@pytest.mark.parametrize(
    "library, network, words, libs",
    [
        ("mpich", "shm", "", ["mpich/lib"]),
        ("openmpi", "shm", "--oversubscribe|", ["openmpi/lib"]),
        ("openmpi", "tcp", "--oversubscribe|--mca|pml|ob1|--mca|btl|tcp,self|", ["openmpi/lib"]),
        ("impi", "shm", "", ["impi/lib", "impi/opt/mpi/libfabric/lib"]),
    ],
)
def test_the_program_runs_under_the_launcher_of_the_library(
    tmp_path, library, network, words, libs
):
    options = ["--network", network, "-n", 3, *places(tmp_path)]
    p = kwlab(tmp_path, library, *options, "true", "-n", "--help", "a b")
    path, told = p.stdout.split("\n")
    assert path.split(":") == [*(f"{tmp_path}/peers/{lib}" for lib in libs), "/other"], p
    assert told == f"{words}-n|3|true|-n|--help|a b|" and p.returncode == 7, p


def test_the_command_is_printed(tmp_path):
    p = kwlab(tmp_path, "mpich", "--print", *places(tmp_path), "true", "-n")
    assert shlex.split(p.stdout)[-5:] == [
        f"{tmp_path}/peers/mpich/bin/mpiexec", "-n", "1", "true", "-n"
    ], p  # fmt: skip


def test_a_library_of_a_plan(tmp_path):
    launcher = script(tmp_path / "own/bin/start", TELLS)
    plan = tmp_path / "own.toml"
    plan.write_text(
        'title = "Own"\n'
        f'[[library]]\nname = "own"\nlauncher = "{launcher} --ranks {{ranks}}"\nshm = ["--fast"]\n'
        '[[work]]\nprogram = "p2p"\nranks = [2]\nnetwork = ["shm"]\n'
    )
    p = kwlab(tmp_path, "own", "--plan", plan, *places(tmp_path), "-n", 2, "true")
    assert p.stdout.endswith("\n--fast|--ranks|2|true|") and p.returncode == 7, p


def test_a_program_of_another_library_is_refused(tmp_path):
    (tmp_path / "dist/lib").mkdir(parents=True)
    library, source = tmp_path / "dist/lib/libmpi.so.40", tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    shared = ["cc", "-shared", "-o", library, "-x", "c", "/dev/null", "-Wl,-soname,libmpi.so.40"]
    subprocess.run(shared, check=True)
    linked = ["cc", "-o", tmp_path / "program", source, "-Wl,--no-as-needed", library]
    for where in ([], [f"-Wl,-rpath,{tmp_path}/dist/lib"]):
        subprocess.run([*linked, *where], check=True)
        p = kwlab(tmp_path, "mpich", *places(tmp_path), "-n", 2, "./program")
        assert (
            p.returncode == 2 and "./program needs libmpi.so.40, which mpich does not" in p.stderr
        )
        assert p.stderr.count("\n") == 1, p


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["lam", "true"], "'lam'"),
        (["kittiwake", "true"], "kittiwake: not installed"),
        (["mpich", "--network", "smoke", "true"], "'smoke'"),
        (["mpich", "no-such-program"], "no-such-program is neither a program nor on PATH"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, words, sentence):
    p = kwlab(tmp_path, words[0], *places(tmp_path), *words[1:])
    assert p.returncode == 2 and sentence in p.stderr and p.stderr.count("\n") == 1, p
