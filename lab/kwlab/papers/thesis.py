"""*High Performance MPI Libraries for Ethernet*: receives, its event thread, and UDP beside TCP."""

from .. import trust
from ..html import Ratio
from ..libraries import OURS
from ..words import NETWORK, change, networks, per_cent, size
from .common import UDP, WITHOUT, seed, show

WAYS = {"pingpong": "latency", "stream": "bandwidth one way"}
SIDES = ("sender", "receiver")


def receives(book):
    """Expected and unexpected receives: bandwidth and the processors' time."""
    times = book.medians("p2p")
    use = {side: lookup(book.medians("p2p", side)) for side in ("cpu0_us", "cpu1_us")}
    times = times[times.op.isin(["stream", "unexpected"]) & (times["mode"] == "isend")]
    parts = ""
    for net in networks(times.network):
        some = times[times.network == net].sort_values("bytes")
        some = some[some.who.isin(some[some.op == "unexpected"].who)]
        if some.bytes.nunique() < 3:
            continue
        panels, rows = {"expected": {}, "unexpected": {}}, []
        load = {f"{name}, {side}": {} for name in panels for side in SIDES}
        for row in some.itertuples():
            name = "expected" if row.op == "stream" else "unexpected"
            rate = row.measured.map(lambda us, n=row.bytes: n / us)
            panels[name].setdefault(row.who, {})[row.bytes] = rate
            spent = [use[side].get(cell(row)) for side in use]
            shares = [None if us is None else us / row.value for us in spent]
            for side, share in zip(SIDES, shares):
                if share is not None:
                    load[f"{name}, {side}"].setdefault(row.who, {})[row.bytes] = 100 * share
            busy = (per_cent(share, 0) for share in shares)
            rows.append((f"{name} {size(row.bytes)}", row.who, rate, 1e6 / row.value, *busy))
        parts += (
            show("001", "receives", book=book, panels=panels, net=net)
            + show("001", "load", rows, book=book, panels=load, net=net)
            + thread_costs(book, net, lookup(times), use)
        )
    return parts and show("001", "receives-words") + parts


def thread_costs(book, net, times, use):
    """Figures 4.4 to 4.8 as changes: what the event thread costs in bandwidth and processor
    time."""
    paper, panels = seed("001")["receives"], {}
    for op, name in (("stream", "expected"), ("unexpected", "unexpected")):
        sizes = {n for _, at, *cell, _, n in times if (at, *cell) == (net, 2, op)}
        both = {
            n: ((OURS, net, 2, op, "isend", n), (WITHOUT, net, 2, op, "isend", n))
            for n in sorted(sizes)
            if n
        }
        both = {n: pair for n, pair in both.items() if set(pair) <= set(times)}
        found = {
            f"{name}: bandwidth": {
                n: trust.against(times[other], times[one]) for n, (one, other) in both.items()
            }
        }
        for side, of in zip(SIDES, use.values()):
            found[f"{name}: processor of the {side}"] = {
                n: busier(one, other, times, of)
                for n, (one, other) in both.items()
                if of.get(one) and of.get(other)
            }
        panels |= {
            what: beside(some, [row for row in paper["row"] if row["panel"] == what])
            for what, some in found.items()
            if some
        }
    if not any(today for today, _ in panels.values()):
        return ""
    return show("001", "thread-costs", book=book, panels=panels, net=net, words=paper["words"])


def beside(found, paper):
    """A panel: today's changes by size that count, and what the thesis says of sizes."""
    return (
        {n: ratio for n, ratio in found.items() if not ratio.grey},
        {row["bytes"]: row["change"] for row in paper},
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
    return rows and (
        show("001", "events-table", rows)
        + curves(book, paper["row"], times, OURS, WITHOUT, "events")
        + late_receives(paper["unexpected"], times)
    )


def udp(book):
    """The thesis' figures on UDP against TCP, beside ours, and all sizes."""
    paper, times = seed("001"), lookup(book.medians("p2p"))
    rows = changes(paper["udp"], times, UDP, OURS)
    every = [
        (
            f"{WAYS.get(op, WAYS['stream'])}, {size(n)}",
            NETWORK[net],
            Ratio.of(trust.against(us, tcp)),
            us,
            tcp,
        )
        for (who, net, _, op, _, n), us in times.items()
        if who == UDP and (tcp := times.get((OURS, net, 2, op, "isend", n)))
    ]
    return rows and (
        show("001", "udp-table", rows)
        + curves(book, paper["udp"], times, UDP, OURS, "udp")
        + bandwidths(book, paper["bandwidth"], times)
        + show("001", "udp-all", every, count=len(every))
    )


def bandwidths(book, paper, times):
    """Figures 3.4 and 3.5: bandwidth one way over UDP and TCP, today's and what the thesis' text
    says."""
    parts = ""
    for net in networks(net for who, net, *_ in times if who == UDP):
        panels = {}
        for way, who in (("UDP", UDP), ("TCP", OURS)):
            curve = {
                n: us.map(lambda us, n=n: 8 * n / us)
                for (*one, n), us in sorted(times.items(), key=lambda one: one[0][-1])
                if one == [who, net, 2, "stream", "isend"] and n
            }
            if curve:
                panels[f"over {way}"] = {OURS: curve}, dict(paper[way.lower()])
        if panels:
            how = {"book": book, "panels": panels, "net": net, "limit": paper["limit"]}
            parts += show("001", "udp-bandwidth", **how)
    return parts


def changes(paper, times, one, other):
    """Rows of the thesis' text beside today's: by how much `one` has more latency or bandwidth than
    `other`."""
    rows = []
    for net in variants(times, one, other):
        for row in paper:
            cell = (net, 2, row["op"], "isend", row["bytes"])
            if (one, *cell) in times and (other, *cell) in times:
                today = change(grown(times[one, *cell], times[other, *cell], row["op"]))
                what = row["what"], row["figure"], NETWORK[net]
                rows.append((*what, change(1 + row["change"]), today))
    return rows


def variants(times, one, other):
    """The networks of the variant among the two."""
    return networks(net for who, net, *_ in times if who in (one, other) and who != OURS)


def grown(one, other, op):
    """Latency or bandwidth over another's, of times."""
    return trust.against(*((other, one) if op == "stream" else (one, other)))


def curves(book, paper, times, one, other, name):
    """The thesis' curves as changes by size: today's, and what its text says of single sizes."""
    parts = ""
    for net in variants(times, one, other):
        panels = {}
        for op, what in WAYS.items():
            found = {
                n: grown(times[one, net, 2, op, "isend", n], us, op)
                for (*of, n), us in sorted(times.items(), key=lambda cell: cell[0][-1])
                if of == [other, net, 2, op, "isend"] and n and (one, *of[1:], n) in times
            }
            if found:
                panels[what] = beside(found, [row for row in paper if row["op"] == op])
        if any(today for today, _ in panels.values()):
            parts += show("001", name, book=book, panels=panels, net=net)
    return parts


def late_receives(paper, times):
    """What is lost when receives are posted late."""
    losses = {}
    for (who, net, ranks, op, mode, n), late in times.items():
        early = times.get((who, net, ranks, "stream", mode, n))
        if op == "unexpected" and early and not trust.against(early, late).grey:
            losses.setdefault((who, net), []).append((early / late, n))
    if not losses:
        return ""
    then = f"The thesis, Figures {paper['figure']}", "Gigabit Ethernet"
    rows = [(*then, change(1 + paper["change"]), None)]
    for (who, net), some in sorted(losses.items(), key=lambda i: (i[0][1], i[0][0] != OURS)):
        rows.append((who, NETWORK[net], change(min(some)[0]), size(min(some)[1])))
    return show("001", "late-receives", rows, what=paper["what"].capitalize())
