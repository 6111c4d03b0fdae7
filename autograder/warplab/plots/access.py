"""Draws the sectors or banks that one warp's lanes access, and which of its lanes are active when."""

from matplotlib.collections import PolyCollection

from warplab.plots import warp_request as lanes
from warplab.plots.figure import Figure, show
from warplab.plots.responsive import COLUMN, responsive
from warplab.plots.theme import PALETTE, new


@responsive
def access(profile, line, kind=None, caption=None):
    """Draw the first request that `profile`'s first warp made on source `line`: lanes
    above, sectors or banks below.

    line: its number, or a piece of its text. kind: "read", "write" or "atomic" where the line does
    more than one. Raises ValueError, listing the lines that access memory, when there is none.
    """
    samples = [s for s in profile.samples if _matches(profile, s, line) and kind in (None, s.kind)]
    if not samples:
        known = "; ".join(
            f"{n}: {text.strip()}"
            for n, text in sorted({s.line: _source(profile, s.line) for s in profile.samples}.items())
        )
        raise ValueError(f"no load or store on line {line!r}; lines that have one are {known or 'none'}")
    alt = f"Line {samples[0].line}: {lanes.finding(samples[0], samples[0].label)}."
    return Figure(None, lanes.svg(samples[0], alt), alt, caption)


def _source(profile, number):
    return next((entry.source for entry in profile.lines if entry.line == number), "")


def _matches(profile, sample, line):
    return sample.line == line if isinstance(line, int) else line in _source(profile, sample.line)


@responsive
def divergence(profile, caption=None, most=400):
    """Draw which of the first warp's 32 lanes were active, instruction by instruction,
    for the first `most` instructions.
    """
    figure, ax = new(COLUMN, 2.9)
    start, boxes, idle, work = 0, [], [], 0
    for step in profile.timeline:
        end = min(start + step.instructions, most)
        for lane in range(32):
            corner = [(start, lane), (end, lane), (end, lane + 0.86), (start, lane + 0.86)]
            (boxes if step.active >> lane & 1 else idle).append(corner)
        work += (end - start) * step.active.bit_count()
        start = end
        if start >= most:
            break
    ax.add_collection(PolyCollection(boxes, facecolors=PALETTE["blue"], linewidths=0))
    ax.add_collection(PolyCollection(idle, facecolors=PALETTE["grey"], alpha=0.25, linewidths=0))
    ax.set(
        xlim=(0, max(start, 1)),
        ylim=(32, 0),
        xlabel="instructions of PTX issued to the warp",
        ylabel="lane",
        yticks=[0.4, 15.4, 31.4],
    )
    ax.set_yticklabels(["0", "15", "31"])
    share = work / max(1, 32 * start)
    alt = (
        f"32 rows, one a lane, over {start} instructions of PTX; filled where the lane is active, which is "
        f"{share:.0%} of the area."
    )
    return show(figure, alt=alt, caption=caption)
