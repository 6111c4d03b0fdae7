"""Figures of chapter 06: what training keeps, what a block keeps, length, checkpoints,
gaps, the cache, and the calculator.
"""

import html
import json
import pathlib
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs, vram
from warplab.evidence.measure import published

HERE = pathlib.Path(__file__).parent
INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
SEVEN: dict[str, Any] = {"layers": 32, "width": 4096, "heads": 32}  # the shape of Llama 2 7B
PARTS = {
    "weights": "blue",
    "gradients": "orange",
    "FP32 weights": "purple",
    "first moment": "green",
    "second moment": "gold",
}


def cards():
    """{capacity in GB: name} of the chapter's cards, from the registry."""
    return {
        specs.get(key)["memory_capacity"].value: name
        for key, name in (("rtx-4090", "RTX 4090"), ("h100-sxm", "H100"), ("h200-sxm", "H200"))
    }


def card_lines(ax, top):
    """Draw dashed lines at the cards' capacities in GB, labelled above `top`."""
    for size in cards():
        ax.axvline(size, **{**THEORY, "linewidth": 1.3})
        ax.text(size, top, f"{size:g}", ha="center", va="bottom", **SMALL)


@plots.responsive
def tenants():
    """State of training 7 B parameters by recipe, stacked, with the cards' capacities."""
    rows = {"weights alone, 16 bits": {"weights": 14e9}} | {
        name: vram.training_bytes(7e9, name) for name in vram.RECIPES
    }
    fig, ax = plots.new(plots.COLUMN, 3.9)
    for y, parts in enumerate(rows.values()):
        left = 0.0
        for part, size in parts.items():
            ax.barh(y, size / 1e9, left=left / 1e9, height=0.62, color=COLOUR[PARTS[part]], alpha=0.85)
            left += size
        ax.text(145, y, f"{left / 1e9:.0f} GB", va="center", **SMALL)
    card_lines(ax, -0.62)
    ax.set(
        xlim=(0, 172),
        xticks=range(0, 121, 40),
        ylim=(len(rows) - 0.5, -0.62),
        xlabel="GB of state for 7 billion parameters",
    )
    ax.set_yticks(
        range(len(rows)), [name.replace("mixed, SGD with momentum", "mixed, momentum") for name in rows]
    )
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in PARTS.values()]
    plots.legend(fig, handles, list(PARTS))
    said = "; ".join(f"{name}: {sum(parts.values()) / 1e9:.0f} GB" for name, parts in rows.items())
    return plots.show(
        fig,
        alt=f"Stacked bars of the memory that training seven billion parameters keeps, by recipe. {said}. "
        f"Dashed lines: cards of {', '.join(f'{size:g} GB ({name})' for size, name in cards().items())}.",
        caption="Theory. FP32 and mixed precision with Adam need the same 112 GB, eight times the 16-bit "
        "weights. Of the cards drawn (dashed: RTX 4090, H100, H200) only the last has room for that.",
        evidence=["theory"],
    )


@plots.responsive
def kept(tensors, row):
    """Live: the tensors that autograd kept for one block. tensors: vram.Kept.tensors. row: bytes of an array
    of batch x tokens x width.
    """
    names = ["input", "norm 1", "q, k, v", "mixed values", "sum", "norm 2", "up", "GELU"]
    large = [size / row for _, _, size in tensors if size / row >= 0.9]
    rest = sum(size / row for _, _, size in tensors if size / row < 0.9)
    if len(large) != len(names):
        raise ValueError(
            f"a block kept {len(large)} large arrays, and {len(names)} have names: look at what PyTorch "
            "saves now"
        )
    fig, ax = plots.new(plots.COLUMN, 3.2)
    rows = [*zip(names, large, strict=True), ("all the rest", rest)]
    for y, (_, size) in enumerate(rows):
        ax.barh(
            y,
            size,
            height=0.62,
            color=COLOUR["grey" if y == len(names) else "orange" if y > 5 else "blue"],
            alpha=0.85,
        )
        ax.annotate(f"{size:.2g}", (size, y), (4, 0), textcoords="offset points", va="center", **SMALL)
    ax.set(xlim=(0, 4.6), ylim=(len(rows) - 0.5, -0.6), xlabel="kept, in arrays of batch × tokens × width")
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    said = ", ".join(f"{name} {size:.2g}" for name, size in rows)
    return plots.show(
        fig,
        alt="Bars of what one transformer block keeps for its backward pass, in arrays of batch times "
        f"tokens times width. {said}.",
        caption=f"Live: one block keeps {sum(large):.0f} arrays of the size of its input; the two around "
        "GELU, four wide each, are half of them.",
        evidence=["live"],
    )


@plots.responsive
def lengths():
    """Bytes of activations of the 7 B shape against tokens: fused attention, stored scores, stored with
    dropout, and with checkpoints.
    """
    tokens = 2.0 ** np.arange(8, 16)
    lines = (
        ("stored, with dropout", {"fused": False, "dropout": True}, "purple"),
        ("attention's shares stored", {"fused": False}, "orange"),
        ("fused attention", {}, "blue"),
        ("fused, every block checkpointed", {"segments": SEVEN["layers"]}, "green"),
    )
    fig, ax = plots.new(plots.COLUMN, 4.4)
    sizes = {}
    for name, how, colour in lines:
        sizes[name] = np.array([vram.activation_bytes(**SEVEN, tokens=t, **how) for t in tokens]) / 1e9
        ax.plot(tokens, sizes[name], color=COLOUR[colour], linewidth=2, label=name)
    ax.axhline(14, **THEORY)
    ax.text(256, 14 * 1.15, "weights", ha="left", **SMALL)
    ax.set(xscale="log", yscale="log", xlabel="tokens in a batch of one", ylabel="GB", ylim=(0.05, 6000))
    ax.set_xticks([256, 1024, 4096, 16384], ["256", "1,024", "4,096", "16,384"])
    ax.set_yticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1,000"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig)
    at = list(tokens).index(2048)
    said = "; ".join(f"{name}: {values[at]:.1f} GB" for name, values in sizes.items())
    return plots.show(
        fig,
        alt="Activations of 32 blocks of width 4,096 in 16 bits against the tokens, logarithmic. At 2,048 "
        f"tokens: {said}. The weights are 14 GB.",
        caption="Theory. Attention's shares, where they are stored, grow with the square of the length. With "
        "fused attention the activations grow with the length alone, and checkpoints keep a part of them.",
        evidence=["theory"],
    )


@plots.responsive
def checkpoints(counted, theory, whole):
    """Peak of kept bytes against the number of checkpointed segments. counted, theory: {segments: MB}. whole:
    MB counted without checkpoints.
    """
    fig, ax = plots.new(plots.COLUMN, 3.1)
    style = {**plots.MARKERS["live"], "markersize": 7}
    ax.plot(list(theory), list(theory.values()), **THEORY, label="theory")
    ax.plot(list(counted), list(counted.values()), linestyle="none", label="counted here", **style)
    ax.axhline(whole, color=COLOUR["orange"], linewidth=1.8)
    ax.text(max(counted), whole * 0.93, "no checkpoints, counted", ha="right", va="top", **SMALL)
    ax.set(xscale="log", yscale="log", xlabel="segments", ylabel="peak kept, MB")
    ax.set_xticks(list(counted), [str(k) for k in counted])
    low = min(counted.values())
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100) if low / 1.5 < t < whole * 1.5]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="lower left")
    best = min(counted, key=counted.get)
    said = ", ".join(f"{k}: {v:.2g}" for k, v in counted.items())
    return plots.show(
        fig,
        alt="Peak of kept megabytes against the number of checkpointed segments, counted on this machine. "
        f"{said}. Without: {whole:.3g}.",
        caption=f"Live bytes, theory dashed: {best} segments keep the least, a {whole / counted[best]:.0f}th "
        "of the bytes. With fewer the recomputed segment is too large, with more there are too many inputs.",
        evidence=["live", "theory"],
    )


@plots.responsive
def parts(measurement):
    """Computed memory of published training steps, part by part, with the published peaks.

    measurement: warplab.measure("memory_by_part").
    """
    source = next(e for e in [*measurement.evidence, *published("memory_by_part")] if "V100" in e.device)
    held = {(p.series, p.x): p.median / 1e9 for p in source.points}
    weights = held["weights", 4]
    shape = {
        "layers": 24,
        "width": 1024,
        "heads": 16,
        "tokens": 512,
        "number": 4,
        "fused": False,
        "dropout": True,
    }
    fig, ax = plots.new(plots.COLUMN, 2.4)
    colours = {
        "weights": "blue",
        "gradients": "orange",
        "moments": "green",
        "activations": "purple",
        "CUDA": "grey",
    }
    said, share = [], 0.0
    for y, batch in enumerate((1, 4)):
        sizes = (weights, weights, 2 * weights, vram.activation_bytes(batch=batch, **shape) / 1e9, 1.4)
        left, peak = 0.0, held["peak", batch]
        for size, colour in zip(sizes, colours.values(), strict=True):
            ax.barh(y, size, left=left, height=0.55, color=COLOUR[colour], alpha=0.85)
            left += size
        ax.plot([peak], [y], markersize=11, linestyle="none", **plots.MARKERS["published"])
        ax.annotate(f"{peak:.1f} GB", (peak, y), (9, 0), textcoords="offset points", va="center", **SMALL)
        said.append(f"batch {batch}: {left:.1f} GB by the rules, {peak:.1f} GB published")
        share = left / peak
    ax.set(xlim=(0, 18.5), ylim=(1.5, -0.5), xticks=(0, 5, 10, 15), xlabel="GB")
    ax.set_yticks([0, 1], ["1 text", "4 texts"])
    ax.tick_params(axis="y", length=0)
    plots.legend(
        fig, [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in colours.values()], list(colours)
    )
    return plots.show(
        fig,
        alt="Memory of a training step of BERT large in FP32 by the rules, stacked, and published. "
        f"{'; '.join(said)}.",
        caption=f"With 4 texts the rules come to {share:.0%} of the published peak; what the batch "
        "adds are activations alone. BERT large, FP32 with Adam, 512 tokens a text. Bars: the rules of this "
        "chapter. Triangles: peaks on a V100.",
        evidence=["theory", "published"],
    )


@plots.responsive
def desks(moments):
    """Memory as bars with the allocations in it. moments: [(title, size of the memory, {start: length})]."""
    fig, ax = plots.new(plots.COLUMN, 0.5 + 0.75 * len(moments))
    said = []
    for y, (title, size, taken) in enumerate(moments):
        ax.add_patch(Rectangle((0, y), size, 0.5, fill=False, edgecolor=INK, linewidth=1.4))
        for start, length in taken.items():
            ax.add_patch(
                Rectangle(
                    (start, y),
                    length,
                    0.5,
                    facecolor=COLOUR["blue"],
                    alpha=0.75,
                    edgecolor=plots.PAPER,
                    linewidth=1.5,
                )
            )
            ax.text(start + length / 2, y + 0.25, f"{length}", ha="center", va="center", **SMALL)
        ax.text(0, y - 0.06, title, ha="left", va="bottom", **SMALL)
        parts = ", ".join(f"{length} at {start}" for start, length in sorted(taken.items()))
        said.append(f"{title}: {parts or 'nothing'}")
    ax.set(xlim=(-0.3, moments[0][1] + 0.3), ylim=(len(moments) - 0.35, -0.45))
    ax.set_axis_off()
    return plots.show(
        fig,
        alt=f"A memory of {moments[0][1]} places at {len(moments)} moments. {'. '.join(said)}.",
        caption="A model of an allocator: the free places of the second row would hold the tensor of 8 twice "
        "over, but no gap is large enough.",
    )


@plots.responsive
def cache(card=24, weights=14):
    """KV cache against tokens for the 7 B shape: one head of keys and values for each
    head of queries, or for eight; 16 and 8 bits.
    """
    tokens = 2.0 ** np.arange(10, 18)
    lines = (
        ("every head of queries has its keys", {}, "orange"),
        ("eight heads share theirs", {"groups": 8}, "blue"),
        ("eight share, in 8 bits", {"groups": 8, "number": 1}, "green"),
    )
    fig, ax = plots.new(plots.COLUMN, 3.9)
    for name, how, colour in lines:
        sizes = [vram.kv_cache_bytes(SEVEN["layers"], SEVEN["width"], t, **how) / 1e9 for t in tokens]
        ax.plot(tokens, sizes, color=COLOUR[colour], linewidth=2, label=name)
    ax.axhline(card - weights, **THEORY)
    ax.text(1050, (card - weights) * 1.15, f"{card - weights} GB to spare", **SMALL)
    ax.set(
        xscale="log", yscale="log", xlabel="tokens kept, all readers together", ylabel="GB", ylim=(0.02, 200)
    )
    ax.set_xticks([1024, 4096, 16384, 65536], ["1,024", "4,096", "16,384", "65,536"])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig)
    room = {
        name: int((card - weights) * 1e9 / vram.kv_cache_bytes(SEVEN["layers"], SEVEN["width"], 1, **how))
        for name, how, _ in lines
    }
    return plots.show(
        fig,
        alt=f"KV cache of a 7 B model against tokens, logarithmic lines. {card - weights} GB hold, "
        + "; ".join(f"{name}: {count:,} tokens" for name, count in room.items())
        + ".",
        caption=f"Theory: {card - weights} GB hold 19 thousand tokens, or 153 thousand where eight heads of "
        "queries share their keys and values.",
        evidence=["theory"],
    )


FIELDS = (  # name, label, value, smallest, largest
    ("parameters", "Parameters, billions", 7, 0.001, 2000),
    ("layers", "Layers", 32, 1, 1000),
    ("width", "Width", 4096, 1, 1000000),
    ("heads", "Heads", 32, 1, 10000),
    ("tokens", "Tokens in a sequence", 2048, 1, 100000000),
    ("batch", "Sequences in a batch", 1, 1, 1000000),
)


class Calculator:
    """A form that computes what is in memory; in print and without scripts, a table of its first example."""

    def __init__(self):
        recipe = "mixed, Adam"
        size: dict[str, Any] = {"tokens": 2048, "batch": 1}
        rows = vram.training_bytes(7e9, recipe) | {"activations": vram.activation_bytes(**SEVEN, **size)}
        self.rows = [*rows.items(), ("training, together", sum(rows.values()))]
        self.rows += [
            (
                "inference: weights and KV cache",
                14e9 + vram.kv_cache_bytes(SEVEN["layers"], SEVEN["width"], 2048),
            )
        ]

    def _repr_html_(self):
        script = (HERE / "fit.js").read_text(encoding="utf-8")
        boxes = "".join(
            f'<label>{label}<input type="number" name="{name}" value="{value}" min="{low}" max="{high}" '
            'step="any" required></label>'
            for name, label, value, low, high in FIELDS
        )
        choice = "".join(
            f"<option{' selected' if name == 'mixed, Adam' else ''}>{html.escape(name)}</option>"
            for name in vram.RECIPES
        )
        boxes += f'<label>Recipe<select name="recipe">{choice}</select></label>'
        boxes += '<label class="tick"><input type="checkbox" name="fused" checked> Fused attention</label>'
        boxes += (
            '<label class="tick"><input type="checkbox" name="checkpointed"> Checkpoint every layer</label>'
        )
        body = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th><td style="white-space: nowrap">{value / 1e9:,.1f} '
            "GB</td></tr>"
            for name, value in self.rows
        )
        sizes = json.dumps({name: size for size, name in cards().items()})
        recipes = json.dumps(vram.RECIPES).replace("</", "<\\/")
        return (
            '<figure class="warplab-figure vram-calculator" style="margin: 1em 0">'
            '<form hidden aria-label="What lies in memory" style="display: none; grid-template-columns: '
            'repeat(auto-fit, minmax(10rem, 1fr)); gap: 0.6rem 0.9rem">'
            f'{boxes}</form><table style="margin: 1rem 0"><tbody>{body}</tbody></table><p class="status" '
            'role="status">'
            "The table: 7 B parameters, 32 layers of width 4,096, one sequence of 2,048 tokens, mixed "
            "precision, Adam, fused attention.</p>"
            "<figcaption>Computed by the formulas of this chapter, in decimal GB; not measured. Inference is "
            "in 16 bits, and every "
            f"head of queries has its own keys and values.</figcaption><script>(() => {{ const recipes = "
            f"{recipes}, cards = {sizes};\n{script}}})();</script></figure>"
        )


def calculator():
    """Return the calculator of the page."""
    return Calculator()
