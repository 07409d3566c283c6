"""mpiexec --with: the same command by another MPI. Scripts stand in its place, which say what they
were called with."""

import os
import subprocess
import sys

import pytest

from jobs import DIST, mpiexec, dump

MARK = {"openmpi": "ompi_info", "mpich": "mpichversion", "intel": "impi_info"}
NAME = {"openmpi": "Open MPI", "mpich": "MPICH", "intel": "Intel MPI"}


def installed(tmp_path, family, libraries=("libmpi.so",)):
    """Where something lies that calls itself an MPI of this family."""
    home = tmp_path / family
    for directory in ("bin", "lib"):
        (home / directory).mkdir(parents=True)
    for name in libraries:
        (home / "lib" / name).touch()
    command(home / "bin/mpiexec", 'echo "$LD_LIBRARY_PATH"; printf "%s|" "$@"; exit 7')
    command(home / "bin" / MARK[family], ":")
    return home


def command(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("family", MARK)
def test_its_mpiexec_gets_the_same_job(tmp_path, family):
    home = installed(tmp_path, family)
    p = mpiexec("--with", home, "-genv", "A", "a b", "-n", 2, "true", "-n", ":", "false", status=7)
    path, words = p.stdout.split("\n")
    assert path.split(":")[0] == str(home / "lib")
    assert words == {
        "openmpi": "--oversubscribe|--allow-run-as-root|-x|A=a b|-n|2|true|-n|:|-n|1|false|"
    }.get(family, "-genv|A|a b|-n|2|true|-n|:|-n|1|false|")
    assert p.stderr == ""


@pytest.mark.parametrize("family", MARK)
def test_it_is_found_by_its_name(tmp_path, family):
    path = {"PATH": f"{installed(tmp_path, family)}/bin:{os.environ['PATH']}"}
    p = mpiexec("--with", family, "-v", "true", status=7, env=path)
    assert (
        p.stdout.endswith("-n|1|true|") and f"{tmp_path / family / 'bin/mpiexec'} " in p.stderr
    ), dump(p)


def test_commands_that_share_a_directory(tmp_path):
    # as in Debian, where mpiexec itself may be anybody's
    home = installed(tmp_path, "openmpi")
    command(home / "bin/mpiexec.mpich", 'echo "by MPICH:" "$@"')
    path = {"PATH": f"{home}/bin:/usr/bin:/bin"}
    mpiexec("--with", "mpich", "true", env=path, out="by MPICH: -n 1 true\n")
    command(home / "bin/mpiexec.openmpi", 'echo "by Open MPI:" "$@"')
    p = mpiexec("--with", "openmpi", "true", env=path)
    assert p.stdout.startswith("by Open MPI:"), dump(p)


def test_options_of_the_other_reach_it(tmp_path):
    home = installed(tmp_path, "openmpi")
    p = mpiexec(
        "--with", home, "--mca", "btl", "tcp,self", "--bind-to", "socket", "-n", 2, "true", status=7
    )
    assert "|--mca|btl|tcp,self|--bind-to|socket|-n|2|true|" in p.stdout and p.stderr == "", dump(p)


@pytest.mark.parametrize("family", MARK)
def test_a_program_of_the_standard_abi(tmp_path, family):
    source = tmp_path / "one.c"
    source.write_text(
        "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0) || MPI_Finalize(); }\n"
    )
    program = tmp_path / "one"
    subprocess.run([DIST / "bin/mpicc", "-o", program, source], check=True)
    home = installed(tmp_path, family)
    mpiexec(
        "--with",
        home,
        program,
        status=126,
        sentence=(
            f"'{program}' needs libmpi_abi.so.1, which this {NAME[family]} does not have: "
            "compile it with"
        ),
    )
    (home / "lib/libmpi_abi.so.1").touch()
    p = mpiexec("--with", home, program, status=7)
    assert p.stdout.endswith(f"{program}|"), dump(p)


@pytest.mark.parametrize(
    "needed, family, why",
    [
        ("libmpi.so.40", "mpich", "was compiled for Open MPI, not for MPICH"),
        ("libmpi.so.40", "intel", "was compiled for Open MPI, not for Intel MPI"),
        ("libmpi.so.12", "openmpi", "was compiled for MPICH's ABI, not for Open MPI"),
        ("libmpich.so.12", "intel", "needs libmpich.so.12, which this Intel MPI does not have"),
    ],
)
def test_a_program_of_another_abi_is_refused(tmp_path, needed, family, why):
    library, program = tmp_path / needed, tmp_path / "program"
    subprocess.run(
        ["cc", "-shared", "-o", library, "-x", "c", "/dev/null", f"-Wl,-soname,{needed}"],
        check=True,
    )
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["cc", "-o", program, tmp_path / "main.c", "-Wl,--no-as-needed", library], check=True
    )
    mpiexec(
        "--with", installed(tmp_path, family), program, status=126, sentence=f"'{program}' {why}"
    )


def test_what_is_not_there(tmp_path):
    nowhere = {"PATH": str(tmp_path)}
    for family, name in NAME.items():
        mpiexec(
            "--with",
            family,
            sys.executable,
            status=127,
            env=nowhere,
            sentence=f"{name} is not found",
        )
    mpiexec("--with", tmp_path, "true", status=127, sentence=f"'{tmp_path}' contains no mpiexec of")
    mpiexec(
        "--with",
        "lam",
        "true",
        status=1,
        sentence="must be openmpi, mpich, intel or an installation directory",
    )
    mpiexec("--with", DIST, "true", status=127, sentence="contains no mpiexec of")
    mpich = installed(tmp_path, "mpich")
    mpiexec("--with", mpich, "no-such-program", status=127, sentence="was not found")
    mpiexec(
        "--with",
        tmp_path / "mpich",
        "--end-hung",
        "true",
        status=1,
        sentence="--end-hung means nothing to MPICH",
    )
