"""scripts/check-docs counts phrases that make texts hard to read: a line with one more is an error,
plain English is not."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-docs"
loader = importlib.machinery.SourceFileLoader("check_docs", str(SCRIPT))
docs = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
loader.exec_module(docs)
ROWS = list(docs.limits())

BAD = {
    "whoever": "/// Wakes whoever found no slot.",
    "whom": "/// Whom the waits of this rank depend on.",
    "so many": "/// A ring of so many ranks.",
    "anew": "// the connection is made anew",
    "shall": "//! Ranks shall agree.",
    "likewise": "/// Likewise for receives.",
    "besides": "Besides, long messages go in pieces.",
    "of ours": "/// A panic of ours.",
    "who as a noun": "/// Beside who also waits they yield.",
    "is no noun": "/// What is no number is left out.",
    "in vain": "// a look in vain",
    "nobody": "/// Messages that nobody has asked for.",
}


def faults(lines, most):
    rows = [(name, pattern, most, instead) for name, pattern, _, instead in ROWS]
    return list(docs.check_wording(rows, [(f"a.rs:{n}", line) for n, line in enumerate(lines)]))


@pytest.mark.parametrize("name", [row[0] for row in ROWS])
def test_a_bad_line_is_rejected_and_the_message_says_what_to_write(name):
    (fault,) = faults([BAD[name]], most=0)
    assert f"'{name}' is in 1 lines, 0 is the most: write " in fault, fault
    assert not faults([BAD[name]], most=1) and len(faults([BAD[name]] * 2, most=1)) == 1


def test_plain_english_is_accepted():
    plain = [
        "/// Returns the parent of `r`; there is no parent of the root, which is no longer needed.",
        "/// Wakes all senders that wait for a slot, as often as necessary.",
        "//! Which rank sends first?",
    ]
    assert faults(plain, most=0) == []


def test_the_tree_is_within_its_limits_and_every_phrase_has_an_example():
    assert set(BAD) == {row[0] for row in ROWS}
    assert list(docs.check_wording(ROWS, docs.texts())) == []
