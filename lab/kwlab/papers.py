"""What the report tells of the papers' tables and figures beside today's libraries: ratios first,
then times. Each section takes the book and gives HTML, or nothing where nothing was measured.
(Models and their tables are in `fitted`.)"""

import tomllib
from pathlib import Path

from . import analysis, plots, trust
from .html import Faint, Ratio, folded, paragraph, table
from .libraries import OURS
from .words import NETWORK, change, networks, per_cent, size

SEEDS = Path(__file__).parent / "seeds"
WITHOUT, UDP = f"{OURS} (no event thread)", f"{OURS} (udp)"  # variants of plans


def seed(number):
    """A paper's figures."""
    return tomllib.loads((SEEDS / f"{number}.toml").read_text())


def ours_to_best(values):
    """The ratio of our value to the best peer's, of {who: time}; None where one of them is
    missing."""
    peers = [value for who, value in values.items() if not who.startswith(OURS) and value > 0]
    return Ratio.of(trust.against(values[OURS], min(peers))) if OURS in values and peers else None


def waiting(book):
    """Figure 4.9 of the thesis, and what it measures: Figures 4.10 and 4.11."""
    parts, times = [], {metric: book.medians("wait", metric) for metric in ("wait_us", "total_us")}
    for net in networks(times["wait_us"].network):
        for metric, what in (("wait_us", "Wait time"), ("total_us", "Total receive time")):
            found, panels = times[metric], {}
            for row in found[found.network == net].sort_values("bytes").itertuples():
                panels.setdefault(increments(row.mode), {}).setdefault(row.who, {})[row.bytes] = (
                    row.measured.map(lambda us: max(us, 0.01))
                )
            parts.append(
                book.picture(
                    f"wait-{net}-{metric}",
                    plots.lines(
                        panels, f"{what.lower()}, us", f"{what} after computing, {NETWORK[net]}"
                    ),
                    f"{what} by size and computation, {NETWORK[net]}",
                )
            )
        parts.append(improvement(book, net, times))
    return parts and paragraph(
        "The program of Figure 4.9 of High Performance MPI Libraries for Ethernet (section "
        "4.4.1): post a receive, compute, wait. A library that receives while the program "
        "computes has nothing left to wait for."
    ) + "".join(parts)


def increments(mode):
    """The amount of computation."""
    return f"{mode.removesuffix('M')} million increments"


def improvement(book, net, times):
    """Figures 4.10 and 4.11: by how much the event thread shortens wait and whole receive."""
    panels = {}
    for metric, what in (("wait_us", "wait time"), ("total_us", "total receive time")):
        found = times[metric][times[metric].network == net]
        of = {(row.who, row.mode, row.bytes): row.value for row in found[~found.grey].itertuples()}
        for (who, mode, n), value in sorted(of.items(), key=lambda cell: cell[0][2]):
            if who == OURS and of.get((WITHOUT, mode, n), 0) > 0 and mode != "0M":
                panels.setdefault(f"{what}, {increments(mode)}", {}).setdefault(OURS, {})[n] = (
                    100 * (1 - value / of[WITHOUT, mode, n])
                )
    if not panels:
        return ""
    paper = seed("001")["wait"]
    return paragraph(
        f"Figures {paper['figures']} of the thesis show by how many per cent its event thread "
        f"shortened both. {paper['words']} Below, Kittiwake with its event thread against "
        "Kittiwake without."
    ) + book.picture(
        f"improvement-{net}",
        plots.lines(
            panels,
            "improvement, %",
            f"What the event thread saves, {NETWORK[net]}",
            zero=True,
            told=paper["told"],
        ),
        f"Improvement of wait time and total receive time, {NETWORK[net]}",
    )


def receives(book):
    """Expected and unexpected receives: bandwidth and the processors' time."""
    times = book.medians("p2p")
    use = {side: lookup(book.medians("p2p", side)) for side in ("cpu0_us", "cpu1_us")}
    times = times[times.op.isin(["stream", "unexpected"]) & (times["mode"] == "isend")]
    parts = []
    for net in networks(times.network):
        some = times[(times.network == net)].sort_values("bytes")
        some = some[some.who.isin(some[some.op == "unexpected"].who)]
        if some.bytes.nunique() < 3:
            continue
        panels, rows = {"expected": {}, "unexpected": {}}, []
        load = {f"{name}, {side}": {} for name in panels for side in ("sender", "receiver")}
        for row in some.itertuples():
            name = "expected" if row.op == "stream" else "unexpected"
            panels[name].setdefault(row.who, {})[row.bytes] = row.measured.map(
                lambda us, n=row.bytes: n / us
            )
            shares = [
                None if (spent := use[side].get(cell(row))) is None else spent / row.value
                for side in use
            ]
            for side, share in zip(("sender", "receiver"), shares):
                if share is not None:
                    load[f"{name}, {side}"].setdefault(row.who, {})[row.bytes] = 100 * share
            rows.append(
                (
                    f"{name} {size(row.bytes)}",
                    row.who,
                    panels[name][row.who][row.bytes],
                    1e6 / row.value,
                    *(per_cent(share, 0) for share in shares),
                )
            )
        parts.append(
            book.picture(
                f"receives-{net}",
                plots.lines(
                    panels, "bandwidth, MB/s", f"Messages in one direction, {NETWORK[net]}"
                ),
                f"Bandwidth of expected and unexpected receives, {NETWORK[net]}",
            )
        )
        parts.append(
            book.picture(
                f"load-{net}",
                plots.lines(
                    load, "processor, %", f"Processor time of both sides, {NETWORK[net]}", zero=True
                ),
                f"Processor time of sender and receiver, {NETWORK[net]}",
            )
        )
        parts.append(
            folded(
                "bandwidth and processor time in figures",
                table(
                    [
                        "Cell",
                        "Library",
                        "MB/s",
                        "Messages a second",
                        "Sender's processor",
                        "Receiver's processor",
                    ],
                    rows,
                ),
            )
        )
        parts.append(thread_costs(book, net, lookup(times), use))
    return parts and paragraph(
        "As in Figures 4.5 to 4.8 of High Performance MPI Libraries for Ethernet: "
        "receives posted before the messages come, or after. "
        "A library that spins uses all of a processor whatever it does."
    ) + "".join(parts)


def thread_costs(book, net, times, use):
    """Figures 4.4 to 4.8 as changes: what the event thread costs in bandwidth and processor
    time."""
    paper, panels = seed("001")["receives"], {}
    for op, name in (("stream", "expected"), ("unexpected", "unexpected")):
        both = {
            n: ((OURS, net, 2, op, "isend", n), (WITHOUT, net, 2, op, "isend", n))
            for _, at, ranks, o, _, n in times
            if (at, ranks, o) == (net, 2, op)
        }
        both = {n: pair for n, pair in sorted(both.items()) if n and set(pair) <= set(times)}
        found = {
            f"{name}: bandwidth": {
                n: trust.against(times[other], times[one]) for n, (one, other) in both.items()
            }
        }
        for side, of in zip(("sender", "receiver"), use.values()):
            found[f"{name}: processor of the {side}"] = {
                n: busier(one, other, times, of)
                for n, (one, other) in both.items()
                if of.get(one) and of.get(other)
            }
        panels |= {
            what: (
                {n: ratio for n, ratio in some.items() if not ratio.grey},
                {row["bytes"]: row["change"] for row in paper["row"] if row["panel"] == what},
            )
            for what, some in found.items()
            if some
        }
    if not any(today for today, _ in panels.values()):
        return ""
    return paragraph(
        f"What the event thread changes, against Kittiwake without. {paper['words']}", note=True
    ) + book.picture(
        f"thread-costs-{net}",
        plots.changes(
            panels, f"Bandwidth and processor time with the event thread, {NETWORK[net]}"
        ),
        "Changes of bandwidth and processor time with the event thread, today's and the thesis', "
        f"{NETWORK[net]}",
    )


def busier(one, other, times, spent):
    """The share of a processor with, over that without."""

    def share(at):
        whole = times[at].rounds
        rounds = {r: us / whole[r] for r, us in spent[at].rounds.items() if whole.get(r)}
        return trust.Measured(spent[at] / times[at], rounds, trust.grey(spent[at]))

    return trust.against(share(one), share(other))


def cell(row):
    return row.who, row.network, row.ranks, row.op, row.mode, row.bytes


def lookup(table):
    """Values by cell."""
    return {cell(row): row.measured for row in table.itertuples()}


def events(book):
    """The thesis' figures on what an event thread costs and saves, beside ours."""
    paper, times = seed("001"), lookup(book.medians("p2p"))
    rows = changes(paper["row"], times, OURS, WITHOUT)
    if not rows:
        return ""
    return (
        paragraph(
            f"{paper['source']}. How latency and bandwidth change with the thread; "
            "today's is Kittiwake with its thread against Kittiwake without."
        )
        + table(["What", "Figure", "Network", "The thesis", "Today"], rows)
        + curves(book, paper["row"], times, OURS, WITHOUT, "events")
        + late_receives(paper["unexpected"], times)
    )


def udp(book):
    """The thesis' figures on UDP against TCP, beside ours, and all sizes."""
    paper, times = seed("001"), lookup(book.medians("p2p"))
    rows = changes(paper["udp"], times, UDP, OURS)
    if not rows:
        return ""
    every = [
        (
            f"{'latency' if op == 'pingpong' else 'bandwidth one way'}, {size(n)}",
            NETWORK[net],
            Ratio.of(trust.against(value, tcp)),
            value,
            tcp,
        )
        for (who, net, _, op, _, n), value in times.items()
        if who == UDP and (tcp := times.get((OURS, net, 2, op, "isend", n)))
    ]
    return (
        paragraph(
            f"{paper['udp_source']}. How latency and bandwidth change when the same library uses "
            "UDP and is reliable by itself; today's is Kittiwake over UDP against Kittiwake over "
            "TCP."
        )
        + table(["What", "Figure", "Network", "The thesis", "Today"], rows)
        + curves(book, paper["udp"], times, UDP, OURS, "udp")
        + bandwidths(book, paper["bandwidth"], times)
        + folded(
            f"all {len(every)} cells",
            table(["What", "Network", "UDP : TCP, of times", "UDP, us", "TCP, us"], every),
        )
    )


def bandwidths(book, paper, times):
    """Figures 3.4 and 3.5: bandwidth one way over UDP and TCP, today's and what the thesis' text
    says."""
    parts = []
    for net in networks(net for who, net, *_ in times if who == UDP):
        panels = {}
        for way, who in (("UDP", UDP), ("TCP", OURS)):
            curve = {
                n: us.map(lambda us, n=n: 8 * n / us)
                for (w, at, ranks, op, mode, n), us in sorted(
                    times.items(), key=lambda one: one[0][-1]
                )
                if (w, at, ranks, op, mode) == (who, net, 2, "stream", "isend") and n
            }
            if curve:
                panels[f"over {way}"] = {OURS: curve}, dict(paper[way.lower()])
        if panels:
            limit = paper["limit"]
            parts.append(
                paragraph(
                    "Figures 3.4 and 3.5: bandwidth one way in Mb/s. "
                    f"The thesis' library never had more than {limit} Mb/s over UDP beyond 1 KB.",
                    note=True,
                )
                + book.picture(
                    f"udp-bandwidth-{net}",
                    plots.gains(panels, "Mb/s", f"Bandwidth one way, {NETWORK[net]}", True),
                    f"Bandwidth over UDP and TCP by size, today's and the thesis', {NETWORK[net]}",
                )
            )
    return "".join(parts)


def changes(paper, times, one, other):
    """Rows of the thesis' text beside today's: by how much `one` has more latency or bandwidth than
    `other`."""
    rows = []
    for net in networks(net for who, net, *_ in times if who in (one, other) and who != OURS):
        for row in paper:
            both = [
                times.get((who, net, 2, row["op"], "isend", row["bytes"])) for who in (one, other)
            ]
            if None not in both:
                found = trust.against(*(both[::-1] if row["op"] == "stream" else both))
                rows.append(
                    (
                        row["what"],
                        row["figure"],
                        NETWORK[net],
                        change(1 + row["change"]),
                        change(found),
                    )
                )
    return rows


def curves(book, paper, times, one, other, name):
    """The thesis' curves as changes by size: today's, and what its text says of single sizes."""
    parts = []
    for net in networks(net for who, net, *_ in times if who in (one, other) and who != OURS):
        panels = {}
        for op, what in (("pingpong", "latency"), ("stream", "bandwidth one way")):
            both = {
                n: (value, times[other, net, 2, op, mode, n])
                for (who, at, ranks, o, mode, n), value in times.items()
                if (who, at, ranks, o, mode) == (one, net, 2, op, "isend")
                and n
                and (other, net, 2, op, mode, n) in times
            }
            found = {
                n: trust.against(*(pair[::-1] if op == "stream" else pair))
                for n, pair in sorted(both.items())
            }
            if found:
                panels[what] = (
                    {n: ratio for n, ratio in found.items() if not ratio.grey},
                    {row["bytes"]: row["change"] for row in paper if row["op"] == op},
                )
        if any(today for today, _ in panels.values()):
            parts.append(
                book.picture(
                    f"{name}-{net}",
                    plots.changes(panels, f"How latency and bandwidth change, {NETWORK[net]}"),
                    f"Changes by size, today's and the thesis', {NETWORK[net]}",
                )
            )
    return "".join(parts)


def late_receives(paper, times):
    """What is lost when receives are posted late."""
    losses = {}
    for (who, net, ranks, op, mode, n), late in times.items():
        early = times.get((who, net, ranks, "stream", mode, n))
        if op == "unexpected" and early and not trust.against(early, late).grey:
            losses.setdefault((who, net), []).append((early / late, n))
    if not losses:
        return ""
    rows = [
        (who, NETWORK[net], change(min(some)[0]), size(min(some)[1]))
        for (who, net), some in sorted(losses.items(), key=lambda i: (i[0][1], i[0][0] != OURS))
    ]
    return f"<h3>{paper['what'].capitalize()}</h3>" + table(
        ["Library", "Network", "Bandwidth", "At"],
        [
            (
                "The thesis, Figures " + paper["figure"],
                "Gigabit Ethernet",
                change(1 + paper["change"]),
                None,
            ),
            *rows,
        ],
    )


def mbcf(book):
    """Table 1 of MPI/MBCF beside today's."""
    paper, data = seed("000"), book.medians("p2p")
    trips = data[
        (data.op == "pingpong") & (data["mode"] == "send") & (data.bytes == 0) & (data.ranks == 2)
    ]
    streams = data[
        (data.op == "stream")
        & (data["mode"] == "isend")
        & data.bytes.isin([256, 16384, 1048576])
        & (data.ranks == 2)
    ]
    if trips.empty or streams.empty:
        return ""
    who, rows = analysis.names(trips), []
    for net in networks(trips.network):
        trip = {
            row.who: row.measured.map(lambda us: 2 * us)
            for row in trips[trips.network == net].itertuples()
        }
        rows.append(
            (
                "round-trip time of a 0-byte message, us",
                NETWORK[net],
                ours_to_best(trip),
                *(trip.get(w) for w in who),
            )
        )
        for n, some in streams[streams.network == net].groupby("bytes"):
            least = dict(zip(some.who, some.low))
            rows.append(
                (
                    f"peak bandwidth of {size(n)} messages, MB/s",
                    NETWORK[net],
                    ours_to_best(least),
                    *(n / least[w] if w in least else None for w in who),
                )
            )
    then = [
        (
            row["what"],
            paper["source"].split(";")[-1].strip(),
            Ratio(
                row["values"][0] / row["values"][2]
                if "time" in row["what"]
                else row["values"][2] / row["values"][0]
            ),
            *row["values"],
        )
        for row in paper["row"]
    ]
    return (
        paragraph(
            f"{paper['source']}. SR is with remote write, NSR without. Ratios are of times, "
            "so that below 1 is better: SR to MPICH in the paper, ours to the best peer's today."
        )
        + table(["The paper", "Network", "Ratio", *paper["columns"]], then)
        + table(["Today", "Network", "Ratio", *who], rows)
        + availability(book)
    )


def availability(book):
    """How often the write protocol could be used."""
    rates = {
        (net, mode): rate
        for (variant, net, mode), (rate, _) in analysis.availability(book.data).items()
        if variant == "write"
    }
    if not rates:
        return ""
    modes = sorted({mode for _, mode in rates}, key=lambda mode: int(mode.split()[-1]))
    rows = [
        (NETWORK[net], *(per_cent(rates.get((net, mode))) for mode in modes))
        for net in networks(net for net, _ in rates)
    ]
    return (
        "<h3>Availability rate of remote write</h3>"
        + paragraph(
            "Share of the bytes sent that were written straight into announced receives, "
            "from Kittiwake's counters (the paper's Table 2 has it for its programs: 0.02 to "
            "97.15 %). Short messages are sent at once and never announced."
        )
        + table(
            [
                "Network",
                *(f"messages of {plots.size_label(int(mode.split()[-1]))}" for mode in modes),
            ],
            rows,
        )
    )


def giving(book):
    """One block to all, and the matrix product: the quicker of broadcast and isend, by size and
    processes."""
    paper, parts, data = seed("004"), [], book.medians("give")
    for op, what in (("give", "a block to all"), ("product", "the matrix product")):
        some = data[data.op == op]
        for net in networks(some.network):
            parts.append(
                f"<h3>{what.capitalize()}, {NETWORK[net]}</h3>"
                + given(book, some[some.network == net], f"give-{op}-{net}", what, paper)
            )
    if not parts:
        return ""
    return paragraph(
        f"{paper['source']}: the quicker of broadcast and a loop of isend, "
        f"and how much less time it takes (same: within 2 %). {paper['words']}"
    ) + "".join(parts)


def given(book, here, name, what, paper):
    """Ratios to the best peer, who wins in each library and won in the paper, and times by ranks as
    in its Figures 4, 5, 7 and 8."""
    counts = sorted(set(here.ranks))
    sizes = sorted(set(here.bytes))
    ways = list(dict.fromkeys(here["mode"]))
    head = [f"{p} ranks" for p in counts]
    of = {(row.mode, row.bytes, row.ranks, row.who): row.measured for row in here.itertuples()}
    at = lambda way, n, p: {
        who: value for (w, b, r, who), value in of.items() if (w, b, r) == (way, n, p)
    }
    ratios = [
        (f"{way} {n / 1000:g} KB", *(ours_to_best(at(way, n, p)) for p in counts))
        for way in ways
        for n in sizes
    ]
    then = paper_rows(paper, counts) if "product" in name else []
    today = [
        (
            who,
            f"{n / 1000:g} KB",
            *(
                winner({way: of[way, n, p, who] for way in ways if (way, n, p, who) in of})
                for p in counts
            ),
        )
        for who in analysis.names(here)
        for n in sizes
    ]
    panels = {
        f"{who}, {n / 1000:g} KB": {
            way: {
                p: of[way, n, p, who].map(lambda us: us / 1000)
                for p in counts
                if (way, n, p, who) in of
            }
            for way in ways
        }
        for n in dict.fromkeys((sizes[0], sizes[-1]))
        for who in analysis.names(here)
    }
    return (
        paragraph("Our time over the best peer's, of each way:", note=True)
        + table(["Way", *head], ratios)
        + paragraph("The quicker way:", note=True)
        + table(["Library", "Block", *head], then + today)
        + book.picture(
            name,
            plots.by_ranks(panels, "time, ms", what.capitalize()),
            f"{what}: time by ranks of broadcast and loops",
        )
        + (by_size(book, here, of, name) if "product" in name else "")
    )


def by_size(book, here, of, name):
    """The paper's Figures 9 and 10: completion by size of the block, on 5 and 10 ranks (or on the
    fewest and the most that were measured)."""
    counts = sorted(set(here.ranks))
    shown = [p for p in (5, 10) if p in counts] or [*dict.fromkeys((counts[0], counts[-1]))]
    panels = {
        f"{who}, {p} ranks": {
            way: {
                n / 1000: of[way, n, p, who].map(lambda us: us / 1000)
                for n in sorted(set(here.bytes))
                if (way, n, p, who) in of
            }
            for way in dict.fromkeys(here["mode"])
        }
        for p in shown
        for who in analysis.names(here)
    }
    return (
        paragraph(
            "Completion by the size of the matrix, as in the paper's Figures 9 (5 processes) and "
            "10 (10 processes):",
            note=True,
        )
        + book.picture(
            f"{name}-sizes",
            plots.by_ranks(panels, "time, ms", "The matrix product", "KB"),
            "The matrix product: time by size of broadcast and loops",
        )
        + gains(book, here, of, name)
    )


def gains(book, here, of, name):
    """What Table 1 has of Figures 9 and 10, and of the other numbers of processes: the gain by
    size, the paper's and today's."""
    paper, panels = seed("004"), {}
    for p, best, shares in zip(paper["processes"], paper["best"], paper["gain_percent"]):
        today = {
            who: curve
            for who in analysis.names(here)
            if (
                curve := {
                    n / 1000: saved(of["bcast", n, p, who], of["isend", n, p, who])
                    for n in sorted(set(here.bytes))
                    if ("bcast", n, p, who) in of and ("isend", n, p, who) in of
                }
            )
        }
        if today:
            panels[f"{p} processes"] = (
                today,
                dict(
                    zip(
                        paper["sizes_kb"],
                        shares if best == "bcast" else (-share for share in shares),
                    )
                ),
            )
    if not panels:
        return paragraph(
            "Gains by size are not drawn: none of the paper's numbers of processes was measured "
            "with both ways.",
            note=True,
        )
    return paragraph(
        "How much less time broadcast takes than the loop of isend (below 0: the loop takes "
        "less), by the size of the matrix; the paper's from its Table 1. The curves of its "
        "Figures 9 and 10 are only pictures in the paper.",
        note=True,
    ) + book.picture(
        f"{name}-gains",
        plots.gains(
            panels, "saved by broadcast, %", "Gain by size of the matrix, the paper's and today's"
        ),
        "Gain of broadcast over isend by size, the paper's and today's",
    )


def saved(bcast, isend):
    """By how many per cent broadcast takes less than isend; negative where isend takes less, by how
    much that is."""
    found = trust.against(bcast, isend)
    share = lambda ratio: 100 * (1 - ratio) if ratio <= 1 else -100 * (1 - 1 / ratio)
    return trust.Measured(
        share(found.ratio), {at: share(ratio) for at, ratio in enumerate(found.rounds)}, found.grey
    )


def paper_rows(paper, counts):
    """Table 1 of the paper, for these numbers of ranks."""
    at = {p: k for k, p in enumerate(paper["processes"])}
    return [
        (
            "the paper, MPICH 1.2.6",
            f"{kb:g} KB",
            *(
                f"{paper['best'][at[p]]} {paper['gain_percent'][at[p]][row]:.0f} %"
                if p in at
                else None
                for p in counts
            ),
        )
        for row, kb in enumerate(paper["sizes_kb"])
    ]


def winner(times):
    """bcast or isend, whichever is quicker, and its gain."""
    if not {"bcast", "isend"} <= set(times):
        return None
    best, other = sorted(("bcast", "isend"), key=times.get)
    found = trust.against(times[best], times[other])
    words = f"{best} {per_cent(1 - found.ratio, 0)}" if found.ratio < 0.98 else "same"
    return Faint(words) if found.grey else words
