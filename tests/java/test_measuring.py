"""What measures in Java: whole lines with right data from bench/java, nonsense refused, and the
Java Grande kernels in C and Java verified against their known results; a wrong one is told."""

import json
import shutil

import pytest

from jobs import DIST, ROOT, mpiexec, run, dump

KERNELS = ["series", "crypt", "sor", "sparsematmult", "lufact"]
# A known result, and another in its place.
OTHER = {
    "series": ("1.1161046676147888", "1.1161046676247888"),
    "crypt": ("0xe5}", "0xe4}"),
    "sor": ("0.498574406322512", "0.498574406422512"),
    "sparsematmult": ("75.02484945753453", "75.02484946753453"),
    "lufact": ("{6, 12, 20}", "{6e-6, 12, 20}"),
}
LINES = {
    "P2p": ["--ms", "2", "--sizes", "8,65536", "--turns", "3"],
    "Coll": ["--ms", "2", "--sizes", "8,65536", "--apart", "--turns", "3"],
}
OPS = "barrier,bcast,reduce,allreduce,allgather,alltoall,reduce_scatter,gather,scatter,scan,exscan"
MODES = "send,ssend,bsend,rsend,isend,persistent"


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """compile(DIRECTORY): the class path of its programs in Java, compiled once."""
    made = {}

    def compiled(directory):
        if not shutil.which("javac") or not (DIST / "share/java/mpi.jar").exists():
            pytest.skip("there is no JDK, or there was none when 'make stage' ran")
        if directory not in made:
            made[directory] = tmp_path_factory.mktemp("classes")
            sources = sorted((ROOT / directory).glob("*.java"))
            p = run(DIST / "bin/mpijavac", "-d", made[directory], *sources, timeout=300)
            assert p.returncode == 0, dump(p)
        return made[directory]

    return compiled


def lines(*words):
    out = mpiexec("-n", 2, "java", "-XX:+UseSerialGC", "-cp", *words, timeout=300).stdout
    return [json.loads(line) for line in out.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("buffers", ["direct", "array", "double"])
def test_lines_of_messages(buffers, programs):
    kinds = "pingpong,stream,unexpected,exchange"
    words = [*LINES["P2p"], "--kinds", kinds, "--modes", MODES, "--buffers", buffers]
    found = lines(programs("bench/java"), "P2p", *words)
    assert len(found) == 2 * (4 * 6 - 2) and all(f["bench"] == "p2p" for f in found)
    assert all(0 < f["us"]["min"] <= f["us"]["median"] for f in found), found


@pytest.mark.parametrize("buffers", ["direct", "array"])
def test_lines_of_collectives_have_right_data(buffers, programs):
    words = [*LINES["Coll"], "--ops", OPS, "--buffers", buffers]
    found = lines(programs("bench/java"), "Coll", *words)
    assert {f["op"] for f in found} == set(OPS.split(",")) and len(found) == 21
    assert not any("wrong" in f for f in found), found


@pytest.mark.parametrize(
    "words",
    [
        ["P2p", "--kinds", "pong"],
        ["P2p", "--sizes", "-1"],
        ["P2p", "--ms"],
        ["P2p", "--buffers", "double", "--sizes", "4"],
        ["Coll", "--ops", "none"],
        ["Coll", "--sizes", "12"],
    ],
)
def test_nonsense_is_refused(words, programs):
    p = mpiexec("-n", 2, "java", "-cp", programs("bench/java"), *words, status=1, sentence="rank")
    assert f"{words[0]}: " in p.stderr and "'" in p.stderr, dump(p)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_in_java_is_verified(kernel, ranks, programs):
    words = ["-cp", programs("apps/grande/java"), kernel.capitalize(), "A"]
    out = mpiexec("-n", ranks, "java", *words).stdout
    assert out.startswith("seconds ") and out.endswith("\nverified\n"), out


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_in_c_is_verified(kernel, ranks, program):
    out = mpiexec("-n", ranks, program(f"apps/grande/{kernel}.c", "-O2", "-lm"), "A").stdout
    assert out.startswith("seconds ") and out.endswith("\nverified\n"), out


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_wrong_result_is_reported(kernel, tmp_path):
    right, wrong = OTHER[kernel]
    text = (ROOT / f"apps/grande/{kernel}.c").read_text()
    assert text.count(right) == 1
    (tmp_path / "other.c").write_text(text.replace(right, wrong))
    include = f"-I{ROOT / 'apps/grande'}"
    made = run(
        DIST / "bin/mpicc", "-O2", include, "-o", tmp_path / "x", tmp_path / "other.c", "-lm"
    )
    assert made.returncode == 0, dump(made)
    p = mpiexec("-n", 2, tmp_path / "x", "A", status=1)
    assert p.stdout.endswith("\nwrong\n"), dump(p)


@pytest.mark.parametrize("size", ["D", ""])
def test_a_size_that_there_is_not(size, program, programs):
    words = [program("apps/grande/sor.c", "-O2", "-lm"), *filter(None, [size])]
    p = mpiexec("-n", 2, *words, status=1, sentence="abort")
    assert "sor: its one argument is a size: A, B or C" in p.stderr, dump(p)
    words = ["java", "-cp", programs("apps/grande/java"), "Sor", *filter(None, [size])]
    p = mpiexec("-n", 2, *words, status=1, sentence="abort")
    assert "Sor: its one argument is a size: A, B or C" in p.stderr, dump(p)
