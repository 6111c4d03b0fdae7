"""One warp's lanes over the sectors or banks that they touch, and which of its lanes were active when."""

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from .figure import show
from .theme import INK, PALETTE, new


def access(profile, line, kind=None, caption=None):
    """Draw the first request that `profile`'s first warp made on source `line`: lanes above, sectors or banks below.

    line: its number, or a piece of its text. kind: "read", "write" or "atomic" where the line does more than one. Raises ValueError, listing
    the lines that access memory, when there is none.
    """
    samples = [s for s in profile.samples if _matches(profile, s, line) and kind in (None, s.kind)]
    if not samples:
        known = "; ".join(f"{n}: {text.strip()}" for n, text in sorted({s.line: _source(profile, s.line) for s in profile.samples}.items()))
        raise ValueError(f"no load or store on line {line!r}; lines that have one are {known or 'none'}")
    sample = samples[0]
    return _sectors(sample, caption) if sample.space == "global" else _banks(sample, caption)


def _source(profile, number):
    return next((entry.source for entry in profile.lines if entry.line == number), "")


def _matches(profile, sample, line):
    return sample.line == line if isinstance(line, int) else line in _source(profile, sample.line)


def _sectors(sample, caption):
    first = min(sample.offsets) // 32
    last = (max(sample.offsets) + sample.width - 1) // 32
    touched = sorted({byte // 32 for o in sample.offsets for byte in (o, o + sample.width - 1)})
    shown = list(range(first, last + 1)) if last - first < 40 else touched
    position = {sector: i for i, sector in enumerate(shown)}
    figure, ax = new(6.4, 2.5)
    scale = 32 / len(shown)
    for i, sector in enumerate(shown):
        used = sector in touched
        ax.add_patch(
            Rectangle(
                (i * scale, 0),
                scale * 0.96,
                0.6,
                facecolor=PALETTE["orange"] if used else "none",
                edgecolor=INK,
                alpha=0.9 if used else 0.5,
            )
        )
    for lane, offset in zip(sample.lanes, sample.offsets, strict=True):
        target = (position[offset // 32] + (offset % 32 + sample.width / 2) / 32 * 0.96) * scale
        _lane(ax, lane, target)
    many = f"{len(touched)} sector{'s' if len(touched) != 1 else ''}"
    ax.text(16, -0.35, f"{many} of 32 bytes touched in {sample.label}", ha="center", va="top")
    return _finish(figure, ax, sample, f"{many} for one request", caption)


def _banks(sample, caption):
    words = sorted({(o + 4 * i) // 4 for o in sample.offsets for i in range(max(1, sample.width // 4))})
    depth = np.bincount([w % 32 for w in words], minlength=32)
    fewest = -(-len(words) // 32)
    figure, ax = new(6.4, 2.5)
    for bank in range(32):
        ax.add_patch(Rectangle((bank, 0), 0.9, 0.6, facecolor="none", edgecolor=INK, alpha=0.5))
        if depth[bank]:
            worst = depth[bank] == depth.max() > fewest
            ax.add_patch(Rectangle((bank, 0), 0.9, 0.6, facecolor=PALETTE["orange" if worst else "green"], alpha=0.9))
            ax.text(bank + 0.45, 0.3, str(depth[bank]), ha="center", va="center", color="#ffffff", fontsize=9)
    for lane, offset in zip(sample.lanes, sample.offsets, strict=True):
        _lane(ax, lane, offset // 4 % 32 + 0.45)
    passes = f"{depth.max()} wavefront{'s' if depth.max() != 1 else ''}"
    passes += f", where {fewest} would do" if depth.max() > fewest else ", the fewest for so many words"
    ax.text(16, -0.35, f"words wanted from each of the 32 banks: {passes}", ha="center", va="top")
    return _finish(figure, ax, sample, passes, caption)


def _lane(ax, lane, target):
    _box(ax, lane, facecolor=PALETTE["blue"])
    ax.plot([lane + 0.43, target], [1.7, 0.6], color=PALETTE["blue"], linewidth=0.9, alpha=0.75)


def _box(ax, lane, **style):
    ax.add_patch(Rectangle((lane, 1.7), 0.86, 0.5, **style))


def _finish(figure, ax, sample, result, caption):
    for lane in set(range(32)) - set(sample.lanes):
        _box(ax, lane, facecolor="none", edgecolor=PALETTE["grey"], linewidth=0.8)
    active = "32 lanes of one warp" if len(sample.lanes) == 32 else f"{len(sample.lanes)} of the 32 lanes of one warp"
    ax.text(16, 2.32, active, ha="center", va="bottom")
    ax.set(xlim=(-0.3, 32.3), ylim=(-0.8, 2.8), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    does = {"atomic": "update atomically"}.get(sample.kind, sample.kind)
    alt = f"Lines from {active} to what they {does} on line {sample.line}: {result}."
    return show(figure, alt=alt, caption=caption)


def divergence(profile, caption=None, most=400):
    """Draw which of the first warp's 32 lanes were active, instruction by instruction, for the first `most` instructions."""
    figure, ax = new(6.4, 2.9)
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
    ax.set(xlim=(0, max(start, 1)), ylim=(32, 0), xlabel="instructions issued to the warp", ylabel="lane", yticks=[0.4, 15.4, 31.4])
    ax.set_yticklabels(["0", "15", "31"])
    share = work / max(1, 32 * start)
    alt = f"32 rows, one a lane, over {start} instructions; filled where the lane is active, which is {share:.0%} of the area."
    return show(figure, alt=alt, caption=caption)
