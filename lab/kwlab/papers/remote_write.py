"""Table 1 of *MPI/MBCF*, and how often the write protocol could be used."""

from .. import analysis, plots
from ..html import Ratio
from ..words import NETWORK, networks, per_cent, size
from .common import ours_to_best, seed, show


def mbcf(book):
    """Table 1 of MPI/MBCF beside today's."""
    paper, data = seed("000"), book.medians("p2p")
    data = data[data.ranks == 2]
    trips = data[(data.op == "pingpong") & (data["mode"] == "send") & (data.bytes == 0)]
    streams = data[(data.op == "stream") & (data["mode"] == "isend")]
    streams = streams[streams.bytes.isin([256, 16384, 1048576])]
    if trips.empty or streams.empty:
        return ""
    who, rows = analysis.names(trips), []
    for net in networks(trips.network):
        some = trips[trips.network == net].itertuples()
        trip = {row.who: row.measured.map(lambda us: 2 * us) for row in some}
        what = "round-trip time of a 0-byte message, us", NETWORK[net]
        rows.append((*what, ours_to_best(trip), *map(trip.get, who)))
        for n, some in streams[streams.network == net].groupby("bytes"):
            least = dict(zip(some.who, some.low))
            what = f"peak bandwidth of {size(n)} messages, MB/s", NETWORK[net]
            rates = (n / least[w] if w in least else None for w in who)
            rows.append((*what, ours_to_best(least), *rates))
    where, then = paper["source"].split(";")[-1].strip(), []
    for row in paper["row"]:
        ours, _, peer = row["values"]
        ratio = Ratio(ours / peer if "time" in row["what"] else peer / ours)
        then.append((row["what"], where, ratio, *row["values"]))
    return (
        show("000", "mbcf", then, paper["columns"])
        + show("000", "mbcf-today", rows, who)
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
    bytes_of = lambda mode: int(mode.split()[-1])
    modes = sorted({mode for _, mode in rates}, key=bytes_of)
    rows = [
        (NETWORK[net], *(per_cent(rates.get((net, mode))) for mode in modes))
        for net in networks(net for net, _ in rates)
    ]
    columns = [f"messages of {plots.size_label(bytes_of(mode))}" for mode in modes]
    return show("000", "availability", rows, columns)
