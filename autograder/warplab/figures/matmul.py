"""Figures of chapter 4: the worksheet, one answer, sectors, tiling, counters, a tile's budget, speeds."""

import textwrap

import numpy as np
import yaml
from matplotlib.patches import Rectangle

from warplab import plots, specs
from warplab.evidence.measure import RESULTS

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
A_COLOUR, B_COLOUR, C_COLOUR = COLOUR["blue"], COLOUR["orange"], COLOUR["green"]
TINT = 0.28


@plots.responsive
def worksheet(a, b):
    """The product of two 2 x 2 integer matrices as a worksheet: four sums, each written out."""
    a, b = np.asarray(a), np.asarray(b)
    fig, ax = _canvas(2.0, xlim=(-0.1, 11.0), ylim=(4.1, 0.2))
    _matrix(ax, 0.0, 0.9, a, "A", A_COLOUR)
    ax.text(2.35, 1.9, "×", ha="center", va="center", fontsize=15)
    _matrix(ax, 2.7, 0.9, b, "B", B_COLOUR)
    ax.text(5.1, 1.9, "=", ha="center", va="center", fontsize=15)
    for row in range(2):
        for col in range(2):
            x, y = 5.5 + 2.7 * col, 0.4 + 1.5 * row
            _box(ax, x, y, 2.7, 1.5, C_COLOUR if (row, col) == (0, 0) else None)
            sum_text = " + ".join(f"{a[row, k]}·{b[k, col]}" for k in range(2))
            ax.text(x + 1.35, y + 0.45, sum_text, ha="center", va="center")
            ax.text(
                x + 1.35,
                y + 1.05,
                str(a[row] @ b[:, col]),
                ha="center",
                va="center",
                fontsize=14,
                weight="bold",
            )
    ax.text(8.2, 3.75, "C", ha="center", va="center", fontsize=12)
    return plots.show(
        fig,
        alt="A two by two product written out. Row one of A, 2 and 1, meets column one of B, 5 and 6: 2 "
        "times 5 plus 1 times 6 is 16. The other answers, 7, 39 and 28, come from their own row and "
        "column.",
        caption="Four answers, each from one row and one column. No answer appears in another answer's sum.",
    )


@plots.responsive
def one_answer():
    """One output as a row times a column, and the chain of multiply-adds inside it."""
    fig, ax = _canvas(3.7, xlim=(-0.1, 11.2), ylim=(8.0, -0.2))
    _box(ax, 0, 3.3, 2.9, 2.6)
    _box(ax, 0, 4.4, 2.9, 0.4, A_COLOUR)
    _box(ax, 3.3, 0, 2.9, 2.8)
    _box(ax, 4.9, 0, 0.4, 2.8, B_COLOUR)
    _box(ax, 3.3, 3.3, 2.9, 2.6)
    _box(ax, 4.9, 4.4, 0.4, 0.4, C_COLOUR)
    for x, y, text in (
        (1.45, 3.8, "A (M × K)"),
        (4.1, 0.5, "B"),
        (4.1, 1.1, "(K × N)"),
        (4.75, 5.4, "C (M × N)"),
    ):
        ax.text(x, y, text, ha="center", va="center")
    ax.annotate("", (4.85, 4.6), (2.95, 4.6), arrowprops=_arrow(A_COLOUR))
    ax.annotate("", (5.1, 4.35), (5.1, 2.85), arrowprops=_arrow(B_COLOUR))
    ax.text(6.6, 0.4, "M × N answers:", va="center", weight="bold")
    ax.text(6.6, 0.9, "in any order,\nby any thread", va="top")
    ax.text(6.6, 3.9, "K steps inside one:", va="center", weight="bold")
    ax.text(6.6, 4.4, "each needs the sum\nso far", va="top")
    for step, label in enumerate(("1st pair", "+ 2nd", "+ 3rd", "…", "+ Kth")):
        x = 2.33 * step
        _box(ax, x, 6.8, 1.78, 0.95, C_COLOUR)
        ax.text(x + 0.89, 7.275, label, ha="center", va="center")
        if step:
            ax.annotate("", (x - 0.03, 7.275), (x - 0.52, 7.275), arrowprops=_arrow(INK))
    return plots.show(
        fig,
        alt="One answer of C is one row of A times one column of B. The M times N answers do not depend on "
        "each other. Inside one answer K multiply-adds form a chain: each adds to the sum that the one "
        "before it left.",
        caption="The answers are independent. The steps inside one answer are not.",
    )


@plots.responsive
def sectors():
    """The 32-byte sectors that one warp requests: in a naive step, and in tile loads 16 and 32 wide."""
    gap, tile_load = (0, ""), [(8, "A")] * 4 + [(0, "")] + [(8, "B")] * 4
    loads = (
        ("16 wide, naive: every step", [(1, "A")] * 2 + [gap] + [(8, "B")] * 2),
        ("32 wide, naive: every step", [(1, "A"), gap] + [(8, "B")] * 4),
        ("16 wide, tiled: once in 16 steps", tile_load),
        ("32 wide, tiled: once in 32 steps", tile_load),
    )
    fig, ax = _canvas(3.9, xlim=(-0.1, 9.2), ylim=(8.3, -0.6))
    for row, (title, pieces) in enumerate(loads):
        y, x = 2.2 * row, 0.0
        ax.text(0, y - 0.05, title, va="bottom")
        for used, name in pieces:
            if not name:
                x += 0.3
                continue
            for cell in range(8):
                colour = A_COLOUR if name == "A" else B_COLOUR
                _box(
                    ax,
                    x + 0.12 * cell,
                    y + 0.2,
                    0.12,
                    0.62,
                    colour if cell < used else None,
                    line=0.5,
                    alpha=0.85,
                )
            _box(ax, x, y + 0.2, 0.96, 0.62, line=1.6)
            ax.text(x + 0.48, y + 1.2, name, ha="center", va="center", fontsize=10.5)
            x += 1.09
        count = sum(1 for _, name in pieces if name)
        ax.text(9.15, y - 0.05, f"{count} sectors", ha="right", va="bottom", weight="bold")
    return plots.show(
        fig,
        alt="What one warp asks for, in sectors of eight numbers. Naive, 16 wide: two sectors of A with one "
        "used number each and two full sectors of B, every step. Naive, 32 wide: one sector of A with "
        "one used number and four full sectors of B, every step. Tiled: four full sectors of A and four "
        "of B, once in 16 or 32 steps.",
        caption="A naive step asks for few sectors of A, because its lanes share a number, and wastes most "
        "of each. A tile load uses every byte that it asks for.",
    )


@plots.responsive
def tiling(tile=16):
    """One tile of C, its strips of A and B, and the cost of one round over k."""
    fig, ax = _canvas(2.9 if plots.on_phone() else 4.2, xlim=(-0.1, 11.2), ylim=(7.6, -0.1))
    ax.set_aspect("equal")  # square tiles
    for x, y, name in ((0, 3.9, "A"), (3.9, 0, "B"), (3.9, 3.9, "C")):
        _box(ax, x, y, 3.6, 3.6)
        ax.text(x + 0.45, y + 0.45, name, ha="center", va="center", weight="bold")
    for k in range(4):
        _box(ax, 0.9 * k, 4.8, 0.9, 0.9, A_COLOUR, alpha=0.8 if k == 1 else TINT)
        _box(ax, 4.8, 0.9 * k, 0.9, 0.9, B_COLOUR, alpha=0.8 if k == 1 else TINT)
    _box(ax, 4.8, 4.8, 0.9, 0.9, C_COLOUR, alpha=0.8)
    ax.annotate("", (3.3, 6.1), (0.3, 6.1), arrowprops=_arrow(A_COLOUR))
    ax.annotate("", (6.1, 3.3), (6.1, 0.3), arrowprops=_arrow(B_COLOUR))
    bytes_in, work = 2 * tile * tile * 4, 2 * tile**3
    lines = (
        ("one round", None),
        (f"{tile} × {tile} of A", A_COLOUR),
        (f"{tile} × {tile} of B", B_COLOUR),
        (f"{bytes_in:,} bytes in", None),
        (f"{tile}³ FMAs", C_COLOUR),
        (f"{work:,} FLOP", None),
        (f"{work / bytes_in:g} FLOP a byte", None),
    )
    for number, (text, colour) in enumerate(lines):
        y = 0.3 + 1.0 * number
        if colour:
            _box(ax, 7.95, y - 0.2, 0.4, 0.4, colour, alpha=0.8)
        ax.text(
            8.6 if colour else 7.95, y, text, va="center", weight="bold" if number in (0, 6) else "normal"
        )
    return plots.show(
        fig,
        alt=f"A tile of C is made by walking along a strip of A and down a strip of B, one pair of {tile} by "
        f"{tile} tiles at a time. A round brings in {bytes_in:,} bytes and does {work:,} floating-point "
        f"operations: {work / bytes_in:g} for each byte.",
        caption=f"A tile {tile} wide does {work / bytes_in:g} FLOP for each byte loaded: a quarter of its "
        "width.",
    )


@plots.responsive
def patch(side=4):
    """One step of k: what a thread reads and computes for one answer, and for a patch of `side` x `side`."""
    fig, ax = _canvas(2.75, xlim=(-0.2, 9.0), ylim=(6.3, -0.3))
    for x, n, title, work in (
        (1.0, 1, "one answer", "2 reads, 1 FMA"),
        (5.0, side, f"a patch of {side} × {side}", f"{2 * side} reads, {side * side} FMAs"),
    ):
        for i in range(n):
            for name, left, top, colour in (
                ("B", x + 0.9 * i, 0.9, B_COLOUR),
                ("A", x - 1.0, 1.9 + 0.9 * i, A_COLOUR),
            ):
                _box(ax, left, top, 0.8, 0.8, colour, alpha=0.8)
                ax.text(left + 0.4, top + 0.4, name, ha="center", va="center")
            for j in range(n):
                _box(ax, x + 0.9 * i, 1.9 + 0.9 * j, 0.8, 0.8, C_COLOUR)
                ax.text(x + 0.9 * i + 0.4, 2.3 + 0.9 * j, "+", ha="center", va="center")
        ax.text(x - 1.0, 0.2, title, va="center", weight="bold")
        ax.text(x - 1.0, 2.35 + 0.9 * n, work, va="center")
    return plots.show(
        fig,
        alt="One step of k. With one answer a thread reads one number of A and one of B for one "
        f"multiply-add. With a patch of {side} by {side} answers it reads {side} and {side}, and each "
        f"pair of them is one of {side * side} multiply-adds.",
        caption=f"One step of the sum. With the patch, each number that is read serves {side} FMAs instead "
        "of one.",
    )


@plots.responsive
def apart():
    """Where 16 threads read four numbers each in a row of the B tile: strided by 16, and contiguous."""
    fig, ax = _canvas(2.2, xlim=(-0.5, 64.5), ylim=(9.4, -1.6))
    cases = (
        ("16 apart, as here: neighbours, 16 banks", 1, 16),
        ("four in a row: two in each of 8 banks", 4, 1),
    )
    for at, (title, step, stride) in enumerate(cases):
        y = 6.0 * at
        ax.text(0, y - 0.5, title, va="bottom")
        for col in range(64):
            together = col % step == 0 and col < 16 * step
            _box(ax, col, y, 1, 2, B_COLOUR if together else None, line=0.5, alpha=0.6)
        for j in range(4):
            ax.plot(step * 3 + stride * j + 0.5, y + 2.9, "^", color=C_COLOUR, markersize=6)
    return plots.show(
        fig,
        alt="A row of 64 numbers, twice. Where a thread's four numbers lie 16 apart (3, 19, 35, 51 for "
        "tx 3), one read of 16 threads takes 16 neighbours. Where they lie in a row (12 to 15), it takes "
        "every fourth number, and two of them share each bank.",
        caption="Orange is one read of 16 threads, triangles are the four numbers of tx 3. Neighbouring "
        "threads should want neighbouring numbers in the same step.",
    )


@plots.responsive
def counters(profiles):
    """Bars of global load requests, bytes requested and shared load requests. profiles: {kernel: profile}."""
    names = list(profiles)
    panels = (
        (
            "global load requests (thousands)",
            [p.global_load.requests / 1e3 for p in profiles.values()],
            A_COLOUR,
        ),
        ("asked of global memory (MiB)", [p.global_load.bytes / 2**20 for p in profiles.values()], B_COLOUR),
        (
            "shared load requests (thousands)",
            [p.shared_load.requests / 1e3 for p in profiles.values()],
            C_COLOUR,
        ),
    )
    fig, axes = plots.new(plots.COLUMN, 5.6, rows=3)
    for ax, (title, values, colour) in zip(axes, panels, strict=True):
        ax.barh(names, values, height=0.66, color=colour, alpha=0.75)
        for y, value in enumerate(values):
            ax.annotate(
                f"{value:,.0f}", (value, y), (5, 0), textcoords="offset points", va="center", fontsize=10.5
            )
        ax.set_title(title, loc="left", fontsize=11)
        ax.set(xlim=(0, 1.2 * max(values)), xticks=[])
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
        caption="Same product, same answer. The tile in shared memory cuts the global requests; the tile in "
        "registers cuts "
        "them again, and the shared loads with them.",
        evidence=["counted"],
    )


@plots.responsive
def budget(cycles):
    """Bars of the least cycles that each part of a tile's round takes on an SM. cycles: {part: cycles}."""
    fig, ax = plots.new(plots.COLUMN, 0.7 + 0.62 * len(cycles))
    longest = max(cycles.values())
    for y, (name, n) in enumerate(cycles.items()):
        colour = COLOUR["orange"] if n == longest else COLOUR["blue"]
        ax.barh(y, n, height=0.34, color=colour, alpha=0.75)
        ax.text(0, y - 0.24, name, va="bottom")
        ax.annotate(f"{n:,.0f}", (n, y), (4, 0), textcoords="offset points", va="center")
    ax.set(xlim=(0, 1.2 * longest), ylim=(len(cycles) - 0.6, -0.7), xlabel="clock cycles of an SM, at least")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    said = _listed(cycles, "{:,.0f}")
    return plots.show(
        fig,
        alt=f"Bars: the fewest clock cycles of an SM for each thing that a round of a tile asks for: {said}.",
        caption="Counts divided by data-sheet rates, no measurement: a round cannot be shorter than its "
        "longest bar.",
    )


@plots.responsive
def shares_of_peak(measurement):
    """Published speeds of products as shares of the machine's dense peak in the same format.

    measurement: of "matmul_by_size"; its records are not drawn. For machines that the registry lacks the
    speeds are given as text.
    """
    narrow, at, said = plots.on_phone(), 0.0, []
    fig, ax = plots.new(plots.COLUMN, 8.0, phone=(plots.PHONE, 10.6))
    ticks = []
    others = [e for e in measurement.evidence if e.kind == "published"]
    for entry, evidence in zip(_published(measurement.name), others, strict=True):
        card = entry.get("bounded_by") or specs.reported(evidence.device)
        name = evidence.device.removeprefix("NVIDIA ")
        ax.text(0, at, f"{name}, {evidence.year}", weight="bold", va="center", fontsize=10.5)
        at += 1
        for series, points in evidence.series().items():
            form = "bf16" if "BF16" in series or any(p.roof == "bf16" for p in points) else "fp32"
            peak = specs.get(card)[f"peak_{form}"].si if card else None
            told = ", ".join(f"{_of_peak(p.rate, peak)} at {p.x:,.0f}" for p in points)
            label = series if card else f"{series} (no peak known)"
            if narrow:
                ax.text(0, at, label, va="center", fontsize=9.8)
                at += 0.8
            at += 0.0 if peak else 0.6  # the speeds take three lines
            if not narrow:
                ticks.append((at, label))
            shares = [100 * p.rate / peak for p in points] if peak else [0.0]
            if peak:
                ax.plot([0, max(shares)], [at, at], color=INK, linewidth=0.9, zorder=0)
                style = {"linestyle": "none", "markersize": 8, **plots.MARKERS["published"]}
                ax.plot(shares, [at] * len(shares), **style)
            aside = {"textcoords": "offset points", "va": "center", "fontsize": 9.8}
            ax.annotate(textwrap.fill(told, 42), (max(shares), at), (9, 0), **aside)
            said.append(f"{series} on {name}: {told}" + (f" of {form.upper()}" if peak else ""))
            at += 1 if peak else 1.5
        at += 0.35
    ax.set(xlim=(0, 215 if narrow else 155), ylim=(at - 0.6, -0.8), xticks=[0, 50, 100])
    ax.set_xlabel("% of the machine's dense peak in the same format", loc="left")
    ax.set_yticks([y for y, _ in ticks], [label for _, label in ticks])
    ax.tick_params(axis="y", length=0, labelsize=9.8)
    ax.grid(axis="x")
    ax.spines["bottom"].set_bounds(0, 100)
    return plots.show(
        fig,
        alt=f"Shares of their machines' dense peaks that published matrix products reach, by side. "
        f"{'; '.join(said)}.",
        caption="Published by others. Kernels without a tile in registers stay below 8 %; libraries reach "
        "60 to 94 % "
        "from a side of 2,048 on. The peak is the data sheet's: FP32 on CUDA cores, BF16 on matrix units. "
        "After each share "
        "stands the side, of a best shape that of a square product with as many multiply-adds.",
        evidence=["published"],
    )


def _of_peak(rate, peak):
    if not peak:
        return _speed(rate / 1e12)
    return f"{rate / peak:.1%}" if rate < 0.1 * peak else f"{rate / peak:.0%}"


def _published(name):
    """The entries of published.yml, in the order of a measurement's evidence."""
    return yaml.safe_load((RESULTS / "published.yml").read_text(encoding="utf-8"))[name]


@plots.responsive
def speeds(rows):
    """`rows`: (label, TFLOP/s or None, kind), kind a key of plots.MARKERS; None is
    listed as "not recorded yet".
    """
    known = [row for row in rows if row[1]]
    missing = [name for name, speed, _ in rows if not speed]
    fig, ax = plots.new(plots.COLUMN, 1.1 + 0.4 * (len(known) + 1))
    speeds = [speed for _, speed, _ in known]
    low, high = min(speeds) / 4, max(speeds) * (1e5 if plots.on_phone() else 300)
    for y, (_, speed, kind) in enumerate(known):
        ax.plot([speed], [y], markersize=9, markeredgewidth=2, linestyle="none", **plots.MARKERS[kind])
        ax.annotate(_speed(speed), (speed, y), (9, 0), textcoords="offset points", va="center", fontsize=10.5)
    ax.set(xscale="log", xlim=(low, high), ylim=(len(known) - 0.4, -0.6))
    ax.set_yticks(range(len(known)), [label for label, _, _ in known])
    round_numbers = (1e-5, 1e-1, 1000) if plots.on_phone() else (1e-5, 1e-3, 1e-1, 10, 1000)
    ticks = [t for t in round_numbers if low < t < high]
    ax.set_xticks(ticks, [_speed(t).removesuffix("FLOP/s") for t in ticks])
    ax.set_xlabel("FLOP/s")
    ax.minorticks_off()
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.spines["left"].set_visible(False)
    used = [kind for kind in plots.MARKERS if kind in {row[2] for row in rows if row[1]}]
    said = "; ".join(
        f"{name}: {f'{_speed(v)}, {kind}' if v else 'not recorded yet'}" for name, v, kind in rows
    )
    style = {"markersize": 8, "markeredgewidth": 2, "linestyle": "none"}
    handles = [ax.plot([], [], **style, **plots.MARKERS[kind])[0] for kind in used]
    meaning = {
        "live": "live: this machine, now",
        "recorded": "recorded by us",
        "published": "published by others",
    }
    named = [meaning.get(kind, kind) for kind in used]
    plots.legend(fig, *plots.with_missing(ax, handles, named, missing))
    return plots.show(
        fig,
        alt=f"Speeds of matrix products. {said}.",
        evidence=used,
        caption=f"One definition, {np.log10(max(speeds) / min(speeds)):.1f} orders of magnitude from a "
        "Python loop to Tensor Cores. Round marks were measured here and now, squares by us on the GPU "
        "named, triangles by others.",
    )


def _speed(tflops):
    """A speed in TFLOP/s as text with a suitable prefix: 0.05 is "50 GFLOP/s"."""
    for prefix, size in (("P", 1e3), ("T", 1.0), ("G", 1e-3), ("M", 1e-6)):
        if tflops >= size * 0.9995:
            return f"{tflops / size:.3g} {prefix}FLOP/s"
    return f"{tflops / 1e-9:.3g} kFLOP/s"


def _listed(numbers, form):
    return ", ".join(f"{name} {form.format(value)}" for name, value in numbers.items())


def _canvas(height, xlim, ylim):
    """(figure, axes) of an empty drawing, a column wide, with these limits as coordinates."""
    fig, ax = plots.new(plots.COLUMN, height)
    ax.set(xlim=xlim, ylim=ylim)
    ax.set_axis_off()
    return fig, ax


def _box(ax, x, y, width, height, colour=None, line=1.2, alpha=TINT):
    """A rectangle outlined in ink, filled with `colour` at `alpha` when one is given."""
    if colour:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=alpha, linewidth=0))
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, linewidth=line))


def _matrix(ax, x, y, values, name, colour):
    """A small matrix of numbers in unit cells, the first row (of A) or column (of B) tinted."""
    for row in range(values.shape[0]):
        for col in range(values.shape[1]):
            chosen = (row == 0) if name == "A" else (col == 0)
            _box(ax, x + col, y + row, 1, 1, colour if chosen else None)
            ax.text(
                x + col + 0.5, y + row + 0.5, str(values[row, col]), ha="center", va="center", fontsize=14
            )
    ax.text(x + values.shape[1] / 2, 3.75, name, ha="center", va="center", fontsize=12)


def _arrow(colour):
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6}
