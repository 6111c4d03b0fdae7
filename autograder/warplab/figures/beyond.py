"""Figures of chapter 12: a wave through an array, how full it is, energy by distance,
other makers' chips, and the whole way.
"""

import textwrap

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs
from warplab.figures import building

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
ROWS = ("blue", "orange", "green", "purple")  # one colour for each row of A


@plots.responsive
def wave(n, m, where, at):
    """Snapshots of an n x n systolic array in clocks `at`, while m rows of A pass through.

    where(t, n) -> for each cell, the row of A that it works on in clock t, or a number outside 0..m-1.
    """
    fig, axes = plots.new(plots.COLUMN, 2.4, phone=(plots.PHONE, 1.75), columns=len(at))
    for ax, t in zip(axes, at, strict=True):
        rows = where(t, n)
        for k in range(n):
            for j in range(n):
                busy = 0 <= rows[k, j] < m
                colour = COLOUR[ROWS[rows[k, j] % len(ROWS)]] if busy else "none"
                ax.add_patch(
                    Rectangle((j, k), 1, 1, facecolor=colour, alpha=0.45 if busy else 1, linewidth=0)
                )
                ax.add_patch(Rectangle((j, k), 1, 1, fill=False, edgecolor=INK, linewidth=0.8))
                if busy:
                    ax.text(j + 0.5, k + 0.54, str(rows[k, j]), ha="center", va="center", **SMALL)
        ax.set(xlim=(-0.15, n + 0.15), ylim=(n + 0.15, -0.15), aspect="equal", title=f"clock {t}")
        ax.set_axis_off()
    busy = [int(((where(t, n) >= 0) & (where(t, n) < m)).sum()) for t in at]
    said = "; ".join(f"clock {t}: {cells} of {n * n} cells busy" for t, cells in zip(at, busy, strict=True))
    return plots.show(
        fig,
        alt=f"A grid of {n} by {n} cells at {len(at)} moments. Each row of A is a diagonal that moves from "
        f"the upper left to the lower right. {said}.",
        caption="A row of A crosses the array as a diagonal wave: its numbers move to the right, sums move "
        f"down. {m} rows, {n} × {n} weights; the digit says whose numbers a cell works on.",
    )


@plots.responsive
def filling(counted):
    """The share of busy cells of an n x n array against m / n, for m rows of A: the formula m / (m + 2n - 2),
    and counts. counted: {(n, m): share}.
    """
    fig, ax = plots.new(plots.COLUMN, 2.8)
    for n, colour in ((8, "green"), (64, "blue"), (256, "orange")):
        m = n * np.geomspace(1 / 16, 64, 200)
        ax.plot(m / n, 100 * m / (m + 2 * n - 2), color=COLOUR[colour], linestyle=(0, (5, 3)), linewidth=1.8)
        points = {rows / size: 100 * share for (size, rows), share in counted.items() if size == n}
        ax.plot(
            list(points),
            list(points.values()),
            "P",
            color=COLOUR[colour],
            markersize=9,
            label=f"n = {n}, counted",
        )
    ax.set(
        xscale="log",
        xlabel="rows of A for each row of the array, m / n",
        ylabel="busy cells (%)",
        ylim=(0, 102),
    )
    ax.set_xticks([0.1, 1, 10, 64], ["0.1", "1", "10", "64"])
    ax.minorticks_off()
    ax.grid()
    ax.plot([], [], **THEORY, label="m / (m + 2n − 2)")
    plots.legend(fig, inside="lower right")
    said = "; ".join(f"{m} rows through {n} x {n}: {share:.1%}" for (n, m), share in counted.items())
    return plots.show(
        fig,
        alt="Share of an array's cells that are busy against the ratio of rows to the array's side. "
        f"Counted: {said}. A third at a ratio of one.",
        caption="The counts lie on the derived curve. One tile of rows keeps a third of the cells busy; it "
        "takes eighteen for nine tenths.",
        evidence=["counted", "theory"],
    )


@plots.responsive
def energy(picojoules):
    """Energy of operations on 32 bits at 45 nm, as dots on a logarithmic scale. picojoules: {name: pJ}, the
    cheapest first.
    """
    fig, ax = plots.new(plots.COLUMN, 2.9)
    for y, (name, value) in enumerate(picojoules.items()):
        colour = COLOUR["green" if "add" in name or "multiply" in name else "orange"]
        ax.plot(value, y, plots.MARKERS["published"]["marker"], markersize=8, color=colour)
        ax.annotate(f"{value:g}", (value, y), (8, 0), textcoords="offset points", va="center", **SMALL)
    ax.set(xscale="log", xlim=(0.05, 3000), ylim=(len(picojoules) - 0.4, -0.6), xlabel="picojoules")
    ax.set_yticks(range(len(picojoules)), list(picojoules))
    ax.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    _rows_only(ax)
    said = "; ".join(f"{name}: {value:g}" for name, value in picojoules.items())
    return plots.show(
        fig,
        alt=f"Energy of operations on 32 bits in a 45 nm process, published, in picojoules. {said}.",
        caption="A number from DRAM costs what 173 multiplications cost. Published estimates for 45 nm; "
        "green computes, orange fetches. Each line to the right is ten times as much.",
        evidence=["published"],
    )


def _rows_only(ax):
    """Style axes with a row for each name: no ticks and line at the left, a vertical grid."""
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


@plots.responsive
def fields(keys):
    """Accelerators by bandwidth: memory, bandwidth, and the time to read all of the memory once.

    keys: of the registry. NVIDIA's are blue, others orange.
    """
    chips = sorted((specs.get(key) for key in keys), key=lambda chip: -chip["memory_bandwidth"].si)
    size, rate = ([chip[f"memory_{fact}"].si for chip in chips] for fact in ("capacity", "bandwidth"))
    columns = {
        "GB of memory": [bytes_ / 1e9 for bytes_ in size],
        "TB/s, peak": [second / 1e12 for second in rate],
        "ms to read": [1e3 * bytes_ / second for bytes_, second in zip(size, rate, strict=True)],
    }
    tall = 0.6 + 0.3 * len(chips)
    fig, axes = plots.new(plots.COLUMN, tall, phone=(plots.PHONE, tall), columns=3, sharey=True)
    colours = [COLOUR["blue" if chip.vendor == "NVIDIA" else "orange"] for chip in chips]
    for ax, (title, values) in zip(axes, columns.items(), strict=True):
        ax.barh(range(len(chips)), values, height=0.6, color=colours, alpha=0.8)
        for y, value in enumerate(values):
            words = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
            ax.annotate(words, (value, y), (3, 0), textcoords="offset points", va="center", fontsize=9.8)
        ax.set(ylim=(len(chips) - 0.4, -0.6), xlim=(0, 1.3 * max(values)))
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xticks([])
        ax.tick_params(axis="y", length=0)
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
    axes[0].set_yticks(range(len(chips)), [chip.short.removesuffix(" SXM") for chip in chips])
    said = "; ".join(
        f"{chip.short}: {gb:.0f} GB, {tb:.2f} TB/s, {ms:.0f} ms"
        for chip, gb, tb, ms in zip(chips, *columns.values(), strict=True)
    )
    return plots.show(
        fig,
        alt=f"Memory capacity, peak bandwidth, and the time to read the whole memory once. {said}.",
        caption="Among chips with HBM capacity and peak bandwidth grow together, whoever makes them. Their "
        "quotient, the milliseconds, is the shortest step of decoding when the memory is full. Published; "
        "NVIDIA's chips in blue, others' in orange.",
        evidence=["published"],
    )


@plots.responsive
def ridges(keys, own):
    """Ridge points in dense BF16 of registry chips, and of this machine in FP32,
    measured. own: (FLOP/s, bytes/s).
    """
    chips = sorted((specs.get(key) for key in keys), key=lambda chip: chip["ridge_bf16"].value)
    here = own[0] / own[1]
    fig, ax = plots.new(plots.COLUMN, 0.9 + 0.3 * (len(chips) + 1))
    style = {"markersize": 9, "linestyle": "none", **plots.MARKERS["live"]}
    ax.plot([here], [0], **style)
    ax.annotate(f"{here:.0f}, live", (here, 0), (8, 0), textcoords="offset points", va="center", **SMALL)
    for y, chip in enumerate(chips, 1):
        value = chip["ridge_bf16"].value
        colour = COLOUR["blue" if chip.vendor == "NVIDIA" else "orange"]
        ax.plot([value], [y], plots.MARKERS["published"]["marker"], color=colour, markersize=8)
        ax.annotate(f"{value:.0f}", (value, y), (8, 0), textcoords="offset points", va="center", **SMALL)
    ax.set(xscale="log", xlim=(1, 1600), ylim=(len(chips) + 0.6, -0.6), xlabel="ridge point: FLOP a byte")
    ax.set_yticks(range(len(chips) + 1), ["this machine, FP32", *(chip.short for chip in chips)])
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    _rows_only(ax)
    said = "; ".join(f"{chip.short}: {chip['ridge_bf16'].value:.0f}" for chip in chips)
    return plots.show(
        fig,
        alt=f"Ridge points in FLOP a byte, dense BF16 from data sheets. {said}. This machine, measured in "
        f"FP32: {here:.0f}.",
        caption="All accelerators need hundreds of operations a byte before arithmetic limits them. "
        "Triangles: ridge points from data sheets, dense BF16, NVIDIA's in blue. "
        "This machine's processor: measured in FP32.",
        evidence=["live", "published"],
    )


@plots.responsive
def against_h100(rows):
    """The speed that roofs of data sheets allow, relative to an H100 SXM.

    rows: {chip: {operation: ratio}}.
    """
    fig, ax = plots.new(plots.COLUMN, 1.0 + 0.36 * len(rows))
    marks = (("v", "orange"), ("D", "blue"))
    for y, (_, ratios) in enumerate(rows.items()):
        ax.plot([min(ratios.values()), max(ratios.values())], [y, y], color=INK, linewidth=1, alpha=0.5)
        for (name, value), (mark, colour) in zip(ratios.items(), marks, strict=True):
            ax.plot([value], [y], mark, color=COLOUR[colour], markersize=8, label=name if y == 0 else None)
    ax.axvline(1, **THEORY)
    ax.set(xscale="log", xlim=(0.38, 3), ylim=(len(rows) - 0.4, -0.6), xlabel="at most, H100 SXM = 1")
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_xticks([0.5, 1, 2], ["½", "1", "2"])
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    plots.legend(fig, columnspacing=1.0, handletextpad=0.2)
    said = "; ".join(
        f"{chip}: " + ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
        for chip, ratios in rows.items()
    )
    return plots.show(
        fig,
        alt="Bounds relative to an H100 SXM for two shapes of a dense layer in BF16, from data sheets. "
        f"{said}.",
        caption="Theory, from peaks: for one row memory bandwidth alone decides, for 4,096 rows arithmetic "
        "alone. So the H200 leads Gaudi 3 at one row, and Gaudi 3 the H200 at 4,096.",
        evidence=["theory"],
    )


THIRDS = (-0.36, 0.0, 0.36)
GRID = [(u, v) for v in THIRDS for u in THIRDS]


def _squares(places, side):
    return [(u - side / 2, v - side / 2, side, side) for u, v in places]


# of each chapter, in a square of side 1 around 0: filled boxes (x, y, width, height), empty boxes, lines
PICTURES = {
    "Pixels": (_squares(GRID, 0.28), [], []),
    "Cores": (
        [
            (-0.5, -0.22, 0.44, 0.44),
            *_squares([(0.12 + 0.19 * i, -0.28 + 0.19 * j) for i in range(3) for j in range(4)], 0.12),
        ],
        [],
        [],
    ),
    "Parallel": ([], [], [*([(-0.5, v), (-0.15, v), (0.12, 0)] for v in THIRDS), [(0.12, 0), (0.5, 0)]]),
    "Products": (
        [(-0.5, 0.15, 0.38, 0.16), (0.15, -0.5, 0.16, 0.38), (0.15, 0.15, 0.16, 0.16)],
        [(-0.04, -0.04, 0.54, 0.54)],
        [],
    ),
    "Memory": (
        [
            (0.08, -0.5, 0.14, 0.36),
            (0.08, 0.14, 0.14, 0.36),
            *_squares([(u, v) for u in (-0.42, -0.16) for v in (-0.26, 0, 0.26)], 0.14),
            *_squares([(0.42, 0)], 0.14),
        ],
        [],
        [],
    ),
    "Fit": (
        [(-0.32, v, 0.64, 0.15) for v in (-0.46, -0.25, -0.04)],
        [],
        [[(-0.5, 0.18), (0.5, 0.18)], [(-0.38, 0.18), (-0.38, 0.5)], [(0.38, 0.18), (0.38, 0.5)]],
    ),
    "Precision": (
        _squares([(-0.38 + 0.25 * i, 0.16) for i in range(2)], 0.2),
        _squares([(-0.38 + 0.25 * i, -0.16) for i in range(4)], 0.2),
        [],
    ),
    "Stack": (
        [],
        [],
        [
            [
                (-0.5, -0.38),
                (-0.25, -0.38),
                (-0.25, -0.13),
                (0, -0.13),
                (0, 0.12),
                (0.25, 0.12),
                (0.25, 0.37),
                (0.5, 0.37),
            ]
        ],
    ),
    "Inference": (_squares([(-0.39, 0), (-0.13, 0), (0.13, 0)], 0.2), _squares([(0.39, 0)], 0.2), []),
    "Many GPUs": (
        _squares([(0, -0.36), (0.36, 0), (0, 0.36), (-0.36, 0)], 0.28),
        [],
        [[(0, -0.36), (0.36, 0), (0, 0.36), (-0.36, 0), (0, -0.36)]],
    ),
    "Choosing": (
        _squares([(-0.18, 0)], 0.12),
        [],
        [[(-0.5, 0), (-0.2, -0.32), (0.5, -0.32), (0.5, 0.32), (-0.2, 0.32), (-0.5, 0)]],
    ),
    "Beyond": (
        _squares([(u, -u) for u in THIRDS], 0.28),
        _squares([(u, v) for u, v in GRID if u != -v], 0.28),
        [],
    ),
}


@plots.responsive
def journey(stations):
    """The course as a line with a small picture for each chapter. stations: [(number, chapter, what the
    number is)], first to last.
    """
    last, middle, size = len(stations) - 1, 2.95, 0.66
    narrow = plots.on_phone()
    fig, ax = plots.new(5.0, 0.6 * len(stations), phone=(plots.PHONE, 0.72 * len(stations)))
    ax.plot([middle, middle], [0, last], color=INK, linewidth=2, alpha=0.35, zorder=1)
    for y, (number, chapter, says) in enumerate(stations):
        colour = COLOUR[building.part(y + 1)]
        ax.add_patch(
            Rectangle((middle - 0.4, y - 0.4), 0.8, 0.8, facecolor=plots.PAPER, linewidth=0, zorder=2)
        )
        filled, empty, lines = PICTURES[chapter]
        for boxes, style in (
            (filled, {"facecolor": colour, "linewidth": 0}),
            (empty, {"fill": False, "edgecolor": colour, "linewidth": 1}),
        ):
            for u, v, wide, tall in boxes:
                ax.add_patch(
                    Rectangle((middle + size * u, y + size * v), size * wide, size * tall, zorder=3, **style)
                )
        for line in lines:
            ax.plot(
                [middle + size * u for u, _ in line],
                [y + size * v for _, v in line],
                color=colour,
                linewidth=1.8,
                zorder=3,
            )
        written = [
            ax.text(2.4, y, number, ha="right", va="center", fontsize=15, weight="bold", color=colour),
            ax.text(3.5, y - (0.3 if narrow else 0.17), chapter, va="center", weight="bold"),
            ax.text(3.5, y + 0.16, textwrap.fill(says, 24 if narrow else 80), va="center", **SMALL),
        ]
        for text in written:  # else the layout shrinks the drawing for them
            text.set_in_layout(False)
    ax.set(xlim=(0.6, 6.3) if narrow else (0.75, 7.8), ylim=(last + 0.5, -0.5), aspect="equal")
    ax.set_axis_off()
    said = "; ".join(f"{chapter}: {number} {says}" for number, chapter, says in stations)
    return plots.show(
        fig,
        alt=f"{len(stations)} chapters on one thread, each with a small picture and a number. {said}.",
        caption="From a pixel to a bill, on one thread: computing (blue), the machine (green), using it "
        "(orange). The numbers are the registry's and the chapters' own.",
    )
