"""Words and figures for people, as the sections of the report share them."""

from . import plots
from .html import Faint
from .trust import grey

NETWORK = {
    "shm": "shared memory",
    "tcp": "TCP on loopback",
    "gigabit": "hosts joined by 1 Gb/s",
    "gigabit2": "hosts of two ranks joined by 1 Gb/s",
    "gigabit4": "hosts of four ranks joined by 1 Gb/s",
    "links": "hosts joined by two links of 1 Gb/s",
    "hosts": "hosts joined without a limit",
    "cluster": "several hosts",
}


def size(n):
    """Bytes."""
    return plots.size_label(n) if n else ""


def networks(rows):
    """Those that occur, in order."""
    found = set(rows)
    return [network for network in NETWORK if network in found]


def per_cent(value, digits=1):
    """A share."""
    return None if value is None else f"{value:.{digits}%}".replace("%", " %")


def change(value):
    """By how much something is more or less than it was: 1.2 is +20 %."""
    if grey(value):
        return Faint(change(value.ratio))
    value = getattr(value, "ratio", value)
    return (
        None
        if value is None
        else "0 %"
        if round(100 * (value - 1)) == 0
        else f"{value - 1:+.0%}".replace("%", " %")
    )
