"""What the report tells, in this order: the machine, how to read, ratios first, then models, pictures by size, the papers' tables beside
today's, absolute times, and what went wrong. Each section takes the book and gives HTML, or nothing where nothing was measured."""
import time
import tomllib
from pathlib import Path

from . import analysis, facts, models, plots
from .html import Ratio, figure, folded, image, items, paragraph, table  # noqa: F401
from .libraries import OURS
from .plan import RANDOM

SEEDS = Path(__file__).parent / "seeds"
NETWORK = {"shm": "shared memory", "tcp": "TCP on loopback", "gigabit": "hosts joined by 1 Gb/s"}
ORDER = list(NETWORK)


def seed(number):
    """A paper's figures."""
    return tomllib.loads((SEEDS / f"{number}.toml").read_text())


def size(n):
    """Bytes for people."""
    return plots.size_label(n) if n else ""


def name(bench, mode, n):
    """The rest of a cell's name: a message may have 0 bytes, a barrier has none."""
    return f"{mode} {plots.size_label(n)}" if bench == "p2p" else size(n)


def networks(rows):
    """Those that occur, in order."""
    found = set(rows)
    return [network for network in ORDER if network in found]


def machine(book):
    runs = book.runs
    when = [time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) for t in (runs["at"].min(), runs["at"].max())]
    versions = runs[runs.version != ""].drop_duplicates("library")
    rows = [("machine", facts.sentence(book.facts)), ("measured", f"{when[0]} to {when[1]}"), ("plans", ", ".join(sorted(set(runs.plan)))),
            ("runs", f"{len(runs)}, of which {int((runs.status != 'ok').sum())} went wrong"),
            ("load of the machine", f"{runs.load.median():.1f} runnable in the middle, {runs.load.max():.1f} at most, on {book.facts['cores']} cores")]
    rows += [(row.library, row.version) for row in versions.itertuples()]
    rows += [(name.replace("_", " "), value) for name, value in book.facts.items() if name in ("governor", "ptrace_scope", "virtual")]
    return table(["What", "Value"], rows)


def reading(book):
    return items([
        "A ratio is our time over the best peer's in the same cell: below 1 Kittiwake takes less time. Compare within a row; absolute times move "
        "from machine to machine and from hour to hour.",
        "A time is the median over the rounds of the plan; in a round it is the median of batches, each as long as its slowest rank. There is no "
        "mean after a barrier: a mean hides what the slowest did, and a barrier lets ranks go at different times.",
        "In every round the libraries take turns on each cell, so that a machine whose speed drifts treats them alike. "
        "All programs are compiled from the same source with the same flags.",
        "Where the load above is more than the cores, others used the machine too: differences of a few per cent mean nothing then; "
        "`kwlab compare A B` says with its confidence whether a difference is one.",
        "Marks in a picture are measured, lines are fitted models. Dashed lines and hatched bars are Kittiwake with a knob set."])


def ratio_tables(book):
    """Geometric means by operation, then the cells."""
    parts = []
    for bench, what in (("p2p", "one message"), ("coll", "collectives")):
        rows = [r for r in analysis.ratios(book.medians(bench)) if r["bytes"] not in RANDOM]
        if not rows:
            continue
        shown = networks(r["network"] for r in rows)
        means = []
        for op in dict.fromkeys(r["op"] for r in rows):
            of = {net: [r["ratio"] for r in rows if r["op"] == op and r["network"] == net] for net in shown}
            means.append((op, *(Ratio(analysis.geometric_mean(v)) if v else None for v in of.values())))
        parts.append(f"<h3>{what.capitalize()}: geometric mean of our time over the best peer's</h3>" + table(["Operation", *map(NETWORK.get, shown)], means))
        cells = [(f"{r['op']} {name(bench, r['mode'], r['bytes'])}", NETWORK[r["network"]], r["ranks"], Ratio(r["ratio"]), r["peer"],
                  r["ours"], r["best"]) for r in rows]
        parts.append(folded(f"all {len(cells)} cells", table(["Cell", "Network", "Ranks", "Ratio", "Best peer", "Ours, us", "Best peer's, us"], cells)))
    return "".join(parts)


def heat_maps(book):
    rows = [r for r in analysis.ratios(book.medians("coll")) if r["bytes"] not in RANDOM]
    return "".join(book.picture(f"collectives-{net}", plots.heat_map([r for r in rows if r["network"] == net], f"Collectives over {NETWORK[net]}"),
                                f"Ratio of our time to the best peer's for collectives by size, {NETWORK[net]}")
                   for net in networks(r["network"] for r in rows))


def which(book):
    """The quickest library for each collective and size."""
    data = book.medians("coll")
    data = data[~data.who.str.contains("(", regex=False) & ~data.bytes.isin(RANDOM)]
    if data.who.nunique() < 2:
        return ""
    parts = []
    for net in networks(data.network):
        some = data[data.network == net]
        counts = sorted(set(some.ranks))
        rows = []
        for (op, n), cell in some.groupby(["op", "bytes"], sort=False):
            best = {p: quickest(cell[cell.ranks == p]) for p in counts}
            rows.append((f"{op} {size(n)}", *best.values()))
        parts.append(f"<h3>{NETWORK[net]}</h3>" + table(["Operation", *(f"{p} ranks" for p in counts)], rows))
    return paragraph("The library with the least time, and those within 5 % of it.", note=True) + "".join(parts)


def quickest(cell):
    if cell.empty:
        return None
    best = cell.value.min()
    return ", ".join(cell[cell.value <= 1.05 * best].sort_values("value").who)


def messages(book):
    """Latency and bandwidth with the fitted models."""
    found = book.plain("p2p", "send")
    found = found[(found.op == "pingpong") & (found.ranks == 2)]
    fits, parts = book.message_fits(), []
    for net in networks(found.network):
        curves = {who: curve for (who, n, _, _), curve in analysis.curves(found).items() if n == net and len([b for b in curve if b]) > 2}
        lines = {who: by_name["three parameters"][0] for (who, n, _, _), by_name in fits.items() if n == net}
        if curves:
            ordered = {who: curves[who] for who in sorted(curves, key=lambda w: (w != OURS, w))}
            parts.append(book.picture(f"message-{net}", plots.latency_and_bandwidth(ordered, lines, f"One message between two ranks, {NETWORK[net]}"),
                                      f"Time and bandwidth by size with the fitted model, {NETWORK[net]}"))
    return "".join(parts)


def per_cent(value):
    return None if value is None else f"{value:.1%}".replace("%", " %")


def spread(values):
    """Mean and range of errors."""
    if not values:
        return None
    mean = per_cent(sum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} ({per_cent(min(values))} to {per_cent(max(values))})"


def model_rows(found):
    """A row a curve: the paper's parameters, then the errors of all models."""
    head = ["Primitive", "Library", "Network", "Ranks", "t0, us", "ti, us", "tb, ns/B", "1/tb, MB/s", *(f"error, {name}" for name in analysis.MODELS)]
    rows = []
    for (who, net, ranks, op), fits in sorted(found.items(), key=lambda i: (i[0][3], i[0][1], i[0][2], i[0][0] != OURS)):
        m = fits["three parameters"][0]
        rows.append((op, who, net, ranks, m.t0, m.ti, m.tb * 1000, m.bandwidth(), *(per_cent(fits[name][1]) for name in analysis.MODELS)))
    return head, rows


def accuracy_rows(found):
    """A row a library and network: mean error of each model, with its spread."""
    rows = []
    for who, net in dict.fromkeys((w, n) for w, n, _, _ in found):
        errors = analysis.errors({cell: fits for cell, fits in found.items() if cell[:2] == (who, net)})
        if any(errors.values()):
            rows.append((who, net, *(spread(errors[name]) for name in analysis.MODELS)))
    return ["Library", "Network", *analysis.MODELS], rows


def law_rows(laws):
    """The paper's Tables 1 to 4 for today's libraries: parameters as functions of the processes, and the peak metrics."""
    head = ["Primitive", "Library", "Network", "Processes", "t0(p), us", "ti(p), us", "tb(p), ns/B", "Peak specific, KB/s", "Peak bandwidth, MB/s"]
    rows = []
    for (who, net), ops in laws.items():
        for op, (law, counts) in ops.items():
            tb = models.OfProcesses(law.tb.constant * 1000, law.tb.factor * 1000, law.tb.by)
            rows.append((op, who, net, f"{counts[0]} to {counts[-1]}", f" {law.t0}", f" {law.ti}", f" {tb}", law.peak_specific(counts), law.peak_bandwidth(counts)))
    return head, sorted(rows, key=lambda r: (r[0], r[2], r[1] != OURS))


PAPER_ERRORS = "The paper's errors on 20 random sizes: 7 % (send) and below 7 % (collectives) for three parameters; 18 % (send) and 28 % (collectives) for Hockney's."


def models_section(book):
    send, coll = book.message_fits(), book.collective_fits()
    if not send and not coll:
        return ""
    parts = [paragraph("T(n) = t0 + ti tb n / (t0 + tb n) + tb n is the paper's model of a primitive (Performance Analysis of Message-Passing Libraries on "
                       "High-Speed Clusters). Errors are mean absolute relative errors on 20 random sizes that were measured apart. " + PAPER_ERRORS)]
    for name, found in (("A message", send), ("Collectives", coll)):
        if found:
            head, rows = accuracy_rows(found)
            parts.append(f"<h3>{name}: errors, mean and range over the curves</h3>" + (table(head, rows) if rows else paragraph("No random sizes were measured.", note=True)))
            parts.append(folded(f"{name}: fitted parameters", table(*model_rows(found))))
    laws = analysis.collectives(book.plain("coll", "back-to-back"))
    if laws:
        parts.append("<h3>Parameters as functions of the processes p</h3>" + paragraph("lp stands for log2 p. The paper's Table 1 and 2 follow.", note=True))
        parts.append(folded("today", table(*law_rows(laws))) + folded("the paper", papers_models()))
    return "".join(parts) + substitutions(coll)


def papers_models():
    """Tables 1 and 2 as the paper has them."""
    rows = []
    for entry in seed("002")["model"]:
        for op, fit in entry.items():
            if isinstance(fit, dict):
                law = lambda part: " " + str(models.OfProcesses(*fit[part])) if part in fit else None
                rows.append((op, entry["library"], law("t0"), law("ti"), law("tb"), fit.get("specific"), fit.get("bandwidth")))
    return table(["Primitive", "Library", "t0(p), us", "ti(p), us", "tb(p), ns/B", "Peak specific, KB/s", "Peak bandwidth, MB/s"], rows)


def substitutions(coll_fits):
    """Table 5 for every library."""
    if not coll_fits:
        return ""
    rows = [(f.coll, who, net, f"{f.first} + {f.second}", f.processes, f"{size(f.low)} to {size(f.high)}", size(f.example), per_cent(f.reduction))
            for (who, net), found in analysis.findings(coll_fits).items() for f in found]
    words = "Where two collectives in a row take less time than one, by the fitted models, by more than a tenth (the paper's Table 5). "
    if not rows:
        return "<h3>Substitutions</h3>" + paragraph(words + "There are none.")
    return ("<h3>Substitutions</h3>" + paragraph(words + "For Kittiwake, kwlab model --rows FILE writes rows that KW_COLL=@FILE takes.") +
            table(["Collective", "Library", "Network", "Instead", "Processes", "Message", "Example", "Less time"], rows))


def overlap(book):
    found = book.medians("overlap", "overlap")
    parts = []
    for net in networks(found.network):
        for ranks in sorted(set(found[found.network == net].ranks)):
            some = found[(found.network == net) & (found.ranks == ranks)]
            groups = {}
            for row in some.itertuples():
                groups.setdefault(f"{row.op}\n{size(row.bytes)}", {})[row.who] = 100 * row.value
            for part, chunk in enumerate(chunks(groups, 8)):
                parts.append(book.picture(f"overlap-{net}-{ranks}-{part}", plots.bars(chunk, "overlap, %", f"Overlap with computation, {ranks} ranks, {NETWORK[net]}", -50, 110),
                                          f"Overlap by operation and size, {NETWORK[net]}"))
    return parts and paragraph("1 - (total - computation) / communication alone: 100 % when communication costs nothing beside computation, 0 when it does not begin "
                               "before the wait, below when both together take longer than one after the other. Bars are cut off at -50 and 110 %.") + "".join(parts)


def chunks(groups, most):
    names = list(groups)
    return [{name: groups[name] for name in names[i:i + most]} for i in range(0, len(names), most)]


def waiting(book):
    parts = []
    for net in networks(book.medians("wait", "wait_us").network):
        for metric, what in (("wait_us", "Wait time"), ("total_us", "Total receive time")):
            found = book.medians("wait", metric)
            panels = {}
            for row in found[found.network == net].sort_values("bytes").itertuples():
                panels.setdefault(f"{row.mode.removesuffix('M')} million increments", {}).setdefault(row.who, {})[row.bytes] = max(row.value, 0.01)
            parts.append(book.picture(f"wait-{net}-{metric}", plots.lines(panels, f"{what.lower()}, us", f"{what} after computing, {NETWORK[net]}"),
                                      f"{what} by size and computation, {NETWORK[net]}"))
    return parts and paragraph("The program of Figure 4.9 of High Performance MPI Libraries for Ethernet (section 4.4.1): post a receive, compute, wait. A library that "
                               "receives while the program computes has nothing left to wait for. The thesis shows the same as Figures 4.10 and 4.11, as "
                               "improvement of its event-driven library over its polling one.") + "".join(parts)


def receives(book):
    """Expected and unexpected receives: bandwidth and the processors' time."""
    times = book.medians("p2p")
    times = times[times.op.isin(["stream", "unexpected"]) & (times["mode"] == "isend")]
    parts = []
    for net in networks(times.network):
        some = times[(times.network == net)].sort_values("bytes")
        if some.bytes.nunique() < 3:
            continue
        panels = {}
        for row in some.itertuples():
            name = "expected" if row.op == "stream" else "unexpected"
            panels.setdefault(name, {}).setdefault(row.who, {})[row.bytes] = row.bytes / row.value
        parts.append(book.picture(f"receives-{net}", plots.lines(panels, "bandwidth, MB/s", f"Messages in one direction, {NETWORK[net]}"),
                                  f"Bandwidth of expected and unexpected receives, {NETWORK[net]}"))
        rows = []
        for row in some.itertuples():
            use = {side: share(book, row, side) for side in ("cpu0_us", "cpu1_us")}
            rows.append((f"{row.op} {size(row.bytes)}", row.who, row.bytes / row.value, *use.values()))
        parts.append(folded("processor time of sender and receiver", table(["Cell", "Library", "MB/s", "Sender's processor", "Receiver's processor"], rows)))
    return parts and paragraph("As in Figures 4.5 to 4.8 of High Performance MPI Libraries for Ethernet: receives posted before the messages come, or after.") + "".join(parts)


def share(book, row, metric):
    """Processor time over time of a message."""
    cpu = book.medians("p2p", metric)
    same = cpu[(cpu.who == row.who) & (cpu.network == row.network) & (cpu.ranks == row.ranks) & (cpu.op == row.op) & (cpu["mode"] == row.mode) & (cpu.bytes == row.bytes)]
    return None if same.empty else f"{same.value.iloc[0] / row.value:.0%}".replace("%", " %")


def seed000(book):
    """Table 1 of MPI/MBCF beside today's."""
    paper = seed("000")
    data = book.medians("p2p")
    trips = data[(data.op == "pingpong") & (data.bytes == 0) & (data.ranks == 2)]
    streams = data[(data.op == "stream") & (data["mode"] == "isend") & data.bytes.isin([256, 16384, 1048576])]
    best = book.medians("p2p").query("op == 'stream' and mode == 'isend' and ranks == 2").set_index(["who", "network", "bytes"]).low.to_dict()
    if trips.empty or streams.empty:
        return ""
    rows = [(row["what"], paper["source"].split(";")[-1].strip(), *row["values"]) for row in paper["row"]]
    parts = [paragraph(paper["source"] + ". SR is with remote write, NSR without."), table(["The paper", "Network", *paper["columns"]], rows)]
    who = analysis.names(streams)
    rows = []
    for net in networks(trips.network):
        of = dict(zip(trips[trips.network == net].who, trips[trips.network == net].value))
        rows.append(("round-trip time of a 0-byte message, us", NETWORK[net], *(2 * of[w] if w in of else None for w in who)))
        for n in sorted(set(streams[streams.network == net].bytes)):
            rows.append((f"peak bandwidth of {size(n)} messages, MB/s", NETWORK[net], *(n / best[w, net, n] if (w, net, n) in best else None for w in who)))
    parts.append(table(["Today", "Network", *who], rows))
    rates = [(variant, NETWORK[net], mode, f"{rate:.1%}".replace("%", " %")) for (variant, net, mode), (rate, _) in sorted(analysis.availability(book.data).items())]
    if rates:
        parts.append("<h3>Availability rate of remote write</h3>" + paragraph("Share of the bytes sent that were written straight into announced receives, from "
                     "Kittiwake's counters (the paper's Table 2 has it for its programs: 0.02 to 97.15 %). Short messages are sent at once and never announced.") +
                     table(["Kittiwake with", "Network", "Messages", "Rate"], rates))
    return "".join(parts)


def seed004(book):
    """The quicker of broadcast and isend, by size and processes."""
    paper, parts = seed("004"), []
    data = book.medians("give")
    for op, what in (("give", "a block to all"), ("product", "the matrix product")):
        some = data[data.op == op]
        for net in networks(some.network):
            here = some[some.network == net]
            counts = sorted(set(here.ranks))
            rows = []
            for who in analysis.names(here):
                for n in sorted(set(here.bytes)):
                    rows.append((who, f"{n / 1000:g} KB", *(winner(here[(here.who == who) & (here.bytes == n) & (here.ranks == p)]) for p in counts)))
            parts.append(f"<h3>Today: {what}, {NETWORK[net]}</h3>" + table(["Library", "Block", *(f"{p} ranks" for p in counts)], rows))
    if not parts:
        return ""
    rows = [("The paper, product", f"{kb:g} KB", *(f"{paper['best'][i]} {paper['gain_percent'][i][k]:.0f} %" for i in range(len(paper["processes"]))))
            for k, kb in enumerate(paper["sizes_kb"])]
    return (paragraph(paper["source"] + ". The quicker of broadcast and a loop of isend, and how much less time it takes.") +
            table(["Paper", "Block", *(f"{p} ranks" for p in paper["processes"])], rows) + "".join(parts))


def winner(cell):
    """bcast or isend, whichever is quicker, and its gain."""
    of = dict(zip(cell["mode"], cell.value))
    if not {"bcast", "isend"} <= set(of):
        return None
    best = min(("bcast", "isend"), key=of.get)
    other = max(of["bcast"], of["isend"])
    return f"{best} {1 - of[best] / other:.0%}".replace("%", " %")


def start(book):
    """Start-up, memory, waiting."""
    hello = book.runs[(book.runs.program == "hello") & (book.runs.status == "ok")]
    memory, idle = book.medians("hello", "resident_kb"), book.medians("idle", "cpu_percent")
    if hello.empty and idle.empty:
        return ""
    rows, who = [], sorted(set(hello.library) | set(idle.who), key=lambda w: (w != OURS, w))
    walls = hello.groupby(["ranks", "library"]).wall_s.median()
    for p in sorted(set(hello.ranks)):
        rows.append((f"start and end of {p} ranks, s", *(walls.get((p, w)) for w in who)))
    for p in sorted(set(memory.ranks)):
        of = {r.who: r.value / 1024 for r in memory.itertuples() if r.ranks == p}
        rows.append((f"largest resident set of a rank, {p} ranks, MB", *(of.get(w) for w in who)))
    of = dict(zip(idle.who, idle.value))
    rows.append(("processor used by a rank that waits in MPI_Recv, %", *(of.get(w) for w in who)))
    return table(["What", *who], rows)


def connections(book):
    data = book.medians("p2p")
    data = data[(data.op == "pingpong") & (data["mode"] == "send")]
    if data.ranks.nunique() < 2:
        return ""
    counts = sorted(set(data.ranks))
    some = data[data.bytes.isin(data[data.ranks > 2].bytes)]
    rows = []
    for (who, net, n), cell in some.groupby(["who", "network", "bytes"], sort=False):
        of = dict(zip(cell.ranks, cell.value))
        rows.append((who, NETWORK[net], size(n), *(of.get(p) for p in counts)))
    return paragraph("Time of a message, us, between two ranks while the others hold a connection to both and wait.") + table(
        ["Library", "Network", "Bytes", *(f"{p} ranks" for p in counts)], rows)


def absolute(book):
    """Absolute times of everything, folded."""
    parts = []
    for bench in ("p2p", "coll"):
        data = book.medians(bench)
        data = data[~data.bytes.isin(RANDOM)]
        if data.empty:
            continue
        who, rows = analysis.names(data), []
        for (net, ranks, op, mode, n), cell in data.groupby(["network", "ranks", "op", "mode", "bytes"], sort=False):
            of = dict(zip(cell.who, cell.value))
            rows.append((f"{op} {name(bench, mode, n)}", NETWORK[net], ranks, *(of.get(w) for w in who)))
        parts.append(folded(f"{'messages' if bench == 'p2p' else 'collectives'}, us ({len(rows)} cells)", table(["Cell", "Network", "Ranks", *who], rows)))
    return "".join(parts)


def failed(book):
    rows = analysis.failures(book.runs)
    if not rows:
        return paragraph("Nothing: every run came to its end and printed what it should.")
    return table(["Library", "How it ended", "Program", "Network", "Ranks", "What was said", "Runs"], [(*row[:3], NETWORK[row[3]], *row[4:]) for row in rows])


SECTIONS = [("machine", "Machine", machine), ("reading", "How to read this", reading), ("ratios", "Ratios", ratio_tables), ("heat", "Collectives at a glance", heat_maps),
            ("which", "Which library is quickest", which), ("messages", "Latency and bandwidth", messages), ("models", "Models", models_section),
            ("overlap", "Overlap", overlap), ("waiting", "Waiting after computing", waiting), ("receives", "Expected and unexpected receives", receives),
            ("mbcf", "MPI/MBCF, Table 1", seed000), ("give", "Broadcast or a loop of sends", seed004), ("start", "Start-up, memory, waiting", start),
            ("connections", "Latency with other peers connected", connections), ("absolute", "Absolute times", absolute), ("failed", "What went wrong", failed)]
