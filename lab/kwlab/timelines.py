"""Time lines of a plan: runs of Kittiwake under `mpiexec --trace`, apart from those that are timed,
and what `kwtrace` makes of each: one picture a phase, the page of the whole run, and what the
summary says. The dataset keeps them; where one could not be made, it keeps the reason.

The other libraries record no trace, so a time line is Kittiwake's alone."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .html import folded, image, link, paragraph, preformatted, text
from .libraries import Failed, Late, Unavailable, answer
from .words import NETWORK

MADE = "ok"
LIMIT = 120  # seconds that kwtrace may take for one thing


@dataclass(frozen=True)
class Timeline:
    """One table [[timeline]] of a plan: what runs, what it shows (`words`), and the name of each of
    its phases, by the level that the program gives MPI_Pcontrol."""

    program: str
    args: tuple = ()
    ranks: int = 2
    network: str = "shm"
    words: str = ""
    phases: tuple = ()

    def key(self):
        """The same as text."""
        return "|".join([self.program, " ".join(self.args), str(self.ranks), self.network])

    def label(self):
        """For people."""
        return f"{self.program} on {self.ranks} ranks, {NETWORK[self.network]}"


@dataclass(frozen=True)
class Outcome:
    """What came of it. `phases`: (name, sentence, summary, picture) each; `page` is the whole
    run's."""

    status: str
    message: str = ""
    command: str = ""
    phases: tuple = ()
    page: str = ""


def made(one, library, limit):
    """Runs it, and draws what was recorded."""
    if not library.there():
        return Outcome("missing", f"{library.name} is not installed; `make stage` builds it")
    try:
        with tempfile.TemporaryDirectory(prefix="kwlab-") as place:
            return recorded(one, library, limit, Path(place) / f"{one.program}.trace")
    except Unavailable as why:
        return Outcome("missing", str(why))
    except Late:
        return Outcome("late", f"the traced run was ended after {limit:g} s")
    except Failed as why:
        return Outcome("failed", f"{Path(why.cmd[0]).name}: {why}")
    except (OSError, ValueError, subprocess.TimeoutExpired) as why:
        return Outcome("failed", str(why))


def recorded(one, library, limit, trace):
    """The same into this file. Raises what can go wrong."""
    tool = library.launcher.with_name("kwtrace")
    if not tool.exists():
        raise Unavailable(f"{tool} is not there; `make stage` builds it")
    program, settings = library.build(one.program, "-g"), {"KW_TRACE": str(trace)}
    library.run(program, one.ranks, one.network, *one.args, settings=settings, timeout=limit)
    if not trace.exists():
        raise ValueError("the run has written no trace")
    phases = tuple(phase(tool, trace, name, level) for name, level in one.phases)
    page = drawn(tool, "view", trace)
    return Outcome(
        MADE,
        "",
        library.told(program, one.ranks, one.network, *one.args, settings={"KW_TRACE": trace.name}),
        phases,
        page,
    )


def phase(tool, trace, name, level):
    """(name, sentence, summary, picture) of a phase."""
    summary = asked(tool, "summary", "--phase", level, trace)
    return name, sentence(summary), summary, drawn(tool, "picture", trace, "--phase", level)


def sentence(summary):
    """Of a summary the run in a few words, and the largest loss with what happened; notes are left
    out, and what would help."""
    first, *others = summary.split("\n\n")
    lines = first.splitlines()
    start = next((k for k, line in enumerate(lines) if " ran for " in line), 0)
    loss = next((one for one in others if one.startswith("1. ")), "").removeprefix("1. ")
    head, _, what = loss.partition("\n")
    what = what.split("What would help:")[0]
    return " ".join(" ".join([*lines[start:], f"{head}." if head else "", what]).split())


def drawn(tool, how, trace, *part):
    """A page or a picture of the trace."""
    target = trace.with_suffix(f".{how}")
    asked(tool, how, *part, trace, "-o", target)
    return target.read_text()


def asked(tool, *words):
    """What kwtrace answers. Raises Failed."""
    return answer([str(word) for word in (tool, *words)], timeout=LIMIT)


def lines(label, outcome):
    """A line a phase for the terminal, or the one that says why there is none."""
    if outcome.status != MADE:
        return [f"No time line of {label}: {outcome.message}"]
    return [f"Time line of {label}, {name}: {said}" for name, said, _, _ in outcome.phases]


def section(book):
    """The report's section; its pictures and pages become files beside it."""
    parts = [part(book, number, *found) for number, found in enumerate(book.timelines, 1)]
    return parts and paragraph(
        "What each rank did over time, in one traced run apart from those that were timed. "
        "Colours are waits, by the awaited rank; sky blue is a rank in MPI that waits for "
        "no known rank: data moves. Only Kittiwake records a trace (`mpiexec --trace`), "
        "so the other libraries are not here."
    ) + "".join(parts)


def part(book, number, plan, label, words, outcome):
    """One time line."""
    head = f"<h3>{text(plan)}: {text(label)}</h3>" + (paragraph(words) if words else "")
    if outcome.status != MADE:
        return head + paragraph(f"There is no time line: {outcome.message}")
    name = f"timeline-{plan}-{number}"
    pieces = [of_phase(book, f"{name}-{k}", *phase) for k, phase in enumerate(outcome.phases, 1)]
    book.files[f"{name}.html"] = outcome.page
    return (
        head
        + "".join(pieces)
        + (
            f"<p>{link(f'{name}.html', 'The whole run, to zoom and to search')}. "
            f"{text(f'Made by `{outcome.command}`')}</p>"
        )
    )


def of_phase(book, name, what, said, summary, picture):
    book.files[f"{name}.svg"] = picture
    return (
        paragraph(f"{what[0].upper()}{what[1:]}. {said}")
        + image(picture.encode(), f"Time line: {what}", "svg+xml")
        + folded("the whole summary of this part", preformatted(summary))
    )
