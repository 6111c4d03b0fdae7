"""Kernels under a machine's roof: the most that its data sheet allows at so many
operations a byte. Theory, never a measured speed.
"""

import math

import numpy as np

from warplab.hardware import specs
from warplab.plots.evidence import COUNTED
from warplab.plots.figure import show
from warplab.plots.responsive import COLUMN, PHONE, on_phone, responsive
from warplab.plots.theme import INK, PALETTE, PAPER, new

LETTER, LINE = 0.085, 0.17  # inches: a letter's width and a line's height at 10.5 points
SMALL = {"fontsize": 10.5}
HEIGHT = 3.9
ROOM = 3.0  # inches of the height that are left for the plot itself


@responsive
def roofline(kernels, device="h100-sxm", peak="peak_fp32", caption=None):
    """Draw where kernels stand under the roof min(peak, intensity x bandwidth) of a registry device.

    kernels: {name: a profile, whose counted FLOP and bytes to and from global memory
    are taken, or a pair (FLOP, bytes)}; profiles
    are drawn blue, with the mark of a count where they stand, pairs green.
    peak: the device's fact for the flat part. Raises ValueError for what does
    no arithmetic or moves nothing.
    """
    spec = specs.get(device)
    top, slope = spec[peak], spec["memory_bandwidth"]
    ridge = top.si / slope.si
    points = dict(
        sorted(
            ((name, _intensity(name, kernel)) for name, kernel in kernels.items()), key=lambda point: point[1]
        )
    )
    low, high = min(points.values()) / 2.2, 5 * max(ridge, *points.values())
    floor, ceiling = min(top.si, slope.si * min(points.values())) / 15e12, 2.4 * top.si / 1e12
    figure, ax = new(COLUMN, HEIGHT)
    x = np.array([low, ridge, high])
    ax.plot(x, np.minimum(top.si, slope.si * x) / 1e12, color=INK, linestyle=(0, (5, 3)), linewidth=1.8)
    for (name, value), (side, rise) in zip(points.items(), _places(points, low, high), strict=True):
        colour = PALETTE["green" if isinstance(kernels[name], tuple) else "blue"]
        ax.plot([value, value], [floor, min(top.si, slope.si * value) / 1e12], color=colour, linewidth=2.2)
        if not isinstance(kernels[name], tuple):  # its place was counted, its height is theory
            ax.plot([value], [floor], markersize=9, clip_on=False, zorder=4, **COUNTED)
        align = "left" if side > 0 else "right"
        box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5}  # for where a name must cross a line
        place = {
            "xytext": (3 * side, 7 + 72 * rise),
            "textcoords": "offset points",
            "rotation": 90,
            "ha": align,
            "va": "bottom",
        }
        ax.annotate(name, (value, floor), bbox=box, **place, **SMALL)
    words = f"{peak.removeprefix('peak_').upper()} peak {top.text()}"
    ax.text(high / 1.05, 1.12 * top.si / 1e12, words, ha="right", va="bottom", **SMALL)
    middle = math.sqrt(low * ridge)
    ax.annotate(
        slope.text(),
        (middle, slope.si * middle / 1e12),
        (-6, 6),
        textcoords="offset points",
        ha="right",
        **SMALL,
    )
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, ceiling))
    counted = any(not isinstance(kernel, tuple) for kernel in kernels.values())
    asked = f"FLOP for each byte asked of memory, {'counted on PTX' if counted else 'worked out'}"
    ax.set(xlabel=asked, ylabel="at most (TFLOP/s)")
    for axis, ends in ((ax.xaxis, (low, high)), (ax.yaxis, (floor, ceiling))):
        ticks = [10.0**k for k in range(math.ceil(math.log10(ends[0])), math.floor(math.log10(ends[1])) + 1)]
        axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.minorticks_off()
    alt = _alt(spec, words, slope.text(), ridge, points, asked)
    return show(figure, alt, caption, evidence=["counted", "theory"] if counted else ["theory"])


def _intensity(name, kernel) -> float:
    """FLOP a byte."""
    flop, size = (
        kernel
        if isinstance(kernel, tuple)
        else (kernel.flops, kernel.global_load.bytes + kernel.global_store.bytes)
    )
    if flop <= 0 or size <= 0:
        raise ValueError(
            f"{name} does {flop:,} FLOP and moves {size:,} bytes: a roofline has a place only for a kernel "
            "that does both"
        )
    return flop / size


def _places(points, low, high):
    """For each point, in order: which side of its line the name stands on (1 right, -1
    left) and inches above the floor.

    A name keeps clear of all names before it and, where there is room, of the other lines.
    """
    scale = ((PHONE if on_phone() else COLUMN) - 0.8) / math.log(high / low)
    lines = [scale * math.log(value / low) for value in points.values()]
    names = []
    for own, (name, x) in enumerate(zip(points, lines, strict=True)):
        tall = LETTER * len(name)
        choices = [(side, rise) for rise in np.arange(0, max(0.1, ROOM - tall), 0.1) for side in (1, -1)]
        others = [(other - 0.03, other + 0.03, 0.0, ROOM) for n, other in enumerate(lines) if n != own]
        clear = [c for c in choices if _free(_box(x, tall, *c), names)]
        side, rise = next(
            (c for c in clear if _free(_box(x, tall, *c), others)), clear[0] if clear else (1, 0.0)
        )
        names.append(_box(x, tall, side, rise))
        yield side, float(rise)


def _box(x, tall, side, rise):
    near, far = sorted((x + 0.04 * side, x + (0.04 + LINE) * side))
    return near, far, rise, rise + tall


def _free(box, taken) -> bool:
    left, right, bottom, top = box
    return all(far <= left or right <= near or high <= bottom or top <= low for near, far, low, high in taken)


def _alt(spec, words, slope, ridge, points, asked) -> str:
    said = ", ".join(f"{name} {value:.3g}" for name, value in points.items())
    left = sum(value < ridge for value in points.values())
    where = "all" if left == len(points) else "none" if not left else f"{left} of {len(points)}"
    return (
        f"A roofline from the data sheet of the {spec.short}. A dashed slope of {slope} up to a ridge at "
        f"{ridge:.0f} FLOP a byte, then flat: {words}. {asked}: {said}. "
        f"Of these {where} stand left of the ridge, where memory sets the limit."
    )
