"""Figures for the course: drawn with matplotlib, shown in the page's own ink, each with alt text.

fig, ax = plots.new(6.4, 3)
ax.plot(sizes, seconds, color=plots.PALETTE["blue"])
plots.show(fig, alt="Time grows with size. It doubles ...", caption="Twice the pixels, twice the time.")
"""

from warplab.plots.access import access, divergence
from warplab.plots.evidence import MARKERS, Time, duration, times
from warplab.plots.figure import Figure, picture, show
from warplab.plots.grid import pixels, tiles
from warplab.plots.roofline import roofline
from warplab.plots.theme import INK, PALETTE, PAPER, new

__all__ = [
    "INK",
    "MARKERS",
    "PALETTE",
    "PAPER",
    "Figure",
    "Time",
    "access",
    "divergence",
    "duration",
    "new",
    "picture",
    "pixels",
    "roofline",
    "show",
    "tiles",
    "times",
]
