"""The style of all figures: colours for light and dark pages, and font sizes that are readable on a phone."""

import textwrap
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure as MplFigure

from warplab.plots.palette import PALETTE
from warplab.plots.responsive import COLUMN, PHONE, on_phone

# `figure.to_svg` replaces exactly these two colours by the page's text and background colours. So use them or
# PALETTE, never "black" or "white".
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
    "axes.prop_cycle": cycler(color=list(PALETTE.values())),
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
    "path.simplify_threshold": 0.35,  # in points: a long curve keeps its shape and loses bytes
}


def new(width=COLUMN, height=3.2, *, phone=None, columns=1, rows=1, **options) -> tuple[Any, Any]:
    """Return `(figure, axes)` in the course's style, transparent, `width` x `height` inches.

    phone: (width, height) of the drawing for a phone; by default the width is at most PHONE and plots side by
    side are put one above the other. `axes` is one Axes, or an array of several; `options` go to
    `Figure.subplots`. Also sets matplotlib's defaults, which text and lines added later use.
    """
    matplotlib.rcParams.update(STYLE)  # pyright: ignore[reportCallIssue, reportArgumentType] - its stubs name each key
    if on_phone():
        if phone is None and (rows, columns) == (1, 2):
            rows, columns, height = 2, 1, 1.8 * height
            options.pop("width_ratios", None)
        width, height = phone or (min(width, PHONE), height)
    figure = MplFigure(figsize=(width, height), facecolor="none", layout="constrained")
    axes = figure.subplots(rows, columns, **options)
    for ax in figure.axes:
        ax.set_facecolor("none")
    return figure, axes


def legend(figure, handles=None, labels=None, inside=None, **options):
    """Add a legend below the axes, in as many columns as fit. handles: default all labelled artists.

    inside: a corner of the axes such as "upper left", used instead except on a phone.
    """
    if inside and not on_phone():
        figure.axes[0].legend(loc=inside, **options)
        return
    if handles is None:
        named = [ax.get_legend_handles_labels() for ax in figure.axes]
        handles, labels = ([part for ax in named for part in ax[i]] for i in (0, 1))
    labels = [textwrap.fill(text, 42 if on_phone() else 80) for text in labels or ()]
    wide, letters = figure.get_figwidth(), max(len(line) for text in labels for line in text.splitlines())
    columns = max(1, min(len(labels), int(wide / (0.082 * letters + 0.6))))
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, **options)
