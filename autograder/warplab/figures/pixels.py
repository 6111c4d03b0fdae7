"""Figures of chapter 1: the rate of pixels, how a grid covers an image, and the moon on the reader's GPU."""

import base64
import html
import io
import json
import pathlib

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from numba import cuda
from PIL import Image

import warplab
from warplab import plots
from warplab.tasks import drawn_threads, registry

HERE = pathlib.Path(__file__).parent
SCREENS = [
    ("640 × 480 at 60 Hz", 640 * 480 * 60),
    ("Full HD at 60 Hz", 1920 * 1080 * 60),
    ("4K at 60 Hz", 3840 * 2160 * 60),
    ("4K at 120 Hz", 3840 * 2160 * 120),
    ("8K at 120 Hz", 7680 * 4320 * 120),
]


def small_moon(height, width):
    """The chapter's picture with few pixels, as a (height, width) float array of brightness 0 to 1."""
    radius = 0.45 * height
    x = (np.arange(width) + 0.5 - width / 2) / radius
    y = ((np.arange(height) + 0.5 - height / 2) / radius)[:, None]
    rest = 1 - x * x - y * y
    return np.where(rest > 0, np.maximum(-0.64 * x - 0.48 * y + 0.6 * np.sqrt(np.maximum(rest, 0)), 0), 0)


@plots.responsive
def pixel_rate():
    """Pixels a second that screens show, and the time for one pixel."""
    fig, ax = plots.new(plots.COLUMN, 2.4)
    for y, (label, rate) in enumerate(SCREENS):
        colour = plots.PALETTE["orange" if label == "4K at 120 Hz" else "blue"]
        ax.barh(y, rate / 1e9, height=0.6, color=colour, alpha=0.85)
        ax.annotate(
            f"{1e9 / rate:.2g} ns each",
            (rate / 1e9, y),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=10.5,
        )
    ax.set_yticks(range(len(SCREENS)), [label for label, _ in SCREENS])
    ax.set(xlim=(0, 5.4), ylim=(len(SCREENS) - 0.5, -0.5), xlabel="billion pixels a second")
    ax.set_xticks([0, 1, 2, 3, 4])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    said = "; ".join(
        f"{label}: {rate / 1e6:,.0f} million, {1e9 / rate:.3g} ns each" for label, rate in SCREENS
    )
    return plots.show(
        fig,
        alt="Bar chart of pixels a second for five screens. " + said,
        caption="A 4K screen at 120 Hz wants a new pixel every nanosecond: "
        "three clock cycles of a 3 GHz core.",
    )


@plots.responsive
def grid_over_image():
    """An image under its grid of blocks, and one block taken apart into threads."""
    image = small_moon(13, 22) * 0.85 + 0.08
    block, (bx, by), (tx, ty) = (8, 8), (1, 0), (3, 5)
    fig, (left, right) = plots.new(plots.COLUMN, 3.0, columns=2, width_ratios=[1.62, 1])
    plots.tiles(image, block, ax=left)
    col, row = bx * block[0] + tx, by * block[1] + ty
    mark = {"fill": False, "edgecolor": plots.PALETTE["blue"], "linewidth": 3}
    left.add_patch(Rectangle((col, row), 1, 1, **mark))
    left.set_title("a grid of 3 × 2 blocks")
    left.set_xticks([0, 8, 16, 22])
    left.set_yticks([0, 8, 13])
    left.spines[:].set_visible(False)
    left.set_xlabel("col")
    left.set_ylabel("row")
    tile = image[by * 8 : by * 8 + 8, bx * 8 : bx * 8 + 8]
    plots.pixels(right, tile)
    right.add_patch(Rectangle((0, 0), 8, 8, fill=False, edgecolor=plots.PALETTE["orange"], linewidth=2.2))
    right.add_patch(Rectangle((tx, ty), 1, 1, **mark))
    right.set_xticks(np.arange(8) + 0.5, range(8))
    right.set_yticks(np.arange(8) + 0.5, range(8))
    right.tick_params(length=0)
    right.set(xlim=(-0.1, 8.1), ylim=(8.1, -0.1), xlabel="threadIdx.x", ylabel="threadIdx.y")
    right.set_title(f"block ({bx}, {by})")
    return plots.show(
        fig,
        alt="A small picture of a moon, 22 pixels wide and 13 high, under a grid of 3 by 2 blocks of 8 by 8 "
        "threads. The grid sticks out 2 columns to the right and 3 rows at the bottom; those places are "
        "hatched. Beside it block (1, 0) is enlarged, with thread (3, 5) marked. It has pixel column 1 "
        "times 8 plus 3, which is 11, and row 0 times 8 plus 5, which is 5.",
        caption="Thread (3, 5) of block (1, 0) colours column 1 × 8 + 3 = 11, row 0 × 8 + 5 = 5. "
        "Hatched threads have no pixel: 98 of the 384.",
    )


@plots.responsive
def idle_share():
    """Share of threads without a pixel, against the side of a square image, for two block sizes."""
    sides = np.arange(1, 257)
    fig, ax = plots.new(plots.COLUMN, 2.6)
    for block, colour in ((32, "orange"), (8, "blue")):
        label = f"{block} × {block} threads"
        ax.plot(sides, 100 * _idle(sides, block), color=plots.PALETTE[colour], linewidth=1.6, label=label)
    ax.set(
        xlabel="side of the image, pixels", ylabel="threads without a pixel, %", xlim=(0, 256), ylim=(0, 100)
    )
    ax.set_xticks(range(0, 257, 32))
    ax.grid()
    plots.legend(fig, inside="upper right", title="block")
    return plots.show(
        fig,
        alt="Two sawtooth curves of the share of threads without a pixel against the side of a square "
        "image, 1 to 256. Each falls to zero at every multiple of the block's side and jumps just after "
        f"it. For 32 by 32 blocks the jump is to {_idle(33, 32):.0%} at side 33 and {_idle(225, 32):.0%} "
        f"at side 225; for 8 by 8 blocks to {_idle(225, 8):.0%} at side 225.",
        caption="The ragged edge is expensive for small images and large blocks, and soon forgotten "
        "otherwise.",
    )


def _idle(side, block):
    """Share of threads without a pixel when blocks of `block` x `block` cover a square of `side` pixels."""
    return 1 - (side / (-(-side // block) * block)) ** 2


@plots.responsive
def warp_map(height=270, width=480, block=16):
    """Which warps have only pixels of the sky, only of the moon, or both; with the chapter's sizes."""
    radius = 0.45 * height
    x = (np.arange(width) - width // 2) / radius
    y = ((np.arange(height) - height // 2) / radius)[:, None]
    moon = x * x + y * y < 1
    rows = 32 // block
    kinds = {"sky": ("grey", 0.25), "moon": ("blue", 0.6), "both": ("orange", 1.0)}
    fig, ax = plots.new(plots.COLUMN, 3.9)
    shares = moon.reshape(height // rows, rows, width // block, block).mean(axis=(1, 3))
    found = [tuple("sky" if s == 0 else "moon" if s == 1 else "both" for s in row) for row in shares]
    counts = {kind: sum(row.count(kind) for row in found) for kind in kinds}
    shapes = {kind: [] for kind in kinds}
    for top, bottom in _runs(
        found
    ):  # equal neighbours are joined to a rectangle, and each kind is one path, to have no seams
        for left, right in _runs(found[top]):
            x0, x1, y0, y1 = block * left, block * right, rows * top, rows * bottom
            shapes[found[top][left]].append(
                Path([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], closed=True)
            )
    for kind, (colour, alpha) in kinds.items():
        look = {"facecolor": plots.PALETTE[colour], "alpha": alpha, "linewidth": 0}
        ax.add_patch(PathPatch(Path.make_compound_path(*shapes[kind]), **look))
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xlabel="col", ylabel="row")
    ax.set(xticks=range(0, width + 1, 6 * block), yticks=range(0, height, 6 * block))
    ax.spines[:].set_visible(False)
    words = {"sky": "only sky", "moon": "only moon", "both": "both, so all 32 go through the moon's lines"}
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=plots.PALETTE[c], alpha=a, linewidth=0) for c, a in kinds.values()
    ]
    plots.legend(fig, handles, [f"{counts[k]:,} warps: {words[k]}" for k in kinds])
    total = sum(counts.values())
    return plots.show(
        fig,
        alt=f"Map of the {width} by {height} picture cut into {total:,} warps, each {block} pixels wide and "
        f"{rows} high. {counts['sky']:,} lie in the sky, {counts['moon']:,} on the moon, and "
        f"{counts['both']:,} along its rim hold both kinds of pixel.",
        caption=f"Of {total:,} warps only the {counts['both']:,} on the rim must do both: neighbours in a "
        "picture mostly agree.",
    )


def _runs(items):
    """(start, end) of each run of equal neighbours."""
    starts = [i for i in range(len(items)) if i == 0 or items[i] != items[i - 1]]
    return list(zip(starts, [*starts[1:], len(items)], strict=True))


@plots.responsive
def race(loop, array, core, gpu=None):
    """Seconds of a 4K frame by a Python loop (extrapolated), NumPy, a compiled core, and a GPU (or None)."""
    missing = gpu is None
    rows = [
        plots.Time("Python loop, one core", loop, "extrapolated"),
        plots.Time("NumPy, one core", array),
        plots.Time("compiled loop, one core", core),
        plots.Time(
            "CUDA kernel, a GPU" if missing else "CUDA kernel, this GPU",
            gpu,
            "missing" if missing else "live",
        ),
    ]
    known = {
        row.label: "not recorded yet" if row.seconds is None else plots.duration(row.seconds) for row in rows
    }
    said = "; ".join(f"{label}: {time}" for label, time in known.items())
    return plots.show(
        plots.times(rows, budget=1 / 120, budget_label="deadline at 120 Hz, 8.3 ms"),
        alt="Time to colour one 4K frame, on a logarithmic axis with the 8.3 ms deadline of 120 Hz marked. "
        f"{said}",
        caption=f"The same 8.3 million pixels: a core runs the compiled loop {loop / core:,.0f} times as "
        "fast as Python's. "
        + (
            "No GPU was here for the fourth program, and the engine counts but does not time."
            if missing
            else f"The GPU is the {warplab.device().name}."
        ),
        evidence=[row.kind for row in rows if row.seconds is not None],
    )


class LiveMoon:
    """The chapter's moon as a fragment shader in the page; `still` is shown without WebGPU."""

    def __init__(self, still, alt):
        file = io.BytesIO()
        Image.fromarray(still).save(file, "PNG", optimize=True)
        self.still, self.alt = base64.b64encode(file.getvalue()).decode(), html.escape(alt)

    def _repr_html_(self):
        script = (HERE / "moon.js").read_text(encoding="utf-8")
        shader = json.dumps((HERE / "moon.wgsl").read_text(encoding="utf-8")).replace("</", "<\\/")
        style = "width: 100%; max-width: 640px; height: auto; aspect-ratio: 16 / 9; padding: 0"
        return (
            '<figure class="warplab-figure live-moon" style="margin: 1em 0">'
            f'<img src="data:image/png;base64,{self.still}" alt="{self.alt}" width="480" height="270" '
            f'style="{style}">'
            f'<canvas hidden role="img" aria-label="{self.alt}" width="960" height="540" '
            f'style="{style}"></canvas>'
            '<p class="controls" hidden><button type="button" class="play">Pause</button> '
            '<button type="button" class="measure">Measure my GPU</button></p>'
            '<p class="status" role="status">Still picture, computed by the kernel above. Looking for WebGPU '
            "...</p>"
            "<figcaption>The moon, coloured by the GPU that draws this page, where the browser offers "
            "one.</figcaption>"
            f"<script>(() => {{ const shader = {shader};\n{script}}})();</script></figure>"
        )


def live_moon(image):
    """Return the WebGPU moon; `image` is the (h, w) uint8 picture to show where there is none."""
    return LiveMoon(
        image, "A grey sphere on black, lit from the upper left, like a moon four days from full."
    )


@plots.responsive
def mandelbrot(width=320, height=200, most=64):
    """The Mandelbrot set by number of iterations, and the share of active lanes in each warp of 32 pixels."""
    place = np.linspace(-2.2, 1.0, width) + 1j * np.linspace(1.0, -1.0, height)[:, None]
    z, turns = np.zeros_like(place), np.zeros(place.shape, int)
    for _ in range(most):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + place, z)
        turns += inside
    warps = turns.reshape(height, -1, 32)
    busy = warps.mean(2) / warps.max(2)
    fig, axes = plots.new(plots.COLUMN, 2.9, columns=2)
    panels = ((turns / most, "blue", "turns of the loop"), (busy, "orange", "busy lanes, warp by warp"))
    for ax, (values, colour, title) in zip(axes, panels, strict=True):
        image = np.empty((*values.shape, 4))
        image[..., :3], image[..., 3] = to_rgb(plots.PALETTE[colour]), values
        ax.imshow(image, extent=(0, width, height, 0), interpolation="nearest")
        ax.set(title=title, xticks=[], yticks=[])
    all_busy, least = turns.sum() / (warps.max(2).sum() * 32), busy.min()
    return plots.show(
        fig,
        alt=f"Two pictures of the Mandelbrot set. Left, the turns that each pixel takes, up to {most} "
        "inside the set. "
        f"Right, warps of 32 pixels as short strips: nearly all lanes busy inside and far outside, down to "
        f"{least:.0%} along the rim.",
        caption="Computed here, for warps of 32 pixels in a row: every lane waits for its warp's longest; "
        "full colour on the right is a warp with all its lanes at work. "
        f"{all_busy:.0%} of all lanes' turns do work; on the rim a single pixel can keep 31 others waiting.",
    )


@cuda.jit
def without_a_check(x, out):
    t = cuda.threadIdx.x
    out[t] = x[t] + 1


def warm_ups():
    """Two warm-ups of problem set 0 as their cells draw them: no bounds check, and a reversed table."""
    drawn = []
    for name, kernel in (("bounds", without_a_check), ("shared", None)):
        task = registry.get(f"ps00/{name}")
        run = task.run(kernel or task.worked())
        drawn.append(drawn_threads.picture(task.scene(), run))
    (unchecked, told), (shared, _) = drawn
    body = f'<div style="display: grid; gap: 1.5em">{unchecked}{shared}</div>'
    figure = plots.Figure(
        None,
        body,
        f"Two launches, threads as circles between arrays. Above: {told} Below, each thread of two blocks of "
        "four writes into its block's table and reads what another has written there.",
        "Run on the engine. Blue is read, green is written, orange is outside or wrong. Above, eight threads "
        f"without a check meet five numbers: {told[0].lower() + told[1:].partition('.')[0]}. "
        "Below, two blocks turn their numbers around, each in a table of its own in shared memory.",
    )
    figure.name = "warm_ups"
    return figure
