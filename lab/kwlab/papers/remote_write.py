"""Table 1 of *MPI/MBCF*, and how often the write protocol could be used."""

from .. import analysis, plots
from ..html import Ratio, paragraph, table
from ..words import NETWORK, networks, per_cent, size
from .common import ours_to_best, seed


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
