"""Pictures, as matplotlib figures. A library has one colour everywhere; ratios are coloured about
1; axes say their units."""

import os

os.environ["MPLBACKEND"] = "Agg"  # files, and no windows, when matplotlib is loaded

from .common import GREY, adopt, colour, plt, size_label
from .compared import bars, dots, heat_map, ratios, side_by_side
from .curves import by_ranks, changes, gains, lines
from .fits import bandwidths, latency_and_bandwidth, models_beside, two_models
