"""The figures of a host: who measures them and when, where they are kept, that all ranks of a job
use the same, and that no file of figures and no lack of one disturbs a job. Nothing here asserts a
time or a figure that was measured."""

import os
import re
import shutil
import subprocess

import pytest

from jobs import DIST, MPIEXEC, ROOT, WATCHDOG, lab, start, wait_until

LONG = "5"  # seconds from which on a job is long


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("KW_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def exchange(program):
    return program("tests/calibration/exchange.c", "-O1")


def run(*words, cache, status=0, **env):
    """Runs a command that keeps its figures there; its output and errors together."""
    p = subprocess.run(
        [str(w) for w in words],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **env},
        timeout=WATCHDOG,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert p.returncode == status, f"{words}: status {p.returncode}, not {status}: {p.stdout}"
    return p.stdout


def kwinfo(*options, **more):
    return run(DIST / "bin/kwinfo", *options, **more)


def calibrate(**more):
    return kwinfo("--calibrate", "--no-verify", **more)


def eager(exchange, cache, **env):
    """The largest eager message of each rank of a job of two, and what the ranks said."""
    text = run(MPIEXEC, "-n", "2", exchange, cache=cache, KW_LOG="debug", **env)
    assert text.count("is done") == 2, text
    found = re.findall(r"rank (\d) on .*: rank \d by Shm: Choice { eager_max: (\d+)", text)
    assert sorted(rank for rank, _ in found) == ["0", "1"], text
    return [int(most) for _, most in found], text


def files(cache):
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file())


def the_file(cache):
    (name,) = files(cache)
    assert name.startswith("kittiwake/calibration-"), name
    return cache / name


def test_what_kwinfo_measures_is_kept_and_shown(tmp_path):
    cache = tmp_path
    assert "built-in values" in kwinfo("--choices", cache=cache)
    text = calibrate(cache=cache)
    file = the_file(cache)
    assert f"Saved in {file}" in text, text
    assert file.read_text().endswith("\nend\n")
    assert f"measured, from {file}" in kwinfo("--choices", cache=cache)
    off = kwinfo("--choices", cache=cache, KW_CALIBRATE="no")
    assert "built-in values: KW_CALIBRATE is off" in off, off


def test_all_ranks_use_the_figures_of_the_file(exchange, tmp_path):
    cache = tmp_path
    calibrate(cache=cache)
    file = the_file(cache)
    most = []
    for nanos in 100, 1000:
        whole = re.sub(r"line-package \d+", f"line-package {nanos}000", file.read_text())
        whole = re.sub(r"line-host \d+", "line-host 0", whole)
        whole = re.sub(r"copy-near \d+", "copy-near 20000", whole)
        file.write_text(whole)
        ranks, text = eager(exchange, cache)
        assert ranks[0] == ranks[1] and "figures: measured" in text, text
        most.append(ranks[0])
    assert most[0] < most[1], f"what a handshake costs bounds eager messages: {most}"
    ranks, text = eager(exchange, cache, KW_CALIBRATE="no")
    assert "figures: built-in values" in text and ranks[0] == ranks[1] < most[1], text


def test_files_that_are_not_whole_or_of_others_are_not_used(exchange, tmp_path):
    cache = tmp_path
    calibrate(cache=cache)
    file = the_file(cache)
    whole = file.read_text()
    for text in "", whole[:-5], whole.replace("\nhost ", "\nhost other-"), "\0" * 100, whole * 100:
        file.write_text(text)
        said = eager(exchange, cache)[1]
        assert "figures: built-in values" in said and "cannot believe" in said, said
    file.unlink()
    os.mkfifo(file)
    assert "figures: built-in values" in eager(exchange, cache)[1], "a pipe delays no rank"
    file.unlink()
    file.mkdir()
    assert "figures: built-in values" in eager(exchange, cache)[1]
    assert "Not kept" in calibrate(cache=cache, status=1)


def test_a_place_that_takes_no_file_disturbs_nothing(exchange):
    # /proc takes none, whatever asks; nor does a job that lasted long and says nothing.
    text = calibrate(cache="/proc", status=1)
    assert "Not kept" in text and "cannot write /proc/" in text, text
    assert "figures: built-in values" in eager(exchange, "/proc")[1]
    assert run(MPIEXEC, "-n", "1", "sleep", LONG, cache="/proc") == ""
    clean = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    p = subprocess.run(
        [DIST / "bin/kwinfo", "--choices"],
        env=clean,
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    assert p.returncode == 0 and "neither XDG_CACHE_HOME nor HOME" in p.stdout, p


def test_a_long_job_measures_once_and_a_short_one_never(tmp_path):
    cases = {"long": {}, "off": {"KW_CALIBRATE": "no"}, "known": {}, "older": {}, "both": {}}
    cache = {name: tmp_path / name for name in [*cases, "short"]}
    for directory in cache.values():
        directory.mkdir()
    calibrate(cache=cache["known"])
    before = the_file(cache["known"]).stat().st_ino
    calibrate(cache=cache["older"])
    older = the_file(cache["older"])
    older.write_text(older.read_text().replace("\nversion ", "\nversion 0.0.0 before "))
    assert "built-in values" in kwinfo("--choices", cache=cache["older"])
    jobs = [
        (
            name,
            start(
                "-n",
                1,
                "sleep",
                LONG,
                env={**os.environ, "XDG_CACHE_HOME": str(cache[name]), **cases[name]},
            ),
        )
        for name in [*cases, "both"]
    ]
    run(MPIEXEC, "-n", "1", "true", cache=cache["short"])
    for name, job in jobs:
        out, err = job.communicate(timeout=WATCHDOG)
        assert (job.returncode, out, err) == (0, "", ""), (name, job.returncode, out, err)
    the_file(cache["long"]), the_file(cache["both"])
    assert files(cache["off"]) == [] and files(cache["short"]) == []
    assert the_file(cache["known"]).stat().st_ino == before
    for name in "long", "older", "both":
        assert "measured, from" in kwinfo("--choices", cache=cache[name])


def test_a_job_measures_its_network_and_the_next_one_uses_it(exchange, tmp_path):
    on = ROOT / "tests/hosts/mpiexec"
    env = {"MPIEXEC": MPIEXEC, "XDG_CACHE_HOME": str(tmp_path), "KW_LOG": "debug"}

    def job(size, **more):
        return "".join(lab("--hosts 2 --rate 1gbit", f"{on} -n 2 {exchange} {size}", **env, **more))

    def used(text):
        """What the ranks of a job price collectives with."""
        found = re.findall(r"collectives are priced with (\S+ us, \S+ ns/B)", text)
        assert len(found) == 2 and found[0] == found[1], text
        return found[0]

    start = used(job(40_000_000, KW_CALIBRATE="no"))
    assert files(tmp_path) == []
    assert used(job(40_000_000)) == start
    (name,) = files(tmp_path)
    assert name.startswith("kittiwake/network-"), name
    # until the system has seen a rate: where nothing but the network held the sender up
    for _ in range(5):
        trip, rate = [
            int(n) for n in re.findall(r"^net-\S+ (\d+) ", (tmp_path / name).read_text(), re.M)
        ]
        if rate:
            break
        job(40_000_000)
    assert trip, "that is known when a connection is made"
    byte = f"{rate / 1024e3:.4f} ns/B" if rate else start.split(", ")[1]
    assert used(job(4)) == f"{trip / 1e6:.3f} us, {byte}" != start
    told = kwinfo("--choices", cache=tmp_path)
    assert f"Calibration of its network: measured, from {tmp_path / name}" in told, told
    assert re.search(r"latency +\S+ +measured: net-round-trip", told) and re.search(
        r"send +\S+ +built-in value ", told
    ), told
    link = "measured: net-rate" if rate else "built-in value of net-rate"
    assert re.search(rf"link-byte +\S+ +{link} ", told), told


def choices_of(*words, cache, **env):
    """What is chosen in a job: collective and bytes -> algorithm, and by what."""
    text = run(
        DIST / "bin/kwinfo", "--choices", "--tsv", *words, cache=cache, KW_CALIBRATE="no", **env
    )
    rows = [line.split("\t")[1:] for line in text.splitlines() if line.startswith("collective\t")]
    return {(name, int(size)): (chosen, by) for name, _, _, size, chosen, _, by in rows}, text


def test_kwinfo_says_what_a_given_job_would_choose(tmp_path):
    text = run(
        DIST / "bin/kwinfo",
        "--choices",
        "-n",
        "16",
        "--hosts",
        "4",
        "--cores",
        "4",
        "--domains",
        "0.0.1.1",
        cache=tmp_path,
    )
    assert text.startswith(
        "16 ranks on 4 hosts (4 on each), a core for each rank; domains of a host's ranks: 0.0.1.1."
    ), text
    assert "shm within a host" in text and "tcp between hosts" in text, text
    by_price, tsv = choices_of("-n", "16", "--hosts", "4", "--cores", "4", cache=tmp_path)
    assert {by for _, by in by_price.values()} == {"lowest price"}
    assert re.search(r"^messages\tshm\t16\t\d+\t", tsv, re.M) and re.search(
        r"^messages\ttcp\t16\t\d+\t", tsv, re.M
    ), tsv
    setting, _ = choices_of(
        "-n", "4", "--cores", "4", cache=tmp_path, KW_COLL="bcast - - any any any linear"
    )
    assert all((name == "bcast") == (by == "KW_COLL") for (name, _), (_, by) in setting.items()), (
        setting
    )
    crowded, _ = choices_of("-n", "4", "--cores", "2", cache=tmp_path)
    assert "row of the table" in {by for _, by in crowded.values()}
    domains, _ = choices_of(
        "-n", "8", "--cores", "8", "--domains", "0.0.0.0.1.1.1.1", cache=tmp_path
    )
    assert any(chosen.startswith("shm_levels/") for chosen, _ in domains.values()), domains


def test_a_job_that_cannot_be_is_refused(tmp_path):
    for words in (["-n", "2", "--hosts", "3"], ["-n", "2", "--domains", "0,1"]):
        assert "kwinfo: " in run(DIST / "bin/kwinfo", "--choices", *words, cache=tmp_path, status=1)


def test_a_job_chooses_what_kwinfo_says(program, tmp_path):
    """Two hosts by name, two domains on each: the ranks' log and kwinfo name the same algorithm."""
    calls = program("tests/calibration/collectives.c", "-O1")
    hosts = [word for name in "ab" for word in ("-n", "4", "-env", "KW_HOST", name, calls, ":")][
        :-1
    ]
    settings = {"KW_CALIBRATE": "no", "KW_DOMAINS": "0.0.1.1"}
    text = run(MPIEXEC, *hosts, cache=tmp_path, KW_LOG="debug", **settings)
    assert text.count("is done") == 8, text
    said, _ = choices_of(
        "-n", "8", "--hosts", "2", "--cores", "4", cache=tmp_path, KW_DOMAINS="0.0.1.1"
    )
    for name, spelt, size in (
        ("bcast", "Bcast", 2048),
        ("allreduce", "Allreduce", 8),
        ("allreduce", "Allreduce", 65536),
    ):
        used = set(re.findall(rf"{spelt} of {size} bytes by (\w+) (\d+)", text))
        algorithm, number = said[name, size][0].split("/")
        assert used == {(algorithm, number)}, (name, size, used, said[name, size])


def test_a_job_that_runs_says_what_it_chooses(program, tmp_path):
    """With its hosts (here by name), its domains, and the figures that rank 0 has handed round,
    whatever the environment of the command: the ranks' log and the page name the same algorithm."""
    calibrate(cache=tmp_path)
    calls = program("tests/calibration/collectives.c", "-O1")
    hosts = [
        "-n",
        "5",
        "-env",
        "KW_HOST",
        "a",
        calls,
        "wait",
        ":",
        "-n",
        "3",
        "-env",
        "KW_HOST",
        "b",
        calls,
        "wait",
    ]
    env = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),
        "KW_DOMAINS": "0.0.1.1",
        "KW_COLL": "bcast - - any any any linear",
        "KW_LOG": "debug",
    }
    with open(tmp_path / "said", "w") as said:
        p = subprocess.Popen(
            [MPIEXEC, *hosts],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    try:
        assert sorted(p.stdout.readline() for _ in range(8)) == [
            f"rank {r} is done\n" for r in range(8)
        ]
        assert "what its job chooses" in run(
            DIST / "bin/kwinfo", "--job", p.pid, "--choices", cache=tmp_path / "another"
        )
        page = lambda: (tmp_path / "said").read_text().split("mpiexec: what the job chooses:\n")[1:]
        wait_until(page, "mpiexec does not answer")
        p.communicate("", timeout=WATCHDOG)
    finally:
        p.kill()
        p.wait()
    assert p.returncode == 0
    (text,), log = page(), (tmp_path / "said").read_text()
    assert (
        text.startswith("8 ranks on 2 hosts (3 to 5 on each), ")
        and "; domains of a host's ranks: 0.0.1.1.\n" in text
    ), text
    assert (
        "Calibration of rank 0's host: measured.\nCalibration of its network: built-in values.\n"
        in text
    ), text
    for name, spelt, size in ("bcast", "Bcast", 2048), ("allreduce", "Allreduce", 65536):
        used = set(re.findall(rf"{spelt} of {size} bytes by (\w+) (\d+)", log))
        assert (
            used == set(re.findall(rf"^{name} +{size} +(\w+)/(\d+) ", text, re.M))
            and len(used) == 1
        ), (name, size, used, text)
    assert re.search(r"^bcast +2048 +linear/\d+ .* KW_COLL", text, re.M), text


def test_a_job_whose_ranks_have_not_met_does_not_know_what_it_chooses():
    p = start("-n", 2, "sh", "-c", "echo here; cat", stdin=subprocess.PIPE)
    try:
        assert [p.stdout.readline() for _ in range(2)] == ["here\n"] * 2
        assert (
            subprocess.run(
                [DIST / "bin/kwinfo", "--job", str(p.pid), "--choices"], timeout=WATCHDOG
            ).returncode
            == 0
        )
        assert p.stderr.readline().startswith(
            "mpiexec: the choices of the job are unknown: its ranks have not met"
        )
        p.communicate("", timeout=WATCHDOG)
        assert p.returncode == 0
    finally:
        p.kill()
        p.wait()


# An mpiexec whose jobs take made-up times: NANOS with the choices by the calibration, 1000 with
# any others (which a setting KW_* makes).
FAKE = """#!/bin/sh
nanos=$(env | grep -q '^KW_' && echo 1000 || echo {nanos})
for last; do :; done
echo "$last" | tr , '\\n' | sed "s/$/ $nanos/"
"""


def verified(tmp_path, nanos, option="--verify", status=0):
    """kwinfo's words about a calibration by which messages are always read, where jobs take such
    times; its file."""
    place = tmp_path / f"by-{nanos}"
    (place / "bin").mkdir(parents=True)
    shutil.copy(DIST / "bin/kwinfo", place / "bin/kwinfo")
    (place / "bin/mpiexec").write_text(FAKE.format(nanos=nanos))
    (place / "bin/mpiexec").chmod(0o755)
    cache = place / "cache"
    calibrate(cache=cache)
    file = the_file(cache)
    whole = re.sub(r"fetch-call \d+", "fetch-call 50000", file.read_text())
    whole = re.sub(r"fetch-rate \d+", "fetch-rate 4000", whole)
    whole = re.sub(r"fetch-both \d+", "fetch-both 2000", whole)
    whole = re.sub(r"(stream-\w+) [1-9]\d*", r"\1 4000000", whole)
    file.write_text(re.sub(r"copy-near \d+", "copy-near 2000000", whole))
    text = run(place / "bin/kwinfo", option, cache=cache, status=status, KW_EAGER_SHM="8")
    if "may use one CPU" in text:
        pytest.skip("two ranks take two CPUs")
    return text, file


def test_a_calibration_that_loses_to_the_built_in_values_is_discarded(exchange, tmp_path):
    text, file = verified(tmp_path, 3000, status=1)
    assert "discarded" in text and "3.00 times as long" in text, text
    assert re.search(
        r"^message +1 KB +read +3\.00 us +eager +1\.00 us +3\.00 \(too slow", text, re.M
    )
    assert file.read_text().endswith("\ndiscarded\nend\n")
    cache = file.parent.parent
    said = eager(exchange, cache)[1]
    assert "figures: built-in values" in said and "were discarded" in said, said
    assert "were discarded" in kwinfo("--choices", cache=cache)
    # Nothing measures again unless asked: a long job leaves the file as it is.
    assert run(MPIEXEC, "-n", "1", "sleep", LONG, cache=cache) == ""
    assert file.read_text().endswith("\ndiscarded\nend\n")
    calibrate(cache=cache)
    assert "measured, from" in kwinfo("--choices", cache=cache)


def test_a_calibration_whose_choices_are_the_best_is_kept(tmp_path):
    text, file = verified(tmp_path, 900)
    assert "Verified: no choice takes more than 1.15 times" in text, text
    assert re.search(r"^message +1 KB +read +0\.90 us +\w+ +1\.00 us +0\.90$", text, re.M), text
    before = file.read_text()
    assert before.endswith("\nend\n") and "discarded" not in before
    text, file = verified(tmp_path, 901, option="--calibrate")
    assert f"Saved in {file}" in text and "Verified" in text, text


def test_a_slow_choice_is_a_status_and_a_job_that_fails_is_reported(tmp_path):
    # 1.10 times as long as the built-in values everywhere: it loses, though no cell exceeds 1.15.
    text, _ = verified(tmp_path, 1100, status=1)
    assert "Verified" in text and "1.10 times as long" in text, text
    place = tmp_path / "by-1100"
    (place / "bin/mpiexec").write_text("#!/bin/sh\necho cannot start >&2; exit 3\n")
    calibrate(cache=place / "cache")
    text = run(place / "bin/kwinfo", "--verify", cache=place / "cache", status=1)
    assert "Not verified: " in text and "cannot start" in text, text


def test_measuring_ranks_time_every_kind_of_operation(tmp_path):
    cells = [f"{what}:{size}" for what in ("message", "bcast", "reduce") for size in (64, 65536)]
    cells += ["allreduce:8", "alltoall:64"]
    words = ["-n", "3", DIST / "bin/kwinfo", "--measure", ",".join(cells)]
    lines = run(MPIEXEC, *words, cache=tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == cells
    assert all(float(line.split()[1]) > 0 for line in lines), lines
    assert "nothing that is timed" in run(*words[2:4], "barrier", cache=tmp_path, status=1)
