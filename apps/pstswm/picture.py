"""Draws the Rossby-Haurwitz wave: picture.py MPIEXEC RANKS PSTSWM PICTURE runs PSTSWM for 0, 7 and
14 days at T42 and draws the height of the fluid on the globe, seen from above the middle
latitudes."""

import io
import pathlib
import subprocess
import sys
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

DAYS = (0, 7, 14)
ABOVE = np.radians((0, 35))  # longitude and latitude of the point in the middle of the disc


def height(mpiexec, ranks, pstswm, days):
    """Longitudes, latitudes (degrees, from the south) and the height in metres on them, after so
    many days. The beginning is what a first step of one second leaves."""
    options = ["dt=1", "steps=1"] if days == 0 else [f"days={days}"]
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(
            [
                mpiexec,
                "-n",
                ranks,
                pstswm,
                "case=6",
                "truncation=42",
                "levels=2",
                *options,
                f"field={file.name}",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        data = pathlib.Path(file.name).read_bytes()
    nx, ny = np.frombuffer(data, "i4", 2)
    field = np.frombuffer(data, "f8", offset=8).reshape(ny, nx)[::-1]
    latitudes = np.degrees(np.arcsin(np.polynomial.legendre.leggauss(ny)[0]))
    return np.linspace(0, 360, nx + 1), latitudes, np.hstack([field, field[:, :1]])


def on_disc(axes, longitudes, latitudes, field):
    """An orthographic projection: each pixel of the disc is looked up on the grid."""
    x, y = np.meshgrid(np.linspace(-1, 1, 400), np.linspace(-1, 1, 400))
    z = np.sqrt(np.maximum(0, 1 - x**2 - y**2))
    middle_lon, middle_lat = ABOVE
    latitude = np.arcsin(y * np.cos(middle_lat) + z * np.sin(middle_lat))
    longitude = middle_lon + np.arctan2(x, z * np.cos(middle_lat) - y * np.sin(middle_lat))
    columns = np.degrees(longitude) % 360 / 360 * (len(longitudes) - 1)
    rows = np.interp(np.degrees(latitude), latitudes, np.arange(len(latitudes)))
    i, j = np.floor(columns).astype(int), np.minimum(np.floor(rows).astype(int), len(latitudes) - 2)
    u, v = columns - i, rows - j
    seen = (
        (1 - u) * (1 - v) * field[j, i]
        + u * (1 - v) * field[j, i + 1]
        + (1 - u) * v * field[j + 1, i]
        + u * v * field[j + 1, i + 1]
    )
    seen[x**2 + y**2 > 1] = np.nan
    levels = np.arange(8000, 10601, 200)
    image = axes.contourf(x, y, seen, levels, cmap="viridis", extend="both")
    axes.contour(x, y, seen, levels, colors="white", linewidths=0.4)
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.4"))
    axes.set_aspect("equal")
    axes.axis("off")
    return image


def main(mpiexec, ranks, pstswm, picture):
    figure, row = plt.subplots(1, len(DAYS), figsize=(9, 3.4), layout="constrained")
    for axes, days in zip(row, DAYS):
        image = on_disc(axes, *height(mpiexec, ranks, pstswm, days))
        axes.set_title(f"day {days}", fontsize=10)
    figure.colorbar(image, ax=row, shrink=0.8, label="height of the fluid, m")
    figure.suptitle("The Rossby-Haurwitz wave, T42, by apps/pstswm", fontsize=11)
    file = io.BytesIO()
    figure.savefig(file, dpi=100)
    # small: 64 colours are enough
    Image.open(file).convert("RGB").quantize(64).save(picture, optimize=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
