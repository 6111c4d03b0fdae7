"""Figures for the course: drawn with matplotlib, shown in the page's own ink, each with alt text.

fig, ax = plots.new(6.4, 3)
ax.plot(sizes, seconds, color=plots.PALETTE["blue"])
plots.show(fig, alt="Time grows with size. It doubles ...", caption="Twice the pixels, twice the time.")
"""

from warplab.plots.access import access, divergence
from warplab.plots.evidence import COUNTED, MARKERS, Time, duration, times, with_missing
from warplab.plots.figure import Figure, picture, show
from warplab.plots.grid import pixels, tiles
from warplab.plots.responsive import COLUMN, PHONE, on_phone, responsive
from warplab.plots.roofline import roofline
from warplab.plots.theme import INK, PALETTE, PAPER, legend, new

__all__ = [
    "COLUMN",
    "INK",
    "COUNTED",
    "MARKERS",
    "PALETTE",
    "PAPER",
    "PHONE",
    "Figure",
    "Time",
    "access",
    "divergence",
    "duration",
    "legend",
    "new",
    "on_phone",
    "picture",
    "pixels",
    "responsive",
    "roofline",
    "show",
    "tiles",
    "times",
    "with_missing",
]
