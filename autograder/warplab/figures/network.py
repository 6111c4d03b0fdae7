"""Figures of the page on what a network computes, and the transformer block, which several chapters use."""

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from warplab import plots

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10}


def _bare(ax, x, y, aspect=None):
    ax.set(xlim=x, ylim=y, xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if aspect:
        ax.set_aspect(aspect)


def _tint(values, colour):
    """An RGBA image in one colour whose opacity is `values` (0 to 1), so that it suits any background."""
    image = np.empty((*np.shape(values), 4))
    image[..., :3], image[..., 3] = to_rgb(COLOUR[colour]), values
    return image


@plots.responsive
def two_layers(x, first, hidden, second, scores):
    """A network of two layers with every number on it: inputs, weights, hidden numbers, scores."""
    fig, ax = plots.new(6.6, 3.3)
    columns = [(0, x, "input", "grey"), (4, hidden, "hidden", "blue"), (8, scores, "scores", "gold")]
    places = {}
    for left, numbers, name, _ in columns:
        heights = np.linspace(1, -1, len(numbers)) * (len(numbers) - 1) * 0.75
        places[left] = [(left, y) for y in heights]
        ax.text(left, 2.3, name, ha="center", weight="bold")
    for left, right, weights in ((0, 4, first), (4, 8, second)):
        for i, start in enumerate(places[left]):
            colour = COLOUR[("blue", "orange", "green")[i]]  # a weight has the colour of its line
            for j, end in enumerate(places[right]):
                ax.plot(*zip(start, end, strict=True), color=colour, linewidth=1.2, alpha=0.7, zorder=1)
                at = [a + 0.27 * (b - a) for a, b in zip(start, end, strict=True)]
                label = ax.text(*at, f"{weights[i][j]:g}", ha="center", va="center", zorder=2, **SMALL)
                label.set(color=colour, bbox={"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1})
    for left, numbers, _, colour in columns:
        for place, number in zip(places[left], numbers, strict=True):
            ax.add_patch(Circle(place, 0.5, facecolor=plots.PAPER, edgecolor="none", zorder=3))
            ax.add_patch(
                Circle(place, 0.5, facecolor=(*to_rgb(COLOUR[colour]), 0.25), edgecolor=INK, zorder=4)
            )
            ax.text(*place, f"{number:g}", ha="center", va="center", zorder=5)
    _bare(ax, (-0.8, 8.8), (-2.1, 2.7), "equal")
    return plots.show(
        fig,
        alt=f"A network drawn as three columns of circles. Inputs {list(x)}; hidden numbers {list(hidden)}; "
        f"scores {list(scores)}. Every circle is joined to every circle of the next column by a line with a "
        f"weight on it: {first} and {second}.",
        caption="Every line is a weight, the number in the line's colour. Each circle adds up what comes in "
        "along its lines; a hidden sum below zero becomes 0.",
    )


@plots.responsive
def downhill(weights, losses, at, loss, slope):
    """The loss over one weight, with the slope at the weight's present value."""
    fig, ax = plots.new(plots.COLUMN, 2.9)
    ax.plot(weights, losses, color=COLOUR["blue"])
    reach = np.array([-0.6, 0.6])
    ax.plot(at + reach, loss + slope * reach, color=COLOUR["orange"], linewidth=2)
    ax.plot([at], [loss], "o", color=COLOUR["orange"], markersize=8)
    side = "left" if slope > 0 else "right"
    ax.annotate(
        f"slope {slope:.2f}:\nstep to the {side}", (at, loss), (10, 8), textcoords="offset points", **SMALL
    )
    ax.set(xlabel="one weight", ylabel="loss")
    ax.grid(axis="y")
    return plots.show(
        fig,
        alt=f"The loss over one weight, a curve from {losses[0]:.2f} at {weights[0]:g} to "
        f"{losses[-1]:.2f} at "
        f"{weights[-1]:g}. At the weight's present value, {at:g}, it is {loss:.2f} and its slope "
        f"{slope:.2f}.",
        caption="The slope at this weight is one number of the gradient. A step goes downhill, here to the "
        f"{side}.",
    )


@plots.responsive
def field(before, after, points, labels):
    """A classifier's output over a square, before and after training, with its training examples."""
    fig, axes = plots.new(plots.COLUMN, 3.8, phone=(plots.PHONE, 2.3), columns=2)
    for ax, said, title in zip(axes, (before, after), ("before", "after"), strict=True):
        for part, colour in ((said, "orange"), (1 - said, "blue")):
            strength = np.clip(2 * part - 1, 0, 1) * 0.45
            ax.imshow(_tint(strength, colour), extent=(-1, 1, -1, 1), origin="lower", interpolation="nearest")
        for label, colour, marker in ((0, "blue", "o"), (1, "orange", "^")):
            x, y = points[labels == label].T
            ax.plot(x, y, marker, color=COLOUR[colour], markersize=3.5)
        ax.set(title=title)
        _bare(ax, (-1, 1), (-1, 1), "equal")
    right = [((said_at(part, points) > 0.5) == labels).mean() for part in (before, after)]
    return plots.show(
        fig,
        alt="Two squares with the same two interleaved spirals of points. Before training the ground has "
        "hardly any "
        f"colour, and {right[0]:.0%} of the points lie on their own; after it two coloured bands "
        f"follow the spirals, and {right[1]:.0%} do.",
        caption="Computed here. The colour of the ground is what the network says at that place, the "
        "stronger "
        "the surer, and before training it is sure of nothing; the points are what it was shown.",
    )


def said_at(said, points):
    """The classifier's output in the grid cell of each point."""
    n = len(said)
    col, row = np.clip(((points.T + 1) / 2 * n).astype(int), 0, n - 1)
    return said[row, col]


@plots.responsive
def loss_curves(curves):
    """The losses of several runs, each on its own axes. curves: {what was done: losses}."""
    fig, axes = plots.new(plots.COLUMN, 4.6, rows=2, columns=2, phone=(plots.PHONE, 4.4))
    colours = ("blue", "orange", "green", "purple")
    for ax, (name, losses), colour in zip(axes.flat, curves.items(), colours, strict=True):
        ax.plot(losses, color=COLOUR[colour], linewidth=1.6)
        ax.set(xticks=[0, 200, 400, 600])
        if max(losses) > 100:  # the run that leaps
            ax.set(yscale="log")
            ax.set_yticks([1, 10, 100], ["1", "10", "100"])
            ax.minorticks_off()
        else:
            room = 0.08 * (max(losses) - min(losses))
            ax.set_ylim(min(losses) - room, max(losses) + room)
        last = f"{losses[-1]:.2f}" if losses[-1] > 0.01 else f"{losses[-1]:.4f}"
        ax.set_title(f"{name}:\n{losses[0]:.2f} to {last}", loc="left", fontsize=10.5)
        ax.grid(axis="y")
    for ax in axes[1]:
        ax.set_xlabel("step")
    for ax in axes[:, 0]:
        ax.set_ylabel("loss")
    ends = "; ".join(
        f"{name}: from {losses[0]:.2f} to {losses[-1]:.2g}, between {min(losses):.2g} and {max(losses):,.2g}"
        for name, losses in curves.items()
    )
    return plots.show(
        fig,
        alt=f"The loss over {len(next(iter(curves.values())))} steps of one good run and its mistakes. "
        f"{ends}.",
        caption="Computed here. One of the four learns the spirals. Each run has an axis of its own, and "
        "that of rate 1 is logarithmic.",
    )


@plots.responsive
def attention_map(shares, letters, asked):
    """Attention weights as a map: a row for each query, a column for each letter of the line."""
    fig, ax = plots.new(4.6, 3.5)
    ax.imshow(_tint(shares, "blue"), interpolation="nearest")
    for row, line in enumerate(shares):
        col = int(np.argmax(line))
        ink = plots.PAPER if line[col] > 0.6 else INK
        ax.text(col, row, f"{line[col]:.2f}", ha="center", va="center", color=ink, **SMALL)
    ax.set_xticks(range(len(letters)), letters)
    ax.set_yticks(range(len(asked)), [f"place {k}?" for k in asked])
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    most = np.argmax(shares, axis=1)
    said = "; ".join(f"place {k}: {shares[i, most[i]]:.0%} at place {most[i]}" for i, k in enumerate(asked))
    return plots.show(
        fig,
        alt=f"Table of attention weights, questions down and the letters {' '.join(letters)} across. {said}.",
        caption="Computed here: where each question looks. Each row adds up to 1; the number is its largest.",
    )


# The block, from bottom to top: name, what it does, colour, shape of its weights
STEPS = [
    ("norm 1", "layer norm", "grey", ""),
    ("qkv", "queries, keys, values", "blue", "h × 3h"),
    ("attention", "attention", "gold", ""),
    ("out", "mix the heads", "blue", "h × h"),
    ("add 1", "+", "grey", ""),
    ("norm 2", "layer norm", "grey", ""),
    ("up", "dense, four times as wide", "blue", "h × 4h"),
    ("gelu", "GELU", "grey", ""),
    ("down", "dense, back to width h", "blue", "4h × h"),
    ("add 2", "+", "grey", ""),
]
MARKS = {
    "": ({}, "One transformer block, from bottom to top: attention looks across the tokens, the dense layers "
         "work on each token alone. Blue boxes have the weights."),
    "products": (
        {"qkv": "product", "attention": "2 products", "out": "product", "up": "product", "down": "product"},
        "The same block with its six matrix products marked: four with weights, two inside attention.",
    ),
    "kept": (
        {"norm 1": "keeps 1", "qkv": "keeps 1", "attention": "keeps 3", "out": "keeps 1", "norm 2": "keeps 1",
         "up": "keeps 1", "gelu": "keeps 4", "down": "keeps 4"},
        "The same block with what each step keeps for the backward pass, in batch × tokens × width numbers: "
        "sixteen.",
    ),
    "cache": (
        {"attention": "KV cache"},
        "The same block when it writes an answer: only attention looks at earlier tokens, so only their keys "
        "and values are kept. Everything else sees one token.",
    ),
    "cut": (
        {"qkv": "cut: columns", "attention": "cut: heads", "out": "cut: rows", "add 1": "all-reduce",
         "up": "cut: columns", "gelu": "cut", "down": "cut: rows", "add 2": "all-reduce"},
        "The same block cut for tensor parallelism: each GPU has a part of every blue box, and two "
        "all-reduces "
        "put the sums together.",
    ),
}  # fmt: skip


@plots.responsive
def transformer_block(mark=""):
    """A transformer block with one aspect marked: "", "products", "kept", "cache" or "cut"."""
    notes, caption = MARKS[mark]
    fig, ax = plots.new(6.0, 5.4)
    left, width, gap, height = 2.6, 4.4, 1.0, 0.66
    for y, (name, text, colour, shape) in enumerate(STEPS):
        noted = name in notes
        alpha = 0.75 if noted else 0.22 if not mark else 0.13
        small = text == "+"
        centre = left + width / 2
        box = (centre - 0.4, 0.8) if small else (left, width)
        ax.add_patch(
            FancyBboxPatch(
                (box[0], y * gap),
                box[1],
                height,
                boxstyle="round,pad=0,rounding_size=0.16",
                facecolor=(*to_rgb(COLOUR[colour]), min(alpha, 0.45)),
                edgecolor=INK,
                linewidth=2.2 if noted else 0.9,
            )
        )
        ax.text(centre, y * gap + height / 2, text, ha="center", va="center", fontsize=10.5)
        if noted:
            ax.text(
                left + width + 0.45, y * gap + height / 2, notes[name], va="center", weight="bold", **SMALL
            )
        elif shape:
            ax.text(left + width + 0.45, y * gap + height / 2, shape, va="center", **SMALL)
        arrow = {"arrowstyle": "-|>", "mutation_scale": 9, "color": INK, "linewidth": 1}
        ends = (centre, y * gap - (gap - height)), (centre, y * gap)
        ax.add_patch(FancyArrowPatch(*ends, shrinkA=0, shrinkB=0, **arrow))
    centre = left + width / 2
    top = (len(STEPS) - 1) * gap + height
    ax.add_patch(
        FancyArrowPatch((centre, top), (centre, top + 0.45), arrowstyle="-|>", mutation_scale=9, color=INK)
    )
    for start, end in ((0, 4), (5, 9)):  # residual connections: the input is added to the output
        low, high = start * gap - 0.2, end * gap + height / 2
        ax.plot([centre, 1.5, 1.5], [low, low, high], color=INK, linewidth=1)
        ax.add_patch(
            FancyArrowPatch((1.5, high), (centre - 0.4, high), arrowstyle="-|>", mutation_scale=9, color=INK,
                            shrinkA=0, shrinkB=0)
        )  # fmt: skip
    ax.text(centre, -0.75, "from the embedding, or the block below", ha="center", va="center", **SMALL)
    ax.text(
        centre, top + 0.75, "to the next block, in the end to the scores", ha="center", va="center", **SMALL
    )
    ax.text(1.25, 2.5, "across tokens", rotation=90, ha="center", va="center", **SMALL)
    ax.text(1.25, 7.5, "each token alone", rotation=90, ha="center", va="center", **SMALL)
    _bare(ax, (0.9, 10.2), (-1.1, top + 1.1))
    said = "; ".join(f"{text} ({notes[name]})" if name in notes else text for name, text, *_ in STEPS)
    return plots.show(
        fig,
        alt=f"A transformer block as a column of boxes, from bottom to top: {said}. Two lines lead round "
        "it, from "
        "before each layer norm to the plus after it.",
        caption=caption,
    )
