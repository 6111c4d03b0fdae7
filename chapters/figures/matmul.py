"""Figures of chapter 04: the worksheet, one answer, shares of the work, sectors, tiling, counters, roofline."""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
A_COLOUR, B_COLOUR, C_COLOUR = COLOUR["blue"], COLOUR["orange"], COLOUR["green"]
TINT = 0.28


def worksheet(a, b):
    """The product of two 2 x 2 integer matrices as a worksheet: four sums, each written out."""
    a, b = np.asarray(a), np.asarray(b)
    fig, ax = _canvas(6.4, 2.4, xlim=(-0.1, 11.0), ylim=(4.1, 0.2))
    _matrix(ax, 0.0, 0.9, a, "A", A_COLOUR)
    ax.text(2.35, 1.9, "×", ha="center", va="center", fontsize=15)
    _matrix(ax, 2.7, 0.9, b, "B", B_COLOUR)
    ax.text(5.1, 1.9, "=", ha="center", va="center", fontsize=15)
    for row in range(2):
        for col in range(2):
            x, y = 5.5 + 2.7 * col, 0.4 + 1.5 * row
            _box(ax, x, y, 2.7, 1.5, C_COLOUR if (row, col) == (0, 0) else None)
            sum_text = " + ".join(f"{a[row, k]}·{b[k, col]}" for k in range(2))
            ax.text(x + 1.35, y + 0.48, sum_text, ha="center", va="center", fontsize=11.5)
            ax.text(x + 1.35, y + 1.06, str(a[row] @ b[:, col]), ha="center", va="center", fontsize=14, weight="bold")
    ax.text(8.2, 3.75, "C", ha="center", va="center", fontsize=12)
    return plots.show(
        fig,
        alt="A two by two product written out. Row one of A, 2 and 1, meets column one of B, 5 and 6: 2 times 5 plus 1 times 6 "
        "is 16. The other three answers, 7, 39 and 28, are made the same way from their own row and column.",
        caption="Four answers, each from one row and one column. No answer appears in another answer's sum.",
    )


def one_answer():
    """One output as a row times a column, and the chain of multiply-adds inside it."""
    fig, ax = _canvas(6.4, 4.0, xlim=(-0.1, 11.4), ylim=(8.0, -0.2))
    _box(ax, 0, 3.3, 3.2, 2.6)
    _box(ax, 0, 4.4, 3.2, 0.4, A_COLOUR)
    _box(ax, 3.7, 0, 3.2, 2.8)
    _box(ax, 5.2, 0, 0.4, 2.8, B_COLOUR)
    _box(ax, 3.7, 3.3, 3.2, 2.6)
    _box(ax, 5.2, 4.4, 0.4, 0.4, C_COLOUR)
    for x, y, text in ((1.6, 3.75, "A  (M × K)"), (4.45, 0.45, "B"), (4.45, 0.95, "(K × N)"), (5.3, 5.4, "C  (M × N)")):
        ax.text(x, y, text, ha="center", va="center")
    ax.annotate("", (5.15, 4.6), (3.25, 4.6), arrowprops=_arrow(A_COLOUR))
    ax.annotate("", (5.4, 4.35), (5.4, 2.85), arrowprops=_arrow(B_COLOUR))
    ax.text(7.4, 0.4, "M × N answers:", va="center", weight="bold")
    ax.text(7.4, 0.85, "in any order,\nby any student", va="top")
    ax.text(7.4, 4.1, "K steps inside one:", va="center", weight="bold")
    ax.text(7.4, 4.55, "each needs the sum\nso far", va="top")
    for step, label in enumerate(("1st pair", "+ 2nd", "+ 3rd", "…", "+ Kth")):
        x = 2.3 * step
        _box(ax, x, 6.9, 1.75, 0.9, C_COLOUR)
        ax.text(x + 0.875, 7.35, label, ha="center", va="center", fontsize=11.5)
        if step:
            ax.annotate("", (x - 0.03, 7.35), (x - 0.52, 7.35), arrowprops=_arrow(INK))
    return plots.show(
        fig,
        alt="One answer of C is one row of A times one column of B. The M times N answers do not depend on each other. Inside one "
        "answer K multiply-adds form a chain: each adds to the sum that the one before it left.",
        caption="The answers are independent. The steps inside one answer are not.",
    )


def shares(models):
    """`models`: {name: {kind of work: operations, ..., the rest: operations}}, drawn as one bar of 100 % for each model."""
    fig, ax = plots.new(6.4, 0.85 + 1.05 * len(models))
    kinds = dict.fromkeys(kind for work in models.values() for kind in list(work)[:-1])
    colours = dict(zip(kinds, [A_COLOUR, B_COLOUR, C_COLOUR], strict=False))
    for y, (name, work) in enumerate(models.items()):
        total, left = sum(work.values()), 0.0
        ax.text(0, y - 0.4, name, va="bottom", weight="bold")
        for kind, amount in work.items():
            width, colour = 100 * amount / total, colours.get(kind, COLOUR["grey"])
            ax.barh(y, width, left=left, height=0.62, color=colour, alpha=0.75, edgecolor=PAPER)
            if width > 12:
                ax.text(left + width / 2, y, f"{kind}\n{width:.1f} %", ha="center", va="center", fontsize=10.5)
            left += width
        small = [f"{kind} {100 * amount / total:.1f} %" for kind, amount in work.items() if 100 * amount / total <= 12]
        ax.text(100, y - 0.4, ", ".join(small), va="bottom", ha="right", fontsize=10.5)
    ax.set(xlim=(0, 100), ylim=(len(models) - 0.5, -0.75), xlabel="share of the forward pass's operations (%)")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    said = "; ".join(
        f"{name}: " + ", ".join(f"{kind} {100 * v / sum(work.values()):.1f} %" for kind, v in work.items())
        for name, work in models.items()
    )
    return plots.show(
        fig,
        alt=f"Shares of the operations in a forward pass. {said}.",
        caption="Almost everything that these two models compute is a matrix product. What is left is a sliver.",
    )


def sectors():
    """Which 32-byte sectors one warp asks for: naive step against tile load, 16 and 32 wide."""
    loads = (
        ("16 wide, naive: every step", [(1, "A"), (1, "A"), (0, ""), (8, "B"), (8, "B")]),
        ("32 wide, naive: every step", [(1, "A"), (0, ""), (8, "B"), (8, "B"), (8, "B"), (8, "B")]),
        ("16 wide, tiled: once in 16 steps", [(8, "A")] * 4 + [(0, "")] + [(8, "B")] * 4),
        ("32 wide, tiled: once in 32 steps", [(8, "A")] * 4 + [(0, "")] + [(8, "B")] * 4),
    )
    fig, ax = _canvas(6.4, 4.0, xlim=(-0.1, 10.6), ylim=(8.3, -0.6))
    for row, (title, pieces) in enumerate(loads):
        y, x = 2.2 * row, 0.0
        ax.text(0, y - 0.05, title, va="bottom")
        for used, name in pieces:
            if not name:
                x += 0.3
                continue
            for cell in range(8):
                colour = A_COLOUR if name == "A" else B_COLOUR
                _box(ax, x + 0.12 * cell, y + 0.2, 0.12, 0.62, colour if cell < used else None, line=0.5, alpha=0.85)
            _box(ax, x, y + 0.2, 0.96, 0.62, line=1.6)
            ax.text(x + 0.48, y + 1.2, name, ha="center", va="center", fontsize=10.5)
            x += 1.09
        count = sum(1 for _, name in pieces if name)
        ax.text(10.55, y - 0.05, f"{count} sectors", ha="right", va="bottom", weight="bold")
    return plots.show(
        fig,
        alt="What one warp asks for, in sectors of eight numbers. Naive, 16 wide: two sectors of A with one used number each, and two "
        "full sectors of B, every step. Naive, 32 wide: one sector of A with one used number, four full sectors of B, every step. "
        "Tiled: four full sectors of A and four of B, once in 16 or once in 32 steps.",
        caption="A naive step asks for few sectors of A, because its lanes share a number, and wastes most of each. "
        "A tile load uses every byte that it asks for.",
    )


def tiling(tile=16):
    """One tile of C, its strips of A and B, and what one step of the walk costs."""
    fig, ax = _canvas(6.4, 3.9, xlim=(-0.2, 12.2), ylim=(7.6, -0.3))
    _box(ax, 0, 3.3, 3.6, 3.6)
    _box(ax, 4.1, -0.1, 3.6, 3.1)
    _box(ax, 4.1, 3.3, 3.6, 3.6)
    for k in range(4):
        _box(ax, 0.9 * k, 4.2, 0.9, 0.9, A_COLOUR, alpha=0.8 if k == 1 else TINT)
        _box(ax, 5.0, -0.1 + 0.775 * k, 0.9, 0.775, B_COLOUR, alpha=0.8 if k == 1 else TINT)
    _box(ax, 5.0, 4.2, 0.9, 0.9, C_COLOUR, alpha=0.8)
    for x, y, name in ((0.5, 3.7, "A"), (4.5, 0.3, "B"), (4.6, 3.7, "C")):
        ax.text(x, y, name, ha="center", va="center", weight="bold")
    ax.annotate("", (3.3, 5.45), (0.3, 5.45), arrowprops=_arrow(A_COLOUR))
    ax.annotate("", (6.3, 2.8), (6.3, 0.1), arrowprops=_arrow(B_COLOUR))
    bytes_in, work = 2 * tile * tile * 4, 2 * tile**3
    lines = (
        ("one step of the walk", None),
        (f"{tile}×{tile} numbers of A", A_COLOUR),
        (f"{tile}×{tile} numbers of B", B_COLOUR),
        (f"= {bytes_in:,} bytes in", None),
        (f"{tile}³ multiply-adds", C_COLOUR),
        (f"= {work:,} FLOP", None),
        (f"{work / bytes_in:g} FLOP a byte", None),
    )
    for number, (text, colour) in enumerate(lines):
        y = 0.4 + 0.95 * number
        bold = "bold" if number in (0, len(lines) - 1) else "normal"
        if colour:
            _box(ax, 8.15, y - 0.18, 0.36, 0.36, colour, alpha=0.8)
        ax.text(8.7 if colour else 8.15, y, text, va="center", weight=bold)
    return plots.show(
        fig,
        alt=f"A tile of C is made by walking along a strip of A and down a strip of B, one pair of {tile} by {tile} tiles at a time. "
        f"A step brings in {bytes_in:,} bytes and does {work:,} floating-point operations: {work / bytes_in:g} for each byte.",
        caption=f"A tile {tile} wide does {work / bytes_in:g} FLOP for each byte that it fetches: a quarter of its width.",
    )


def counters(profiles):
    """`profiles`: {kernel name: profile}. Global load requests, bytes asked for and shared load requests, as bars."""
    names = list(profiles)
    panels = (
        ("global load requests (thousands)", [p.global_load.requests / 1e3 for p in profiles.values()], A_COLOUR),
        ("asked of global memory (MiB)", [p.global_load.bytes / 2**20 for p in profiles.values()], B_COLOUR),
        ("shared load requests (thousands)", [p.shared_load.requests / 1e3 for p in profiles.values()], C_COLOUR),
    )
    fig, axes = plots.new(6.4, 5.6, rows=3)
    for ax, (title, values, colour) in zip(axes, panels, strict=True):
        ax.barh(names, values, height=0.66, color=colour, alpha=0.75)
        for y, value in enumerate(values):
            ax.annotate(f"{value:,.0f}", (value, y), (5, 0), textcoords="offset points", va="center", fontsize=10.5)
        ax.set_title(title, loc="left", fontsize=11)
        ax.set(xlim=(0, 1.13 * max(values)), xticks=[])
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.spines["bottom"].set_visible(False)
    said = "; ".join(
        f"{name}: {p.global_load.requests:,} global load requests, {p.global_load.bytes / 2**20:.0f} MiB, "
        f"{p.shared_load.requests:,} shared load requests"
        for name, p in profiles.items()
    )
    return plots.show(
        fig,
        alt=f"Counters of the kernels on the same product. {said}.",
        caption="Same product, same answer. The tile cuts the trips through the door; the register tile cuts them again, "
        "and the trips to the table with them.",
    )


def roofline(peak, bandwidth, intensities, fewest):
    """Where counted intensities fall under a data-sheet roof; nothing here is a measured speed.

    peak: FLOP/s; bandwidth: byte/s; intensities: {kernel name: FLOP per byte}; fewest: FLOP per byte of the fewest possible bytes.
    """
    ridge = peak / bandwidth
    x = np.array([0.25, ridge, 256.0])
    fig, ax = plots.new(6.4, 4.1)
    ax.plot(x, np.minimum(peak, bandwidth * x) / 1e12, color=INK, linestyle=(0, (5, 3)), linewidth=1.8)
    colours = dict(zip(intensities, [COLOUR["grey"], COLOUR["grey"], A_COLOUR, A_COLOUR, B_COLOUR], strict=False))
    floor = 0.05
    for name, value in {**intensities, "every byte once": fewest}.items():
        colour, bound = colours.get(name, C_COLOUR), min(peak, bandwidth * value) / 1e12
        ax.plot([value, value], [floor, bound], color=colour, linewidth=2.2)
        side = -1 if value < 0.45 else 1
        align = "right" if side < 0 else "left"
        ax.annotate(name, (value, floor * 1.2), (4 * side, 0), textcoords="offset points", rotation=90, ha=align, fontsize=10.5)
    ax.text(ridge * 1.15, peak / 1e12 * 1.13, f"FP32 peak {peak / 1e12:.0f} TFLOP/s", ha="left", va="bottom", fontsize=10.5)
    slope = f"{bandwidth / 1e12:.2f} TB/s"
    ax.annotate(slope, (2, 2 * bandwidth / 1e12), (-6, 6), textcoords="offset points", ha="right", fontsize=10.5)
    ax.set(xscale="log", yscale="log", xlim=(0.25, 256), ylim=(floor, peak / 1e12 * 2.2))
    ax.set(xlabel="FLOP for each byte asked of memory", ylabel="at most (TFLOP/s)")
    ax.set_xticks([0.25, 1, 4, 16, 64, 256], ["¼", "1", "4", "16", "64", "256"])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.minorticks_off()
    said = ", ".join(f"{name} {value:.3g}" for name, value in intensities.items())
    return plots.show(
        fig,
        alt=f"A roofline from data-sheet numbers: a slope of {slope} up to a ridge at {ridge:.0f} FLOP a byte, then flat. "
        f"Counted intensities in FLOP a byte: {said}; fetching every byte once would be {fewest:.0f}. All kernels stand left of the ridge.",
        caption=f"Theory, not measurement (dashed): counted against the door, all five kernels stand left of the ridge at {ridge:.0f} "
        "FLOP a byte. Each step of reuse moves them right.",
    )


def _canvas(width, height, xlim, ylim):
    fig, ax = plots.new(width, height)
    ax.set(xlim=xlim, ylim=ylim)
    ax.set_axis_off()
    return fig, ax


def _box(ax, x, y, width, height, colour=None, fill=True, line=1.2, alpha=TINT):
    """A rectangle outlined in ink; tinted when `colour` is given, or outlined in it when `fill` is false."""
    if colour and fill:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=alpha, linewidth=0))
    edge = colour if colour and not fill else INK
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=edge, linewidth=line if fill else 2.6))


def _matrix(ax, x, y, values, name, colour):
    """Draw a small matrix of numbers with unit cells; its first row (A) or column (B) is tinted by the caller's outline."""
    for row in range(values.shape[0]):
        for col in range(values.shape[1]):
            chosen = (row == 0) if name == "A" else (col == 0)
            _box(ax, x + col, y + row, 1, 1, colour if chosen else None)
            ax.text(x + col + 0.5, y + row + 0.5, str(values[row, col]), ha="center", va="center", fontsize=14)
    ax.text(x + values.shape[1] / 2, 3.75, name, ha="center", va="center", fontsize=12)


def _arrow(colour):
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6}
