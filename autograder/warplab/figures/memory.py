"""Figures of chapter 05: the hierarchy, a walk through caches, halos, strides,
intensities, floors of time, attention's bytes.
"""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots
from warplab.evidence.measure import published
from warplab.figures.taken import unmeasured

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
CHAPTER_4 = {
    "matmul, naive": (0.498, 1),
    "matmul, tile of 32": (7.53, 1),
    "matmul, register tile": (14.2, 1),
}  # FLOP to one byte, counted there


@plots.responsive
def hierarchy(spec, latencies):
    """The capacity of each memory level of an H100 SXM, and the published cycles of a load from it.

    spec: registry entry; latencies: {level: [(cycles, source), ...]} with the levels
    "shared", "L1", "L2", "HBM".
    """
    sms = spec["sms"].value
    rows = [
        ("registers", 4 * spec["registers_per_sm"].value * sms, []),
        ("shared + L1", spec["unified_cache_per_sm"].si * sms, [*latencies["shared"], *latencies["L1"]]),
        ("L2", spec["l2_cache"].si, latencies["L2"]),
        ("HBM", spec["memory_capacity"].si, latencies["HBM"]),
    ]
    fig, (left, right) = plots.new(plots.COLUMN, 2.7, columns=2, width_ratios=[1.15, 1])
    colours = ("green", "blue", "purple", "orange")
    for y, ((_, size, cycles), colour) in enumerate(zip(rows, colours, strict=True)):
        left.plot([size], [y], "o", markersize=9, color=COLOUR[colour])
        left.annotate(
            binary(size) if y < 3 else "80 GB",
            (size, y),
            (9, 0),
            textcoords="offset points",
            va="center",
            **SMALL,
        )
        style = {"markersize": 8, "markeredgewidth": 2, "linestyle": "none"}
        for number, _ in cycles:
            right.plot([number], [y], **style, **plots.MARKERS["published"])
    left.set(xscale="log", xlim=(4e6, 4e12), ylim=(3.6, -0.6), title="holds, all SMs together")
    left.set_yticks(range(4), [name for name, _, _ in rows])
    left.set_xticks([2**20 * 10, 2**30, 2**40], ["10 MiB", "1 GiB", "1 TiB"])
    right.set(xscale="log", xlim=(10, 2000), ylim=(3.6, -0.6), title="latency, clock cycles")
    right.set_yticks(range(4) if plots.on_phone() else [])
    if plots.on_phone():
        right.set_yticklabels([name for name, _, _ in rows])
    right.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
    right.text(12, 0, "no request at all", va="center", style="italic", **SMALL)
    right.annotate("shared", (30, 1), (-6, 0), textcoords="offset points", ha="right", va="center", **SMALL)
    right.annotate("L1", (40, 1), (7, 0), textcoords="offset points", va="center", **SMALL)
    for ax in (left, right):
        ax.minorticks_off()
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x")
        ax.spines["left"].set_visible(False)
    said = "; ".join(
        f"{name}: {binary(size) if name != 'HBM' else '80 GB'}"
        + (f", {' or '.join(f'{c:.0f}' for c, _ in cycles)} cycles" if cycles else "")
        for name, size, cycles in rows
    )
    return plots.show(
        fig,
        alt=f"Capacity and published latency of an H100 SXM's memories. {said}.",
        caption="An H100 SXM: each level further out holds at least as much and answers later. Sizes from "
        "the registry; triangles are latencies published by others, two each for L1, L2 and HBM.",
        evidence=["published"],
    )


def binary(size):
    """Bytes as text with a binary unit: 34603008 is "33 MiB"."""
    scale, unit = next((scale, unit) for scale, unit in UNITS if size >= scale)
    return f"{size / scale:.3g} {unit}"


@plots.responsive
def chase(sizes, shuffled, in_order):
    """Live: nanoseconds a step of pointer chases over arrays of `sizes` bytes, with links shuffled and in
    order.
    """
    fig, ax = plots.new(plots.COLUMN, 2.9)
    for times, colour, name in ((shuffled, "orange", "links shuffled"), (in_order, "blue", "links in order")):
        style = {**plots.MARKERS["live"], "color": COLOUR[colour], "markerfacecolor": COLOUR[colour]}
        ax.plot(sizes, [1e9 * t for t in times], linewidth=1.5, markersize=6, label=name, **style)
    ax.set(xscale="log", yscale="log", xlabel="size of the array", ylabel="nanoseconds a step")
    ticks = [2**k for k in (13, 16, 20, 24, 27) if sizes[0] <= 2**k <= sizes[-1]]
    ax.set_xticks(ticks, [binary(t) for t in ticks])
    low, high = 1e9 * min(*shuffled, *in_order), 1e9 * max(*shuffled, *in_order)
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low / 2 < t < high * 2]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="upper left")
    first, last = 1e9 * shuffled[0], 1e9 * shuffled[-1]
    return plots.show(
        fig,
        alt=f"Time of one step against the array's size, measured on this machine. Shuffled: {first:.3g} ns "
        f"at {binary(sizes[0])}, rising in steps to {last:.3g} ns at {binary(sizes[-1])}. In order: "
        f"{1e9 * in_order[0]:.3g} ns to {1e9 * in_order[-1]:.3g} ns.",
        caption="Live, one core of this machine: the same number of steps, and each cache that the array "
        "outgrows makes a step dearer. Where a step goes to the neighbour, the hardware fetches ahead.",
        evidence=["live"],
    )


@plots.responsive
def halo():
    """A 32 x 32 tile with its border of one pixel, and the sectors that one of its 34 rows touches."""
    fig, (left, right) = plots.new(plots.COLUMN, 2.7, columns=2, width_ratios=[1, 1.75])
    for ax in (left, right):
        ax.set_axis_off()
    left.set(xlim=(-1, 35), ylim=(37, -4), aspect="equal")
    left.add_patch(
        Rectangle((0, 0), 34, 34, facecolor=COLOUR["orange"], alpha=0.35, edgecolor=INK, linewidth=1)
    )
    left.add_patch(Rectangle((1, 1), 32, 32, facecolor=plots.PAPER, edgecolor="none"))
    left.add_patch(
        Rectangle((1, 1), 32, 32, facecolor=COLOUR["blue"], alpha=0.35, edgecolor=INK, linewidth=1)
    )
    left.text(17, 17, "32 × 32\npixels made", ha="center", va="center", **SMALL)
    left.text(17, -1.5, "34 × 34 read", ha="center", **SMALL)
    right.set(xlim=(-0.3, 48.3), ylim=(6.2, -1.6))
    right.text(24, -0.75, "one row of 34, in sectors of 32 bytes", ha="center", va="center", **SMALL)
    for sector in range(6):
        right.add_patch(Rectangle((8 * sector, 0), 8, 1.1, fill=False, edgecolor=INK, linewidth=1.6))
    for start, count, y, colour, name in (
        (7, 32, 2.5, "blue", "first request: 5 sectors"),
        (39, 2, 4.3, "purple", "second: 2"),
    ):
        right.add_patch(Rectangle((start, 0), count, 1.1, facecolor=COLOUR[colour], alpha=0.55, linewidth=0))
        for sector in sorted({cell // 8 for cell in range(start, start + count)}):
            right.add_patch(
                Rectangle((8 * sector + 0.3, y), 7.4, 0.55, facecolor=COLOUR[colour], alpha=0.85, linewidth=0)
            )
        middle = start + count / 2
        right.text(middle, y + 1.05, name, ha="center", va="center", **SMALL)
    return plots.show(
        fig,
        alt="A tile of 32 by 32 pixels needs 34 by 34. A row of 34 floats begins four bytes before an "
        "aligned sector. The first request, 32 floats, touches five sectors; the second, two floats, "
        "touches two, one of them again.",
        caption="A halo of one pixel costs two more rows, and in each row three more sectors: 34 × 7 = 238 "
        "where 32 × 4 = 128 would be the fewest.",
    )


@plots.responsive
def strides(counted, here, gpu):
    """The cost of copying one number against the stride, relative to stride 1.

    counted: {stride: sectors a request}. here: {stride: seconds on this machine}. gpu: the same on a GPU, or
    {}.
    """
    fig, ax = plots.new(plots.COLUMN, 3.1)
    steps, nothing = list(counted), unmeasured("copy_bandwidth")
    ax.plot(
        steps,
        [counted[s] / counted[1] for s in steps],
        linewidth=1.8,
        markersize=8,
        **plots.COUNTED,
        label="GPU kernel: sectors, counted",
    )
    style = plots.MARKERS["live"]
    ax.plot(
        steps,
        [here[s] / here[1] for s in steps],
        linewidth=1.5,
        markersize=7,
        label="NumPy, here: time, live",
        **style,
    )
    if gpu:
        live = {**style, "color": COLOUR["orange"], "markerfacecolor": COLOUR["orange"]}
        ax.plot(
            steps,
            [gpu[s] / gpu[1] for s in steps],
            linewidth=1.5,
            markersize=7,
            label="GPU kernel: time, live",
            **live,
        )
    else:
        ax.plot([], [], linestyle="none", label=f"GPU kernel: time, {nothing}")
    ax.set(xscale="log", yscale="log", xlabel="stride, in numbers of 4 bytes", ylabel="cost, stride 1 = 1")
    ax.set_xticks(steps, [str(s) for s in steps])
    dearest = max(here[s] / here[1] for s in steps)
    ticks = [2**k for k in range(8) if 2**k <= max(8, dearest)]
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="upper left")
    said = ", ".join(f"{s}: {counted[s] / counted[1]:g} and {here[s] / here[1]:.1f}" for s in steps)
    return plots.show(
        fig,
        alt="Cost of copying one number, relative to stride 1. Counted sectors of the GPU kernel and "
        f"measured time of NumPy on this machine, by stride: {said}. The GPU kernel's time: "
        f"{'live' if gpu else nothing}.",
        caption="The kernel's sectors stop growing at stride 8, where each number already has a sector of "
        "its own. A CPU's cache lines are 64 bytes on most machines, so its copy usually goes on "
        "getting dearer.",
        evidence=["counted", "live"],
    )


@plots.responsive
def random_reads(measurement):
    """How many times longer a number takes when a table is read at random: live on this CPU, and published.

    measurement: warplab.measure("random_reads"). Beside it stands what the same author published of reads at
    stride 8, where each number has a sector of its own, too.
    """
    strided = {
        p.x: p.rate for e in published("copy_bandwidth") for p in e.points if p.series == "strided read"
    }
    rows = [("GTX 1070 Ti, stride 8", strided[1] / strided[8], "published")]
    here = [evidence for evidence in measurement.evidence if evidence.kind == "live"]
    for evidence in [*published("random_reads"), *here]:
        series = evidence.series()
        ordered = next(points for name, points in series.items() if name.endswith("in order"))
        rates = {p.x: p.rate for p in ordered}
        for name, points in series.items():
            if name.endswith("at random"):
                where = (
                    "this CPU" if name.startswith("cpu") else evidence.device.removeprefix("NVIDIA GeForce ")
                )
                rows += [(f"{where}, {binary(p.x)}", rates[p.x] / p.rate, evidence.kind) for p in points]
    fig, ax = plots.new(plots.COLUMN, 1.1 + 0.42 * len(rows), phone=(plots.PHONE, 1.1 + 0.55 * len(rows)))
    for y, (_, ratio, kind) in enumerate(rows):
        ax.barh(y, ratio, height=0.55, color=plots.MARKERS[kind]["color"], alpha=0.75)
        box = {"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1}
        ax.annotate(
            f"{ratio:.1f}", (ratio, y), (5, 0), textcoords="offset points", va="center", bbox=box, **SMALL
        )
    ax.axvline(8, **THEORY)
    ax.annotate("a sector for each number: 8", (8, -0.75), (5, 0), textcoords="offset points", **SMALL)
    ax.set(xlim=(0, 1.12 * max(r for _, r, _ in rows)), ylim=(len(rows) - 0.5, -1.0))
    ax.set(xlabel="times as long as in order, stride 1")
    names = [name.replace(", ", ",\n") if plots.on_phone() else name for name, _, _ in rows]
    ax.set_yticks(range(len(rows)), names)
    ax.tick_params(axis="y", length=0)
    said = "; ".join(f"{name}: {ratio:.1f} times ({kind})" for name, ratio, kind in rows)
    return plots.show(
        fig,
        alt=f"How many times as long a number takes as in a table read in order. {said}. A dashed line at 8: "
        "a sector of 32 bytes for each number of 4.",
        caption="Blue: live, this CPU, where small tables stay in its caches. Gold: published, a table of "
        "256 MiB. Sectors explain a factor of 8 there, and the strided read keeps to it; at random a number "
        "of the GTX 1070 Ti takes four times as long again.",
        evidence=["live", "published"],
    )


@plots.responsive
def intensities(spec, operations):
    """Operations of deep learning as dots at their FLOP a byte, against the BF16 ridge of an
    H100. operations: {name: FLOP a byte}.
    """
    ridge = spec["ridge_bf16"].value
    fig, ax = plots.new(plots.COLUMN, 0.8 + 0.36 * len(operations))
    for y, (_, value) in enumerate(operations.items()):
        ax.plot([value], [y], "o", markersize=9, color=COLOUR["green" if value > ridge else "orange"])
        share = min(1, value / ridge)
        label = f"{value:.2f}" if value < 10 else f"{value:,.0f}"
        label += f" ({100 * share:.1g} %)" if share < 0.01 else f" ({100 * share:.0f} %)" if share < 1 else ""
        box = {"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1}
        ax.annotate(label, (value, y), (9, 0), textcoords="offset points", va="center", bbox=box, **SMALL)
    ax.axvline(ridge, **THEORY)
    ax.set(
        xscale="log",
        xlim=(0.08, 3e4),
        ylim=(len(operations) - 0.4, -0.6),
        xlabel="FLOP a byte of HBM, every byte once",
    )
    ax.grid(axis="x")
    ax.set_yticks(range(len(operations)), list(operations))
    ax.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    said = "; ".join(f"{name}: {value:.3g}" for name, value in operations.items())
    return plots.show(
        fig,
        alt=f"Arithmetic intensity of operations in BF16, in FLOP a byte. {said}. The ridge of an H100 SXM "
        f"is at {ridge:.0f}.",
        caption="Theory: in brackets, the most of an H100 SXM's dense BF16 peak that HBM's bandwidth allows. "
        f"Only what lies right of the dashed ridge, at {ridge:.0f} FLOP a byte, can keep the Tensor "
        "Cores busy.",
        evidence=["theory"],
    )


@plots.responsive
def floors(parts):
    """Shares of the arithmetic, and of the least time that the peaks of arithmetic and HBM allow.

    parts: {name: (FLOP, least seconds)}.
    """
    fig, ax = plots.new(plots.COLUMN, 2.5)
    colours = ("blue", "green", "orange", "purple")
    for y, (title, column, unit) in enumerate((("arithmetic", 0, ""), ("time, at least (theory)", 1, ""))):
        whole, left = sum(part[column] for part in parts.values()), 0.0
        ax.text(0, y - 0.38, title + unit, va="bottom", weight="bold")
        for (_, part), colour in zip(parts.items(), colours, strict=True):
            share = 100 * part[column] / whole
            hatch = "///" if column else None
            ax.barh(
                y,
                share,
                left=left,
                height=0.6,
                color=COLOUR[colour],
                alpha=0.75,
                hatch=hatch,
                edgecolor=plots.PAPER,
            )
            if share > 6:
                box = {"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1.5, "alpha": 0.85}
                ax.text(left + share / 2, y, f"{share:.0f} %", ha="center", va="center", bbox=box, **SMALL)
            left += share
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[colour], alpha=0.75) for colour in colours]
    plots.legend(fig, handles, list(parts))
    ax.set(xlim=(0, 100), ylim=(1.5, -0.75))
    ax.set_axis_off()
    flop, time = (sum(part[i] for part in parts.values()) for i in (0, 1))
    said = "; ".join(
        f"{name}: {p[0] / flop:.2%} of the arithmetic, {p[1] / time:.0%} of the time"
        for name, p in parts.items()
    )
    return plots.show(
        fig,
        alt=f"Two bars for one transformer block on an H100 SXM, computed from peaks. {said}.",
        caption="Computed from data-sheet peaks, not measured: softmax, norms and additions are a small part "
        "of the arithmetic and a fifth of the shortest time.",
        evidence=["theory"],
    )


@plots.responsive
def attention_bytes(d=64, rows=128):
    """Bytes moved by one attention head in BF16 against the number of tokens: with s x s matrices in memory,
    by tiles, and with every byte once.
    """
    n = 2.0 ** np.arange(9, 17)
    lines = (
        ("s × s matrices stored", 8 * n * n + 8 * n * d, "orange", "-"),
        (f"by tiles, {rows} queries at a time", 4 * n * d + 4 * n * n * d / rows, "blue", "-"),
        ("every byte once", 8 * n * d, "green", (0, (5, 3))),
    )
    fig, ax = plots.new(plots.COLUMN, 3.1)
    for name, values, colour, dashes in lines:
        ax.plot(n, values, color=COLOUR[colour], linestyle=dashes, linewidth=2, label=name)
    ax.set(xscale="log", yscale="log", xlabel="tokens, s", ylabel="bytes for one head")
    ax.set_xticks([512, 2048, 8192, 32768], ["512", "2,048", "8,192", "32,768"])
    ax.set_yticks([1e6, 1e8, 1e10], ["1 MB", "100 MB", "10 GB"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="upper left")
    i = list(n).index(8192)
    said = "; ".join(f"{name}: {values[i] / 1e6:,.0f} MB" for name, values, _, _ in lines)
    return plots.show(
        fig,
        alt=f"Bytes moved for one attention head with d = {d}, against the number of tokens. At 8,192 "
        f"tokens, {said}.",
        caption="Theory. Stored, the s × s matrices dominate. By tiles they are never stored; what is left "
        "are K and V, read again for each group of queries, and those repeats can come from L2.",
        evidence=["theory"],
    )
