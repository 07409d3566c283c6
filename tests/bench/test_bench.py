#!/usr/bin/env python3
"""The measuring programs: every operation of bench/coll.c gives right data and a whole line in both modes, the other programs
print what they should, and nonsense is refused. Nothing here depends on how fast anything is. (What reads the lines is tested
in lab/tests.)"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

OPS = "barrier bcast reduce allreduce allgather alltoall reduce_scatter gather scatter scan exscan".split()
PASSED = 0


def check(what, condition):
    global PASSED
    if not condition:
        sys.exit(f"bench: {what}")
    PASSED += 1


def coll(program, ranks, *args):
    command = [ROOT / "dist/bin/mpiexec", "-n", str(ranks), program, "--ms", "1", *args]
    return subprocess.run(command, timeout=60, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def programs_measure(work):
    program = work / "coll"
    subprocess.run([ROOT / "dist/bin/mpicc", "-O2", "-Wall", "-o", program, ROOT / "bench/coll.c", "-lm"], check=True)
    for ranks, mode in ((1, ()), (3, ("--turns", "4")), (4, ("--apart",)), (2, ("--apart", "--turns", "3"))):
        done = coll(program, ranks, "--ops", ",".join(OPS), "--sizes", "8,1024", *mode)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        expected = {(op, size) for op in OPS for size in ((0,) if op == "barrier" else (8, 1024))}
        check(f"coll {mode} on {ranks} ranks: {done.stderr}", sorted((l["op"], l["bytes"]) for l in lines) == sorted(expected))
        for us in [l["us"] for l in lines] + [l["barrier_us"] for l in lines if "--apart" in mode]:
            check(f"figures out of order: {us}", us["min"] <= us["low"] <= us["median"] <= us["high"])
            check(f"too few batches: {us}", len(us["batches"]) >= 3 and min(us["batches"]) == us["min"])
    for args in (["--ops", "brodcast"], ["--sizes", "7"], ["--turns", "0"], ["--speed"]):
        done = coll(program, 2, *args)
        check(f"coll took {args}", done.returncode != 0 and args[-1] in done.stderr)


OVERLAPPING = "exchange ibcast ireduce iallreduce iallgather igather iscatter ialltoall ireduce_scatter iscan raw".split()
# program, ranks, arguments, how many lines, arguments that are refused
OTHERS = [
    ("p2p", 2, ["--ms", "1", "--kinds", "pingpong,stream,unexpected,exchange", "--modes", "send,ssend,bsend,rsend,isend,persistent", "--sizes", "0,8,65536"],
     22 * 3, [["--turns", "200"], ["--kinds", "pong"], ["--modes", "fast"], ["--sizes", "-1"], ["--speed", "3"], ["--ms"]]),
    ("p2p", 4, ["--ms", "1", "--kinds", "pingpong,raw-pingpong,raw-stream", "--sizes", "8"], 3, []),
    ("p2p", 2, ["--ms", "1", "--turns", "5", "--kinds", "pingpong,stream,raw-pingpong", "--modes", "send,persistent", "--sizes", "8,65536"], 10, []),
    ("overlap", 4, ["--ms", "2", *(f"{op}:4096" for op in OVERLAPPING)], len(OVERLAPPING), [["exchange"], ["exchange:7"], ["sum:8"]]),
    ("parts", 2, ["--sizes", "1024,65536", "--parts", "1,16", "--work", "10", "--rounds", "3"], 8, [["--sizes", "1000"], ["--parts", "0"], ["--rounds", "102"], ["--rounds"]]),
    ("wait", 2, ["--sizes", "8,65536", "--work", "0,1", "--rounds", "3"], 4, [["--sizes", "-8"], ["--work", "9999"], ["--rounds", "102"], ["--rounds"], ["--speed", "3"]]),
    ("sweep", 3, ["--points", "1000", "--halo", "100", "--steps", "2"], 3, [["--kinds", "behind"], ["--points", "2"], ["--halo", "-1"], ["--speed"]]),
    ("forms", 3, ["--ms", "1", "--sizes", "8,4096"], 11 + 10, [["--sizes", "7"], ["--speed", "3"]]),
    ("give", 3, ["--sizes", "4000,80000", "--rounds", "3"], 12, [["--speed", "3"], ["--rounds", "0"], ["--sizes", "80x"], ["--product"]]),
    ("idle", 2, ["1"], 1, [["0"], ["long"]]),
    ("comm", 3, ["4", "3"], 9, []),
    ("behind", 2, ["--every", "5", "--questions", "3"], 1, [["--questions", "0"], ["--speed", "3"]]),
    ("flood", 2, ["1000", "8", "away"], 1, []),
    ("hello", 3, [], 1, []),
]


def others_measure(work):
    for name, ranks, args, wanted, refused in OTHERS:
        program = work / name
        subprocess.run([ROOT / "dist/bin/mpicc", "-O2", "-Wall", "-o", program, ROOT / "bench" / f"{name}.c", "-lm"], check=True)
        command = [ROOT / "dist/bin/mpiexec", "-n", str(ranks), program]
        done = subprocess.run([*command, *args], timeout=120, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(f"{name} on {ranks} ranks printed {len(lines)} lines, not {wanted}: {done.stderr}", len(lines) == wanted and not done.returncode)
        for times in (value for line in lines for value in line.values() if isinstance(value, dict)):
            check(f"{name}: figures out of order: {times}", times["min"] <= times["low"] <= times["median"] <= times["high"])
        for bad in refused:
            done = subprocess.run([*command, *bad], timeout=60, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(f"{name} took {bad}", done.returncode != 0 and f"{name}: " in done.stderr)


def main():
    with tempfile.TemporaryDirectory() as work:
        programs_measure(Path(work))
        others_measure(Path(work))
    print(f"{PASSED} passed, 0 failed")


if __name__ == "__main__":
    main()
