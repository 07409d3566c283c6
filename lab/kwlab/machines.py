"""Several machines side by side, from the files that their owners have sent (`machine`): one HTML
page, and pictures beside it. A column is a machine; figures of different machines are not compared
cell by cell, ratios and regret are."""

from . import analysis, html, machine, plots, regret, trust
from .html import Ratio, folded, paragraph, table
from .libraries import OURS
from .plan import RANDOM
from .words import NETWORK, networks, size

NAME = "machines.html"


def write(found, out):
    """Writes the page and the pictures into the directory `out`; the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    pictures = {}
    sections = [
        (name, title, inner) for name, title, make in SECTIONS if (inner := make(found, pictures))
    ]
    page = out / NAME
    page.write_text(html.page("Machines side by side", sections))
    for name, content in pictures.items():
        (out / f"{name}.png").write_bytes(content)
    return page


def side_by_side(what, found, of):
    """A table with a column a machine: `of` gives a machine's {row: value}."""
    columns = [of(one) for one in found]
    rows = list(dict.fromkeys(row for column in columns for row in column))
    return (
        rows
        and table(
            [what, *(one.name for one in found)],
            [(row, *(column.get(row) for column in columns)) for row in rows],
        )
        or ""
    )


def machines(found, pictures):
    return side_by_side("What", found, facts_of) + paragraph(
        "Of a cluster with several kinds of hosts every kind is named. "
        "Runs that went wrong are counted below.",
        note=True,
    )


def facts_of(one):
    """What a machine is made of."""
    kinds = one.profile.get("hosts") or [
        [
            {
                "processor": str(one.facts.get("processor", "unknown")),
                "usable processors": one.facts["cores"],
            },
            1,
        ]
    ]
    names = list(dict.fromkeys(name for facts, _ in kinds for name in facts))
    made = {
        name: " / ".join(dict.fromkeys(str(facts.get(name, "unknown")) for facts, _ in kinds))
        for name in names
    }
    hosts = {"hosts": " + ".join(str(count) for _, count in kinds)}
    disturbed = one.book.runs.others.dropna() > trust.DISTURBED
    return {
        **hosts,
        **made,
        "written": one.day,
        "runs": f"{len(one.book.runs)} runs, {int(disturbed.sum())} of them disturbed",
    }


def figures(found, pictures):
    shown = side_by_side("Figure", found, figures_of)
    return (
        shown
        and paragraph(
            "What `kwinfo --calibrate` measured (`docs/install.md`): the median of several "
            "times, and their range where that is more than a tenth. none: the machine has no "
            "such thing; a star: not measured, the starting value holds."
        )
        + shown
    )


def figures_of(one):
    """A machine's figures for people."""
    return {
        name: figure_words(value, unit, origin, times)
        for name, value, unit, origin, _, times in one.rows("figures")
    }


def figure_words(value, unit, origin, times):
    if origin != "measured":
        return f"{machine.shown(value, unit)} *" if int(value) else "none"
    times = sorted(times)
    middle, words = times[len(times) // 2], machine.shown(times[len(times) // 2], unit)
    return (
        words
        if times[-1] - times[0] <= middle / 10
        else f"{words} ({machine.shown(times[0], unit)} to {machine.shown(times[-1], unit)})"
    )


def messages(found, pictures):
    def eager(one):
        of = {}
        for path, ranks, most, *_ in one.rows("messages"):
            of.setdefault(path, []).append(size(int(most)))
        return {path: " / ".join(dict.fromkeys(most)) for path, most in of.items()}

    eager_table = side_by_side("Largest eager message, 2 / 16 / 128 ranks", found, eager)
    curves = {}
    for one in found:
        some = one.book.medians("p2p")
        for (net, _, _, _, n), of in analysis.by_cell(
            some[(some.op == "pingpong") & (some.ranks == 2)]
        ):
            if OURS in of and n:
                curves.setdefault(NETWORK[net], {}).setdefault(one.name, {})[n] = of[OURS]
    if not curves:
        return eager_table
    picture = html.png(
        figure := plots.side_by_side(
            curves, "time, us", "One message of Kittiwake between two ranks"
        )
    )
    plots.plt.close(figure)
    pictures["machines-messages"] = picture
    return (
        html.image(picture, "One-way time of a message by size, a line for each machine")
        + eager_table
    )


def ratios(found, pictures):
    """Our time over the best peer's, geometric means."""
    return side_by_side("Geometric mean of our time over the best peer's", found, ratios_of)


def ratios_of(one):
    groups = {}
    for bench in ("p2p", "coll"):
        rows = [r for r in analysis.ratios(one.book.medians(bench)) if r["bytes"] not in RANDOM]
        for net in networks(r["network"] for r in rows):
            for op in dict.fromkeys(r["op"] for r in rows):
                for r in rows:
                    if (r["network"], r["op"]) == (net, op):
                        groups.setdefault(f"{op}, {NETWORK[net]}", []).append(r["against"])
    return {name: Ratio.of(analysis.mean_of(some)) for name, some in groups.items()}


def regrets(found, pictures):
    def of(one):
        groups = regret.by(one.book.regret(), "network", "ranks")
        return {
            f"{NETWORK[net]}, {ranks} ranks": regret_words(regret.summed(some))
            for (net, ranks), some in sorted(groups.items())
        }

    shown = side_by_side("Mean, worst stable cell", found, of)
    return (
        shown
        and paragraph(
            "Time of what was chosen over the best of all algorithms, "
            "each forced and measured in the same turn; 1 is the best choice everywhere."
        )
        + shown
    )


def regret_words(some):
    """A mean and a worst cell in a few words."""
    mean = "–" if some.mean is None else f"{some.mean:.3f}"
    return f"{mean}, " + (
        f"{some.worst.regret:.2f} ({some.worst.op} {size(some.worst.bytes)})"
        if some.worst
        else "none stable"
    )


def choices(found, pictures):
    """What is chosen by the prices, where the machines differ."""
    columns = [
        {
            (name, int(ranks), int(hosts), int(n)): algorithm
            for name, ranks, hosts, n, algorithm, _ in one.rows("collectives")
        }
        for one in found
    ]
    places = [
        place
        for place in dict.fromkeys(place for column in columns for place in column)
        if len({column.get(place) for column in columns}) > 1
    ]
    rows = [
        (
            f"{name} {size(n)}",
            ranks,
            hosts,
            *(column.get((name, ranks, hosts, n)) for column in columns),
        )
        for name, ranks, hosts, n in places
    ]
    return rows and folded(
        f"the {len(rows)} calls for which the machines' prices choose differently, "
        "a core for each rank",
        table(["Call", "Ranks", "Hosts", *(one.name for one in found)], rows),
    )


def failed(found, pictures):
    def of(one):
        wrong = one.book.runs[one.book.runs.status != "ok"]
        return {
            f"{library} {status}": int(count)
            for (library, status), count in wrong.groupby(["library", "status"]).size().items()
        }

    return side_by_side("Runs that went wrong", found, of)


SECTIONS = [
    ("machines", "Machines", machines),
    ("figures", "What was measured of them", figures),
    ("messages", "Messages", messages),
    ("ratios", "Ratios", ratios),
    ("regret", "Regret", regrets),
    ("choices", "Choices", choices),
    ("failed", "What went wrong", failed),
]
