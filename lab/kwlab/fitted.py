"""What the report tells of messages and collectives by size, with the models of *Performance
Analysis of Message-Passing Libraries on High-Speed Clusters* (below: the paper) fitted to them.
Each section takes the book and gives HTML, or nothing where nothing was measured."""

from . import analysis, models, papers, plots
from .html import folded, paragraph, table
from .libraries import OURS
from .words import NETWORK, networks, per_cent, size


def messages(book):
    """Latency and bandwidth with the fitted models."""
    fits, parts = book.message_fits(), []
    for net in networks(net for _, net, _, _ in fits):
        here = ordered({who: one for (who, n, _, _), one in fits.items() if n == net})
        parts.append(
            book.picture(
                f"message-{net}",
                plots.latency_and_bandwidth(here, f"One message between two ranks, {NETWORK[net]}"),
                f"Time and bandwidth by size with the fitted model, {NETWORK[net]}",
            )
        )
    return "".join(parts)


# Figure 1 of the paper, and the one size of which its text has what was measured.
FIGURE_1 = (
    ("MPICH-GM, Myrinet", "send"),
    ("MPJ/Ibis, Myrinet", "send"),
    ("ScaMPI, SCI single", "bcast"),
    ("MPJ/Ibis, SCI dual", "bcast"),
    ("ScaMPI, SCI single", "send"),
)


def law(fit, op):
    """The paper's model of a row of its tables, in us and bytes."""
    return models.Collective(
        op,
        *(
            models.OfProcesses(*(scale * part for part in fit[name][:2]), fit[name][2])
            for name, scale in (("t0", 1), ("ti", 1), ("tb", 1e-3))
        ),
    )


def two_models(book):
    """The paper's Figure 1: bandwidth by Hockney's model and by that of three parameters, in the
    paper and in our measurements, of a message and of a broadcast."""
    paper, panels = papers.seed("002"), {}
    by_name, told = {one["library"]: one for one in paper["model"]}, paper["figure1"]
    for library, op in FIGURE_1:
        entry = by_name[library]
        model = law(entry[op], op).at(entry["processes"][-1])
        measured = (
            {told["bytes"]: told["us"][0]} if (library, op) == (told["library"], "send") else {}
        )
        panels[f"the paper: {op}, {library}"] = (
            measured,
            model,
            models.Hockney(model.t0, model.tb),
        )
    today = {
        f"today: a message, {NETWORK[net]}": one
        for (who, net, _, _), one in book.message_fits().items()
        if who == OURS
    }
    ranks = {
        net: plain_ranks(book, {p for _, n, p, _ in book.collective_fits() if n == net})
        for net in {cell[1] for cell in book.collective_fits()}
    }
    today |= {
        f"today: bcast on {p}, {NETWORK[net]}": one
        for (who, net, p, op), one in book.collective_fits().items()
        if (who, op, p) == (OURS, "bcast", ranks[net])
    }
    if not today:
        return ""
    panels |= {name: (one.curve, one.three, one.models["Hockney"]) for name, one in today.items()}
    us, hockney, three = told["us"]
    return paragraph(
        "The paper's Figure 1: bandwidth by Hockney's model and by that of three parameters, "
        "drawn from the parameters of its tables; and of Kittiwake today, with what was "
        "measured. (The paper's Hockney has the t0 and tb of the other model; today's is fitted "
        "by itself. The row of MPJ/Ibis for a broadcast on SCI single cannot be read: "
        "SCI dual stands for it.) What the paper measured it tells of one size: "
        f"{size(told['bytes'])} by {told['library']} took {us} us; {hockney} us by Hockney's "
        f"model, {three} us by three parameters."
    ) + book.picture(
        "two-models",
        plots.two_models(panels, "Hockney's model and three parameters"),
        "Bandwidth by size of both models, the paper's and today's",
    )


PLATFORMS = ("Myrinet", "SCI single", "SCI dual", "SCI dual with hyperthreads")  # of Tables 1 to 4


def of_platform(platform):
    """library -> its row of models, and the fewest and most processes that they hold for."""
    entries = [
        one for one in papers.seed("002")["model"] if one["library"].split(", ")[1] == platform
    ]
    return {one["library"].split(", ")[0]: one for one in entries}, entries[0]["processes"]


def papers_curves(book):
    """Tables 1 to 4 as pictures: the paper's models beside those fitted to Kittiwake today."""
    ours = {
        (net, p, op): one
        for (who, net, p, op), one in book.collective_fits().items()
        if who == OURS
    }
    ours |= {
        (net, p, "send"): one
        for (who, net, p, _), one in book.message_fits().items()
        if who == OURS
    }
    parts = []
    for number, platform in enumerate(PLATFORMS, 1):
        libraries, (fewest, most) = of_platform(platform)
        today = nearest(ours, fewest, most)
        there = max(
            (p for curves in today.values() for (_, p) in curves if fewest <= p <= most),
            default=fewest,
        )
        panels = {}
        for op in dict.fromkeys(op for one in libraries.values() for op in one if op in today):
            lines = {
                f"the paper: {who}": law(one[op], op).at(there)
                for who, one in libraries.items()
                if "tb" in one.get(op, {})
            }
            panels[op] = (
                lines,
                {f"today: {NETWORK[net]}": one for (net, _), one in today[op].items()},
            )
        if panels:
            ranks = sorted(
                {p for op, curves in today.items() for _, p in curves if op != "send"}
            ) or [2]
            title = (
                f"Table {number}, {platform}: the paper's models on {there} processes, "
                f"Kittiwake's today on {' and '.join(map(str, ranks))}"
            )
            parts.append(
                book.picture(f"papers-models-{number}", plots.models_beside(panels, title), title)
            )
    return (
        parts
        and paragraph(
            "The models of the paper's tables beside those fitted to Kittiwake today (marks: "
            "measured), time by the size of the message. The paper's machines are of 2000 to "
            "2003: what compares is the shape of a curve, where it leaves its floor, and which "
            "primitive is far from the others."
        )
        + "".join(parts)
        or ""
    )


def nearest(ours, fewest, most):
    """op -> {(network, ranks): fit}: of each network the most ranks that a table holds for, or the
    nearest that were measured; a message is between two."""
    today = {}
    for net, op in dict.fromkeys((net, op) for net, _, op in ours):
        counts = [p for n, p, o in ours if (n, o) == (net, op)]
        p = max(
            [p for p in counts if fewest <= p <= most]
            or [min(counts, key=lambda p: min(abs(p - fewest), abs(p - most)))]
        )
        today.setdefault(op, {})[net, p] = ours[net, p, op]
    return today


def ordered(by_library):
    """Ours first."""
    return {who: by_library[who] for who in sorted(by_library, key=lambda w: (w != OURS, w))}


def collectives(book):
    """The paper's Figures 3 and 4 for today's libraries: bandwidth of every collective by size,
    measured and by the model."""
    fits, parts = book.collective_fits(), []
    for net in networks(net for _, net, _, _ in fits):
        ranks = plain_ranks(book, {p for _, n, p, _ in fits if n == net})
        ops = dict.fromkeys(op for _, n, p, op in fits if (n, p) == (net, ranks))
        panels = {
            op: ordered(
                {who: one for (who, n, p, o), one in fits.items() if (n, p, o) == (net, ranks, op)}
            )
            for op in ops
        }
        parts.append(
            book.picture(
                f"fits-{net}",
                plots.bandwidths(
                    panels,
                    f"Collectives on {ranks} ranks, {NETWORK[net]}: measured, and by the model",
                ),
                f"Bandwidth of collectives by size with the fitted model, {NETWORK[net]}",
            )
        )
    return parts and paragraph(
        "Bandwidth is the message, as the paper counts it, over the time; marks are measured, "
        "lines are the three-parameter model (the paper's Figures 3 and 4). The number of ranks "
        "is the largest that gives each a processor of its own."
    ) + "".join(parts)


def plain_ranks(book, counts):
    """The most ranks that each have a processor, or the fewest there are."""
    fitting = [p for p in counts if p <= book.facts["cores"]]
    return max(fitting) if fitting else min(counts)


def spread(values):
    """Mean and range of errors."""
    if not values:
        return None
    mean = per_cent(sum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} ({reach(values)})"


def reach(values):
    """From the least to the most."""
    return f"{100 * min(values):.1f} to {100 * max(values):.1f}"


def model_rows(found):
    """A row a curve: the paper's parameters, then the errors of all models."""
    head = [
        "Primitive",
        "Library",
        "Network",
        "Ranks",
        "t0, us",
        "ti, us",
        "tb, ns/B",
        "1/tb, MB/s",
        "error, three parameters",
        "in all rounds, %",
        *(f"error, {name}" for name in analysis.MODELS if name != "three parameters"),
    ]
    rows = []
    for (who, net, ranks, op), one in sorted(
        found.items(), key=lambda i: (i[0][3], i[0][1], i[0][2], i[0][0] != OURS)
    ):
        m, first, *others = one.three, *(per_cent(one.errors[name]) for name in analysis.MODELS)
        rounds = f" {reach(one.every)}" if len(one.every) > 1 else None
        rows.append(
            (op, who, net, ranks, m.t0, m.ti, m.tb * 1000, m.bandwidth(), first, rounds, *others)
        )
    return head, rows


def accuracy_rows(found, cores):
    """A row a library, network and whether each rank has a processor: mean error of each model,
    with its spread."""
    rows = []
    for who, net, own in dict.fromkeys(
        (w, n, p <= cores)
        for w, n, p, _ in sorted(found, key=lambda c: (c[2] > cores, c[1], c[0] != OURS))
    ):
        some = {
            cell: one
            for cell, one in found.items()
            if (cell[0], cell[1], cell[2] <= cores) == (who, net, own)
        }
        errors = analysis.errors(some)
        if any(errors.values()):
            rows.append(
                (
                    who,
                    net,
                    "as processors" if own else "more",
                    *(spread(errors[name]) for name in analysis.MODELS),
                    spread(sorted({one.noise for one in some.values()})),
                )
            )
    return ["Library", "Network", "Ranks", *analysis.MODELS, "noise"], rows


def law_rows(laws):
    """The paper's Tables 1 to 4 for today's libraries: parameters as functions of the processes,
    and the peak metrics."""
    head = [
        "Primitive",
        "Library",
        "Network",
        "Processes",
        "t0(p), us",
        "ti(p), us",
        "tb(p), ns/B",
        "Peak specific, KB/s",
        "Peak bandwidth, MB/s",
    ]
    rows = []
    for (who, net), ops in laws.items():
        for op, (law, counts) in ops.items():
            tb = models.OfProcesses(law.tb.constant * 1000, law.tb.factor * 1000, law.tb.by)
            rows.append(
                (
                    op,
                    who,
                    net,
                    f"{counts[0]} to {counts[-1]}",
                    f" {law.t0}",
                    f" {law.ti}",
                    f" {tb}",
                    law.peak_specific(counts),
                    law.peak_bandwidth(counts),
                )
            )
    return head, sorted(rows, key=lambda r: (r[0], r[2], r[1] != OURS))


def loggp_rows(book):
    """LogGP of one message: o from what a sender's processor spends on a message of 8 bytes in a
    stream, g from the time between two of them."""
    stream = book.medians("p2p")
    stream = stream[
        (stream.op == "stream")
        & (stream["mode"] == "isend")
        & (stream.bytes == 8)
        & (stream.ranks == 2)
    ]
    gaps = {(row.who, row.network): row.value for row in stream.itertuples()}
    spent = book.medians("p2p", "cpu0_us")
    spent = spent[
        (spent.op == "stream")
        & (spent["mode"] == "isend")
        & (spent.bytes == 8)
        & (spent.ranks == 2)
    ]
    rows = []
    for row in spent.itertuples():
        one = book.message_fits().get((row.who, row.network, 2, "pingpong"))
        if one:
            m = one.models["LogGP"]
            rows.append(
                (
                    row.who,
                    row.network,
                    max(m.latency - 2 * row.value, 0.0),
                    row.value,
                    gaps[row.who, row.network],
                    m.gap * 1000,
                )
            )
    return ["Library", "Network", "L, us", "o, us", "g, us", "G, ns/B"], sorted(
        rows, key=lambda r: (r[1], r[0] != OURS)
    )


PAPER_ERRORS = (
    "The paper's errors on 20 random sizes: 7 % (send) and below 7 % (collectives) for three "
    "parameters; 18 % (send) and 28 % (collectives) for Hockney's."
)
ROUNDS = (
    "Every round of a plan is fitted and judged by itself, to the lower quartile of the batches "
    "of each size; figures are of the quietest round, the one in which the batches of a size lie "
    "least far apart (noise: the distance between their quartiles), and the range over all rounds "
    "stands beside. No model and no random size has a say in which round that is."
)


def models_section(book):
    """Errors, parameters, laws, substitutions."""
    send, coll = book.message_fits(), book.collective_fits()
    if not send and not coll:
        return ""
    parts = [
        paragraph(
            "T(n) = t0 + ti tb n / (t0 + tb n) + tb n is the paper's model of a primitive "
            "(Performance Analysis of Message-Passing Libraries on High-Speed Clusters). "
            "Errors are mean absolute relative errors on 20 random sizes that the models did not "
            "see. " + PAPER_ERRORS + " " + ROUNDS
        )
    ]
    for name, found in (("A message", send), ("Collectives", coll)):
        if found:
            head, rows = accuracy_rows(found, book.facts["cores"])
            parts.append(
                f"<h3>{name}: errors, mean and range over the curves</h3>"
                + (
                    table(head, rows)
                    if rows
                    else paragraph("No random sizes were measured.", note=True)
                )
            )
            parts.append(folded(f"{name}: fitted parameters", table(*model_rows(found))))
    head, rows = loggp_rows(book)
    if rows:
        parts.append(
            "<h3>LogGP of a message</h3>"
            + paragraph(
                "o is the sender's processor time for a message of 8 bytes in a stream, "
                "g the time between two; of a library that spins, o is at most this. "
                "L is what is left of t0.",
                note=True,
            )
            + table(head, rows)
        )
    laws = analysis.collectives(coll)
    if laws:
        parts.append(
            "<h3>Parameters as functions of the processes p</h3>"
            + paragraph("lp stands for log2 p. The paper's Tables 1 to 4 follow.", note=True)
        )
        parts.append(folded("today", table(*law_rows(laws))) + papers_models())
    return (
        "".join(parts)
        + papers_curves(book)
        + two_models(book)
        + substitutions(coll)
        + detours({**send, **coll})
    )


def detours(found):
    """Sizes that lose against longer ones."""
    head, rows = detour_rows(found)
    return "<h3>Longer messages that take less time</h3>" + (
        folded(f"{len(rows)} curves, the worst size of each", table(head, rows))
        if rows
        else paragraph("There are none.")
    )


def detour_rows(found):
    """A row a curve that has some, ours first."""
    rows = [
        (op, who, net, ranks, size(n), us, size(longer), less, per_cent(1 - less / us, 0))
        for (who, net, ranks, op), n, us, longer, less in analysis.detours(found)
    ]
    return [
        "Primitive",
        "Library",
        "Network",
        "Ranks",
        "Message",
        "us",
        "Longer message",
        "us",
        "Less time",
    ], sorted(rows, key=lambda row: (row[1] != OURS, row[1:4], row[0]))


def papers_models():
    """Tables 1 to 4 of the paper, a primitive's libraries one below the other."""
    parts = []
    for number, platform in enumerate(PLATFORMS, 1):
        libraries, (fewest, most) = of_platform(platform)
        ops = dict.fromkeys(
            op for one in libraries.values() for op, fit in one.items() if isinstance(fit, dict)
        )
        rows = [
            (
                op,
                who,
                *(
                    " " + str(models.OfProcesses(*fit[part])) if part in fit else None
                    for part in ("t0", "ti", "tb")
                ),
                fit.get("specific"),
                fit.get("bandwidth"),
            )
            for op in ops
            for who, one in libraries.items()
            if (fit := one.get(op))
        ]
        parts.append(
            folded(
                f"the paper's Table {number}: {platform}, {fewest} to {most} processes",
                table(
                    [
                        "Primitive",
                        "Library",
                        "t0(p), us",
                        "ti(p), us",
                        "tb(p), ns/B",
                        "Peak specific, KB/s",
                        "Peak bandwidth, MB/s",
                    ],
                    rows,
                ),
            )
        )
    return "".join(parts)


def substitutions(coll_fits):
    """Table 5 for every library."""
    if not coll_fits:
        return ""
    rows = [
        (
            f.coll,
            who,
            net,
            f"{f.first} + {f.second}",
            f.processes,
            f"{size(f.low)} to {size(f.high)}",
            size(f.example),
            per_cent(f.reduction),
        )
        for (who, net), found in analysis.findings(coll_fits).items()
        for f in found
    ]
    words = (
        "Where two collectives in a row take less time than one, by the fitted models, "
        "by more than a tenth (the paper's Table 5). "
    )
    paper = folded(
        "the paper's Table 5",
        table(
            [
                "Collective",
                "Library",
                "Network",
                "Instead",
                "When, message and processes",
                "Example",
                "Less time",
            ],
            [
                (entry["coll"], who, net, entry["instead"], when, f" {example}", f"{share} %")
                for entry in papers.seed("002")["substitution"]
                for who, net, when, example, share in entry["rows"]
            ],
        ),
    )
    if not rows:
        return "<h3>Substitutions</h3>" + paragraph(words + "There are none.") + paper
    head = [
        "Collective",
        "Library",
        "Network",
        "Instead",
        "Processes",
        "Message",
        "Example",
        "Less time",
    ]
    parts = [
        "<h3>Substitutions</h3>",
        paragraph(
            words
            + "For Kittiwake, `kwlab model --rows FILE` writes rows that `KW_COLL=@FILE` takes."
        ),
    ]
    for who in sorted({row[1] for row in rows}, key=lambda who: (who != OURS, who)):
        of = [row for row in rows if row[1] == who]
        parts.append(folded(f"{who} ({len(of)})", table(head, of)))
    return "".join(parts) + paper
