"""kwinfo --doctor: what is said of this machine, of one whose limits are tight, and of hosts that
reach each other or do not."""

import os
import resource

import pytest

import seccomp
from jobs import DIST, lab, run, dump

KWINFO = DIST / "bin/kwinfo"
PROCESS_VM_READV = 310  # on x86-64
MEMFD_CREATE = 319


def doctor(*words, status=0, **more):
    """What is found of each matter: its grade and its text, on one line each."""
    env = {"COLUMNS": "160", **more.pop("env", {})}
    p = run(KWINFO, "--doctor", *words, env=env, **more)
    assert p.returncode == status and not p.stderr, dump(p)
    return p.stdout, findings(p.stdout)


def findings(page):
    """By matter: grade and text, whose lines are joined."""
    rule = next(line for line in page.splitlines() if line.startswith("---"))
    second, third = (m for m in range(1, len(rule)) if rule[m] == "-" and rule[m - 1] == " ")
    found, what = {}, None
    body = page[page.index(rule) + len(rule) + 1 :].split("\n\n")[0]
    for line in body.splitlines():
        if line[:second].strip():
            what = line[:second].strip()
            found[what] = (line[second:third].strip(), line[third:].strip())
        else:
            found[what] = (found[what][0], f"{found[what][1]} {line.strip()}")
    return found


def test_every_matter_is_looked_at():
    page, found = doctor()
    for what in (
        "installation",
        "CPUs",
        "shared memory",
        "single copy",
        "open files",
        "processes",
        "locked memory",
        "death of ranks",
        "clock",
        "huge pages",
        "interfaces",
        "host name",
        "other launchers",
        "cc",
        "gfortran",
        "ssh",
        "other hosts",
    ):
        assert what in found, page
    assert page.startswith("Kittiwake ") and os.uname().release in page.splitlines()[0], page
    assert found["shared memory"][0] == "ok" and found["installation"] == ("ok", str(DIST)), page


def test_a_misspelt_setting_is_a_fault_and_the_status_tells():
    page, found = doctor(status=1, env={"KW_SPIM": "1"})
    assert found["KW_ variables"][0] == "FAULT" and "KW_SPIM" in found["KW_ variables"][1], page
    assert "\n1 fault, " in page


def test_no_secret_is_shown():
    page, _ = doctor(env={"KW_KEY": "a-secret-of-many-bytes"})
    assert "a-secret" not in page


def test_few_open_files_are_reported():
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    page, found = doctor(preexec_fn=few)
    assert found["open files"][0] == "note" and "at most 40" in found["open files"][1], page


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of calls are those of x86-64")
def test_what_a_sandbox_refuses_is_reported():
    page, found = doctor(preexec_fn=lambda: seccomp.refuse(PROCESS_VM_READV))
    assert found["single copy"][0] == "note" and "copied twice" in found["single copy"][1], page
    page, found = doctor(status=1, preexec_fn=lambda: seccomp.refuse(MEMFD_CREATE))
    assert found["shared memory"][0] == "FAULT" and "memfd" in found["shared memory"][1], page


def test_another_mpi_that_comes_first_is_named(tmp_path):
    other = tmp_path / "mpiexec"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    page, found = doctor(env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found["commands on PATH"][0] == "note" and str(other) in page.replace("\n", ""), page


def test_a_place_for_no_figures_is_reported():
    page, found = doctor(env={"HOME": "/nonexistent", "XDG_CACHE_HOME": "/dev/null/none"})
    assert found["calibration"][0] == "note", page


def test_hosts_that_reach_each_other():
    page, _ = lab(
        "--hosts 2 --mislead",
        f"KW_SSH='ip netns exec' {KWINFO} --doctor --hosts ${{LAB}}h0,${{LAB}}h1",
    )
    found = {what.replace("kwlab", ""): f for what, f in findings(page).items()}
    pairs = {what: f for what, f in found.items() if " to " in what}
    assert len(pairs) == 2 and all(grade == "ok" for grade, _ in pairs.values()), page
    assert all("10.77.0." in text for _, text in pairs.values()), page


def test_a_host_without_an_interface_is_a_fault():
    page, _ = lab(
        "--hosts 2",
        "ip netns exec ${LAB}h1 ip link set eth0 down; "
        f"KW_SSH='ip netns exec' {KWINFO} --doctor --hosts ${{LAB}}h0,${{LAB}}h1",
        status=1,
    )
    pairs = {what: f for what, f in findings(page).items() if " to " in what}
    assert len(pairs) == 2 and all(grade == "FAULT" for grade, _ in pairs.values()), page


def test_a_host_that_cannot_be_reached_is_a_fault(ssh):
    page, found = doctor("--hosts", "nowhere", status=1, env={"KW_SSH": "false"})
    assert found["host nowhere"][0] == "FAULT", page
    page, found = doctor("--hosts", "there", env=ssh)
    assert found["host there"][0] == "ok", page


@pytest.mark.parametrize(
    "words, said",
    [
        (("--hosts", "a"), "--hosts says how many"),
        (("--doctor", "--hosts", "a:x"), "number of slots"),
        (("--choices", "-n", "4", "--hosts", "a"), "takes the number of hosts"),
    ],
)
def test_what_is_no_question(words, said):
    p = run(KWINFO, *words)
    assert p.returncode != 0 and said in p.stderr, dump(p)
