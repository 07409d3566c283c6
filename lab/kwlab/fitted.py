"""What the report tells of messages and collectives by size, with the models of *Performance
Analysis of Message-Passing Libraries on High-Speed Clusters* (below: the paper) fitted to them.
Each section takes the book and gives HTML, or nothing where nothing was measured."""

from . import analysis, models, plots
from .html import folded, table
from .libraries import OURS
from .papers import seed, show
from .words import NETWORK, networks, per_cent, size


def messages(book):
    """Latency and bandwidth with the fitted models."""
    fits, parts = book.message_fits(), ""
    for net in networks(net for _, net, _, _ in fits):
        here = ordered({who: one for (who, n, _, _), one in fits.items() if n == net})
        parts += show("002", "message", book=book, panels=here, net=net)
    return parts


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
    paper, panels = seed("002"), {}
    by_name, told = {one["library"]: one for one in paper["model"]}, paper["figure1"]
    for library, op in FIGURE_1:
        entry = by_name[library]
        model = law(entry[op], op).at(entry["processes"][-1])
        is_told = (library, op) == (told["library"], "send")
        measured = {told["bytes"]: told["us"][0]} if is_told else {}
        hockney = models.Hockney(model.t0, model.tb)
        panels[f"the paper: {op}, {library}"] = measured, model, hockney
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
    of = {"bytes": size(told["bytes"]), "library": told["library"]}
    of |= {"us": us, "hockney": hockney, "three": three}
    return show("002", "two-models", book=book, panels=panels, file="two-models", **of)


PLATFORMS = ("Myrinet", "SCI single", "SCI dual", "SCI dual with hyperthreads")  # of Tables 1 to 4


def of_platform(platform):
    """library -> its row of models, and the fewest and most processes that they hold for."""
    entries = [one for one in seed("002")["model"] if one["library"].split(", ")[1] == platform]
    return {one["library"].split(", ")[0]: one for one in entries}, entries[0]["processes"]


def papers_curves(book):
    """Tables 1 to 4 as pictures: the paper's models beside those fitted to Kittiwake today."""
    fits = [*book.collective_fits().items()]
    fits += [((who, net, p, "send"), one) for (who, net, p, _), one in book.message_fits().items()]
    ours = {(net, p, op): one for (who, net, p, op), one in fits if who == OURS}
    parts = ""
    for number, platform in enumerate(PLATFORMS, 1):
        libraries, (fewest, most) = of_platform(platform)
        today = nearest(ours, fewest, most)
        counts = [p for curves in today.values() for _, p in curves if fewest <= p <= most]
        there, panels = max(counts, default=fewest), {}
        for op in dict.fromkeys(op for one in libraries.values() for op in one if op in today):
            panels[op] = (
                {
                    f"the paper: {who}": law(one[op], op).at(there)
                    for who, one in libraries.items()
                    if "tb" in one.get(op, {})
                },
                {f"today: {NETWORK[net]}": one for (net, _), one in today[op].items()},
            )
        if panels:
            ranks = {p for op, curves in today.items() for _, p in curves if op != "send"} or {2}
            title = (
                f"Table {number}, {platform}: the paper's models on {there} processes, "
                f"Kittiwake's today on {' and '.join(map(str, sorted(ranks)))}"
            )
            drawn = plots.models_beside(panels, title)
            parts += book.picture(f"papers-models-{number}", drawn, title)
    return parts and show("002", "curves") + parts


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
    fits, parts = book.collective_fits(), ""
    for net in networks(net for _, net, _, _ in fits):
        ranks = plain_ranks(book, {p for _, n, p, _ in fits if n == net})
        here = {(op, who): one for (who, *at, op), one in fits.items() if at == [net, ranks]}
        panels = {
            op: ordered({who: one for (o, who), one in here.items() if o == op})
            for op in dict.fromkeys(op for op, _ in here)
        }
        parts += show(
            "002", "bandwidths", book=book, panels=panels, net=net, ranks=ranks, file=f"fits-{net}"
        )
    return parts and show("002", "collectives") + parts


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


def columns(name):
    """The head of a table."""
    return seed("002")["shown"][name]["head"]


def model_rows(found):
    """A row a curve: the paper's parameters, then the errors of all models."""
    others = (f"error, {name}" for name in analysis.MODELS if name != "three parameters")
    head = [*columns("parameters"), *others]
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
    rows = []
    for (who, net), ops in laws.items():
        for op, (law, counts) in ops.items():
            tb = models.OfProcesses(law.tb.constant * 1000, law.tb.factor * 1000, law.tb.by)
            parts = (f" {part}" for part in (law.t0, law.ti, tb))
            peaks = law.peak_specific(counts), law.peak_bandwidth(counts)
            rows.append((op, who, net, f"{counts[0]} to {counts[-1]}", *parts, *peaks))
    return columns("laws"), sorted(rows, key=lambda r: (r[0], r[2], r[1] != OURS))


def loggp_rows(book):
    """LogGP of one message: o from what a sender's processor spends on a message of 8 bytes in a
    stream, g from the time between two of them."""

    def streams(metric):
        found = book.medians("p2p", metric)
        found = found[(found.op == "stream") & (found["mode"] == "isend") & (found.bytes == 8)]
        return found[found.ranks == 2].itertuples()

    gaps, rows = {(row.who, row.network): row.value for row in streams("us")}, []
    for row in streams("cpu0_us"):
        place = row.who, row.network
        if one := book.message_fits().get((*place, 2, "pingpong")):
            m = one.models["LogGP"]
            latency = max(m.latency - 2 * row.value, 0.0)
            rows.append((*place, latency, row.value, gaps[place], m.gap * 1000))
    return columns("loggp"), sorted(rows, key=lambda r: (r[1], r[0] != OURS))


PAPER_ERRORS, ROUNDS = (seed("002")["shown"]["models"][name] for name in ("errors", "rounds"))


def models_section(book):
    """Errors, parameters, laws, substitutions."""
    send, coll = book.message_fits(), book.collective_fits()
    if not send and not coll:
        return ""
    parts = show("002", "models", errors=PAPER_ERRORS, rounds=ROUNDS)
    for name, found in (("A message", send), ("Collectives", coll)):
        if found:
            head, rows = accuracy_rows(found, book.facts["cores"])
            parts += show("002", "accuracy", what=name)
            parts += table(head, rows) if rows else show("002", "no-sizes")
            parts += folded(f"{name}: fitted parameters", table(*model_rows(found)))
    _, rows = loggp_rows(book)
    if rows:
        parts += show("002", "loggp", rows)
    laws = analysis.collectives(coll)
    if laws:
        parts += show("002", "laws", law_rows(laws)[1]) + papers_models()
    return (
        parts
        + papers_curves(book)
        + two_models(book)
        + substitutions(coll)
        + detours({**send, **coll})
    )


def detours(found):
    """Sizes that lose against longer ones."""
    _, rows = detour_rows(found)
    found = show("002", "detours", rows, count=len(rows)) if rows else show("002", "no-detours")
    return "<h3>Longer messages that take less time</h3>" + found


def detour_rows(found):
    """A row a curve that has some, ours first."""
    rows = [
        (op, who, net, ranks, size(n), us, size(longer), less, per_cent(1 - less / us, 0))
        for (who, net, ranks, op), n, us, longer, less in analysis.detours(found)
    ]
    return columns("detours"), sorted(rows, key=lambda row: (row[1] != OURS, row[1:4], row[0]))


def papers_models():
    """Tables 1 to 4 of the paper, a primitive's libraries one below the other."""
    html = ""
    for number, platform in enumerate(PLATFORMS, 1):
        libraries, (fewest, most) = of_platform(platform)
        fits = [(op, fit) for one in libraries.values() for op, fit in one.items()]
        rows = []
        for op in dict.fromkeys(op for op, fit in fits if isinstance(fit, dict)):
            for who, one in libraries.items():
                if fit := one.get(op):
                    parts = (fit.get(part) for part in ("t0", "ti", "tb"))
                    laws = (part and f" {models.OfProcesses(*part)}" for part in parts)
                    rows.append((op, who, *laws, fit.get("specific"), fit.get("bandwidth")))
        where = {"number": number, "platform": platform, "fewest": fewest, "most": most}
        html += show("002", "paper-laws", rows, **where)
    return html


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
    paper = show(
        "002",
        "table-5",
        [
            (entry["coll"], who, net, entry["instead"], when, f" {example}", f"{share} %")
            for entry in seed("002")["substitution"]
            for who, net, when, example, share in entry["rows"]
        ],
    )
    if not rows:
        return show("002", "substitutions", found="There are none.") + paper
    found = "For Kittiwake, `kwlab model --rows FILE` writes rows that `KW_COLL=@FILE` takes."
    parts = show("002", "substitutions", found=found)
    for who in sorted({row[1] for row in rows}, key=lambda who: (who != OURS, who)):
        of = [row for row in rows if row[1] == who]
        parts += show("002", "substituted", of, who=who, count=len(of))
    return parts + paper
