"""Where things are, how processes of a job are started, found and waited for, and networks of pretended hosts (tests/hosts/lab)."""

import contextlib
import ctypes
import os
import pathlib
import struct
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
MPIEXEC = str(DIST / "bin/mpiexec")
LAB = ROOT / "tests/hosts/lab"
WATCHDOG = 90  # seconds after which a run counts as hung; no test depends on how fast a machine is
SKIPPED = 77  # status of a step, a test program or the host lab that cannot be run on this machine


def run(*words, env=None, timeout=WATCHDOG, **more):
    """A command that has ended, with its output and errors."""
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})}, **more)


def told(p):
    """What a command has said, for the sentence of an assertion."""
    return f"{' '.join(p.args)}\nstatus {p.returncode}\nout {p.stdout[-3000:]!r}\nerr {p.stderr[-3000:]!r}"


def lab(options, script, status=0, **env):
    """Output and errors of a shell script in a host lab, which ends with this status (None: any but 0).
    Skips the test where the machine allows no such lab."""
    p = run(LAB, *options.split(), "--", "sh", "-c", script, env=env)
    if p.returncode == SKIPPED and p.stderr.startswith("lab: "):
        pytest.skip(p.stderr.strip())
    assert p.returncode == status or status is None and p.returncode != 0, told(p)
    return p.stdout, p.stderr


@contextlib.contextmanager
def hosts(number):
    """A host lab that stays: the prefix of its names, whose switch is PREFIXsw and whose hosts are PREFIXh0, ..."""
    p = subprocess.Popen([LAB, "--hosts", str(number), "--", "sh", "-c", "echo $LAB; cat"], text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    prefix = p.stdout.readline().strip()
    try:
        if not prefix:
            pytest.skip(p.stderr.read().strip())
        yield prefix
    finally:
        p.communicate(timeout=WATCHDOG)  # the end of its input ends it


def inside(namespace, *words):
    """A command in a network namespace, with the process id that it would have without."""
    return ["ip", "netns", "exec", namespace, *map(str, words)]


def refuse(*calls):
    """From here on these system calls, by their numbers, are refused to this process and its children (EPERM, by seccomp)."""
    # load the number; one comparison for each call, which leads to the refusal behind them; else allowed
    tests = [(0x15, len(calls) - i, 0, number) for i, number in enumerate(calls)]
    words = [(0x20, 0, 0, 0), *tests, (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
    rules = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *w) for w in words))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(words), ctypes.addressof(rules)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


def sh(script):
    return ["sh", "-c", script]


def start(*words, **more):
    """An mpiexec that runs, its output and errors in pipes."""
    return subprocess.Popen([MPIEXEC, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def tag():
    """A length of sleep that no other process has, to find a job's processes by."""
    tag.n = getattr(tag, "n", 0) + 1
    return f"{100000 + os.getpid()}.{tag.n}"


def processes():
    """The directories in /proc of all processes but this one."""
    return [e for e in pathlib.Path("/proc").iterdir() if e.name.isdigit() and int(e.name) != os.getpid()]


def living(tag):
    """Processes, not zombies, whose command line holds this tag."""
    found = []
    for entry in processes():
        try:
            if tag.encode() in (entry / "cmdline").read_bytes():
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(entry.name))
        except OSError:
            pass
    return found


def wait_until(ready, what):
    end = time.monotonic() + WATCHDOG
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def gone(tag):
    wait_until(lambda: not living(tag), f"processes are left: {living(tag)}")
