"""What the tests of whole programs that are written in Python share: where things are, how tests are chosen and counted, and how
processes of a job are found and waited for. A test file begins with

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from harness import ...

and ends with `sys.exit(main("what was tested"))`.
"""

import concurrent.futures
import ctypes
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
MPIEXEC = str(DIST / "bin/mpiexec")
LAB = ROOT / "tests/hosts/lab"
WATCHDOG = 90  # seconds after which a run counts as hung; no test depends on how fast a machine is
SKIPPED = 77  # status of a step, a test program or the host lab that cannot be run on this machine
TESTS = []
# Started in the background of a script, this process ignores interrupts; what it tests must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Skip(Exception):
    """Raised by a test that cannot be run here: what is missing."""


def test(f):
    """A test: a function that asserts. Those of one file run in their order."""
    TESTS.append(f)
    return f


def outcome(t):
    """Runs a test, says what came of it, and returns its name with "ok", "failed" or the Skip."""
    begin = time.monotonic()
    try:
        t()
        print(f"ok     {t.__name__} ({time.monotonic() - begin:.0f} s)", flush=True)
        return t.__name__, "ok"
    except Skip as reason:
        print(f"skipped {t.__name__}: {reason}", flush=True)
        return t.__name__, reason
    except (AssertionError, subprocess.TimeoutExpired, subprocess.CalledProcessError) as e:
        print(f"FAILED {t.__name__}: {e}", flush=True)
        return t.__name__, "failed"


def skip_all(reason):
    """Ends a step that cannot be run here at all."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def main(what, at_once=1):
    """Runs the tests that the command line names, or all, so many at once; a line for each, and one that sums up. The
    status of the step: 1 when a test failed, SKIPPED when every test was skipped."""
    chosen = [t for t in TESTS if not sys.argv[1:] or t.__name__ in sys.argv[1:]]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        outcomes = list(pool.map(outcome, chosen))
    failed = [name for name, how in outcomes if how == "failed"]
    reasons = [str(how) for _, how in outcomes if isinstance(how, Skip)]
    passed = len(outcomes) - len(failed) - len(reasons)
    print(f"{passed} passed, {len(reasons)} skipped: tests of {what}"
          + (f"; failed: {' '.join(failed)}" if failed else "")
          + (f"; skipped: {'; '.join(dict.fromkeys(reasons))}" if reasons else ""))
    return 1 if failed else SKIPPED if reasons and not passed else 0


def lab(options, script, status=0, **env):
    """Output and errors of a shell script in a host lab, which ends with this status (None: any but 0).
    Skips the test where the machine allows no such lab."""
    p = subprocess.run([LAB, *options.split(), "--", "sh", "-c", script], capture_output=True, text=True, timeout=WATCHDOG,
                       env={**os.environ, **env})
    told = f"lab {options} -- {script}\nstatus {p.returncode}\nout {p.stdout[-3000:]}\nerr {p.stderr[-3000:]}"
    if p.returncode == SKIPPED and p.stderr.startswith("lab: "):
        raise Skip(p.stderr.strip())
    assert p.returncode == status or status is None and p.returncode != 0, told
    return p.stdout, p.stderr


def no_lab():
    """Why this machine allows no host lab; nothing where it does."""
    p = subprocess.run([LAB, "--hosts", "1", "--", "true"], capture_output=True, text=True)
    return p.stderr.strip() if p.returncode == SKIPPED else ""


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
