"""The manual pages as they are installed: they have no fault, `man -k` finds them, what they refer
to is there, and every example compiles without a warning and runs on two ranks."""

import re
import shutil
import subprocess

import pytest

from jobs import DIST, MPIEXEC, ROOT, run, dump

MAN = DIST / "share/man"
DOC = DIST / "share/doc/kittiwake"
PAGES = {p.name: p.read_text() for p in sorted(MAN.glob("man[37]/*.[37]"))}
OWN = {name: text for name, text in PAGES.items() if not text.startswith(".so ")}


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def example(page):
    """The example of a page as C."""
    found = re.search(r"^\.SH EXAMPLE\n\.EX\n(.*?)^\.EE$", page, re.S | re.M)
    text = found.group(1) if found else ""
    for roff, c in (
        (r"\-", "-"),
        (r"\(aq", "'"),
        (r"\(ga", "`"),
        (r"\(ha", "^"),
        (r"\(ti", "~"),
        (r"\&", ""),
        (r"\e", "\\"),
    ):
        text = text.replace(roff, c)
    return text


def test_every_page_has_a_name_line_and_what_it_refers_to():
    assert len(PAGES) > 660, len(PAGES)
    for name, text in PAGES.items():
        if text.startswith(".so "):
            assert text.split()[1] in {f"man3/{page}" for page in OWN}, (name, text)
            continue
        stem = name.rsplit(".", 1)[0]
        assert re.search(rf"^\.SH NAME\n{stem}(, \w+)* \\- [a-z]\S* .+[^.]$", text, re.M | re.I), (
            name
        )
        for other, section in re.findall(r"^\.BR (\w+) \((\d)\)", text, re.M):
            there = (
                f"{other}.{section}" in PAGES or (MAN / f"man{section}/{other}.{section}").exists()
            )
            assert there, f"{name} refers to {other}({section})"


def test_no_page_speaks_in_kinds():
    rows = (ROOT / "api/parameters.tsv").read_text().splitlines()[1:]
    kinds = {row.split("\t")[3] for row in rows}
    raw = [k for k in kinds if "_" in k and k not in ("C_BUFFER",)]
    raw = re.compile(
        "|".join(
            rf"\b(?:{k}|{k.lower().replace('_', ' ')})\b" for k in raw if "POLY" in k or "NNI" in k
        )
    )
    for name, text in OWN.items():
        found = raw.search(text)
        assert not found, (name, found)


def lint(*words):
    need(words[0])
    return run(
        *words,
        *(p.relative_to(MAN) for p in sorted(MAN.glob("man[37]/*.[37]")) if p.name in OWN),
        cwd=MAN,
    )


def test_groff_finds_no_fault():
    p = lint("groff", "-man", "-Tutf8", "-ww", "-z")
    assert p.returncode == 0 and not p.stderr, p.stderr[-2000:]


def test_mandoc_finds_no_fault():
    p = lint("mandoc", "-Tlint", "-Wwarning")
    # the pages change with the version, which they name, and have no date
    faults = [line for line in p.stdout.splitlines() if "missing date" not in line]
    assert not faults, faults[:10]


def test_man_k_finds_functions_by_what_they_do(tmp_path):
    need("mandb", "man")
    copy = shutil.copytree(MAN, tmp_path / "man")
    run("mandb", "-q", "-u", "-c", copy)
    for word, function in (
        ("broadcast", "MPI_Bcast"),
        ("reduction", "MPI_Reduce"),
        ("neighbor", "MPI_Neighbor_alltoall_c"),
    ):
        p = run("man", "-M", copy, "-k", word)
        assert re.search(rf"^{function} \(3\)", p.stdout, re.M), dump(p)


EXAMPLES = {
    name.removesuffix(".3"): example(text) for name, text in OWN.items() if ".SH EXAMPLE" in text
}


def test_there_are_examples():
    assert len(EXAMPLES) >= 30, sorted(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_compiles_and_runs_on_two_ranks(name, tmp_path):
    text, source, program = EXAMPLES[name], tmp_path / f"{name}.c", tmp_path / name
    assert f"{name}(" in text, f"the example of {name} does not call it"
    source.write_text(text)
    subprocess.run(
        [DIST / "bin/mpicc", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-lm"],
        check=True,
    )
    p = run(MPIEXEC, "-n", 2, program)
    assert p.returncode == 0 and not p.stderr, dump(p)


def test_the_documents_are_installed_and_their_links_work():
    texts = [DOC / "README.md", *sorted((DOC / "docs").glob("*.md"))]
    assert len(texts) == 1 + len(list((ROOT / "docs").glob("*.md"))) > 8, texts
    for text in texts:
        for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", text.read_text()):
            # what only the source tree has (tests/, lab/, bench/, crates/, api/) is not installed
            if (text.parent / link).exists() or re.match(
                r"(\.\./)?(tests|lab|bench|crates|api|scripts|build)/", link
            ):
                continue
            assert False, f"{text.name} links to {link}, which is not installed"
