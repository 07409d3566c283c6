"""Honesty: a program against itself is "same", one that takes 5 % more is found, and two libraries'
programs are built from the same source with the same flags.

What is restless here is made, so that the answers are the same on every machine, however busy. On
the machine as it is: `make honesty`."""

import subprocess
from pathlib import Path

import pytest
from conftest import script

from kwlab import compare, libraries

HERE = Path(__file__).parent
machine = pytest.mark.machine  # goes by the time that this machine takes


@pytest.fixture
def made(fake, tmp_path):
    """Two libraries that run made.c; `slow` says that it takes 5 % longer."""
    found = [fake("steady", "fine"), fake("slow", "fine")]
    for library in found:
        script(
            library.compiler,
            '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
            f'exec cc -O2 -o "$2" {HERE / "made.c"} -lm\n',
        )
        library.env["RUNS"] = str(tmp_path / "runs")
    found[1].env["SLOWER"] = "1.05"
    return found


def compared(a, b, known, seed, most=24):
    """The last verdict."""
    for library in known:
        library.env["SEED"] = str(seed)
    *_, verdicts = compare.pairs(compare.live(a, b, known, "p2p"), most, seed=seed)
    return next(iter(verdicts.values()))


def nineteen_of_twenty(same):
    """Whether `same(seed)` holds that often. That is a rate, and one honest series of twenty in
    sixty falls short of it by chance: another one, twice as long, has the last word then."""
    return sum(map(same, range(20))) >= 19 or sum(map(same, range(20, 60))) >= 38


def test_a_against_a_says_same_nineteen_times_of_twenty(made):
    assert nineteen_of_twenty(lambda seed: compared("steady", "steady", made, seed, most=12).same)


def test_five_percent_planted_are_found(made):
    found = compared("slow", "steady", made, seed=0, most=60)
    assert not found.same and found.low < 1.05 < found.high, found


def test_a_setting_is_compared_like_a_library(made):
    found = compared("steady:SLOWER=1.5", "steady", made, seed=2)
    assert not found.same and found.words("a", "b").startswith("b is quicker"), found


@pytest.fixture
def ours():
    """The Kittiwake of dist/, which must have been built before."""
    known = libraries.known(libraries.ROOT / "dist", libraries.ROOT / "build/peers")[:1]
    assert known[0].there(), "no Kittiwake in dist/; `make stage` puts it there"
    return known


def last(a, b, known, program, ranks, most, seed):
    *_, verdicts = compare.pairs(compare.live(a, b, known, program, ranks), most, seed=seed)
    return list(verdicts.values())


def test_five_percent_planted_in_this_library_are_found(ours, tmp_path):
    """One rank, whose MPI_Allreduce takes made time."""
    clock = tmp_path / "clock.so"
    subprocess.run(
        [ours[0].compiler, "-shared", "-fPIC", "-O2", "-o", clock, HERE / "clock.c", "-lm"],
        check=True,
    )
    side = f"kittiwake:LD_PRELOAD={clock},RUNS={tmp_path / 'runs'},SLOWER="
    found = last(
        side + "1.05", side + "1", ours, "coll --ms 4 --ops allreduce --sizes 65536", 1, 80, 0
    )[0]
    assert not found.same and found.low < 1.05 < found.high, found


@machine
def test_this_library_against_itself_is_the_same_nineteen_times_of_twenty(ours):
    """Messages between two ranks."""
    assert nineteen_of_twenty(
        lambda seed: all(
            v.same for v in last("kittiwake", "kittiwake", ours, "p2p --ms 2 --sizes 8", 2, 5, seed)
        )
    )


@machine
def test_five_percent_more_work_is_found(ours):
    """One rank. A machine whose speed changes from run to run hides five per cent for a while, so
    the question may be asked three times."""
    program = "coll --ms 4 --ops allreduce --sizes "
    for seed in range(3):
        once = [
            compare.live("kittiwake", "kittiwake", ours, program + size, 1)
            for size in ("68813", "65536")
        ]
        both = lambda which: {"allreduce": next(iter(once[which == "b"](which).values()))}
        *_, verdicts = compare.pairs(both, 80, seed=seed)
        if not verdicts["allreduce"].same:
            break
    assert not verdicts["allreduce"].same and verdicts["allreduce"].ratio > 1, verdicts


def test_programs_are_built_from_the_same_source_with_the_same_flags(tmp_path):
    known = libraries.known(tmp_path / "dist", tmp_path / "peers")
    commands = [lib.compile_command("coll", "target") for lib in known]
    assert len({tuple(command[1:]) for command in commands}) == 1
    assert str(libraries.ROOT / "bench/coll.c") in commands[0]


def test_compiler_wrappers_add_no_flags_that_make_programs_faster():
    """Of the libraries that are installed here."""
    for lib in libraries.known(libraries.ROOT / "dist", libraries.ROOT / "build/peers"):
        if lib.there():
            shown = subprocess.run(
                [lib.compiler, "-show"], text=True, stdout=subprocess.PIPE, timeout=300
            ).stdout.split()
            assert not [
                word for word in shown if word.startswith(("-O", "-m", "-f", "-g", "-D"))
            ], (lib.name, shown)
