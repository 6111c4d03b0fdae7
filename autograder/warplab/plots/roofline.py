"""Draws a roofline with a roof for each level of memory: FLOP/s that a data sheet allows over FLOP a byte.

It shows theory, never measured speeds. After Yang and others, "Hierarchical Roofline analysis for GPUs"
(2020): a kernel has an intensity at each level, and the level whose roof is lowest there is its bound.
"""

import math
import textwrap

import numpy as np

from warplab.hardware import specs
from warplab.plots.evidence import COUNTED
from warplab.plots.figure import show
from warplab.plots.responsive import COLUMN, on_phone, responsive
from warplab.plots.theme import INK, PALETTE, PAPER, legend, new
from warplab.timing.bounds import L1, L2, LaunchWork, memory_of

SMALL = {"fontsize": 10.5}
BESIDE = {"textcoords": "offset points", **SMALL}
ABOVE = {"ha": "center", "bbox": {"fc": PAPER, "ec": "none", "pad": 0.8}, **BESIDE}  # hides a roof behind it
HEIGHT = 4.4
LINE = 0.2  # inches from one name to the next
LETTERS = 19  # of a name that a phone has room for beside the plot


@responsive
def roofline(kernels, device="h100-sxm", peak="peak_fp32", caption=None):
    """Draw how fast a registry device lets kernels be: min(peak, intensity x bandwidth) over their levels.

    kernels: {name: a profile, or a pair (FLOP, bytes of the device's memory)}. A profile gets a dot at L1 and
    at device memory, from its counts, and one at L2, which is hollow if it comes from the cache model.
    peak: the device's fact for the flat part. Raises ValueError for a kernel without FLOP or memory traffic.
    """
    spec = specs.get(device)
    memory = memory_of(spec)
    counted = any(not isinstance(kernel, tuple) for kernel in kernels.values())
    # a pair has a dot at device memory only, so other roofs are not drawn
    facts = {L1: "l1_bandwidth", L2: "l2_bandwidth"} if counted else {}
    facts |= {memory: "memory_bandwidth"}
    slopes = {level: spec[fact] for level, fact in facts.items() if fact in spec}
    top, roofs = spec[peak], dict(slopes)
    if counted and L2 not in slopes and "l2_measured" in spec:  # measured, so drawn but not a bound
        roofs = {L1: slopes[L1], L2: spec["l2_measured"], memory: slopes[memory]}
    rails = {name: _intensities(name, kernel, device, roofs) for name, kernel in kernels.items()}
    heights = {}
    for name, rail in rails.items():
        speeds = [slopes[level].si * value for level, value in rail.items() if level in slopes]
        heights[name] = min(top.si, *speeds) / 1e12
    figure, ax = new(COLUMN, HEIGHT)
    low = min(min(rail.values()) for rail in rails.values()) / 1.6
    high = 1.6 * max(top.si / slopes[memory].si, *(max(rail.values()) for rail in rails.values()))
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(min(heights.values()) / 2.2, 2.2e-12 * top.si))
    ax.set(xlabel=f"FLOP for each byte of {'a level' if counted else memory}", ylabel="at most (TFLOP/s)")
    colours = {L1: PALETTE["blue"], L2: PALETTE["purple"], memory: PALETTE["orange"]}
    lines = []
    for level, slope in roofs.items():
        ends = np.array([low, max(low, top.si / slope.si)])
        dashes = (0, (5, 3) if level in slopes else (1, 2))
        lines += ax.plot(ends, slope.si * ends / 1e12, color=colours[level], linestyle=dashes, linewidth=1.6)
    flat = [top.si / max(slope.si for slope in slopes.values()), high]
    ax.plot(flat, [top.si / 1e12] * 2, color=INK, linewidth=1.8)
    words = f"{peak.removeprefix('peak_').upper()} peak {top.text()}"
    ax.text(high, 1.2 * top.si / 1e12, words, ha="right", va="bottom", **SMALL)
    for name, rail in rails.items():
        named = counted and not on_phone() and heights[name] == max(heights.values())
        _draw_rail(ax, kernels[name], rail, heights[name], colours, named)
    _name_rails(ax, rails, heights)
    _ticks(ax)
    told = [f"{at}: {roof.text()}{', measured by others' * (at not in slopes)}" for at, roof in roofs.items()]
    legend(figure, lines, told)
    alt = _alt(spec, [*told, words], slopes, rails, heights, top)
    return show(figure, alt, caption, evidence=["counted", "theory"] if counted else ["theory"])


def _draw_rail(ax, kernel, rail, height, colours, named):
    """Draw a kernel: a dot for each level, in its roof's colour, at the height of its lowest roof.

    named: label each dot with its level.
    """
    ax.plot([min(rail.values()), max(rail.values())], [height] * 2, color=INK, alpha=0.3, linewidth=1.2)
    by_hand = isinstance(kernel, tuple)
    for level, value in rail.items():
        hollow = level == L2 and not by_hand and kernel.caches is not None
        # a hollow dot is drawn around a full one
        style = {"marker": "s" if by_hand else COUNTED["marker"], "markersize": 12 if hollow else 8}
        hue, order = colours[level], 3 if hollow else 4
        ax.plot([value], [height], color=hue, markerfacecolor=PAPER if hollow else hue, zorder=order, **style)
        if named:
            ax.annotate(level.split()[0], (value, height), (0, 9), color=hue, **ABOVE)


def _intensities(name, kernel, device, roofs) -> dict[str, float]:
    """{level: FLOP a byte} of a kernel, for the levels that have a roof."""
    if isinstance(kernel, tuple):
        flop, amounts = kernel[0], {[*roofs][-1]: kernel[1]}
    else:
        flop, work = kernel.flops, LaunchWork.of(kernel)
        amounts = {level: work.at(level, device) for level in roofs}
        if kernel.caches is not None:
            amounts[L2] = kernel.caches.l2_bytes
    if flop <= 0 or not any(amounts.values()):
        raise ValueError(
            f"{name} does {flop:,} FLOP and moves {sum(amounts.values()):,.0f} bytes: a roofline has a place "
            "only for a kernel that does both"
        )
    return {level: flop / amounts[level] for level in roofs if amounts.get(level)}


def _name_rails(ax, rails, heights):
    """Write the kernels' names right of the plot at the heights of their dots, moved apart if they touch."""
    floor, ceiling = ax.get_ylim()
    scale, end = (HEIGHT - 1.3) / math.log(ceiling / floor), ax.get_xlim()[1]
    places = spread([scale * math.log(heights[name] / floor) for name in rails], LINE)
    for name, place in zip(rails, places, strict=True):
        y = floor * math.exp(place / scale)
        ax.plot([max(rails[name].values()), end], [heights[name], y], color=INK, alpha=0.25, linewidth=0.8)
        text = textwrap.shorten(name, LETTERS, placeholder="…") if on_phone() else name
        ax.annotate(text, (end, y), (4, 0), va="center", annotation_clip=False, **BESIDE)


def spread(places, apart):
    """The places moved apart, in order, by a sweep from below until neighbours differ by `apart`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, after in zip(order, order[1:], strict=False):
        moved[after] = max(moved[after], moved[before] + apart)
    return moved


def _ticks(ax):
    for axis, (start, end) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        ticks = [10.0**k for k in range(math.ceil(math.log10(start)), math.floor(math.log10(end)) + 1)]
        axis.set_ticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.minorticks_off()


def _alt(spec, roofs, slopes, rails, heights, top) -> str:
    told = []
    for name, rail in rails.items():
        binds = min(rail.keys() & slopes.keys(), key=lambda level: slopes[level].si * rail[level])
        where = "arithmetic" if heights[name] * 1e12 >= top.si else binds
        places = ", ".join(f"{value:.3g} at {level}" for level, value in rail.items())
        told.append(f"{name}: {places} FLOP a byte, at most {heights[name]:.3g} TFLOP/s, bound by {where}")
    return f"A roofline of the {spec.short}, a roof for each level. {'; '.join(roofs)}. {'; '.join(told)}."
