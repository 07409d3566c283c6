"""What applications took: a cell of each library as a median with its spread, ours over the best
peer's, and marks on what counts for nothing: results that were not verified, runs that others
disturbed; and how much of what was sent Kittiwake could write, by its counters."""

import textwrap
from dataclasses import dataclass, field

from . import analysis, plots, trust
from .html import Faint, Ratio, folded, paragraph, table, text
from .lazy import numpy
from .libraries import OURS
from .trust import DISTURBED
from .words import NETWORK, networks, per_cent

PROTOCOLS = ("eager", "rndv", "get", "write")
LONG = PROTOCOLS[1:]  # those of messages that are too long to be sent at once


@dataclass(frozen=True)
class Figure:
    """A library's runs of a cell. `seconds`, `rates` and `messages` (the per cent of the time that
    went into them, of programs that tell it): round -> value, of the undisturbed rounds, or of all
    when there is no other."""

    seconds: dict
    rates: dict
    disturbed: bool = False
    unverified: bool = False
    messages: dict = field(default_factory=dict)

    @property
    def counts(self):
        """Is it a figure that may be compared?"""
        return bool(self.seconds) and not self.disturbed and not self.unverified

    @property
    def measured(self):
        """The median of the rounds."""
        return self.middle(self.seconds)

    def middle(self, values):
        """The median of the rounds of one of its figures."""
        return trust.Measured(numpy.median([*values.values()]), values, self.disturbed)

    def words(self, values):
        """The median and the range of the rounds, or why there is none."""
        if self.unverified:
            return Faint("NOT VERIFIED")
        if not values:
            return None
        middle = self.middle(values)
        middle, low, high = map(digits, (float(middle), *middle.span))
        said = middle if len(values) == 1 else f"{middle} ({low} to {high})"
        return Faint(f"{said} disturbed") if self.disturbed else said


def digits(value):
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def said(measured, words=digits):
    """A figure with the range of its rounds, faint where it counts for nothing."""
    low, high = getattr(measured, "span", (measured, measured))
    told = words(measured) + (
        f" ({words(low)} to {words(high)})" if len(getattr(measured, "rounds", ())) > 1 else ""
    )
    return Faint(told) if trust.grey(measured) else told


def plans(book):
    """The plans that have applications."""
    return list(dict.fromkeys(book.data[book.data.bench == "application"].plan))


def cells(book, plan):
    """(program, arguments, network, ranks) -> {who: Figure} of a plan, in the order of the runs."""
    found = {}
    data = book.data[(book.data.bench == "application") & (book.data.plan == plan)]
    for (op, mode, net, ranks), some in data.groupby(
        ["op", "mode", "network", "ranks"], sort=False
    ):
        found[op, mode, net, ranks] = {
            analysis.called(next(one.itertuples())): figure(one)
            for _, one in some.groupby(["library", "variant"], sort=False)
        }
    for run in book.runs[
        (book.runs.status == "unverified") & (book.runs.plan == plan)
    ].itertuples():
        of = found.setdefault((run.program, run.args, run.network, run.ranks), {})
        of[analysis.called(run)] = Figure({}, {}, unverified=True)
    return found


def figure(data):
    """Of the measurements of one library in one cell."""
    by_metric = {
        metric: dict(zip(some["round"], some["median"])) for metric, some in data.groupby("metric")
    }
    seconds, rates, messages = (by_metric.get(name, {}) for name in ("seconds", "rate", "messages"))
    return Figure(seconds, rates, bool(data.disturbed.all()), messages=messages)


def counters(book, plan):
    """(program, arguments, network, ranks) -> {counter: median over the rounds}, of Kittiwake as it
    is, summed over the ranks."""
    data = book.data[(book.data.bench == "counters") & (book.data.plan == plan)]
    data = data[data.variant == ""]
    return {
        cell: some.groupby("metric")["median"].median().to_dict()
        for cell, some in data.groupby(["op", "mode", "network", "ranks"], sort=False)
    }


def sent(total, what, protocols=PROTOCOLS):
    """Of counters: how many messages were sent (`what` is sent), or how many bytes."""
    return sum(total.get(f"{protocol}_{what}", 0) for protocol in protocols)


def written(total, what, protocols=PROTOCOLS):
    """The share of them that was written into announced receives; None where nothing was sent."""
    every = sent(total, what, protocols)
    return total.get(f"write_{what}", 0) / every if every else None


def best_peer(of):
    """Ours against the quickest peer's of a cell, and its name; grey where one of the two is.
    None and None where one is missing or was not verified."""
    found = {
        who: one.measured
        for who, one in of.items()
        if one.seconds and (who == OURS or not who.startswith(OURS))
    }
    ours = found.pop(OURS, None)
    if ours is None or not found:
        return None, None
    who = min(found, key=found.get)
    return trust.against(ours, found[who]), who


def span(found):
    """The range of a ratio over the rounds."""
    return f"{min(found.rounds):.2f} to {max(found.rounds):.2f}" if found and found.rounds else None


def who(found):
    """All libraries, ours first."""
    every = list(dict.fromkeys(name for of in found.values() for name in of))
    return [name for name in every if name.startswith(OURS)] + [
        name for name in every if not name.startswith(OURS)
    ]


def seconds_table(found, counted=None):
    """Head and rows: ratios, times, and the share of our messages that were written, where they
    were counted (`counters`)."""
    names, rows, last = who(found), [], ["Messages written"] if counted else []
    for cell, of in found.items():
        op, mode, net, ranks = cell
        best, peer = best_peer(of)
        share = [per_cent(written(counted.get(cell, {}), "sent"))] if counted else []
        rows.append(
            (
                f"{op} {mode}".strip(),
                NETWORK[net],
                ranks,
                best and Ratio(best.ratio, grey=best.grey),
                span(best),
                peer,
                *(of[name].words(of[name].seconds) if name in of else None for name in names),
                *share,
            )
        )
    head = ["Program", "Network", "Ranks", "Ours : best peer", "in the rounds", "Best peer"]
    return [*head, *(f"{name}, s" for name in names), *last], rows


def sent_table(counted):
    """Head and rows: what Kittiwake sent, and the shares of it that were written."""
    rows = []
    for (op, mode, net, ranks), total in counted.items():
        shares = written(total, "sent"), written(total, "sent", LONG), written(total, "bytes")
        rows.append(
            (
                f"{op} {mode}".strip(),
                NETWORK[net],
                ranks,
                int(sent(total, "sent")),
                sent(total, "bytes") / 1e6,
                *map(per_cent, shares),
            )
        )
    head = ["Program", "Network", "Ranks", "Messages", "MB"]
    return [*head, "written", "of the long ones", "of the bytes"], rows


def rate_table(found):
    """Head and rows: the best peer's rate over ours, then rates as the programs print them."""
    names = who(found)
    rows = [
        (
            f"{op} {mode}".strip(),
            NETWORK[net],
            ranks,
            Ratio.of(rate_ratio(of)),
            *(of[name].words(of[name].rates) if name in of else None for name in names),
        )
        for (op, mode, net, ranks), of in found.items()
        if any(one.rates for one in of.values())
    ]
    return [
        "Program",
        "Network",
        "Ranks",
        "Best peer : ours",
        *(f"{name}, rate" for name in names),
    ], rows


def rate_ratio(of):
    """The best peer's rate over ours: below 1 ours does more."""
    rates = {
        name: trust.Measured(numpy.median([*one.rates.values()]), one.rates, one.disturbed)
        for name, one in of.items()
        if one.rates and not one.unverified
    }
    peers = [rate for name, rate in rates.items() if not name.startswith(OURS)]
    return trust.against(max(peers), rates[OURS]) if peers and rates.get(OURS) else None


def mean_table(found):
    """Head and rows: geometric means of the cells that count, by network and ranks, and of each
    round."""
    ratios = {}
    for (_, _, net, ranks), of in found.items():
        best, _ = best_peer(of)
        if best and not best.grey:
            ratios.setdefault((net, ranks), []).append(best)
    rows = [
        (
            NETWORK[net],
            ranks,
            Ratio.of(analysis.mean_of(some)),
            Ratio.of(max(some, key=lambda one: one.ratio)),
            len(some),
        )
        for (net, ranks), some in ratios.items()
    ]
    return ["Network", "Ranks", "Ours : best peer", "The worst", "Programs"], rows


def over_best(of):
    """{who: time over the best peer's} of a cell; nothing where ours counts for nothing, and
    without others that do."""
    best, peer = best_peer(of)
    if best is None or best.grey:
        return {}
    found = {
        name: trust.against(one.measured, of[peer].measured)
        for name, one in of.items()
        if one.counts
    }
    return {
        name: trust.Measured(one.ratio, enumerate(one.rounds))
        for name, one in found.items()
        if not one.grey
    }


LABEL = 34  # columns of a program's name in a picture


def labels(cells):
    """cell -> what a picture calls it: program and arguments without the words that all have."""
    words = {cell: [cell[0], *cell[1].split()] for cell in cells}
    common = set.intersection(*map(set, words.values()))
    if len(set(map(tuple, words.values()))) == 1:
        common = set()
    told = {
        cell: " ".join(word for word in some if word not in common) for cell, some in words.items()
    }
    return {cell: textwrap.fill(said or cell[0], LABEL) for cell, said in told.items()}


def picture(book, plan, net, found):
    """Every program's ratios, a panel for each number of ranks."""
    names, panels = labels(found), {}
    for cell, of in found.items():
        if drawn := over_best(of):
            panels.setdefault(cell[3], {})[names[cell]] = drawn
    if not panels:
        return ""
    compared = sum(best_peer(of)[0] is not None for of in found.values())
    left = compared - sum(map(len, panels.values()))
    title = f"{plan}, {NETWORK[net]}: time over the best peer's"
    drawn = plots.ratios(
        {f"{ranks} ranks": panels[ranks] for ranks in sorted(panels)},
        "time over the best peer's",
        title,
    )
    note = f" {left} cells are grey and not drawn." if left else ""
    return book.picture(f"programs-{plan}-{net}", drawn, title) + paragraph(
        "Below 1 a library takes less time than the best peer, which stands at 1; lines go from "
        f"the least to the greatest round.{note}",
        note=True,
    )


def section(book):
    """The report's section."""
    if not (some := plans(book)):
        return ""
    return paragraph(
        "Seconds as the programs tell them: the median over the rounds, and the range. "
        f"A run during which others used more than {DISTURBED:.0%} of the processors counts only "
        "when there is no other; a cell that has no other is marked `disturbed`, one whose "
        "result was wrong in any round `NOT VERIFIED`, and both count for nothing, nor does a "
        "grey ratio, whose rounds disagree.".replace("%", " %")
    ) + "".join(of_plan(book, plan) for plan in some)


def of_plan(book, plan):
    """A plan's tables, of each network: means, seconds, rates; what was sent."""
    found, counted, parts = cells(book, plan), counters(book, plan), []
    for net in networks(net for _, _, net, _ in found):
        here = {cell: of for cell, of in found.items() if cell[2] == net}
        head, rows = rate_table(here)
        parts.append(
            f"<h3>{text(plan)}, {NETWORK[net]}</h3>"
            + table(*mean_table(here))
            + picture(book, plan, net, here)
            + table(*seconds_table(here, counted))
            + (
                folded(
                    f"rates, Mop/s or as the program tells them ({len(rows)} cells)",
                    table(head, rows),
                )
                if rows
                else ""
            )
        )
    return "".join(parts) + (what_was_sent(counted) if counted else "")


def what_was_sent(counted):
    """How many messages could be written."""
    head, rows = sent_table(counted)
    title = f"what Kittiwake sent, and how much of it could be written ({len(rows)} cells)"
    return folded(
        title,
        paragraph(
            "By Kittiwake's counters, of all ranks from MPI_Init to MPI_Finalize. A message is "
            "written when its receive was announced before it left; long ones are those that were "
            "not sent eagerly. Messages that collectives consist of count, what they pass on "
            "through shared memory is not a message.",
            note=True,
        )
        + table(head, rows),
    )
