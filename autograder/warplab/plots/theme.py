"""One look for every figure: colours that hold on a white page and on a dark one, and
type that a phone can show.
"""

import matplotlib
from matplotlib.figure import Figure as MplFigure

from warplab.plots.palette import PALETTE

# Two stand-ins. On paper they are what they look like; `figure.to_svg` turns exactly these two
# into the page's own text colour and background, so pick PALETTE, never "black" or "white".
INK = "#17181a"
PAPER = "#fefefd"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=list(PALETTE.values())),
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "lines.linewidth": 2.0,
    "patch.linewidth": 1.0,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "image.interpolation": "none",  # the SVG then holds the pixels themselves, not a resampled copy
    "figure.dpi": 72,
}


def new(width=6.4, height=3.2, *, columns=1, rows=1, **options):
    """Return `(figure, axes)` in the course's style, transparent, `width` x `height`
    inches (6.4 is a full column).

    `axes` is one Axes, or an array of them when there are several; `options` go to `Figure.subplots`.
    Also sets matplotlib's defaults, since text and lines that are added later read them.
    """
    matplotlib.rcParams.update(STYLE)
    figure = MplFigure(figsize=(width, height), facecolor="none", layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in figure.axes:
        ax.set_facecolor("none")
    return figure, axes
