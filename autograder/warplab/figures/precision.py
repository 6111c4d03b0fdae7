"""Figures of chapter 7: formats as boxes and number lines, the explorer, sums that stall, a fragment's lanes,
peaks, gradients, master weights.
"""

import html
import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs
from warplab.evidence.measure import published, shown_without_running
from warplab.figures.recorded import finding

HERE = Path(__file__).parent
INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
SMALL = {"fontsize": 10.5}
# special: what the largest exponent is for; "IEEE": infinity and NaN, "one NaN": values but for all ones
FORMATS = {
    "FP32": {"exponent": 8, "fraction": 23, "bias": 127, "special": "IEEE"},
    "TF32": {"exponent": 8, "fraction": 10, "bias": 127, "special": "IEEE"},
    "BF16": {"exponent": 8, "fraction": 7, "bias": 127, "special": "IEEE"},
    "FP16": {"exponent": 5, "fraction": 10, "bias": 15, "special": "IEEE"},
    "FP8 E4M3": {"exponent": 4, "fraction": 3, "bias": 7, "special": "one NaN"},
    "FP8 E5M2": {"exponent": 5, "fraction": 2, "bias": 15, "special": "IEEE"},
    "INT8": {"exponent": 0, "fraction": 7, "bias": 0, "special": ""},
    "INT4": {"exponent": 0, "fraction": 3, "bias": 0, "special": ""},
}


def values(name):
    """All finite, non-negative values of a format, ascending."""
    f = FORMATS[name]
    if not f["exponent"]:
        return np.arange(2.0 ** f["fraction"])
    exponent, fraction = np.meshgrid(
        np.arange(2 ** f["exponent"]), np.arange(2 ** f["fraction"]), indexing="ij"
    )
    normal = exponent > 0
    found = (normal + fraction / 2 ** f["fraction"]) * 2.0 ** (np.maximum(exponent, 1) - f["bias"])
    return found[:-1].ravel() if f["special"] == "IEEE" else found.ravel()[:-1]


def largest(name):
    """The largest finite value of a format."""
    f = FORMATS[name]
    if not f["exponent"]:
        return 2.0 ** f["fraction"] - 1
    top, missing = (2 ** f["exponent"] - 2, 1) if f["special"] == "IEEE" else (2 ** f["exponent"] - 1, 2)
    return (2 - missing * 2.0 ** -f["fraction"]) * 2.0 ** (top - f["bias"])


@plots.responsive
def boxes():
    """Each format as a row of bits: sign, exponent, fraction."""
    fig, ax = plots.new(plots.COLUMN, 4.7)
    ax.set(xlim=(-0.2, 32.2), ylim=(2 * len(FORMATS) - 0.1, -0.85))
    ax.set_axis_off()
    for row, (name, f) in enumerate(FORMATS.items()):
        end = largest(name)
        ends = f"{end:,.0f}" if end < 1e6 else f"{end:.1e}".replace("e+", " · 10^").replace("^38", "³⁸")
        step = f"next above 1: 1 + 1/{2 ** f['fraction']:,}" if f["exponent"] else "step 1 × scale"
        ax.text(0, 2 * row - 0.12, name, va="bottom", weight="bold", **SMALL)
        ax.text(32, 2 * row - 0.12, f"largest {ends}, {step}", va="bottom", ha="right", **SMALL)
        for bit in range(1 + f["exponent"] + f["fraction"]):
            kind = "orange" if bit == 0 and f["exponent"] else "blue" if 0 < bit <= f["exponent"] else "green"
            ax.add_patch(
                Rectangle(
                    (bit, 2 * row), 1, 0.85, facecolor=COLOUR[kind], alpha=0.6, edgecolor=PAPER, linewidth=1.2
                )
            )
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.6) for c in ("orange", "blue", "green")]
    plots.legend(fig, handles, ["sign", "exponent", "fraction (or integer)"])
    said = "; ".join(
        f"{name}: {f['exponent']} exponent and {f['fraction']} fraction bits, largest {largest(name):.4g}"
        for name, f in FORMATS.items()
    )
    return plots.show(
        fig,
        alt=f"Eight number formats drawn as rows of bits. {said}. Floating-point numbers begin with a sign "
        "bit.",
        caption="Eight formats spend their bits in different ways: the exponent gives range, the fraction "
        "precision. TF32 exists inside Tensor Cores only; integers are "
        "multiplied by a scale.",
    )


class Explorer:
    """An interactive explorer of formats; without scripts, a sentence about what is missing."""

    def _repr_html_(self):
        script = (HERE / "formats.js").read_text(encoding="utf-8")
        table = json.dumps(FORMATS).replace("</", "<\\/")
        options = "".join(
            f"<option{' selected' if name == 'FP16' else ''}>{html.escape(name)}</option>" for name in FORMATS
        )
        return (
            '<figure class="warplab-figure format-explorer" style="margin: 1em 0"><style>'
            ".format-explorer .bits { display: flex; flex-wrap: wrap; gap: 2px; margin: 0.7rem 0; }"
            ".format-explorer .bits button { font: inherit; font-family: monospace; min-width: 1.75rem; "
            "min-height: 2.2rem; padding: 0;"
            " color: inherit; background: transparent; border: 2px solid currentColor; border-radius: 3px; "
            "cursor: pointer; }"
            ".format-explorer .bits button[aria-checked=true] { font-weight: bold; box-shadow: inset 0 -6px "
            "0 currentColor; }"
            + "".join(
                f".format-explorer .bits .{part} {{ border-color: {COLOUR[c]}; }}"
                for part, c in (("sign", "orange"), ("exponent", "blue"), ("fraction", "green"))
            )
            + ".format-explorer label { display: inline-block; margin-right: 1rem; } .format-explorer input "
            "{ width: 9rem; }"
            ".format-explorer table { margin: 0.6rem 0; display: block; max-width: 100%; overflow-x: auto; }"
            " .format-explorer :is(th, td) { white-space: nowrap; padding: 0.25rem 0.5rem; } "
            ".format-explorer [hidden] { display: none; }"
            ".format-explorer :is(.up, .down, input, select) { font: inherit; padding: 0.2rem 0.5rem; "
            "margin: 0.15rem 0; color: inherit; background: transparent;"
            " border: 1px solid var(--course-line, currentColor); border-radius: 0.25rem; } .format-explorer "
            ":is(.up, .down):disabled { opacity: 0.5; }"
            " .format-explorer option { color: CanvasText; background: Canvas; }"
            "</style><div class='explorer' hidden role='group' aria-label='Number format explorer'>"
            f"<label>Format <select>{options}</select></label>"
            '<label>Number <input type="text" inputmode="text" value="0.1" autocomplete="off" '
            'spellcheck="false"></label>'
            '<button type="button" class="down">previous value</button> <button type="button" '
            'class="up">next value</button>'
            '<div class="bits" role="group" aria-label="Bits, from the sign to the last; arrow keys '
            'move"></div>'
            "<table><thead><tr><th scope='col'>format</th><th scope='col'>stores</th><th "
            "scope='col'>error</th></tr></thead><tbody></tbody></table></div>"
            '<p class="status" role="status">The explorer needs JavaScript. The figure above shows the same '
            "formats.</p>"
            "<figcaption>Computed in the page, rounding to the nearest value, ties to even. What is too "
            "large becomes infinity, or the largest "
            f"value where there is none.</figcaption><script>(() => {{ const formats = "
            f"{table};\n{script}}})();</script></figure>"
        )


def explorer():
    """Return the explorer of the page."""
    return Explorer()


@plots.responsive
def number_lines(end=16):
    """Where the values of four small formats lie between 0 and `end`."""
    names = ("FP8 E4M3", "FP8 E5M2", "INT8", "INT4")
    fig, ax = plots.new(plots.COLUMN, 2.7)
    counted = []
    for y, (name, colour) in enumerate(zip(names, ("blue", "orange", "green", "purple"), strict=True)):
        every = values(name)
        shown = every[every <= end]
        counted.append((name, len(shown), (every < 1).sum(), len(every)))
        ax.vlines(shown, y - 0.2, y + 0.25, color=COLOUR[colour], linewidth=1.3)
        ax.text(0, y - 0.25, f"{name}: {(every < 1).sum()} of {len(every)} below 1", va="bottom", **SMALL)
    ax.set(xlim=(-0.2, end + 0.2), ylim=(len(names) - 0.5, -0.85), xticks=range(0, end + 1, 2))
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    said = "; ".join(
        f"{name} has {n} values up to {end}, and {below} of its {total} lie below 1"
        for name, n, below, total in counted
    )
    return plots.show(
        fig,
        alt=f"Number lines from 0 to {end}. {said}. Floating-point values crowd near zero, integers are "
        "evenly spaced.",
        caption="Floating-point steps double at each power of two; those of integers are equal. Values from "
        "0 to 16, of the integers with a scale of 1.",
    )


@plots.responsive
def accumulation(products, accumulate):
    """Live: the error of a running sum in FP16 and FP32 against its length.

    products: {kind of signs: float32 array [rows, K]}. accumulate(products, dtype) -> running sums.
    """
    fig, ax = plots.new(plots.COLUMN, 3.3)
    lengths = 2 ** np.arange(4, 1 + int(np.log2(products[False].shape[1])))
    last = []
    for kind, colour, bits in ((np.float16, "orange", "FP16"), (np.float32, "blue", "FP32")):
        for signs, dashes, words in ((False, "-", "all positive"), (True, (0, (5, 2)), "both signs")):
            p = products[signs]
            exact, size = (
                np.add.accumulate(p, axis=1, dtype=float),
                np.add.accumulate(abs(p), axis=1, dtype=float),
            )
            error = (abs(accumulate(p, kind) - exact) / size).mean(axis=0)[lengths - 1]
            ax.plot(
                lengths,
                np.maximum(error, 1e-9),
                color=COLOUR[colour],
                linestyle=dashes,
                marker="o",
                markersize=4,
                label=f"{bits}, {words}",
            )
            last.append(f"{bits}, {words}: {error[-1]:.1e}")
    ax.set(xscale="log", yscale="log", xlabel="terms K", ylabel="error / sum of sizes", ylim=(1e-9, 1))
    ax.set_xticks([16, 128, 1024, 8192], ["16", "128", "1,024", "8,192"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="upper left")
    return plots.show(
        fig,
        alt="Mean error of a running sum of products, relative to the sum of their sizes, against the "
        f"number of terms. At {lengths[-1]:,} terms, " + "; ".join(last) + ".",
        caption="Live: 200 dot products each way. FP16 factors summed in FP32 stay accurate; summed in FP16, "
        "terms of one sign stall.",
        evidence=["live"],
    )


def owners():
    """{"A": the lane that holds each element of the 16 x 16 tile, "B": of 16 x 8, "C": of 16 x 8} for
    mma.m16n8k16 with 16-bit elements (PTX manual).
    """
    row, col = np.mgrid[:16, :16]
    k, n = np.mgrid[:16, :8]
    return {"A": row % 8 * 4 + col % 8 // 2, "B": n * 4 + k % 8 // 2, "C": k % 8 * 4 + n // 2}


@plots.responsive
def fragments(lane):
    """The tiles of one mma.m16n8k16 with the lane that holds each pair of elements; `lane` is filled."""
    held = owners()
    fig, ax = plots.new(plots.COLUMN, 5.8)
    wide = (
        2 if plots.on_phone() else 1
    )  # of a box of B, whose columns stand above those of C where there is room
    left = 25 - 8 * wide
    ax.set(xlim=(-0.3, 25.5), ylim=(34.4, -1.6))
    ax.set_axis_off()
    for name, corner, box, pair, colour in (
        ("A", (0, 18), (2, 1), (2, 1), "blue"),
        ("B", (left, 0), (wide, 2), (1, 2), "orange"),
        ("C", (17, 18), (2, 1), (2, 1), "green"),
    ):
        rows, cols = held[name].shape
        for row in range(0, rows, pair[1]):
            for col in range(0, cols, pair[0]):
                mine = held[name][row, col] == lane
                at = corner[0] + col // pair[0] * box[0], corner[1] + row // pair[1] * box[1]
                look: dict[str, Any] = {
                    "facecolor": COLOUR[colour] if mine else "none",
                    "edgecolor": COLOUR[colour],
                }
                ax.add_patch(Rectangle(at, *box, linewidth=0.8, **look))
                if mine or (row < 8 and col < 8):  # the other quarters repeat the first
                    look = {"weight": "bold", "color": PAPER} if mine else {"color": INK}
                    middle = at[0] + box[0] / 2, at[1] + box[1] / 2 + 0.04
                    ax.text(*middle, str(held[name][row, col]), ha="center", va="center", fontsize=10, **look)
    for text, x, y in (("A, 16 × 16", 0, 17.8), ("B, 16 × 8", left, -0.2), ("C, 16 × 8", 17, 17.8)):
        ax.text(x, y, text, va="bottom", **SMALL)
    words = (
        "A box is two 16-bit neighbours in one register (in C two FP32); its number is the lane that "
        "holds it. The other quarters have the numbers of the first."
    )
    said = textwrap.fill(words, 17 if plots.on_phone() else 40)
    ax.text(0, 0, said, va="top", **SMALL)
    ax.text(0, 15.5, f"Filled: lane {lane}.", va="top", weight="bold", **SMALL)
    places = {
        name: sorted({(int(r), int(c)) for r, c in np.argwhere(tile == lane)}) for name, tile in held.items()
    }
    said = "; ".join(
        f"{name}: rows {sorted({r for r, _ in at})}, columns {sorted({c for _, c in at})}"
        for name, at in places.items()
    )
    return plots.show(
        fig,
        alt="Which lane of a warp holds which elements of the tiles of one m16n8k16 instruction. Lane "
        f"{lane} holds {said}.",
        caption=f"One `mma` of 16 × 8 × 16: lane {lane} holds eight elements of A, four of B and four sums "
        "of C. From the PTX manual, checked on the engine.",
    )


KINDS = (
    ("peak_fp32", "FP32, CUDA cores", "grey", "s"),
    ("peak_tf32", "TF32", "gold", "o"),
    ("peak_fp16", "FP16", "blue", "o"),
    ("peak_fp8", "FP8", "orange", "o"),
    ("peak_fp4", "FP4", "purple", "o"),
)


@plots.responsive
def ladder():
    """Dense peaks from the registry, a row for each device and a mark for each format."""
    devices = ("v100-sxm2", "a100-sxm", "h100-sxm", "b200", "b300", "rtx-4090")
    fig, ax = plots.new(plots.COLUMN, 4.6)
    said = []
    for y, key in enumerate(devices):
        spec = specs.get(key)
        held = [(spec[name].si / 1e12, *rest) for name, *rest in KINDS if name in spec]
        ax.plot([held[0][0], held[-1][0]], [y, y], color=COLOUR["grey"], linewidth=1, alpha=0.6, zorder=1)
        for place, (peak, _, colour, marker) in enumerate(held):
            ax.plot(peak, y, marker, color=COLOUR[colour], markersize=9)
            above = place % 2 == 0
            ax.annotate(
                f"{peak:,.4g}",
                (peak, y),
                (0, 8 if above else -8),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                fontsize=10,
            )
        said.append(f"{spec.short}: " + ", ".join(f"{label} {peak:,.4g}" for peak, label, *_ in held))
    ax.set(xscale="log", xlim=(8, 16_000), ylim=(len(devices) - 0.4, -0.7), xlabel="peak, dense (TFLOP/s)")
    ax.set_yticks(range(len(devices)), [specs.get(key).short.removesuffix(" SXM2") for key in devices])
    ax.set_xticks([10, 100, 1000, 10_000], ["10", "100", "1,000", "10,000"])
    ax.minorticks_off()
    ax.grid(axis="x")
    ax.tick_params(axis="y", length=0)
    for _, label, colour, marker in KINDS:
        ax.plot([], [], marker, color=COLOUR[colour], markersize=9, label=label)
    plots.legend(fig)
    return plots.show(
        fig,
        alt=f"Dense data-sheet peaks in TFLOP/s, on a logarithmic axis. {'; '.join(said)}.",
        caption="Halving the bits doubles a Tensor Core's peak. On data-centre cards the large step is from "
        "CUDA cores to Tensor Cores; on the RTX 4090 FP16 has only twice the peak of FP32. Data-sheet peaks, "
        "all dense: SXM modules and an RTX 4090 (its FP16 and FP8 with FP32 sums). "
        "Equal steps of the axis are equal factors. The registry has neither FP32 nor FP4 of the B300.",
    )


REGISTERED = {  # {published device: the registry's entry that has its peaks}
    "NVIDIA A100 40 GB": "a100-sxm",
    "NVIDIA A100 80 GB": "a100-sxm",
    "NVIDIA V100 16 GB": "v100-sxm2",
    "NVIDIA V100 32 GB": "v100-sxm2",
    "NVIDIA V100-SXM2 16 GB": "v100-sxm2",
    "NVIDIA H100 SXM": "h100-sxm",
    "NVIDIA H100 (8)": "h100-sxm",
    "NVIDIA H800": "h100-sxm",
    "NVIDIA H200 SXM": "h200-sxm",
    "NVIDIA B200 SXM": "b200",
    "Intel Gaudi 3": "gaudi3",
    "AMD MI300X (8)": "mi300x",
}
CLIMB = (
    ("WMMA from global memory", "WMMA,\nfrom global memory", "blue"),
    ("WMMA, tiles in shared memory", "WMMA, tiles in\nshared memory", "blue"),
    ("WMMA, copied ahead by cp.async", "WMMA, tiles\ncopied ahead", "blue"),
    ("wgmma and TMA", "wgmma and TMA", "blue"),
    ("cuBLAS BF16", "cuBLAS", "blue"),
    ("wgmma and TMA, FP8", "wgmma and TMA,\nFP8", "orange"),
)
H20 = {"blue": 148.0, "orange": 296.0}  # TFLOP/s, the peaks that the source counts by: BF16 and FP8, dense


def recorded_on(device, name):
    """The records of an experiment that were taken on a device, as Evidence."""
    return [e for e in shown_without_running(name).evidence if e.kind == "recorded" and e.device == device]


def said_with_software(e):
    """A record's banner as a sentence, with the versions of CUDA and PyTorch."""
    said = e.banner.replace("; not this", f"; {e.software.partition(', ')[2]}; not this")
    return f"{said[0].upper()}{said[1:]}."


def _of(which, shares):
    """The largest or smallest of {label: share}, with its label. which: max or min."""
    label = which(shares, key=shares.get)
    return f"{100 * shares[label]:.0f} % ({label})"


RECORDED = (
    ("course: matmul_register_tiled", "chapter 4's kernel,\nFP32", "fp32", "grey"),
    ("torch fp32", "library, FP32", "fp32", "grey"),
    ("torch tf32", "library, TF32", "tf32", "gold"),
    ("torch fp16", "library, FP16", "fp16", "blue"),
    ("torch bf16", "library, BF16", "bf16", "blue"),
    ("torch int8", "library, INT8", "int8", "orange"),
    ("torch fp8", "library, FP8", "fp8", "orange"),
)


@plots.responsive
def formats(side, device, card):
    """Our record of products of one side in each format, beside the dense peaks of the registry's `card`."""
    found = [e for name in ("matmul_by_size", "matmul_in_eight_bits") for e in recorded_on(device, name)]
    rates = {p.series: p.rate for e in found for p in e.points if p.x == side}
    e, peaks = found[0], specs.get(card)
    fig, ax = plots.new(plots.COLUMN, 3.9)
    said, shares = [], {}
    for y, (series, label, kind, colour) in enumerate(RECORDED):
        rate, peak = rates[series] / 1e12, peaks[f"peak_{kind}"].si / 1e12
        share = f"{rate:,.0f}, {rate / peak:.0%}"
        shares[label.replace("\n", " ")] = rate / peak
        rate_bar(ax, y, rate, colour, peak, share, behind=peak - rate < 300)
        said.append(f"{label.replace(chr(10), ' ')}: {share} of {peak:,.0f}")
    ax.set_yticks(range(len(RECORDED)), [label for _, label, _, _ in RECORDED])
    ax.set(xlim=(0, 2600), ylim=(len(RECORDED) - 0.4, -0.6), xlabel="TFLOP/s")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return plots.show(
        fig,
        alt=f"Products of side {side:,} on an {device}, in TFLOP/s and as a share of the dense peak. "
        f"{'; '.join(said)}.",
        caption=f"The largest share of a format's peak is {_of(max, shares)}, the smallest "
        f"{_of(min, shares)}. Products of side {side:,}; a dark line is the dense peak of the format. "
        f"{said_with_software(e)}",
        evidence=["recorded"],
    )


@plots.responsive
def eight_bits(measured):
    """Published speeds of a WMMA kernel without tiles, and of products in eight bits.

    measured: of matmul_in_eight_bits; only published sources are drawn.
    """
    others = published(measured.name)
    h20 = next(e for e in others if e.device == "NVIDIA H20")
    found = {p.series: p.rate / 1e12 for p in h20.points}
    wide = {
        e.device: _best(e) for e in published("matmul_by_size") if e.points[0].series.endswith("best shape")
    }
    eight = {e.device: _best(e) for e in others if e is not h20}
    fig, (climb, best) = plots.new(plots.COLUMN, 7.4, rows=2, height_ratios=(6, 7))
    for y, (series, _, colour) in enumerate(CLIMB):
        rate_bar(
            climb,
            y,
            found[series],
            colour,
            H20[colour],
            f"{found[series]:.0f}, {found[series] / H20[colour]:.0%}",
        )
    climb.set_yticks(range(len(CLIMB)), [label for _, label, _ in CLIMB])
    climb.set(xlim=(0, 350), ylim=(len(CLIMB) - 0.4, -0.6))
    climb.set_title("H20, side 4,096 (TFLOP/s)", loc="left", fontsize=11)
    rows, said = [], []
    for device, rate in eight.items():
        facts = specs.get(REGISTERED[device])
        for colour, kind, value in (("blue", "bf16", wide.get(device)), ("orange", "fp8", rate)):
            if value:
                peak = facts[f"peak_{kind}"].si / 1e12
                rate_bar(best, len(rows), value, colour, peak, f"{value:,.0f}, {value / peak:.0%}")
                machine = device.removeprefix("NVIDIA ").removeprefix("Intel ").removesuffix(" SXM")
                rows.append(f"{machine}, {kind.upper()}")
                said.append(f"{device} {kind}: {value:,.0f}, {value / peak:.0%} of the peak")
    best.set_yticks(range(len(rows)), rows)
    best.set(xlim=(0, 5600), ylim=(len(rows) - 0.4, -0.6))
    best.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    best.set_title("libraries, best shape (TFLOP/s)", loc="left", fontsize=11)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.8) for c in ("blue", "orange")]
    plots.legend(fig, handles, ["16 bits (BF16)", "8 bits (FP8)"])
    climbed = "; ".join(f"{s}: {found[s]:.0f}, {found[s] / H20[c]:.0%} of the peak" for s, _, c in CLIMB)
    return plots.show(
        fig,
        alt=f"Published rates in TFLOP/s. On an H20, products of side 4,096. {climbed}. Libraries at their "
        f"best shape. {'; '.join(said)}.",
        caption=f"On an H20 one author's kernels climb from {found[CLIMB[0][0]] / H20[CLIMB[0][2]]:.0%} of "
        f"the peak to {found[CLIMB[3][0]] / H20[CLIMB[3][2]]:.0%} with wgmma and TMA. "
        "Published by others, none of it measured by us; a dark line is the dense peak of the format."
        " Above, that author's kernels, of which the first works as this chapter's does. Below, "
        "PyTorch's best of many shapes, and DeepGEMM on the H800, with BF16 where the same source has it.",
        evidence=["published"],
    )


def _best(evidence):
    return max(p.rate for p in evidence.points) / 1e12


def rate_bar(ax, y, value, colour, peak, text, behind=False):
    """Draw a bar from zero with the line of its peak. behind: put the text beyond that line."""
    ax.barh(y, value, 0.62, color=COLOUR[colour], alpha=0.8)
    ax.plot([peak, peak], [y - 0.42, y + 0.42], color=INK, linewidth=2)
    near = behind or value > 0.6 * peak  # else the text would meet the line
    ax.annotate(text, (peak if near else value, y), (4, 0), textcoords="offset points", va="center", **SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


@plots.responsive
def by_width(device):
    """The recorded speed-up of a training step over FP32, by width."""
    (e,) = recorded_on(device, "training_by_format")
    wide, *short = e.series().values()
    fig, ax = plots.new(plots.COLUMN, 3.4)
    looks = (("gold", "TF32", "s"), ("blue", "BF16", "o"), ("orange", "FP16", "^"))
    said = []
    for row, (colour, name, marker) in zip(short, looks, strict=True):
        gains = {p.x: base.median / p.median for base, p in zip(wide, row, strict=True)}
        ax.plot(list(gains), list(gains.values()), marker + "-", color=COLOUR[colour], label=name)
        said.append(f"{name} " + ", ".join(f"{x:,g}: {gain:.2f}" for x, gain in gains.items()))
    ax.axhline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xscale="log", xlabel="width", ylabel="times as fast as FP32", ylim=(0, None))
    ax.set_xticks([p.x for p in wide], [f"{p.x:,g}" for p in wide])
    ax.minorticks_off()
    plots.legend(fig)
    return plots.show(
        fig,
        alt=f"A training step's speed as multiples of FP32's, by width. {'; '.join(said)}.",
        caption=f"{finding(shown_without_running('training_by_format'), device)} One step of 8 layers on "
        f"16 x 512 tokens. {said_with_software(e)}",
        evidence=["recorded"],
    )


FORMS = {"fp32": "FP32", "tf32": "TF32", "mixed, fp16": "FP16", "bf16": "BF16"}


@plots.responsive
def training(measured):
    """Published speed-ups of a training step in fewer bits, by source, beside the ratio of the peaks.

    measured: of training_by_format; only published sources are drawn.
    """
    rows = []
    for e in published(measured.name):
        base, *others = e.points
        for p in others:
            wide, short = (FORMS.get(series, "FP8") for series in (base.series, p.series))
            facts = specs.get(REGISTERED[e.device])
            peaks = facts[f"peak_{short.lower()}"].si / facts[f"peak_{wide.lower()}"].si
            how = p.series.partition(", ")[2] if short == "FP8" else ""
            machine = e.device.removeprefix("NVIDIA ").removeprefix("AMD ")
            name = f"{machine}, width {p.x:g},\n{wide} to {short}{', ' + how if how else ''}"
            rows.append((peaks, base.median / p.median, wide, name))
    rows.sort(key=lambda row: (-row[0], row[1]))
    fig, ax = plots.new(plots.COLUMN, 0.9 + 0.52 * len(rows))
    for y, (peaks, gain, wide, _) in enumerate(rows):
        colour = {"FP32": "grey", "TF32": "gold", "BF16": "blue"}[wide]
        ax.barh(y, gain, 0.6, color=COLOUR[colour], alpha=0.8)
        ax.plot([peaks, peaks], [y - 0.42, y + 0.42], color=INK, linewidth=2)
        at = peaks if peaks < gain + 2 else gain  # where the text would meet the line it stands behind it
        ax.annotate(f"{gain:.2f} x", (at, y), (4, 0), textcoords="offset points", va="center", **SMALL)
    ax.set_yticks(range(len(rows)), [name for *_, name in rows], fontsize=9.8)
    ax.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xlim=(0, 8.6), ylim=(len(rows) - 0.4, -0.6), xlabel="times as many tokens a second")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    said = "; ".join(
        f"{' '.join(name.split())}: {gain:.2f} times, peaks {peaks:.1f} times"
        for peaks, gain, _, name in rows
    )
    return plots.show(
        fig,
        alt=f"Published speedups of training from fewer bits. {said}.",
        caption="No training step reaches the ratio of the two dense peaks, the dark line, because only a "
        "part of a step is matrix products. Published by others, none of it measured by us; each row "
        "compares two formats of one source, on one machine and model.",
        evidence=["published"],
    )


@plots.responsive
def gradients(true, scale):
    """Live: magnitudes of a network's gradients against the range of FP16, unscaled and times `scale`."""
    size = np.log2(abs(true[true != 0]))
    fig, ax = plots.new(plots.COLUMN, 3.3)
    bins = np.arange(-48, 17)
    for shift, colour, label in (
        (0, "orange", "as they are"),
        (np.log2(scale), "blue", f"times {scale:,.0f}"),
    ):
        counts, _ = np.histogram(size + shift, bins)
        ax.stairs(100 * counts / size.size, bins, fill=True, color=COLOUR[colour], alpha=0.55, label=label)
    top = ax.get_ylim()[1] * 1.45
    for at, text, align in (
        (-24, "smallest\nFP16", "right"),
        (-14, "full precision\nfrom here", "left"),
        (16, "largest\nFP16", "right"),
    ):
        ax.axvline(at, color=INK, linestyle=(0, (5, 3)), linewidth=1.3)
        ax.text(at + (-0.6 if align == "right" else 0.6), top * 0.98, text, ha=align, va="top", fontsize=9.5)
    ax.set(ylim=(0, top), xlim=(-46, 17), xlabel="size of a gradient", ylabel="share (%)")
    ax.set_xticks([-40, -30, -20, -10, 0, 10], ["2⁻⁴⁰", "2⁻³⁰", "2⁻²⁰", "2⁻¹⁰", "1", "2¹⁰"])
    plots.legend(fig)
    lost, kept = 100 * (size < -25).mean(), 100 * (size + np.log2(scale) < -25).mean()
    return plots.show(
        fig,
        alt=f"Histogram of gradient sizes on a logarithmic axis. As they are, {lost:.0f} % are below half of "
        f"FP16's smallest number; times {scale:,.0f}, {kept:.1f} %. FP16's range runs from 2 to the "
        "minus 24 to 65,504.",
        caption=f"Live, in FP32: {lost:.0f} % of the gradients would round to zero in FP16; with the loss "
        f"multiplied by {scale:,.0f}, {kept:.1f} %.",
        evidence=["live"],
    )


@plots.responsive
def stall(curves):
    """Live: loss against steps. curves: {name: losses}."""
    fig, ax = plots.new(plots.COLUMN, 2.9)
    looks = (("grey", "-", 4.5), ("orange", "-", 2), ("blue", (0, (4, 2)), 2))
    for (name, losses), (colour, dashes, width) in zip(curves.items(), looks, strict=True):
        ax.plot(
            np.arange(1, 1 + len(losses)),
            losses,
            color=COLOUR[colour],
            linestyle=dashes,
            linewidth=width,
            label=name,
        )
    ax.set(xlabel="step", ylabel="loss", ylim=(0, None))
    ax.grid()
    plots.legend(fig, inside="lower left")
    said = "; ".join(f"{name}: {losses[0]:.2f} to {losses[-1]:.2f}" for name, losses in curves.items())
    return plots.show(
        fig,
        alt=f"Training loss of the ConvNet over {len(next(iter(curves.values())))} steps at a learning rate "
        f"of 0.0001. {said}.",
        caption="Live: weights kept in BF16 alone fall behind, because small updates round away. An FP32 "
        "copy of the weights is the whole cure.",
        evidence=["live"],
    )
