"""Draws the field that heat2d wrote: python3 heat2d_plot.py heat2d.dat heat2d.png"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

if len(sys.argv) != 3:
    sys.exit(__doc__)
field = np.fromfile(sys.argv[1])
side = int(round(field.size**0.5))
if side * side != field.size or side == 0:
    sys.exit(f"{sys.argv[1]} has {field.size} numbers, which do not form a square field")
figure, axes = plt.subplots(figsize=(7, 6))
image = axes.imshow(field.reshape(side, side), cmap="inferno", origin="lower")
axes.contour(
    field.reshape(side, side), levels=np.arange(10, 100, 10), colors="white", linewidths=0.4
)
axes.set_title("Temperature of the plate")
axes.set_xlabel("column")
axes.set_ylabel("row")
figure.colorbar(image, label="temperature")
figure.tight_layout()
figure.savefig(sys.argv[2], dpi=130)
