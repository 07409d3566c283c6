"""mpiexec --wrap and --debug: ranks under valgrind, perf, a debugger."""

import os
import pty
import select
import shutil
import time

import pytest

from jobs import MPIEXEC, WATCHDOG, run, dump

gdb = pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
valgrind = pytest.mark.skipif(
    not shutil.which("valgrind"),
    reason="valgrind is not installed (scripts/install-deps - valgrind)",
)


def test_chosen_ranks_have_a_command_around_them(tmp_path):
    mine = os.nice(0)
    other = min(mine + 7, 19)
    words = [
        "--wrap",
        "1,3-4:env WRAPPED=%r",
        "--wrap",
        "3:nice -n 7",
        "-n",
        "5",
        "sh",
        "-c",
        "echo $PMI_RANK $WRAPPED $(nice)",
    ]
    p = run(MPIEXEC, *words, cwd=tmp_path)
    assert sorted(p.stdout.splitlines()) == [
        f"0 {mine}",
        f"1 1 {mine}",
        f"2 {mine}",
        f"3 3 {other}",
        f"4 4 {mine}",
    ], dump(p)


def test_on_another_host_it_is_the_same(tmp_path):
    away = tmp_path / "away"
    away.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    away.chmod(0o755)
    p = run(
        MPIEXEC,
        "--ssh",
        away,
        "--hosts",
        "elsewhere:2",
        "--wrap",
        "1:env WRAPPED=%r",
        "sh",
        "-c",
        "echo $PMI_RANK $WRAPPED",
    )
    assert sorted(p.stdout.splitlines()) == ["0", "1 1"], dump(p)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--wrap", "2:env", "-n", "2", "true"], "'2:env' names rank 2, and the job has 2"),
        (["--wrap", "3-1:env", "-n", "2", "true"], "'3-1' names no ranks"),
        (["--wrap", "0:no-such-command", "-n", "2", "true"], "no-such-command"),
        pytest.param(
            ["--debug", "2", "-n", "2", "true"], "names rank 2, and the job has 2", marks=gdb
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(words, sentence):
    p = run(MPIEXEC, *words)
    assert p.returncode != 0 and sentence in p.stderr and p.stderr.count("\n") == 1, dump(p)


def test_without_gdb_there_is_no_debugging(tmp_path):
    p = run(MPIEXEC, "--debug", "0", "-n", "2", "/bin/true", env={"PATH": str(tmp_path)})
    assert (
        p.returncode != 0
        and "--debug needs gdb, which is not on PATH" in p.stderr
        and p.stderr.count("\n") == 1
    ), dump(p)


@valgrind
@pytest.mark.parametrize("how", ["wrapped", "as it is"])
def test_valgrind_finds_the_program_s_faults_and_none_of_ours(program, tmp_path, how):
    source = tmp_path / "fault.c"
    source.write_text("""#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, sum, *one = malloc(sizeof *one);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    one[0] = rank;
    MPI_Allreduce(one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &sum, 1, MPI_INT, 1 - rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1 && argc > 1) sum = one[1];
    MPI_Finalize();
    free(one);
    return sum > 1;
}
""")
    checked = ["valgrind", "-q", "--error-exitcode=9"]
    words = {
        "wrapped": ["--wrap", " ".join(checked), "-n", "2", program(str(source), "-g")],
        "as it is": ["-n", "2", *checked, program(str(source), "-g")],
    }[how]
    p = run(MPIEXEC, *words, timeout=2 * WATCHDOG)
    assert p.returncode == 0 and "==    at " not in p.stderr, dump(p)
    p = run(MPIEXEC, *words, "fault", timeout=2 * WATCHDOG)
    assert (
        p.returncode == 9
        and p.stderr.count("Invalid read of size 4") == 1
        and "fault.c:11" in p.stderr
    ), dump(p)


@gdb
def test_a_debugger_takes_commands_from_standard_input(program):
    commands = "break MPI_Finalize\nrun\nprint 6 * 7\ncontinue\nquit\n"
    p = run(MPIEXEC, "-n", 2, "--debug", 1, program("examples/hello.c", "-g"), input=commands)
    assert p.returncode == 0 and "$1 = 42" in p.stdout and "Breakpoint 1, " in p.stdout, dump(p)


@gdb
def test_a_debugger_gets_the_terminal(program):
    child, terminal = pty.fork()
    if child == 0:
        os.execv(
            MPIEXEC,
            [str(MPIEXEC), "-n", "2", "--debug", "1", str(program("examples/hello.c", "-g"))],
        )
    seen, end = "", time.monotonic() + WATCHDOG

    def until(text):
        nonlocal seen
        while text not in seen:
            assert time.monotonic() < end, f"no '{text}' in: {seen}"
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).decode()
        seen = seen.split(text, 1)[1]

    until("(gdb) ")
    os.write(terminal, b"break MPI_Finalize\nrun\n")
    until("Breakpoint 1, ")
    os.write(terminal, b"print 6 * 7\n")
    until("$1 = 42")
    os.write(terminal, b"continue\n")
    until("exited normally")
    os.write(terminal, b"quit\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
