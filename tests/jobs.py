"""Where things are, how processes of a job are started, found and waited for, and networks of
pretended hosts (tests/hosts/lab)."""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
MPIEXEC = str(DIST / "bin/mpiexec")
LAB = ROOT / "tests/hosts/lab"
WATCHDOG = 180  # seconds after which a run counts as hung; no test depends on how fast a machine is
LIMITS = 1, 8, 64  # seconds that a job gets in turn: on a slow machine it has not begun so soon
SKIPPED = 77  # status of a step, a test program or the host lab that cannot be run on this machine


def run(*words, env=None, timeout=WATCHDOG, **more):
    """A command that has ended, with its output and errors."""
    return subprocess.run(
        [str(w) for w in words],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
        **more,
    )


def cargo(command, *words):
    """A command of cargo, for what the steps `stage` and `unit` have compiled. A test is named for
    the whole workspace: the dependencies of one crate alone have other features, so that they and
    all that stands on them would be compiled once more."""
    wrapper = f"RUSTC_WORKSPACE_WRAPPER={ROOT / 'scripts/rustc-for-tests'}"
    name = os.environ.get("CARGO", "cargo")
    return ["env", wrapper, name, command, "--profile", "checked", "--quiet", *words]


def apigen(*words):
    """What apigen prints."""
    # what the step `stage` has built needs no cargo, which other steps may keep waiting
    built = ROOT / "target" / os.environ.get("PROFILE", "checked") / "apigen"
    command = [built] if built.exists() else cargo("run", "-p", "kw-apigen", "--")
    words = [*command, *words]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def dump(p):
    """What a command has said, for the sentence of an assertion."""
    return (
        f"{' '.join(p.args)}\nstatus {p.returncode}\nout {p.stdout[-3000:]!r}\n"
        f"err {p.stderr[-3000:]!r}"
    )


def mpiexec(*words, status=0, out=None, err=None, sentence=None, env=None, **more):
    """Runs mpiexec; checks exit status, output (exact), a part of its errors, and that it says
    exactly one sentence, or none where all is well."""
    p = run(MPIEXEC, *words, env=env, **more)
    assert status is None or p.returncode == status, f"status should be {status}: {dump(p)}"
    if out is not None:
        assert p.stdout == out, f"output should be {out!r}: {dump(p)}"
    if err is not None:
        assert err in p.stderr, f"errors should hold {err!r}: {dump(p)}"
    if sentence is not None:
        lines = [line for line in p.stderr.splitlines() if line.startswith("mpiexec: ")]
        assert len(lines) == 1 and sentence in lines[0], (
            f"one sentence should hold {sentence!r}: {dump(p)}"
        )
    elif status == 0:
        assert "mpiexec:" not in p.stderr or "-v" in words, f"nothing should be said: {dump(p)}"
    return p


def lab(options, script, status=0, **env):
    """Output and errors of a shell script in a host lab, which ends with this status (None: any but
    0). Skips the test where the machine allows no such lab."""
    p = run(LAB, *options.split(), "--", "sh", "-c", script, env=env)
    if p.returncode == SKIPPED and p.stderr.startswith("lab: "):
        pytest.skip(p.stderr.strip())
    assert p.returncode == status or status is None and p.returncode != 0, dump(p)
    return p.stdout, p.stderr


@contextlib.contextmanager
def hosts(number):
    """A host lab that stays: the prefix of its names, whose switch is PREFIXsw and whose hosts are
    PREFIXh0, ..."""
    p = subprocess.Popen(
        [LAB, "--hosts", str(number), "--", "sh", "-c", "echo $LAB; cat"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    prefix = p.stdout.readline().strip()
    try:
        if not prefix:
            why, lacking = p.stderr.read().strip(), p.wait(timeout=WATCHDOG) == SKIPPED
            (pytest.skip if lacking else pytest.fail)(why)
        yield prefix
    finally:
        p.communicate(timeout=WATCHDOG)  # the end of its input ends it


@contextlib.contextmanager
def slurm(nodes=3):
    """A cluster of Slurm that stays (tests/slurm/cluster): srun and the others find it. Skips where
    there is none; fails then if NEED_SLURM=1."""
    p = subprocess.Popen(
        [
            ROOT / "tests/slurm/cluster",
            "--nodes",
            str(nodes),
            "--",
            "sh",
            "-c",
            "echo $SLURM_CONF; cat",
        ],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    conf = p.stdout.readline().strip()
    try:
        if not conf:
            why, lacking = p.stderr.read().strip(), p.wait(timeout=WATCHDOG) == SKIPPED
            (pytest.skip if lacking and os.environ.get("NEED_SLURM") != "1" else pytest.fail)(why)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", conf)
            patch.setenv("LD_LIBRARY_PATH", str(DIST / "lib"))
            yield
    finally:
        p.communicate(timeout=WATCHDOG)  # the end of its input ends it


@contextlib.contextmanager
def network(name):
    """For as long as it lasts, this thread and what it starts are in a network namespace."""
    with open("/proc/thread-self/ns/net") as ours, open(f"/run/netns/{name}") as there:
        enter(there)
        try:
            yield
        finally:
            enter(ours)


def enter(namespace):
    assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0, f"no way into {namespace.name}"


def sh(script):
    return ["sh", "-c", script]


def start(*words, **more):
    """An mpiexec that runs, its output and errors in pipes."""
    return subprocess.Popen(
        [MPIEXEC, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def tag():
    """A length of sleep that no other process has, to find a job's processes by."""
    tag.n = getattr(tag, "n", 0) + 1
    return f"{100000 + os.getpid()}.{tag.n}"


def processes():
    """The directories in /proc of all processes but this one."""
    return [
        e
        for e in pathlib.Path("/proc").iterdir()
        if e.name.isdigit() and int(e.name) != os.getpid()
    ]


def parents():
    """The parent of every process that is not a zombie."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state not in "ZX":
            found[int(entry.name)] = int(parent)
    return found


def descendants(but=()):
    """Process ids of all that comes from this process, but these and what comes from them."""
    known, found, row = parents(), set(), {os.getpid()}
    while row := {pid for pid, parent in known.items() if parent in row and pid not in but}:
        found |= row
    return found


def living(tag):
    """Processes, not zombies, but this one, whose command line holds this tag."""

    def tagged(pid):
        try:
            return tag.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    return [pid for pid in parents() if pid != os.getpid() and tagged(pid)]


def named(name, pids):
    """Those of these processes that have this name."""

    def comm(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            return ""  # it has ended

    return [pid for pid in pids if comm(pid) == name]


def sleepers(tag):
    """The processes that sleep for this time. Their launcher and its guard have the words of the
    job, too, and what is about to become such a process has another name."""
    return named("sleep", living(tag))


def wait_until(ready, what):
    end = time.monotonic() + WATCHDOG
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def gone(tag):
    wait_until(lambda: not living(tag), f"processes are left: {living(tag)}")
