"""Figures of chapter 3: dependencies, the two laws, a warp's mask, a lost update, reductions, scans,
counters, times.
"""

import numpy as np
from matplotlib.patches import Circle, Rectangle

from warplab import plots
from warplab.figures.taken import unmeasured

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
TINT = 0.28


@plots.responsive
def dependencies():
    """Work and span of eight independent sums, a chain of eight, and a tree."""
    fig, ax = _canvas(3.9, xlim=(-0.2, 11.4), ylim=(8.4, -0.3))
    ax.set_aspect("equal")
    for i in range(8):
        _node(ax, 0.6 + 1.35 * (i % 2), 1.3 + 1.35 * (i // 2), "blue")
    for i in range(8):
        _node(ax, 5.0, 0.9 + 0.82 * i, "orange", 0.2)
        if i:
            _edge(ax, (5.0, 0.9 + 0.82 * (i - 1)), (5.0, 0.9 + 0.82 * i), 0.2)
    for level, count in enumerate((4, 2, 1)):
        for i in range(count):
            at = 7.6 + (i + 0.5) * 3.6 / count, 2.1 + 1.6 * level
            _node(ax, *at, "green")
            for side in (-0.25, 0.25) if level else ():
                _edge(ax, (at[0] + side * 3.6 / count, at[1] - 1.6), at, 0.36)
    for i in range(8):
        x = 7.6 + (i // 2 + 0.5) * 0.9 + (-0.2, 0.2)[i % 2]
        ax.plot([x, 7.6 + (i // 2 + 0.5) * 0.9], [1.2, 1.76], color=INK, linewidth=1.2)
    for x, name, said in (
        (1.25, "independent", "work 8, span 1"),
        (5.0, "a chain", "work 8, span 8"),
        (9.4, "a tree", "work 7, span 3"),
    ):
        ax.text(x, 0.1, name, ha="center", va="center", weight="bold")
        ax.text(x, 7.9, said, ha="center", va="center")
    return plots.show(
        fig,
        alt="Three graphs of small sums. Eight independent sums have no arrow between them: work 8, span 1. "
        "A chain of eight, each with an arrow to the next: work 8, span 8. A tree that adds eight "
        "numbers in pairs, four sums, then two, then one: work 7, span 3.",
        caption="An arrow leads to a sum that needs the result. The longest path is the span, and no number "
        "of workers shortens it.",
    )


@plots.responsive
def laws(serial, measured):
    """Amdahl's and Gustafson's curves for the share `serial`, with measured speedups.

    measured: {what a worker does: ({workers: speedup} of a job of fixed size, the same of one that grows)}.
    """
    fig, axes = plots.new(plots.COLUMN, 3.3, columns=2)
    n = np.geomspace(1, 256, 200)
    panels = (
        ("same job (Amdahl)", {s: 1 / (s + (1 - s) / n) for s in (serial, serial / 10)}),
        ("job grows (Gustafson)", {s: s + (1 - s) * n for s in (serial, serial / 10)}),
    )
    for place, (ax, (title, curves)) in enumerate(zip(axes, panels, strict=True)):
        ax.plot(n, n, color=INK, linestyle=(0, (2, 3)), linewidth=1.2, label="nothing serial")
        for (share, curve), colour in zip(curves.items(), ("orange", "green"), strict=True):
            ax.plot(n, curve, color=COLOUR[colour], label=f"{100 * share:g} % serial")
        for (work, found), fill in zip(measured.items(), ("full", "none"), strict=True):
            marks = {"linestyle": "none", "markersize": 8, "markeredgewidth": 2, **plots.MARKERS["live"]}
            ax.plot(*zip(*found[place].items(), strict=True), label=f"live, {work}", fillstyle=fill, **marks)
        ax.set(xscale="log", yscale="log", xlim=(0.9, 256), ylim=(0.5, 256), xlabel="workers")
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
        ax.set_yticks([1, 10, 100], ["1", "10", "100"])
        ax.minorticks_off()
        ax.grid()
    axes[0].set_ylabel("times as fast as one worker")
    plots.legend(fig, *axes[0].get_legend_handles_labels())
    top = 1 / (serial + (1 - serial) / 256)
    said = "; ".join(
        f"{work}, fixed: {_listed(fixed)}; growing: {_listed(grows)}"
        for work, (fixed, grows) in measured.items()
    )
    cores, most = (max(fixed) for fixed, _ in measured.values())
    return plots.show(
        fig,
        alt="Two plots of speedup against the number of workers. With a job of fixed size and "
        f"{100 * serial:g} % of it serial the curve bends over, reaches {top:.1f} at 256 workers and "
        f"never {1 / serial:g}. With a job that grows with the workers the curve stays almost straight. "
        f"Points measured on this machine, {said}.",
        caption=f"The same serial tenth caps a job of fixed size and hardly slows one that grows. Measured "
        "here, now: "
        f"workers that compute, up to this machine's {cores} cores, and workers that wait, up to {most}. "
        "The points should lie on the curve of 10 %; by how much they miss it is overhead, or a core that "
        "another program keeps busy.",
        evidence=["live", "theory"],
    )


@plots.responsive
def mask(steps):
    """Which lanes of a warp are active in each round of a loop. steps: how many rounds each lane needs."""
    steps = np.asarray(steps)
    rounds, lanes = int(steps.max()), len(steps)
    fig, ax = plots.new(plots.COLUMN, 3.0)
    ax.add_patch(Rectangle((0, 0), rounds, lanes, facecolor=COLOUR["grey"], alpha=0.25, linewidth=0))
    for lane, count in enumerate(steps):
        ax.add_patch(Rectangle((0, lane), count, 0.86, facecolor=COLOUR["blue"], linewidth=0))
    longest = int(steps.argmax())
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 2}
    ax.text(0.62 * rounds, 0.4 * lanes, "grey: waiting", ha="center", va="center")
    ax.text(0.45 * rounds, longest + 0.43, "at work", ha="center", va="center", fontsize=10, bbox=box)
    ax.set(
        xlim=(0, rounds),
        ylim=(lanes, 0),
        xlabel="rounds of the loop",
        ylabel="lane",
        yticks=[0.4, longest + 0.4, lanes - 0.6],
    )
    ax.set_yticklabels(["0", str(longest), str(lanes - 1)])
    share = steps.sum() / (rounds * lanes)
    return plots.show(
        fig,
        alt=f"One row for each of {lanes} lanes, filled as long as the lane is at work. Two lanes run past "
        f"100 rounds, the longest, lane {longest}, for {rounds}; most stop within 20. Filled: "
        f"{share:.1%} of the area.",
        caption=f"The warp runs until its slowest lane is done. Of {rounds * lanes:,} places in {rounds} "
        "rounds, "
        f"{steps.sum()} do work: {share:.1%}.",
    )


@plots.responsive
def lost_update():
    """Two threads add 1 to the same word, step by step: one addition disappears."""
    fig, ax = _canvas(2.9, xlim=(-0.1, 11.2), ylim=(6.6, -0.3))
    for x, name in ((2.2, "thread A"), (5.6, "total in memory"), (9.0, "thread B")):
        ax.text(x, 0.1, name, ha="center", va="center", weight="bold")
    rows = (
        ("reads 7", "7", ""),
        ("", "7", "reads 7"),
        ("7 + 1", "7", "7 + 1"),
        ("writes 8", "8", ""),
        ("", "8", "writes 8"),
    )
    for i, (left, middle, right) in enumerate(rows):
        y = 0.7 + 1.12 * i
        for x, text, colour in ((0.8, left, "blue"), (7.6, right, "green")):
            if text:
                _box(ax, x, y, 2.8, 0.8, COLOUR[colour])
                ax.text(x + 1.4, y + 0.42, text, ha="center", va="center")
        _box(ax, 5.1, y, 1.0, 0.8, COLOUR["orange"] if middle == "8" else None)
        ax.text(5.6, y + 0.42, middle, ha="center", va="center")
        for text, near, far in ((left, 3.65, 5.05), (right, 7.55, 6.15)):
            if "reads" in text:
                near, far = far, near
            if "s" in text:
                ax.annotate("", (far, y + 0.4), (near, y + 0.4), arrowprops=_arrow())
    return plots.show(
        fig,
        alt="Time runs down. The total is 7. Thread A reads 7, then thread B reads 7. Both add 1. Thread A "
        "writes 8, then thread B writes 8. Two additions were made and the total went from 7 to 8.",
        caption="Two additions were made and the total grew by one. Each thread added correctly; between "
        "its read and "
        "its write came the other's.",
    )


@plots.responsive
def reduction(size=16, warp=4):
    """Which lanes add in each step of the two trees, drawn for `size` threads in warps of `warp`."""
    fig, axes = plots.new(plots.COLUMN, 3.9, rows=2)
    strides = [size >> k for k in range(1, size.bit_length())]
    orders = (
        (axes[0], "neighbours first: t % (2 · stride) == 0", strides[::-1], lambda t, s: t % (2 * s) == 0),
        (axes[1], "halves first: t < stride", strides, lambda t, s: t < s),
    )
    used = []
    for ax, title, order, adds in orders:
        warps = 0
        for row, stride in enumerate(order):
            for t in range(size):
                ax.add_patch(Rectangle((t, row), 0.9, 0.72, facecolor=COLOUR["grey"], alpha=0.2, linewidth=0))
                if adds(t, stride):
                    ax.add_patch(Rectangle((t, row), 0.9, 0.72, facecolor=COLOUR["blue"], linewidth=0))
            at_work = sum(any(adds(t, stride) for t in range(w, w + warp)) for w in range(0, size, warp))
            warps += at_work
            plural = "s" if at_work > 1 else ""
            ax.text(size + 0.3, row + 0.4, f"{at_work} warp{plural}", va="center", fontsize=10.5)
            ax.text(-0.3, row + 0.4, f"stride {stride}", va="center", ha="right", fontsize=10.5)
        for edge in range(warp, size, warp):
            ax.plot([edge - 0.05] * 2, [-0.1, len(order) - 0.2], color=INK, linewidth=1.2)
        ax.set(xlim=(-3.6, size + 3.2), ylim=(len(order), -0.2))
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_axis_off()
        used.append(warps)
    return plots.show(
        fig,
        alt=f"Two trees over {size} threads in warps of {warp}, a row for each step, the threads that add "
        "filled. Both make 8, 4, 2 and 1 additions. With neighbours first the adding threads are spread "
        f"over all warps: {used[0]} warp steps. With halves first they stand side by side: {used[1]} "
        "warp steps.",
        caption=f"The same {size - 1} additions (blue) take {used[0]} warp instructions in one order and "
        f"{used[1]} in the other. (Warps of {warp}, to fit the page.)",
    )


@plots.responsive
def counters(profiles):
    """Bars of atomic requests, shared-memory requests and warp instructions. profiles: {kernel: profile}."""
    names = list(profiles)
    shared = [p.shared_load.requests + p.shared_store.requests for p in profiles.values()]
    panels = (
        ("atomic requests", [p.atomics.requests for p in profiles.values()], COLOUR["orange"]),
        ("shared-memory requests", shared, COLOUR["green"]),
        ("warp instructions", [p.warp_instructions for p in profiles.values()], COLOUR["blue"]),
    )
    fig, axes = plots.new(plots.COLUMN, 5.0, rows=3)
    for ax, (title, values, colour) in zip(axes, panels, strict=True):
        ax.barh(names, values, height=0.66, color=colour, alpha=0.75)
        for y, value in enumerate(values):
            ax.annotate(
                f"{value:,}", (value, y), (5, 0), textcoords="offset points", va="center", fontsize=10.5
            )
        ax.set_title(title, loc="left", fontsize=11)
        ax.set(xlim=(0, 1.25 * max(values)), xticks=[])
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        ax.spines["bottom"].set_visible(False)
    said = "; ".join(
        f"{name}: {p.atomics.requests:,} atomic requests, {s:,} shared-memory requests, "
        f"{p.warp_instructions:,} warp instructions"
        for (name, p), s in zip(profiles.items(), shared, strict=True)
    )
    *trees, shuffle = shared[1:]
    return plots.show(
        fig,
        alt=f"Counters of four kernels that add the same numbers. {said}.",
        caption="Counts, not times. The trees replace atomics by requests to shared memory. The shuffle "
        f"kernel makes as many atomics as a tree, and {shuffle / min(trees):.0%} of the shared requests of "
        "the better one.",
        evidence=["counted"],
    )


@plots.responsive
def shuffle(values):
    """A shuffle reduction of eight lanes in three steps, with the distance halved in each."""
    rows, arrows, reach = [list(values)], [], len(values) // 2
    while reach:
        row = rows[-1]
        rows.append([value + row[i + reach if i + reach < len(row) else i] for i, value in enumerate(row)])
        arrows.append([(i + reach, i) for i in range(reach)])
        reach //= 2
    fig, ax = plots.new(plots.COLUMN, 3.2)
    _steps(ax, rows, arrows, COLOUR["orange"])
    said = "; ".join(f"after step {k}, lane 0 holds {row[0]}" for k, row in enumerate(rows) if k)
    return plots.show(
        fig,
        alt=f"Eight lanes with the values {rows[0]}. In each step a lane adds what a lane 4, then 2, then 1 "
        f"places to its right holds: {said}, the sum of all.",
        caption="A warp's sum in small: eight lanes need three steps, 32 need five. A lane with no other "
        "lane at that "
        "distance gets its own value back, and its sum is not used.",
    )


@plots.responsive
def scans(values):
    """The steps of two scans of eight numbers: Hillis and Steele's, and Blelloch's two sweeps."""
    n = len(values)
    fig, (upper, lower) = plots.new(plots.COLUMN, 6.2, rows=2, height_ratios=[4, 8])
    rows, arrows, reach = [list(values)], [], 1
    while reach < n:
        before = rows[-1]
        rows.append([before[i] + (before[i - reach] if i >= reach else 0) for i in range(n)])
        arrows.append([(i - reach, i) for i in range(reach, n)])
        reach *= 2
    _steps(upper, rows, arrows, COLOUR["orange"])
    adds = sum(map(len, arrows))
    upper.set_title(f"Hillis–Steele: {len(arrows)} steps, {adds} additions", loc="left", fontsize=11)
    rows, arrows, sweeps, stride = [list(values)], [], 0, 1
    while stride < n:
        pairs = [(i - stride, i) for i in range(2 * stride - 1, n, 2 * stride)]
        row = list(rows[-1])
        for a, b in pairs:
            row[b] += row[a]
        rows.append(row)
        arrows.append(pairs)
        sweeps += len(pairs)
        stride *= 2
    rows.append([*rows[-1][:-1], 0])
    arrows.append([])
    stride = n // 2
    while stride:
        pairs = [(i - stride, i) for i in range(2 * stride - 1, n, 2 * stride)]
        row = list(rows[-1])
        for a, b in pairs:
            row[a], row[b] = row[b], row[a] + row[b]
        rows.append(row)
        arrows.append([*pairs, *((b, a) for a, b in pairs)])
        sweeps += len(pairs)
        stride //= 2
    _steps(lower, rows, arrows, COLOUR["green"])
    steps = len(arrows) - 1
    lower.set_title(f"Blelloch: {steps} steps, {sweeps} additions", loc="left", fontsize=11)
    return plots.show(
        fig,
        alt=f"Two ways to all running totals of {', '.join(map(str, values))}. Hillis and Steele: in step k "
        f"each number takes the one 1, 2, then 4 places to its left; {adds} additions in 3 steps. "
        "Blelloch: a tree up that ends in the grand total, the total replaced by 0, and a tree down in "
        f"which each pair swaps and adds; {sweeps} additions in {steps} steps, and the result is shifted "
        "by one place.",
        caption=f"Fewer steps or less work. {adds} additions against {sweeps} are close; with more numbers "
        "the upper scan falls behind.",
    )


def _steps(ax, rows, arrows, colour):
    """Draw rows of numbers from top to bottom; tinted if a step wrote them, with lines from what it read."""
    n, gap = len(rows[0]), 1.1
    for y, row in enumerate(rows):
        written = {b for _, b in arrows[y - 1]} or {n - 1} if y else set()
        for i, value in enumerate(row):
            _box(ax, i, y * gap, 0.9, 0.6, colour if i in written else None, line=0.8)
            ax.text(i + 0.45, y * gap + 0.32, str(value), ha="center", va="center")
    for y, pairs in enumerate(arrows):
        for a, b in pairs:
            ax.plot([a + 0.45, b + 0.45], [y * gap + 0.6, (y + 1) * gap], color=colour, linewidth=1.4)
        if not pairs:
            ax.text(n, y * gap + 0.85, "last := 0", ha="right", va="center", fontsize=10)
    ax.set(xlim=(-0.1, n + 0.1), ylim=((len(rows) - 1) * gap + 0.7, -0.1))
    ax.set_axis_off()


@plots.responsive
def race(host, gpu, size):
    """Times of adding `size` float32 numbers by NumPy on this host and by four kernels.

    gpu: {kernel: seconds, or None if not measured}.
    """
    rows = [plots.Time("np.sum, one core, here", host)]
    rows += [plots.Time(f"{name}, GPU", s, "live" if s else "missing") for name, s in gpu.items()]
    missing = [name for name, s in gpu.items() if not s]
    nothing = unmeasured("reduction")
    said = f"{len(missing)} of {len(gpu)} kernels: {nothing}" if missing else "all kernels measured here"
    return plots.show(
        plots.times(rows, nothing=nothing),
        alt=f"Times of adding {size:,} numbers. np.sum on one core of this machine: {plots.duration(host)}. "
        f"Kernels on a GPU: {said}.",
        caption=f"{size:,} numbers take one core of this CPU {plots.duration(host)}. What was not measured "
        "here has no row. The next figure has records of GPUs, and the kernels get "
        "rows here when the page is run on a CUDA machine.",
        evidence=["live"],
    )


def _listed(measured):
    return ", ".join(f"{n} workers {speedup:.2f}" for n, speedup in measured.items())


def _canvas(height, xlim, ylim):
    """(figure, axes) of an empty drawing, a column wide, with these limits as coordinates."""
    fig, ax = plots.new(plots.COLUMN, height)
    ax.set(xlim=xlim, ylim=ylim)
    ax.set_axis_off()
    return fig, ax


def _box(ax, x, y, width, height, colour=None, line=1.2):
    if colour:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=TINT, linewidth=0))
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, linewidth=line))


def _node(ax, x, y, colour, radius=0.36):
    ax.add_patch(Circle((x, y), radius, facecolor=COLOUR[colour], edgecolor=INK, linewidth=1.2))


def _edge(ax, start, end, radius):
    """An arrow between two nodes, from rim to rim."""
    start, end = np.array(start), np.array(end)
    along = (end - start) / np.hypot(*(end - start)) * radius
    ax.annotate("", tuple(end - along), tuple(start + along), arrowprops=_arrow(1.2))


def _arrow(width=1.6):
    return {"arrowstyle": "-|>", "color": INK, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
