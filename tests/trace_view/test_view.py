"""kwtrace as it is installed: what it says of traces that are made up, of files that are none, and
its page in a browser that drives itself (`#selftest`)."""

import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree

import pytest

from jobs import DIST, run, dump

KWTRACE = DIST / "bin/kwtrace"
LIMIT = 300  # seconds after which a command or a browser counts as hung


def kwtrace(*words, status=0):
    p = run(KWTRACE, *words, timeout=LIMIT)
    assert p.returncode == status, dump(p)
    return p


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    """A trace of 16 ranks; rank 5 has more work than the others."""
    file = tmp_path_factory.mktemp("trace") / "stencil.trace"
    kwtrace("example", file, "--steps", 40)
    return file


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("there is no chromium (Debian: apt-get install chromium)")


def driven(page, tmp_path, *words):
    """What the page has found out about itself."""
    p = run(
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}/profile",
        "--window-size=1400,1000",
        "--virtual-time-budget=30000",
        "--dump-dom",
        *words,
        f"file://{page}#selftest",
        timeout=LIMIT,
    )
    found = re.search(r'<pre id="selftest"[^>]*>(.*?)</pre>', p.stdout, re.S)
    assert found and found[1], dump(p)
    result = json.loads(found[1])
    assert "error" not in result, result
    print("milliseconds a frame:", result["frames"])  # told, and nothing is concluded from them
    return result


def test_the_summary_says_who_waits_for_whom(stencil):
    said = " ".join(kwtrace("summary", stencil).stdout.split())
    assert "16 ranks ran for" in said
    assert "1. Late sender:" in said and "MPI_Waitall at stencil.c:124 (exchange)" in said
    assert "MPI_Bcast at stencil.c:104 (parameters) for the root: rank 0" in said
    assert "is on rank 5" in said  # the critical path


def test_the_summary_is_a_page(stencil):
    lines = kwtrace("summary", stencil).stdout.splitlines()
    assert len(lines) < 66 and max(map(len, lines)) <= 100


def test_exports_have_every_call_and_message(stencil):
    told_by_json = json.loads(kwtrace("export", "--json", stencil).stdout)
    calls, messages = (
        list(csv.DictReader(io.StringIO(t)))
        for t in kwtrace("export", "--csv", stencil).stdout.split("\n\n")
    )
    assert (
        len(calls) == len(told_by_json["calls"])
        and len(messages) == len(told_by_json["messages"]) == 16 * 4 * 40
    )
    assert {c["rank"] for c in calls} == {str(r) for r in range(16)}
    assert all(int(m["sent_ns"]) < int(m["received_ns"]) for m in messages)


def test_what_is_no_trace_gets_a_sentence(tmp_path, stencil):
    whole = stencil.read_bytes()
    files = {
        "empty": (b"", "it is empty"),
        "text": (b"hello\n", "it is not a trace"),
        "json": (b"{}", "JSON"),
        "cut": (whole[:40], "cut off"),
        "head": (whole[:300], "without MPI calls"),
        "gzip": (b"\x1f\x8b\x08\x00", "gunzip"),
    }
    for name, (content, sentence) in files.items():
        file = tmp_path / name
        file.write_bytes(content)
        for command in (["summary"], ["view"], ["picture"], ["export", "--json"]):
            p = kwtrace(*command, file, status=1)
            assert p.stderr.count("\n") == 1 and sentence in p.stderr and str(file) in p.stderr, (
                dump(p)
            )
    p = kwtrace("summary", tmp_path / "nothing", status=1)
    assert "No such file" in p.stderr, dump(p)


def test_a_torn_file_is_shown_up_to_its_tear(tmp_path, stencil):
    whole, torn = stencil.read_bytes(), tmp_path / "torn"
    torn.write_bytes(whole[: len(whole) // 2])
    said = " ".join(kwtrace("summary", torn).stdout.split())
    assert "Note: The file is torn: after" in said and "16 ranks ran for" in said
    p = kwtrace("view", torn)
    assert "is torn" in p.stderr and "The file is torn" in (tmp_path / "torn.html").read_text()


def test_a_picture_shows_what_ranks_wait_for(tmp_path, stencil):
    file = tmp_path / "stencil.svg"
    assert kwtrace("picture", stencil, "-o", file).stdout.strip() == str(file)
    picture = xml.etree.ElementTree.parse(file).getroot()
    texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {f"rank {r}" for r in range(16)} <= set(texts) and {
        "late sender",
        "late broadcast",
        "wait at n-to-n",
    } <= set(texts), texts
    assert picture[0].text.startswith("stencil.trace: the time line of 16 ranks for ")
    assert kwtrace("picture", stencil).stdout.strip() == f"{stencil}.svg"


def test_a_part_of_a_run(tmp_path, stencil):
    whole, half = (
        json.loads(kwtrace("export", "--json", *words, stencil).stdout)
        for words in ([], ["--from", "0.005", "--to", "0.01"])
    )
    assert 0 < len(half["calls"]) < len(whole["calls"]) and 0 < len(half["messages"]) < len(
        whole["messages"]
    )
    first = min(c["begin_ns"] for c in whole["calls"])
    assert all(first + 5e6 <= c["begin_ns"] <= c["end_ns"] <= first + 1e7 for c in half["calls"])
    assert "16 ranks ran for 5.00 ms" in " ".join(
        kwtrace("summary", "--from", "0.005", "--to", "0.01", stencil).stdout.split()
    )


def test_a_part_that_is_none_gets_a_sentence(tmp_path, stencil):
    for words, sentence in (
        (["--phase", "77"], "it has no phase 77"),
        (["--from", "99"], "contains no MPI call"),
    ):
        for command in ("summary", "view", "picture"):
            p = kwtrace(command, *words, stencil, status=1)
            assert p.stderr.count("\n") == 1 and sentence in p.stderr, dump(p)
    kwtrace("summary", "--phase", "1", "--from", "1", stencil, status=2)


def test_the_page_in_a_browser(tmp_path, stencil):
    page = tmp_path / "page.html"
    assert kwtrace("view", stencil, "-o", page).stdout.strip() == str(page)
    result = driven(page, tmp_path)
    assert result["calls"] == 5984 and result["messages"] == 2560 and result["ranks"] == 16
    assert result["colours"] > 5 and result["draws"] > 10
    # sums by pixel lose no time
    assert abs(result["sum"] - result["exact"]) < 0.001 * result["exact"]
    assert result["zoomed"] < 0.05 and result["panned"] > 0 and result["fitted"] == 1
    assert (
        result["chosen"] == "MPI_Init"
        and "late sender: waits" in result["wait"]
        and result["cause"] == "MPI_Isend"
    )
    assert result["arguments"] > 5 and all(n > 40 for n in result["tabs"].values()), result["tabs"]
    assert result["hits"] == 374 and result["hit"] == 1
    assert result["path"] is True and result["arrows"] is False


def test_the_page_in_the_dark(tmp_path, stencil):
    page = tmp_path / "page.html"
    kwtrace("view", stencil, "-o", page)
    assert driven(page, tmp_path, "--blink-settings=preferredColorScheme=0")["colours"] > 5


@pytest.mark.limit(900)
def test_a_page_of_a_million_calls_on_64_ranks(tmp_path):
    browser()
    trace, page = tmp_path / "large", tmp_path / "large.html"
    kwtrace("example", trace, "--columns", 8, "--rows", 8, "--steps", 1760)
    kwtrace("view", trace, "-o", page)
    result = driven(page, tmp_path)
    assert result["calls"] > 1_000_000 and result["ranks"] == 64 and result["draws"] > 10
    assert abs(result["sum"] - result["exact"]) < 0.001 * result["exact"]
