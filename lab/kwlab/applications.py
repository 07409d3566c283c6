"""Applications: whole programs, which print what they like. A plan says for each library what to
start, and what in its output is the time, the rate and the word that the result is right:

    title = "NPB 3.4.3, class W"
    rounds = 5
    limit = 120

    [run]                                   # library -> command; {name} and {ranks} are replaced. A
    kittiwake = "kittiwake/{name}"          # program with a slash that is not absolute is looked
    openmpi = ["/opt/npb/ompi/{name}"]      # for beside the plan. Without one it is left out
    [read]                                  # regular expressions; what their brackets hold is the
    seconds = 'Time in seconds = +(\\S+)'    # figure, and the last line counts
    rate = 'Mop/s total = +(\\S+)'           # may be left out,
    verified = 'Verification += +SUCCESS'   # this too: then nothing is known of the result

    [[application]]
    name = "cg.W"                           # what tables call it
    args = []                               # further words of the command
    ranks = [2, 4]                          # and network, only, variants, as in [[work]]
    run = { kittiwake = "./cg -q" }         # its own, in place of those above; also read

    [[application]]
    name = "cg"                             # a program of apps/nas, built for each library; without
    args = ["W"]                            # `read` it is read by what the NAS kernels print
    build = "nas"

A result that is not verified does not count."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from .libraries import ROOT, Unavailable, in_fortran


class Unverified(Exception):
    """A program that ended and says that its result is wrong, or does not say that it is right."""


def pattern(text, groups):
    """A regular expression with a number of brackets; raises ValueError."""
    try:
        found = re.compile(text, re.MULTILINE)
    except re.error as why:
        raise ValueError(f"is not a regular expression ({why})") from None
    if found.groups != groups:
        brackets = "with one pair of brackets around the figure" if groups else "without brackets"
        raise ValueError(f"takes a regular expression {brackets}")
    return found


@dataclass(frozen=True)
class Reading:
    """How the output of a program is read."""

    seconds: re.Pattern
    rate: re.Pattern = None
    verified: re.Pattern = None
    messages: re.Pattern = (
        None  # the per cent of its time that went into messages, of those that tell it
    )

    def figures(self, text):
        """{seconds, rate, messages}; raises ValueError when there is no such figure, Unverified
        when the result is not right."""
        found = {"seconds": last(self.seconds, "time", text)} | (
            {"rate": last(self.rate, "rate", text)} if self.rate else {}
        )
        if self.messages and (told := self.messages.findall(text)):
            found["messages"] = float(told[-1])
        if self.verified and not self.verified.search(text):
            raise Unverified(f"its result is not verified: {' '.join(text.split())[-200:]!r}")
        return found


def last(pattern, what, text):
    """The figure of the last match."""
    found = pattern.findall(text)
    try:
        value = float(found[-1])
    except (IndexError, ValueError):
        raise ValueError(
            f"no {what} in what it printed: {' '.join(text.split())[-200:]!r}"
        ) from None
    if not 0 < value < float("inf"):
        raise ValueError(f"its {what} is {found[-1]}")
    return value


# What the programs of apps/ print.
OURS_READ = Reading(
    pattern(r"^seconds +(\S+)$", 1),
    pattern(r"^Mop/s +(\S+)$", 1),
    pattern(r"^verified$", 0),
    pattern(r"^messages +(\S+) % of the time", 1),
)


def built():
    """The directories of apps/ that can be built."""
    return sorted(path.parent.name for path in (ROOT / "apps").glob("*/modules"))


def kernels(directory):
    """The programs of a directory of apps/: the sources that are not parts of them."""
    place = ROOT / "apps" / directory
    parts = (place / "modules").read_text().split()
    return sorted(
        path.stem
        for path in place.iterdir()
        if path.suffix in (".c", ".f90") and path.name not in parts
    )


@dataclass(frozen=True)
class Application:
    """A program of a plan: `run` is what each library starts, unless it is built from
    apps/`build`."""

    name: str
    reading: Reading
    run: dict
    build: str = ""
    place: Path = Path()

    def in_fortran(self):
        """Is it built, and in Fortran?"""
        return bool(self.build) and in_fortran(self.build, self.name)

    def on(self, library):
        """Is there something to start with this library?"""
        return bool(self.build) or library in self.run

    def words(self, library, ranks):
        """The command's words, of a library (`Library`). Raises Unavailable, Failed."""
        if self.build:
            return library.build_application(self.build, self.name)
        words = [
            word.replace("{name}", self.name).replace("{ranks}", str(ranks))
            for word in self.run[library.name]
        ]
        if "/" in words[0]:
            words[0] = str(self.place / words[0])
            if not os.access(words[0], os.X_OK):
                raise Unavailable(f"there is no program {words[0]}")
        return words

    def line(self, cell, output):
        """The measurement of a run."""
        return {
            "bench": "application",
            "op": self.name,
            "mode": " ".join(cell.args),
            **self.reading.figures(output),
        }


def command(value):
    """The words of a command, given as text or as words; raises ValueError."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as why:
        raise ValueError(f"is not a command ({why})") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ValueError("takes a command")
    return words
