"""Regret, and a machine in one file: of made data and libraries of shell scripts. What is sent says
nothing of its sender; what is torn, foreign or nonsense gets a sentence; several files stand side
by side; what is assumed is held against them."""

import gzip
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import COMPILER, script

from kwlab import (
    check,
    cli,
    facts,
    libraries,
    machine,
    machines,
    plan,
    regret,
    report,
    runner,
    sections,
    store,
    tune,
)

ALGORITHMS = (
    "Collective  Algorithm  Needs\n----------\nbcast  tree\nbcast  shm_tree  "
    "one host with shared memory\nbcast  nodes  several hosts\nbarrier  dissemination\n"
)
CHOICES = (
    "figure\tcopy-near\t{near}\tps/KB\t{origin}\t22528\n"
    "figure\tline-core\t0\tps\tstart\t0\n"
    "figure\tcache\t32768\tKB\tstart\t32768\n"
    "price\tcopy-byte\t{price}\t{origin}\tcopy-near\t0.022\n"
    "price\tstep\t5\tstart\t-\t5\n"
    "messages\tshm\t2\t8192\t65536\twhy it is so\n"
    "messages\tshm\t16\t4096\t-\twhy it is so\n"
    "collective\tbcast\t2\t1\t8\ttree/4\t1.5\n"
)
SIZES = (8, 1024)


def kwinfo(place, near=45056):
    """A kwinfo that has measured, or not, as it is told."""
    measured = CHOICES.format(near=near, origin="measured", price=near / 1024e3)
    start = CHOICES.format(near=22528, origin="start", price=0.022)
    text = (
        f"#!/bin/sh\ncase $1 in --algorithms) printf '%b' '{ALGORITHMS}';; "
        "--calibrate) touch $XDG_CACHE_HOME/measured;; *)\n"
    )
    text += (
        "if [ $KW_CALIBRATE = yes ]; then [ -e $XDG_CACHE_HOME/measured ] || exit 3; cat <<'END'\n"
        f"{measured}END\nelse cat <<'END'\n{start}END\nfi;; esac\n"
    )
    return script(place / "bin/kwinfo", text)


def line(bench, op, n, us):
    return {
        "bench": bench,
        "op": op,
        "mode": "back-to-back" if bench == "coll" else "send",
        "bytes": n,
        "us": dict.fromkeys(("min", "median", "low", "high"), us) | {"batches": [us, us * 1.1]},
    }


def made(path, chosen=1.2, best=1.0, rounds=2, library="kittiwake"):
    """A dataset of a plan that forced two algorithms of a broadcast."""
    found = store.Store(path)
    number = found.machine(
        {
            "processor": "Abacus",
            "cores": 2,
            "memory": "8388608 kB",
            "system": "Linux",
            "kernel": "6",
            "hosts": "secret-a,secret-b",
        }
    )
    work = tune.every_algorithm(
        {"bcast": [("tree", ""), ("shm_tree", "Shm")]},
        "bcast",
        2,
        "shm",
        ("--sizes", "1024,8"),
        plan.Work("coll"),
    )
    some = plan.Plan("machine", "t", (work, plan.Work("p2p")), ("kittiwake", "mpich"), rounds)
    times = {"": chosen, "tree": best, "shm_tree": 2.0}
    for at in range(rounds):
        for cell in plan.cells(some):
            by = 1.5 if cell.library == "mpich" else times[cell.variant]
            lines = (
                [line("coll", "bcast", n, by * (1 + n / 1000)) for n in SIZES]
                if cell.program == "coll"
                else [line("p2p", "pingpong", n, by) for n in SIZES]
            )
            found.add(
                "machine",
                cell,
                at,
                number,
                "1",
                "ok",
                "/home/somebody said a",
                1.0,
                lines,
                0.0,
                "env A=b /home/somebody/mpiexec -n 2 coll",
            )
    return found, number


def sent(tmp_path, name="a", **how):
    """A file as somebody would send it."""
    found, number = made(tmp_path / f"{name}.sqlite", **how)
    host = {"processor": "Abacus", "sockets": 1, "caches": "L1 32K"}
    rows = [
        text.split("\t")
        for text in CHOICES.format(near=45056, origin="measured", price=0.044).splitlines()
    ]
    of = lambda kind: [words for first, *words in rows if first == kind]
    found.describe(
        number,
        machine.PROFILE,
        {
            "hosts": [[host, 2]],
            "figures": [[*row, [int(row[1])] * 3] for row in of("figure")],
            "prices": of("price"),
            "messages": of("messages"),
            "collectives": of("collective"),
        },
    )
    return machine.write(found, "machine", number, tmp_path / f"{name}.json.gz")


def regrets(tmp_path, **how):
    return report.Book(made(tmp_path / "r.sqlite", **how)[0]).regret()


def test_regret_is_what_was_chosen_over_the_best_of_the_same_turn(tmp_path):
    found = regrets(tmp_path)
    assert [(one.op, one.bytes, one.algorithm, one.stable) for one in found] == [
        ("bcast", 8, "tree", True),
        ("bcast", 1024, "tree", True),
    ]
    assert all(one.regret == pytest.approx(1.2) for one in found)
    some = regret.summed(found)
    assert (
        (some.cells, some.counting, some.stable) == (2, 2, 2)
        and some.mean == pytest.approx(1.2)
        and some.worst.regret == pytest.approx(1.2)
    )


def test_what_was_chosen_and_forced_is_one_algorithm(tmp_path):
    said = (
        "rank 0 on a: Bcast of 8 bytes by tree 4\nrank 1 on a: Bcast of 8 bytes by linear 4\n"
        "rank 0 on a: ReduceScatter of 0 bytes by shm_tree 8\nrank 0 on a: joined\n"
    )
    assert [(one["op"], one["bytes"], one["mode"]) for one in runner.choices(said)] == [
        ("bcast", 8, "tree/4"),
        ("reduce_scatter", 0, "shm_tree/8"),
    ]
    store_, number = made(tmp_path / "r.sqlite")
    cell = next(
        cell
        for cell in plan.cells(
            plan.Plan(
                "machine",
                "t",
                (
                    tune.every_algorithm(
                        {"bcast": [("tree", "")]},
                        "bcast",
                        2,
                        "shm",
                        ("--sizes", "1024,8"),
                        plan.Work("coll"),
                    ),
                ),
                ("kittiwake",),
            )
        )
        if not cell.variant
    )
    assert cell.asked
    lines = [line("coll", "bcast", n, 1.2 * (1 + n / 1000)) for n in SIZES] + runner.choices(said)
    store_.add("machine", cell, 0, number, "1", "ok", "", 1.0, lines, 0.0, "")
    # 8 bytes ran by the best algorithm, and what they took once is not a regret; of 1024 no run has
    # said so.
    assert [
        (one.bytes, round(one.regret, 6), one.algorithm) for one in report.Book(store_).regret()
    ] == [(8, 1.0, regret.CHOSEN), (1024, 1.2, "tree")]


def test_the_number_of_an_algorithm_counts_where_it_is_looked_at():
    labels = {"chain", "chain/2", "linear"}
    assert [
        regret.among(one, labels)
        for one in ("chain/2", "chain/4", "chain/8", "linear/8", "ring/4", None)
    ] == ["chain/2", "chain", None, "linear", None, None]


def test_the_length_of_a_piece_makes_no_other_algorithm_where_all_fits_into_one():
    labels = ["shm/64", "shm", "shm/8", "shm_tree/8", "chain"]
    one = "shm/whole"
    assert [regret.whole(label, 16) for label in labels] == [one] * 3 + labels[3:]
    assert regret.whole("shm", 4096 * 2) == "shm"
    assert regret.whole("shm/8", 4096 * 2) == "shm/8"
    assert regret.whole("shm/64", 4096 * 2) == one


def test_a_tree_in_a_shm_region_that_is_passed_over_is_what_was_chosen():
    passed_over = regret.is_passed_over
    assert passed_over("bcast", "shm_tree/8", 8192)
    assert passed_over("reduce", "shm_levels", 8192)
    assert not passed_over("bcast", "shm_tree", 4096)
    assert not passed_over("bcast", "shm_levels", 8192)
    assert not passed_over("allreduce", "shm_parts/128", 8192)


def test_no_regret_is_below_one_and_one_round_is_not_stable(tmp_path):
    found = regrets(tmp_path, chosen=0.5, rounds=1)
    assert [(one.regret, one.algorithm, one.stable) for one in found] == [
        (1.0, regret.CHOSEN, False)
    ] * 2
    some = regret.summed(found)
    assert some.mean == 1.0 and some.worst is None and regret.summed([]).mean is None


def test_rounds_that_disagree_count_for_nothing(tmp_path):
    found, number = made(tmp_path / "d.sqlite")
    cell = next(
        one
        for one in plan.cells(
            plan.Plan(
                "m",
                "t",
                (tune.every_algorithm({"bcast": []}, "bcast", 2, "shm", ("--sizes", "1024,8")),),
                ("kittiwake",),
            )
        )
    )
    found.add("machine", cell, 1, number, "1", "ok", "", 1.0, [line("coll", "bcast", 8, 9.0)], 0.0)
    short = next(one for one in report.Book(found).regret() if one.bytes == 8)
    assert short.against.grey and not short.stable


def test_forced_algorithms_are_in_no_other_table(tmp_path):
    book = report.Book(made(tmp_path / "d.sqlite")[0])
    assert set(book.data.variant) == {""} and set(book.every.variant) == {"", "tree", "shm_tree"}
    assert "shm_tree" not in sections.ratio_tables(book) + sections.absolute(book)
    assert "Worst stable" in sections.regrets(book) and "regret-shm" in book.pictures


def test_a_plan_asks_for_every_algorithm_and_grows_with_the_machine(tmp_path):
    kwinfo(tmp_path)
    text = (
        'title = "t"\nprofile = true\n[[work]]\nprogram = "coll"\nalgorithms = true\ngrow = true\n'
        'args = ["--ms", "1", "--sizes", "8"]\nnetwork = ["shm", "tcp"]\n'
    )
    some = tune.expanded(plan.grown(plan.parse(text, "p"), 6), tmp_path)
    assert {work.ranks for work in some.work} == {(2,), (4,), (6,)} and some.profile
    of = {(work.args, work.network[0]): set(work.variants) for work in some.work}
    assert of[("--ops", "bcast", "--ms", "1", "--sizes", "8"), "shm"] == {
        "tree",
        "tree/8",
        "tree/16",
        "tree/32",
        "shm_tree",
        "shm_tree/8",
    }
    assert of[("--ops", "bcast", "--ms", "1", "--sizes", "8"), "tcp"] == {
        "tree",
        "tree/8",
        "tree/16",
        "tree/32",
    }
    assert of[("--ops", "barrier", "--ms", "1"), "tcp"] == {"dissemination"}
    cells = [cell for cell in plan.cells(some) if cell.variant == "tree"]
    assert dict(cells[0].settings) == {"KW_COLL": "bcast - - any any any tree"}


def test_ranks_grow_to_the_processors_and_no_further():
    assert plan.ranks_to((2, 4, 8, 16), 2) == (2, 4, 8, 16)
    assert plan.ranks_to((2, 4, 8, 16), 96) == (2, 4, 8, 16, 32, 64, 96)
    assert max(plan.ranks_to((2,), 1 << 20)) == plan.MOST_RANKS


def test_algorithms_over_several_hosts_are_measured_on_several_hosts():
    assert (
        tune.usable("several hosts, blocks of equal size", 8, "cluster", 2)
        and not tune.usable("several hosts, blocks of equal size", 2, "cluster", 2)
        and not tune.usable("several hosts", 8, "tcp", 2)
    )
    pairs = "an even number of processes"
    assert tune.usable(pairs, 4, "tcp") and not tune.usable(pairs, 3, "tcp")


@pytest.mark.parametrize(
    "text",
    [
        'program = "p2p"\nalgorithms = true',
        'program = "coll"\nalgorithms = true\nvariants = { v = { A = "b" } }',
        'program = "coll"\nalgorithms = 1',
        'program = "coll"\ngrow = "yes"',
    ],
)
def test_a_plan_that_asks_for_algorithms_wrongly_is_refused(text):
    with pytest.raises(plan.PlanError):
        plan.parse(f'title = "t"\n[[work]]\n{text}\n', "p")


def test_a_file_says_nothing_of_who_sends_it(tmp_path):
    file = sent(tmp_path)
    text = gzip.decompress(file.read_bytes()).decode()
    for word in ("secret", "somebody", "mpiexec", str(tmp_path), "env A=b"):
        assert word not in text
    found, number = made(tmp_path / "named.sqlite")
    named = machine.write(found, "machine", number, tmp_path / "named.json.gz", names=True)
    assert (
        "secret-a" in gzip.decompress(named.read_bytes()).decode()
        and "somebody" in gzip.decompress(named.read_bytes()).decode()
    )


def test_the_description_of_this_host_has_no_name_in_it():
    text = json.dumps(facts.described())
    assert f'"{os.uname().nodename}"' not in text
    alone = subprocess.run(
        [sys.executable, "-I", facts.__file__], check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    assert json.loads(alone).keys() == facts.described().keys()


def test_interfaces_are_reported_by_driver_and_speed(tmp_path):
    for name, speed, state in (
        ("enx001122334455", "10000", "up"),
        ("eth1", "-1", "up"),
        ("eth2", "1000", "down"),
    ):
        (tmp_path / f"drivers/of_{name[:4]}").mkdir(parents=True)
        (tmp_path / f"net/{name}/device").mkdir(parents=True)
        (tmp_path / f"net/{name}/device/driver").symlink_to(tmp_path / f"drivers/of_{name[:4]}")
        for what, text in (("speed", speed), ("operstate", state), ("mtu", "1500")):
            (tmp_path / f"net/{name}/{what}").write_text(text + "\n")
    (tmp_path / "net/lo").mkdir()
    assert (
        facts.networks(tmp_path / "net")
        == "of_enx0, 10 Gb/s, MTU 1500; of_eth1, speed unknown, MTU 1500"
    )


def test_processors_that_share_a_cache_are_counted():
    assert [facts.counted(text) for text in ("0", "0-3", "0,4-5", "unknown")] == [1, 4, 3, 1]


def test_what_was_written_is_read(tmp_path):
    (one,) = machine.read_all([sent(tmp_path)])
    first, _ = made(tmp_path / "again.sqlite")
    assert (
        one.name == "a"
        and len(one.store.runs()) == len(first.runs())
        and len(one.store.measurements()) == len(first.measurements())
    )
    assert [round(c.regret, 6) for c in one.book.regret()] == [1.2, 1.2] and one.rows("messages")[
        0
    ][:3] == ["shm", "2", "8192"]


def again(file, change):
    """The file with something else in it."""
    table = json.loads(gzip.decompress(file.read_bytes()))
    change(table)
    file.write_bytes(gzip.compress(json.dumps(table).encode()))


@pytest.mark.parametrize(
    "name, change",
    [
        ("version", lambda t: t.update(version=99)),
        ("format", lambda t: t.update(format="x")),
        ("no runs", lambda t: t.update(runs=[])),
        ("runs", lambda t: t.update(runs=5)),
        ("status", lambda t: t["runs"][0].pop("status")),
        ("ranks", lambda t: t["runs"][0].update(ranks="2")),
        ("figures", lambda t: t["runs"][0].update(figures=[[1]])),
        ("nan", lambda t: t["runs"][0]["figures"][0].__setitem__(5, float("nan"))),
        ("words", lambda t: t["runs"][0]["figures"][0].__setitem__(1, {})),
        ("facts", lambda t: t.update(facts=[])),
        ("cores", lambda t: t["facts"].pop("cores")),
        ("profile", lambda t: t["profile"].update(hosts=[["x", 1]])),
        ("unit", lambda t: t["profile"]["figures"][0].__setitem__(2, "furlongs")),
        ("prices", lambda t: t["profile"].update(prices=[["a"]])),
        ("huge", lambda t: t["runs"][0].update(ranks=1 << 80)),
        ("number", lambda t: t["profile"].update(prices=[["a", "b", "measured", "-", "c"]])),
    ],
)
def test_a_file_with_nonsense_in_it_gets_a_sentence(tmp_path, name, change):
    file = sent(tmp_path)
    again(file, change)
    with pytest.raises(ValueError, match="json.gz"):
        machine.read_all([file])


def test_torn_and_foreign_files_get_a_sentence(tmp_path):
    whole = sent(tmp_path).read_bytes()
    file = tmp_path / "torn.json.gz"
    for end in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="whole|not a file"):
            machine.read_all([file])
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for foreign in (
        bytes(damaged),
        b"SQLite format 3\0",
        gzip.compress(b"[1]"),
        gzip.compress(b"\xff"),
        gzip.compress(b"[" * 100_000),
    ):
        file.write_bytes(foreign)
        with pytest.raises(ValueError, match="torn.json.gz"):
            machine.read_all([file])


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "LONGEST", 1000)
    with pytest.raises(ValueError, match="more in it"):
        machine.read_all([sent(tmp_path)])


def test_several_machines_stand_side_by_side(tmp_path):
    (tmp_path / "other").mkdir()
    found = machine.read_all(
        [sent(tmp_path), sent(tmp_path / "other"), sent(tmp_path, "b<script>", chosen=1.0)]
    )
    assert [one.name for one in found] == ["a", "a #2", "b<script>"]
    text = machines.write(found, tmp_path / "out").read_text()
    for word in (
        "Abacus",
        "copy-near",
        "22.7 GB/s",
        "8 KB / 4 KB",
        "1.200, 1.20 (bcast",
        "1.000, 1.00 (bcast",
        "pingpong, shared memory",
        "b&lt;script&gt;",
    ):
        assert word in text, word
    assert "<script>" not in text and (tmp_path / "out/machines-messages.png").exists()


def test_what_is_assumed_is_held_against_a_machine(tmp_path):
    kwinfo(tmp_path / "dist")
    (one,) = machine.read_all([sent(tmp_path)])
    library = machine.starting(tmp_path / "dist")
    assert check.starts(one, library) == [("copy-near", "45.5 GB/s", "22.7 GB/s", 0.5)]
    ((name, value, start, *of),) = check.prices(
        one, library, {"d": {"copy-byte": "0.088"}, "e": {"copy-byte": "start"}, "f": {}}
    )
    assert (name, value, start, of) == ("copy-byte", 0.044, 0.5, [2.0, 0.5, None])
    rows = dict(
        text.split("\t")[:2] for text in check.description(one, "two-cores", 0).splitlines()
    )
    assert (
        rows["copy-byte"] == "0.044"
        and rows["step"] == "start"
        and rows["cores"] == "2"
        and rows.keys() == check.described()["two-cores"].keys()
    )


def test_the_simulator_is_given_what_was_measured(tmp_path):
    (one,) = machine.read_all([sent(tmp_path)])
    kwsim = script(
        tmp_path / "kwsim", '#!/bin/sh\necho "$1 $3"; cat "$2"; [ -s "$4" ] && [ -s "$5" ]\n'
    )
    said = check.simulated(one, kwsim)
    assert said.startswith("check --described\n") and "\nbcast\ttree\tshm\tfree\t2\t8\t" in said


def command(tmp_path, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["kwlab", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_a_machine_is_measured_into_a_file_and_the_same_command_goes_on(
    tmp_path, monkeypatch, capsys
):
    """With a library of shell scripts."""
    dist, file = tmp_path / "dist", tmp_path / "sent.json.gz"
    script(dist / "bin/mpicc", COMPILER)
    script(
        dist / "bin/mpiexec",
        "#!/bin/sh\n[ \"$1\" != --version ] || exit 0\ncat <<'END'\n"
        f"{json.dumps(line('coll', 'bcast', 8, 1.0))}\nEND\n",
    )
    kwinfo(dist)
    (tmp_path / "small.toml").write_text(
        'title = "Small"\nrounds = 2\nlibraries = ["kittiwake"]\nprofile = true\n[[work]]\n'
        'program = "coll"\nalgorithms = true\n'
        'args = ["--ops", "bcast", "--sizes", "8"]\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(libraries, "WORK", tmp_path / "work")
    words = [
        "run",
        "small.toml",
        "--data",
        tmp_path / "d.sqlite",
        "--dist",
        dist,
        "--peers",
        tmp_path / "peers",
        "--file",
        file,
    ]
    assert command(tmp_path, monkeypatch, *words, "--for", "0") == 0
    said = capsys.readouterr().out
    assert "nothing of small is measured yet" in said and not file.exists()
    assert command(tmp_path, monkeypatch, *words) == 0
    said = capsys.readouterr().out
    assert "For others" in said and "Regret" in said and file.exists()
    (one,) = machine.read_all([file])
    assert (
        one.rows("figures")[0]
        == ["copy-near", "45056", "ps/KB", "measured", "22528", [45056] * machine.CALIBRATIONS]
        and one.book.regret()
    )
    assert command(tmp_path, monkeypatch, *words) == 0 and "already" in capsys.readouterr().out
    assert (
        command(tmp_path, monkeypatch, "report", file, file, "--out", tmp_path / "out") == 0
        and (tmp_path / "out" / machines.NAME).exists()
    )
    capsys.readouterr()
    assert command(tmp_path, monkeypatch, "check", file, "--dist", dist) == 0
    said = capsys.readouterr().out
    assert "copy-near" in said and "is not held against" in said
    file.write_bytes(b"junk")
    assert (
        command(tmp_path, monkeypatch, "report", file) == 2
        and "is not a file of" in capsys.readouterr().err
    )


def test_hosts_of_a_kind_are_counted(tmp_path, monkeypatch):
    host = {"processor": "Abacus"}
    monkeypatch.setattr(
        machine, "described_hosts", lambda ours, hosts: [host, {"processor": "Other"}, dict(host)]
    )
    assert machine.kinds(None, "a,b,c") == [[host, 2], [{"processor": "Other"}, 1]]


def test_hosts_are_asked_through_the_launcher(tmp_path, monkeypatch):
    script(tmp_path / "dist/bin/mpicc", COMPILER)
    script(
        tmp_path / "dist/bin/mpiexec",
        '#!/bin/sh\nwhile [ "$1" != -I ]; do last=$1; shift; done\n"$last" "$@"; "$last" "$@"\n',
    )
    ours = libraries.known(tmp_path / "dist", tmp_path, "a,b")[0]
    assert machine.kinds(ours, "a,b") == [[facts.described(), 2]]
    shutil.rmtree(tmp_path / "dist")
    assert machine.described_hosts(ours, "a,b") == []
