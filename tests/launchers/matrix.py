"""The same program under every launcher: what it must do, one function each (test_matrix.py runs
them)."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from engines import environment

# The programs, and a file that the last rank leaves (test_matrix.py has them made).
RANK = AGAIN = AFTER = GROW = LAST_WORDS = None
WATCHDOG = 180
TESTS = {}


class Wrong(Exception):
    pass


def test(f):
    TESTS[f.__name__.replace("_", " ")] = f
    return f


def call(engine, words, *, stdin=b"", status=0, **env):
    """Output of a start; `status` is what must come of it: a number, or "not 0"."""
    p = subprocess.Popen(
        [str(w) for w in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(engine, **env),
    )
    out, err = ended(p, stdin)
    text = out.decode(errors="replace")
    if p.returncode != status and not (status == "not 0" and p.returncode != 0):
        tail = (text + err.decode(errors="replace")).strip()[-600:]
        raise Wrong(f"status {p.returncode}, not {status}: {tail}")
    return text


def ended(p, stdin=None):
    """Output and errors of a start, which is ended if it does not end."""
    try:
        return p.communicate(stdin, timeout=WATCHDOG)
    except subprocess.TimeoutExpired:
        p.terminate()
        try:
            said = p.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()
            said = p.communicate()
        raise Wrong(
            f"it does not end within {WATCHDOG} s: {said[0][-300:]}{said[1][-300:]}"
        ) from None


def size(engine):
    return 1 if engine.single else 4


def lines(text, pattern, n):
    """What the ranks said, by rank; exactly one line of each."""
    found = {int(m[1]): m.groups()[1:] for m in re.finditer(rf"^rank (\d+) {pattern}$", text, re.M)}
    if sorted(found) != list(range(n)) or len(re.findall("^rank ", text, re.M)) != n:
        raise Wrong(f"not {n} ranks that each say '{pattern}' once: {text.strip()[:400]}")
    return [found[r] for r in range(n)]


def expect(true, what):
    if not true:
        raise Wrong(what)


WHO = r"of (\d+) sum (\d+) local (\d+) app (-?\d+) universe (-?\d+)"


@test
def rank_and_size(e):
    n = size(e)
    for of, total, *_ in lines(call(e, e.command(n, RANK, "who")), WHO, n):
        expect((int(of), int(total)) == (n, n * (n - 1) // 2), f"a rank of {of} with sum {total}")


@test
def sessions_one_after_another(e):
    call(e, e.command(size(e), AGAIN))


@test
def first_session_after_finalize(e):
    """Most launchers do not take back a rank that has finalized; to finalize later fails, for some
    end a job of which a rank exits without."""
    if e.single or e.name == "mpiexec":
        return call(e, e.command(size(e), AFTER))
    text = call(e, e.command(size(e), AFTER), status="not 0")
    expect("the launcher does not take this process back" in text, f"it says {text.strip()[-300:]}")


@test
def locality(e):
    n = size(e)
    for _, _, local, *_ in lines(call(e, e.command(n, RANK, "who")), WHO, n):
        expect(int(local) == n, f"{local} of {n} ranks share memory")


@test
def variables(e):
    n = size(e)
    words = e.command(n, *(w for w in [RANK, "variable", "WORD_TO_PASS"]))
    if e.passing and not e.single:
        words[1:1] = [*e.passing, "WORD_TO_PASS"]
    for (value,) in lines(call(e, words, WORD_TO_PASS="a b='c' $d"), r"has '(.*)'", n):
        expect(value == "a b='c' $d", f"a rank has {value!r}")


@test
def arguments(e):
    n = size(e)
    odd = ["two words", "", "*", "a'b\"c", "$HOME", "-n", ";", "é"]
    want = "".join(f"[{w}]" for w in odd)
    for (words,) in lines(call(e, e.command(n, RANK, "words", *odd)), r"words (.*)", n):
        expect(words == want, f"{words} came, not {want}")


@test
def exit_status(e):
    call(e, e.command(size(e), RANK, "exit", 7), status=7)


def end_by_the_last(e, words):
    """The last rank ends the job, once all are there."""
    LAST_WORDS.unlink(missing_ok=True)
    call(e, words, status="not 0")
    expect(LAST_WORDS.exists(), "the ranks have not met")
    gone()


@test
def abort(e):
    end_by_the_last(e, e.command(size(e), RANK, "abort", LAST_WORDS, 9))


@test
def a_rank_is_killed(e):
    words = e.command(size(e), RANK, "die", LAST_WORDS)
    words[1:1] = e.strict
    end_by_the_last(e, words)


@test
def stdin(e):
    n = size(e)
    # what fits into a pipe: Hydra stops serving its ranks when rank 0 does not read at once, and
    # MPI_Init needs to be served
    data = bytes(range(256)) * 200
    read = lines(
        call(e, e.command(n, RANK, "input", len(data)), stdin=data), r"read (\d+) sum (\d+)", n
    )
    expect(
        read[0] == (str(len(data)), str(sum(data))),
        f"rank 0 read {read[0][0]} bytes of {len(data)}",
    )
    expect(all(r[0] == "0" for r in read[1:]), "others read too")


def up(e, what, *more):
    """A job whose ranks all say that they run."""
    n = size(e)
    p = subprocess.Popen(
        e.command(n, RANK, what, *more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(e),
        process_group=0,
    )
    for _ in range(n):
        line = p.stdout.readline()
        if " is up" not in line:
            p.kill()
            raise Wrong(f"'{line.strip()}' {p.stderr.read()[-400:]}")
    return p


@test
def signal_passed_on(e):
    p = up(e, "signal")
    p.send_signal(signal.SIGUSR1)
    out, err = ended(p)
    expect(
        out.count("got USR1") == size(e),
        f"{out.count('got USR1')} of {size(e)} ranks were told: {out[-300:]}{err[-300:]}",
    )


@test
def ended_by_a_signal(e):
    p = up(e, "wait")
    p.send_signal(signal.SIGTERM)
    ended(p)
    expect(p.returncode != 0, "the status is 0")
    gone()


@test
def killed(e):
    """No process is left when the launcher is killed outright."""
    p = up(e, "wait")
    p.kill()
    ended(p)
    gone()


@test
def several_programs(e):
    words = e.two([RANK, "who"], [RANK, "who"])
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as several:
        if e.name.startswith("srun"):
            several.write(f"0 {RANK} who\n1-2 {RANK} who\n")
            several.flush()
            words = e.command(3, "--multi-prog", several.name)
        found = lines(call(e, words), WHO, 3)
    apps = [app for *_, app, _ in found]
    expect(
        apps in (["0", "1", "1"], ["-1"] * 3) or e.name.startswith("srun"), f"MPI_APPNUM is {apps}"
    )


@test
def processes_started_at_run_time(e):
    """By MPI_Comm_spawn, which starts our mpiexec whatever the launcher is."""
    n = size(e)
    for (all_of_them,) in lines(call(e, e.command(n, GROW)), r"grows to (\d+)", n):
        expect(int(all_of_them) == n + 2, f"{n} ranks and 2 more are {all_of_them}")


def gone():
    """No rank of the job is left."""
    end = time.monotonic() + WATCHDOG
    while time.monotonic() < end:
        left = [p for p in pathlib.Path("/proc").glob("[0-9]*") if runs_rank(p)]
        if not left:
            return
        time.sleep(0.1)
    raise Wrong(f"processes {', '.join(p.name for p in left)} are left")


def runs_rank(p):
    try:
        return os.readlink(p / "exe") == str(RANK)
    except OSError:
        return False
