"""Figures of chapter 12: a wave through an array, how full it is, energy by distance,
other makers' chips, and the whole way.
"""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
ROWS = ("blue", "orange", "green", "purple")  # one colour for each row of A
PLACES = {  # where a chip's name stands beside its point, in points
    "h100-sxm": (-8, 7),
    "h200-sxm": (-9, 4),
    "b200": (-9, -4),
    "b300": (10, 6),
    "mi300x": (9, -7),
    "mi325x": (9, 4),
    "mi355x": (10, -6),
    "tpu-v5p": (-9, -6),
    "tpu-v7x": (0, 14),
    "trainium2": (9, -8),
    "gaudi3": (9, 0),
}


@plots.responsive
def wave(n, m, where, at):
    """Snapshots of an n x n array: where(t, n) gives, for each cell, the row of A that
    it works on in clock t, or one outside 0..m-1.
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
        caption=f"{m} rows of A cross an array of {n} × {n} weights; the digit says whose numbers a cell "
        "works on. Numbers move to the right, sums move down, and a row crosses as a diagonal wave.",
    )


@plots.responsive
def filling(counted):
    """Share of busy cells against rows per column: theory m / (m + 2n - 2), and counts.
    counted: {(n, m): share}.
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
    """Energy of an operation on 32 bits at 45 nm, on a logarithmic scale. picojoules:
    {name: pJ}, cheapest first.
    """
    fig, ax = plots.new(plots.COLUMN, 2.9)
    for y, (name, value) in enumerate(picojoules.items()):
        ax.barh(
            y,
            value,
            left=0,
            height=0.6,
            color=COLOUR["green" if "add" in name or "multiply" in name else "orange"],
            alpha=0.8,
        )
        ax.annotate(f"{value:g}", (value, y), (5, 0), textcoords="offset points", va="center", **SMALL)
    ax.set(xscale="log", xlim=(0.03, 3000), ylim=(len(picojoules) - 0.4, -0.6), xlabel="picojoules")
    ax.set_yticks(range(len(picojoules)), list(picojoules))
    ax.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    said = "; ".join(f"{name}: {value:g}" for name, value in picojoules.items())
    return plots.show(
        fig,
        alt=f"Energy of operations on 32 bits in a 45 nm process, published, in picojoules. {said}.",
        caption="Published estimates for 45 nm. Green computes, orange fetches: a number from DRAM costs "
        "what 173 multiplications cost.",
        evidence=["published"],
    )


@plots.responsive
def fields(keys):
    """Desk against door of accelerators with memory beside the chip; NVIDIA's in blue, others in orange."""
    fig, ax = plots.new(plots.COLUMN, 4.2)
    said = []
    for key in keys:
        chip = specs.get(key)
        x, y = chip["memory_capacity"].si / 1e9, chip["memory_bandwidth"].si / 1e12
        place = PLACES.get(key, (9, 0))
        shared = any((line.get_xdata()[0], line.get_ydata()[0]) == (x, y) for line in ax.get_lines())
        ax.plot(
            x,
            y,
            plots.MARKERS["published"]["marker"],
            markersize=3.5 if shared else 8,  # inside the other's
            color=COLOUR["blue" if chip.vendor == "NVIDIA" else "orange"],
        )
        ax.annotate(
            chip.short,
            (x, y),
            place,
            textcoords="offset points",
            va="center",
            ha="right" if place[0] < 0 else "left",
            **SMALL,
        )
        said.append(f"{chip.short}: {x:.0f} GB, {y:.2f} TB/s")
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(25, 520),
        ylim=(0.4, 11),
        xlabel="desk: GB of memory",
        ylabel="door: TB/s, peak",
    )
    ax.set_xticks([32, 64, 128, 256], ["32", "64", "128", "256"])
    ax.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    ax.minorticks_off()
    ax.grid()
    return plots.show(
        fig,
        alt=f"Memory capacity against memory bandwidth, both logarithmic. {'; '.join(said)}.",
        caption="Published peaks: NVIDIA's in blue, others' in orange. Desks and doors grow together, "
        "whoever makes them.",
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
        ax.plot([1, value], [y, y], color=colour, linewidth=2, alpha=0.5)
        ax.plot([value], [y], plots.MARKERS["published"]["marker"], color=colour, markersize=8)
        ax.annotate(f"{value:.0f}", (value, y), (8, 0), textcoords="offset points", va="center", **SMALL)
    ax.set(xscale="log", xlim=(1, 1600), ylim=(len(chips) + 0.6, -0.6), xlabel="ridge point: FLOP a byte")
    ax.set_yticks(range(len(chips) + 1), ["this machine, FP32", *(chip.short for chip in chips)])
    ax.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    said = "; ".join(f"{chip.short}: {chip['ridge_bf16'].value:.0f}" for chip in chips)
    return plots.show(
        fig,
        alt=f"Ridge points in FLOP a byte, dense BF16 from data sheets. {said}. This machine, measured in "
        f"FP32: {here:.0f}.",
        caption="Ridge points: triangles from data sheets, in dense BF16, and this machine's processor "
        "measured in FP32. All accelerators need hundreds.",
        evidence=["live", "published"],
    )


@plots.responsive
def against_h100(rows):
    """What the roofs allow relative to an H100 SXM: rows = {chip: {operation: times an
    H100}}. Theory from data sheets.
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
        caption="Theory, from peaks: one reader is served by the door alone, 4,096 rows by the students "
        "alone. A chip that wins at one can lose at the other.",
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
    """The course as one thread, a small picture at each chapter. stations: [(number,
    chapter, what the number says), ...], first to last.
    """
    last, middle, size = len(stations) - 1, 2.95, 0.66
    fig, ax = plots.new(5.0, 0.6 * len(stations))
    ax.plot([middle, middle], [0, last], color=INK, linewidth=2, alpha=0.35, zorder=1)
    for y, (number, chapter, says) in enumerate(stations):
        colour = COLOUR[("blue", "green", "orange")[y // 4]]
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
        ax.text(2.4, y, number, ha="right", va="center", fontsize=15, weight="bold", color=colour)
        ax.text(3.5, y - 0.17, chapter, va="center", weight="bold")
        ax.text(3.5, y + 0.2, says, va="center", **SMALL)
    ax.set(xlim=(0.75, 7.55), ylim=(last + 0.5, -0.5), aspect="equal")
    ax.set_axis_off()
    said = "; ".join(f"{chapter}: {number} {says}" for number, chapter, says in stations)
    return plots.show(
        fig,
        alt=f"The twelve chapters on one thread, each with a small picture and a number. {said}.",
        caption="From a pixel to a bill, on one thread: computing (blue), the machine (green), using it "
        "(orange). The numbers are the registry's and the chapters' own.",
    )
