"""What the tests of whole programs that are written in Python share: where things are, how tests are chosen and counted, and how
processes of a job are found and waited for. A test file begins with

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from harness import ...

and ends with `sys.exit(main("what was tested"))`.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = pathlib.Path(os.environ.get("DIST", ROOT / "dist"))
MPIEXEC = str(DIST / "bin/mpiexec")
LAB = ROOT / "tests/hosts/lab"
WATCHDOG = 60  # seconds after which a run counts as hung; no test depends on how fast a machine is
NO_LAB = 77  # status of the host lab where the kernel allows none
TESTS = []
# Started in the background of a script, this process ignores interrupts; what it tests must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def test(f):
    """A test: a function that asserts. Those of one file run in their order."""
    TESTS.append(f)
    return f


def main(what):
    """Runs the tests that the command line names, or all; a line for each, and one that sums up. True when one failed."""
    chosen = [t for t in TESTS if not sys.argv[1:] or t.__name__ in sys.argv[1:]]
    failed = 0
    for t in chosen:
        try:
            t()
            print(f"ok     {t.__name__}", flush=True)
        except (AssertionError, subprocess.TimeoutExpired, subprocess.CalledProcessError) as e:
            failed += 1
            print(f"FAILED {t.__name__}: {e}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} tests of {what} passed")
    return bool(failed)


def no_lab():
    """Why this machine allows no host lab; nothing where it does."""
    p = subprocess.run([LAB, "--hosts", "1", "--", "true"], capture_output=True, text=True)
    return p.stderr.strip() if p.returncode == NO_LAB else ""


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
