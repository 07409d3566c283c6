"""Runs test modules of mpi4py one after the other in this process and writes down what becomes of
every test.

    mpiexec -n N python suite.py LOGS MPI4PY/test [--only-skips] [-x PATTERN ...] MODULE ...

With --only-skips a test does nothing if it cannot skip itself: decorators and setUp decide as
always, but of the tests only those are run in whose class, or module's functions, somebody raises a
skip. The others are written down as if they had passed.

Every rank writes LOGS/RANK, a line of JSON an event: "begin" when a module is loaded or a test
begins, "skip" and "fail" with a text, "end" of a test with the seconds that it took and those of
the processor, and "done" behind everything. So a reader can tell where a rank stands that writes no
more.
"""

import inspect
import json
import os
import pathlib
import sys
import time
import traceback
import unittest

# Workers that a test starts (test_util_pool) import this file as well, under another name.
if __name__ == "__main__":
    LOGS, SOURCE = map(pathlib.Path, sys.argv[1:3])
    os.environ["SUITE_SOURCE"] = str(SOURCE)
else:
    SOURCE = pathlib.Path(os.environ["SUITE_SOURCE"])
ONLY_SKIPS = "--only-skips" in sys.argv
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE))
import main  # noqa: E402  mpi4py's own test program


class Result(unittest.TestResult):
    """Writes every event as it happens. A test of several parts (subtests) may fail or be skipped
    more than once."""

    def __init__(self, log):
        super().__init__()
        self.log = log

    def write(self, event, test, text="", **more):
        print(
            json.dumps({"event": event, "test": test, "text": str(text), **more}),
            file=self.log,
            flush=True,
        )

    def startTest(self, test):
        super().startTest(test)
        self.start = time.monotonic(), time.process_time()
        self.write("begin", test.id())

    def stopTest(self, test):
        wall, cpu = self.start
        self.write("end", test.id(), wall=time.monotonic() - wall, cpu=time.process_time() - cpu)
        super().stopTest(test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("skip", test.id(), reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("fail", test.id(), self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.write("fail", test.id(), self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.write("fail", subtest.id(), self._exc_info_to_string(err, test))

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("fail", test.id(), "passed, but mpi4py expects that it fails")


def functions(holder):
    return [
        f
        for f in (getattr(v, "__func__", v) for v in vars(holder).values())
        if inspect.isfunction(f)
    ]


def says_skip(function):
    return "skipTest" in (text := inspect.getsource(function)) or "SkipTest" in text


def may_skip(test):
    """Whether a test is skipped by its decorator, or may be by its own body or a helper that this
    may call."""
    body = getattr(type(test), test._testMethodName, None)
    if (
        not isinstance(test, unittest.TestCase)
        or body is None
        or hasattr(body, "__unittest_skip__")
    ):
        return True
    classes = [c for c in type(test).__mro__ if c.__module__.startswith("test_")]
    helpers = [f for c in classes for f in functions(c) if not f.__name__.startswith("test")]
    helpers += [
        f
        for c in classes
        for f in functions(sys.modules[c.__module__])
        if f.__module__ == c.__module__
    ]
    return any(map(says_skip, [inspect.unwrap(body), *helpers]))


def each(tests):
    for t in tests:
        yield from each(t) if isinstance(t, unittest.TestSuite) else [t]


class Program(main.TestProgram):
    """Loads a module only when its turn has come: loading some of them communicates already."""

    def createTests(self, *args):
        self.modules, self.testNames = self.testNames, []
        super().createTests(*args)

    def runTests(self):
        from mpi4py import MPI

        with open(LOGS / str(MPI.COMM_WORLD.Get_rank()), "w", encoding="utf-8") as log:
            result = Result(log)
            for name in self.modules:
                self.run_module(name, result)
            result.write("done", "")
        sys.exit(not result.wasSuccessful())

    def run_module(self, name, result):
        result.write("begin", name)
        try:
            tests = self.testLoader.loadTestsFromName(name)
        except unittest.SkipTest as reason:
            result.write("skip", name, reason)
        except Exception:
            result.write("fail", name, traceback.format_exc())
        else:
            for test in each(tests if ONLY_SKIPS else []):
                if not may_skip(test):
                    setattr(test, test._testMethodName, lambda: None)
            tests(result)
            # or the next module would tear the last class of this one down again
            result._previousTestClass = None


# What is tested is the mpi4py that this Python has, not one that lies about in the directory of its
# source.
if __name__ == "__main__":
    Program(
        module=None,
        argv=["main.py", "--no-builddir", *(a for a in sys.argv[3:] if a != "--only-skips")],
    )
