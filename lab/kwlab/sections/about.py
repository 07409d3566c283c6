"""The machine, how to read the report, and what went wrong."""

import time

from .. import analysis, facts, trust
from ..html import folded, items, paragraph, table
from ..words import NETWORK, per_cent


def machine(book):
    runs = book.runs
    when = [
        time.strftime("%Y-%m-%d %H:%M", time.localtime(t))
        for t in (runs["at"].min(), runs["at"].max())
    ]
    versions = runs[runs.version != ""].drop_duplicates("library")
    rows = [
        ("machine", facts.sentence(book.facts)),
        ("measured", f"{when[0]} to {when[1]}"),
        ("plans", ", ".join(sorted(set(runs.plan)))),
        ("runs", f"{len(runs)}, of which {int((runs.status != 'ok').sum())} went wrong"),
        (
            "load of the machine",
            (
                f"{runs.load.median():.1f} runnable in the middle, {runs.load.max():.1f} at most, "
                f"on {book.facts['cores']} cores"
            ),
        ),
        ("disturbed", disturbed(runs)),
    ]
    rows += [(row.library, row.version) for row in versions.itertuples()]
    rows += [
        (name.replace("_", " "), value)
        for name, value in book.facts.items()
        if name in ("hosts", "governor", "ptrace_scope", "virtual") and value != "unknown"
    ]
    return table(["What", "Value"], rows) + started(book)


def disturbed(runs):
    """In how many runs others used the machine."""
    watched = runs[runs.others.notna()]
    return (
        f"{int((watched.others > trust.DISTURBED).sum())} of {len(watched)} runs, "
        f"during which others used more than {per_cent(trust.DISTURBED, 0)} of the processors"
    )


def started(book):
    """How each library was started: the first command on each network."""
    runs = book.runs[book.runs.command != ""].drop_duplicates(["library", "variant", "network"])
    rows = [
        (analysis.called(run), NETWORK[run.network], run.ranks, f"`{run.command}`")
        for run in runs.itertuples()
    ]
    return (
        rows
        and folded(
            f"how the libraries were started ({len(rows)} commands)",
            table(["Library", "Network", "Ranks", "Command"], rows),
        )
        or ""
    )


def reading(book):
    return items(
        [
            "A ratio is our time over the best peer's in the same cell: "
            "below 1 Kittiwake takes less time. Compare within a row; "
            "absolute times move from machine to machine and from hour to hour.",
            "A time is the median over the rounds of the plan; in a round it is the median of "
            "batches, each as long as its slowest rank. There is no mean after a barrier: "
            "a mean hides what the slowest did, and a barrier lets ranks go at different times.",
            "In every round the libraries take turns on each cell, "
            "so that a machine whose speed drifts treats them alike. "
            "All programs are compiled from the same source with the same flags.",
            "Behind a ratio stands its range over the rounds that both libraries have. "
            f"A round during which others used more than {per_cent(trust.DISTURBED, 0)} of the "
            "processors counts only where a cell has no other.",
            "Grey counts for nothing, in no mean and in no list: the cell was disturbed in every "
            f"round, or the ratios of its rounds lie further apart than {trust.DISAGREE:g} : 1. "
            "`kwlab compare A B` says with its confidence whether a difference is one.",
            "Marks in a picture are measured, bars at them go from the least to the greatest "
            "round (of a model's marks, which are of one round: over the middle half of its "
            "batches), lines are fitted models. Dashed lines and hatched bars are Kittiwake with "
            "a setting set.",
        ]
    )


def failed(book):
    rows = analysis.failures(book.runs)
    if not rows:
        return paragraph("Nothing: every run came to its end and printed what it should.")
    return table(
        ["Library", "How it ended", "Program", "Network", "Ranks", "What was said", "Runs"],
        [(*row[:3], NETWORK[row[3]], *row[4:]) for row in rows],
    )
