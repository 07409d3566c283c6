"""What is chosen beside the best of all algorithms (`regret`)."""

from .. import plots, regret
from ..html import Ratio, folded, paragraph, table
from ..words import NETWORK, size


def regrets(book):
    """What was chosen beside the best of all algorithms."""
    found = book.regret()
    if not found:
        return ""
    parts = [
        paragraph(
            "Time of what was chosen over the best of all algorithms, each forced by `KW_COLL` "
            "and measured in the same turn: 1 is the best choice everywhere. Wanted: "
            f"a mean of {regret.LIMITS[0]:.2f}, and no stable cell (two rounds that agree) above "
            f"{regret.LIMITS[1]:.2f}."
        ),
        table(*regret_table(found, lambda net: NETWORK[net])),
    ]
    for (net,), some in regret.by(found, "network").items():
        parts.append(
            book.picture(
                f"regret-{net}",
                plots.heat_map(
                    regret.ratios(some), f"Regret over {NETWORK[net]}", "chosen : best algorithm"
                ),
                f"Time of the chosen algorithm over the best one's by size, {NETWORK[net]}",
            )
        )
    return "".join(parts) + folded(
        "the worst cells", table(*worst_table(found, lambda net: NETWORK[net]))
    )


def regret_table(found, words=str):
    """A row a network and number of ranks, and one of all; head and rows."""
    rows = [
        (words(net), ranks, *regret_row(some))
        for (net, ranks), some in sorted(
            regret.by(found, "network", "ranks").items(),
            key=lambda one: (one[0][0] != "shm", one[0]),
        )
    ]
    return ["Network", "Ranks", "Cells", "that count", "stable", "Mean", "Worst stable", "Where"], [
        *rows,
        ("all", None, *regret_row(found)),
    ]


def regret_row(some):
    one = regret.summed(some)
    where = (
        f"{one.worst.op} {size(one.worst.bytes)}, {one.worst.ranks} ranks" if one.worst else None
    )
    return one.cells, one.counting, one.stable, one.mean, one.worst and one.worst.regret, where


def worst_table(found, words=str, most=20):
    """The stable cells with the largest regret; head and rows."""
    worst = sorted((one for one in found if one.stable), key=lambda one: -one.regret)[:most]
    return ["Collective", "Network", "Ranks", "Regret", "Chosen, us", "Best, us", "which is"], [
        (
            f"{one.op} {size(one.bytes)}".strip(),
            words(one.network),
            one.ranks,
            Ratio.of(one.against),
            one.chosen,
            one.best,
            one.algorithm,
        )
        for one in worst
        if one.regret > 1
    ]
