"""*High Performance MPI Libraries for Ethernet*: receives, its event thread, and UDP beside TCP."""

from .. import plots, trust
from ..html import Ratio, folded, paragraph, table
from ..libraries import OURS
from ..words import NETWORK, change, networks, per_cent, size
from .common import UDP, WITHOUT, seed


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
