"""The papers' figures, what is compared with them, and the one way in which both are shown."""

import tomllib
from functools import cache
from pathlib import Path

from .. import plots, trust
from ..html import Ratio, folded, paragraph, table
from ..libraries import OURS
from ..words import NETWORK

SEEDS = Path(__file__).parents[1] / "seeds"
WITHOUT, UDP = f"{OURS} (no event thread)", f"{OURS} (udp)"  # variants of plans


@cache
def seed(number):
    """A paper's figures."""
    return tomllib.loads((SEEDS / f"{number}.toml").read_text())


def show(number, name, rows=None, columns=(), /, *, book=None, panels=None, net=None, **fields):
    """What a paper's table `shown` has under `name`: a heading, words, a picture of `panels`, and a
    table of `rows` whose head goes on with `columns`. Its texts contain the paper's texts, the
    network and `fields`; of these, `inner` stands before the table, `file` names the picture, and
    `told` is what a paper says of sizes."""
    one = seed(number)["shown"][name]
    fields = {**seed(number), **fields, "net": NETWORK.get(net)}
    fill = lambda words: words.format(**fields)
    html = f"<h3>{fill(one['heading'])}</h3>" if "heading" in one else ""
    if "text" in one:
        html += paragraph(fill(one["text"]), note=one.get("note", False))
    html += fields.get("inner", "")
    if panels:
        how = one.get("how", {}) | {key: fields[key] for key in ("told",) if key in fields}
        drawn = getattr(plots, one["plot"])(panels, *map(fill, one["titles"]), **how)
        html += book.picture(fields.get("file", f"{name}-{net}"), drawn, fill(one["alt"]))
    if rows is not None:
        made = table([*one["head"], *columns], rows)
        html += folded(fill(one["folded"]), made) if "folded" in one else made
    return html


def ours_to_best(values):
    """The ratio of our value to the best peer's, of {who: time}; None where one of them is
    missing."""
    peers = [value for who, value in values.items() if not who.startswith(OURS) and value > 0]
    return Ratio.of(trust.against(values[OURS], min(peers))) if OURS in values and peers else None
