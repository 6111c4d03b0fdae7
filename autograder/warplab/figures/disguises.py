"""Figures of chapter 4 on products in disguise: a convolution as one, and products' share of the work."""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
A_COLOUR, B_COLOUR, C_COLOUR = COLOUR["blue"], COLOUR["orange"], COLOUR["green"]


@plots.responsive
def im2col():
    """A 4 x 4 picture with one 3 x 3 neighbourhood marked, and the matrix of which it is a column."""
    fig, ax = plots.new(plots.COLUMN, 3.0)
    ax.set(xlim=(-0.2, 15.2), ylim=(10.4, -1.0), aspect="equal")
    ax.set_axis_off()
    _cells(ax, (0, 2.5), np.arange(1, 17).reshape(4, 4), _marked((1, 2, 3), (1, 2, 3)), B_COLOUR)
    columns = np.zeros((9, 4), int)
    for j, (row, col) in enumerate(((1, 1), (1, 2), (2, 1), (2, 2))):
        window = [4 * (row + i) + col + k + 1 for i in (-1, 0, 1) for k in (-1, 0, 1)]
        columns[:, j] = window
    _cells(ax, (11, 0), columns, {(row, 3) for row in range(9)}, B_COLOUR)
    _cells(ax, (6.2, 4), np.full((1, 4), -1), {(0, col) for col in range(4)}, A_COLOUR)
    ax.text(8.2, 3.7, "filter: 1 × 9", ha="center", va="bottom")
    ax.text(10.6, 4.5, "×", ha="center", va="center", fontsize=15)
    ax.text(2, 2.2, "picture", ha="center", va="bottom")
    ax.text(13, -0.3, "columns: 9 × 4", ha="center", va="bottom")
    ax.text(8.2, 4.5, "w₁  w₂  …  w₉", ha="center", va="center")
    ax.annotate(
        "",
        (14.5, 9.15),
        (3.0, 6.7),
        arrowprops={
            "arrowstyle": "-|>",
            "color": B_COLOUR,
            "linewidth": 1.6,
            "connectionstyle": "arc3,rad=0.28",
        },
    )
    return plots.show(
        fig,
        alt="A picture of 4 by 4 pixels, numbered 1 to 16. The 3 by 3 neighbourhood at its lower right, "
        "pixels 6, 7, 8, 10, 11, 12, 14, 15, 16, is the last column of a matrix of 9 by 4; the three other "
        "neighbourhoods that fit are its other columns. A filter of nine weights is a row that multiplies "
        "it.",
        caption="Each place where the filter fits is a column, each filter a row. Pixels 6, 7, 10 and 11 "
        "stand in all four columns: the copies that libraries avoid.",
    )


def _marked(rows, cols):
    return {(row, col) for row in rows for col in cols}


def _cells(ax, corner, values, marked, colour):
    """Unit cells with their numbers (none where negative), some of them tinted."""
    for (row, col), value in np.ndenumerate(values):
        place = (corner[0] + col, corner[1] + row)
        if (row, col) in marked:
            ax.add_patch(Rectangle(place, 1, 1, facecolor=colour, alpha=0.3, linewidth=0))
        if value < 0:
            continue
        ax.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=INK, linewidth=0.9))
        ax.text(place[0] + 0.5, place[1] + 0.5, str(value), ha="center", va="center", fontsize=10.5)


@plots.responsive
def shares(models):
    """A bar of 100 % for each model, divided by kind of work. models: {name: {kind of work: operations}}."""
    fig, ax = plots.new(plots.COLUMN, 0.85 + 1.05 * len(models))
    kinds = dict.fromkeys(kind for work in models.values() for kind in list(work)[:-1])
    colours = dict(zip(kinds, [A_COLOUR, B_COLOUR, C_COLOUR], strict=False))
    percent = {
        name: {k: 100 * v / sum(work.values()) for k, v in work.items()} for name, work in models.items()
    }
    for y, (name, parts) in enumerate(percent.items()):
        left = 0.0
        ax.text(0, y - 0.4, name, va="bottom", weight="bold")
        for kind, width in parts.items():
            colour = colours.get(kind, COLOUR["grey"])
            ax.barh(y, width, left=left, height=0.62, color=colour, alpha=0.75, edgecolor=PAPER)
            if width > 12:
                ax.text(left + width / 2, y, f"{kind}\n{width:.1f} %", ha="center", va="center")
            left += width
        small = ", ".join(f"{kind} {width:.1f} %" for kind, width in parts.items() if width <= 12)
        ax.text(100, y - 0.4, small, va="bottom", ha="right", fontsize=10.5)
    ax.set(
        xlim=(0, 100), ylim=(len(models) - 0.5, -0.75), xlabel="share of the forward pass's operations (%)"
    )
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    said = "; ".join(f"{name}: " + _listed(parts, "{:.1f} %") for name, parts in percent.items())
    return plots.show(
        fig,
        alt=f"Shares of the operations in a forward pass. {said}.",
        caption="Almost everything that these two models compute is a matrix product. What is left is a "
        "sliver.",
    )


def _listed(numbers, form):
    return ", ".join(f"{name} {form.format(value)}" for name, value in numbers.items())
