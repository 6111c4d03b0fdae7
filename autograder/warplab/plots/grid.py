"""Draws a launch as tiles over an image: which thread has which pixel, and which threads have none."""

import numpy as np
from matplotlib.patches import Rectangle

from warplab.plots.theme import INK, PALETTE, new


def tiles(image, block, ax=None, label_blocks=True):
    """Return a matplotlib figure: `image` (h, w[, 3], values 0-1) under the smallest
    grid of `block` = (x, y) threads.

    Pixels are drawn as vectors, so keep the image under about 60 x 60. Threads outside it are hatched.
    """
    height, width = image.shape[:2]
    columns, rows = -(-width // block[0]), -(-height // block[1])
    full_width, full_height = columns * block[0], rows * block[1]
    figure = None
    if ax is None:
        figure, ax = new(6.4, 6.4 * full_height / full_width + 0.3)
    pixels(ax, image)
    idle = {"facecolor": PALETTE["grey"], "alpha": 0.35, "hatch": "///", "edgecolor": INK, "linewidth": 0}
    ax.add_patch(Rectangle((width, 0), full_width - width, full_height, **idle))
    ax.add_patch(Rectangle((0, height), width, full_height - height, **idle))
    for bx in range(columns):
        for by in range(rows):
            corner = (bx * block[0], by * block[1])
            ax.add_patch(Rectangle(corner, *block, fill=False, edgecolor=PALETTE["orange"], linewidth=2.2))
            if label_blocks:
                middle = (corner[0] + block[0] / 2, corner[1] + block[1] / 2)
                box = {"boxstyle": "round,pad=0.25", "facecolor": PALETTE["orange"], "edgecolor": "none"}
                ax.text(
                    *middle, f"{bx}, {by}", ha="center", va="center", color="#ffffff", fontsize=10.5, bbox=box
                )
    ax.set(xlim=(-0.2, full_width + 0.2), ylim=(full_height + 0.2, -0.2), aspect="equal")
    return figure or ax.figure


def pixels(ax, image):
    """Draw `image` (h, w[, 3], values 0-1) on `ax` as squares: column x spans x to x + 1, row 0 is on top."""
    height, width = image.shape[:2]
    colours = np.broadcast_to(image[..., None], (height, width, 3)) if image.ndim == 2 else image
    ax.pcolormesh(np.arange(width + 1), np.arange(height + 1), colours, edgecolors="face", linewidth=0.3)
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
