"""The papers' figures, and what is compared with them."""

import tomllib
from pathlib import Path

from .. import trust
from ..html import Ratio
from ..libraries import OURS

SEEDS = Path(__file__).parents[1] / "seeds"
WITHOUT, UDP = f"{OURS} (no event thread)", f"{OURS} (udp)"  # variants of plans


def seed(number):
    """A paper's figures."""
    return tomllib.loads((SEEDS / f"{number}.toml").read_text())


def ours_to_best(values):
    """The ratio of our value to the best peer's, of {who: time}; None where one of them is
    missing."""
    peers = [value for who, value in values.items() if not who.startswith(OURS) and value > 0]
    return Ratio.of(trust.against(values[OURS], min(peers))) if OURS in values and peers else None
