"""Figures of chapter 9: a loss and what the model writes, FLOP by layer, batches, a queue, schedules."""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots
from warplab.figures.recorded import finding
from warplab.plots.measured import said_of

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
LAYERS = {"attention.qkv": "qkv", "attention.out": "out", "mlp.0": "up", "mlp.2": "down", "head": "head"}


@plots.responsive
def learning(losses, written):
    """The loss after each step, and some sums that the model wrote.

    written: [(text, whether it is right)].
    """
    fig, (left, right) = plots.new(plots.COLUMN, 2.9, columns=2, width_ratios=[1.35, 1])
    left.plot(losses, color=COLOUR["blue"], linewidth=0.6, alpha=0.35)
    smooth = np.convolve(losses, np.ones(25) / 25, "valid")
    left.plot(np.arange(len(smooth)) + 12, smooth, color=COLOUR["blue"], linewidth=2)
    left.axhline(np.log(13), **THEORY)
    left.annotate(
        "guessing: ln 13",
        (len(losses), np.log(13)),
        (0, -5),
        textcoords="offset points",
        ha="right",
        va="top",
        **SMALL,
    )
    left.set(xlabel="training steps", ylabel="loss", ylim=(0, 2.8))
    left.grid(axis="y")
    right.set_axis_off()
    right.set(xlim=(0, 1), ylim=(len(written) - 0.4, -1.3))
    right.text(0, -1, "what it writes now", va="center", **SMALL)
    for y, (text, good) in enumerate(written):
        colour = COLOUR["green" if good else "orange"]
        right.text(0, y, text.strip(), va="center", family="DejaVu Sans Mono", fontsize=11)
        right.text(1, y, "right" if good else "wrong", va="center", ha="right", color=colour, **SMALL)
    said = "; ".join(f"{text.strip()}, {'right' if good else 'wrong'}" for text, good in written)
    return plots.show(
        fig,
        alt=f"Loss against training steps, measured here: {losses[0]:.2f} at first, "
        f"{np.mean(losses[-25:]):.2f} on average over the last 25 of {len(losses)}. What the trained "
        f"model writes for sums that it has not seen: {said}.",
        caption=f"Live: the loss falls from {losses[0]:.1f} to {np.mean(losses[-25:]):.2g}; guessing among "
        "13 characters would keep it at the dashed line. Thin: each batch. Thick: the running mean. The sums "
        "were not in training.",
        evidence=["live"],
    )


@plots.responsive
def passes(forward, both, conv_forward, conv_both):
    """FLOP of a forward and a backward pass by layer, of the Transformer (left) and the ConvNet.

    Arguments are counts of torch's FlopCounterMode.
    """
    transformer = [(name, _of(forward, end), _of(both, end)) for end, name in LAYERS.items()]
    transformer.insert(1, ("attention", _attention(forward), _attention(both)))
    layers = {"features.0": "conv 1", "features.3": "conv 2", "head": "head"}
    conv = [(name, _of(conv_forward, end), _of(conv_both, end)) for end, name in layers.items()]
    fig, axes = plots.new(plots.COLUMN, 3.1, columns=2, width_ratios=[1.5, 1])
    for ax, rows, title in zip(axes, (transformer, conv), ("Transformer", "ConvNet"), strict=True):
        largest = max(total - ahead for _, ahead, total in rows)
        for y, (_, ahead, total) in enumerate(rows):
            for shift, value, colour in ((-0.19, ahead, "blue"), (0.19, total - ahead, "orange")):
                ax.barh(y + shift, value / 1e6, height=0.36, color=COLOUR[colour], alpha=0.85)
            ax.annotate(
                f"× {(total - ahead) / ahead:.3g}",
                ((total - ahead) / 1e6, y + 0.19),
                (4, 0),
                textcoords="offset points",
                va="center",
                **SMALL,
            )
        ax.set(title=title, xlabel="MFLOP", xlim=(0, 1.3 * largest / 1e6), ylim=(len(rows) - 0.4, -0.6))
        ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[colour], alpha=0.85) for colour in ("blue", "orange")]
    plots.legend(fig, handles, ["forward", "backward"])
    said = "; ".join(
        f"{name}: {a / 1e6:.2f} forward, {(t - a) / 1e6:.2f} backward" for name, a, t in transformer + conv
    )
    return plots.show(
        fig,
        alt=f"MFLOP of a forward and a backward pass by layer, counted. {said}. Everywhere twice, but once "
        "in the first convolution.",
        caption="Counted: every layer costs twice as much backward as forward. The exception is a first "
        "layer, whose input is data and needs no gradient.",
        evidence=["counted"],
    )


def _of(counts, end):
    """FLOP of all modules whose name ends with `end`. counts: {"Transformer.blocks.0.mlp.0": {op: FLOP}}."""
    return sum(sum(ops.values()) for name, ops in counts.items() if name.endswith("." + end))


def _attention(counts):
    """FLOP of the batched products inside attention, which are not counted in a layer."""
    return sum(flop for op, flop in counts["Global"].items() if "bmm" in str(op))


@plots.responsive
def batching(measurement):
    """Throughput in tokens a second, and the time between two tokens of a request, over the batch size.

    All kinds of evidence in `measurement` (of decode_batch) are drawn.
    """
    fig, axes = plots.new(plots.COLUMN, 3.5, columns=2)
    said = []
    for evidence, colour in zip(reversed(measurement.evidence), COLOUR, strict=False):
        theirs = evidence.kind == "published"
        style = {
            **plots.MARKERS[evidence.kind],
            "color": COLOUR[colour],
            "markerfacecolor": COLOUR[colour],
            "linestyle": (0, (1, 2)) if theirs else "-",
            "linewidth": 1.2,
            "markersize": 6,
        }
        label = f"{evidence.device.split(', ')[0]} ({evidence.kind}{f' {evidence.year}' if theirs else ''})"
        between, rates = _steps_and_rates(evidence.series(), evidence.kind == "live")
        for ax, points in zip(axes, (rates, between), strict=True):
            ax.plot(*zip(*points, strict=True), **style)
        axes[0].plot([], [], label=label, **style)
        said.append(
            f"{evidence.device}: "
            + "; ".join(
                f"batch {x:,.0f}, {rate:,.0f} tokens a second, {dict(between)[x]:.3g} ms" for x, rate in rates
            )
        )
    if measurement.kind == "missing":
        axes[0].plot([], [], linestyle="none", label="on a GPU: not recorded yet")
    for ax, title in zip(axes, ("tokens a second, all requests", "ms between two tokens"), strict=True):
        ax.set(xscale="log", yscale="log", xlabel="batch: requests that share a step")
        ax.set_title(title, loc="left", fontsize=11)
        ax.margins(x=0.08)
        _plain(ax.xaxis, *ax.get_xlim())
        _plain(ax.yaxis, *ax.get_ylim())
        ax.minorticks_off()
        ax.grid()
    plots.legend(fig)
    return plots.show(
        fig,
        alt="Tokens a second of all requests, and the time between two tokens, against the batch. "
        f"{'. '.join(said)}. {'; '.join(measurement.banners)}.",
        caption=f"{finding(measurement)} Left: the throughput of all requests; right: the time between two "
        "tokens of one. Dotted: published, with the throughput of a whole run, prompts included, "
        f"and the median time between two tokens. {said_of(measurement)}".strip(),
        evidence=[e.kind for e in measurement.evidence],
    )


def _steps_and_rates(series, live=False):
    """([(batch, ms between two tokens)], [(batch, tokens a second)]).

    Rates are the source's own throughput if it has that series, else batch / time of a step. The time of a
    step is the median of its samples; live, the fastest, as the machine may be shared.
    """
    whole = [p for name, points in series.items() if "throughput" in name for p in points]
    steps = [p for name, points in series.items() if "throughput" not in name for p in points]
    took = lambda p: min(p.samples) if live else p.median  # noqa: E731
    return [(p.x, 1e3 * took(p)) for p in steps], [(p.x, p.x / took(p)) for p in whole or steps]


def _plain(axis, low, high):
    """Set at most six ticks at 1, 2, 5 times powers of ten between low and high, as plain numbers."""
    ticks = [m * 10.0**k for k in range(-3, 7) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    if len(ticks) > 6:
        ticks = [t for t in ticks if f"{t:e}"[0] == "1"]
    axis.set_ticks(ticks, [f"{t:,g}" for t in ticks])


@plots.responsive
def queue(results, capacity):
    """Latency against load of a simulated queue.

    results: {largest batch: [(load, p50, p95)]}. capacity: {largest batch: load}.
    """
    fig, ax = plots.new(plots.COLUMN, 3.4)
    said = []
    for (limit, rows), colour in zip(results.items(), ("orange", "blue", "green"), strict=True):
        load, p50, p95 = np.array(rows).T
        ax.plot(
            load,
            p95,
            color=COLOUR[colour],
            linewidth=2,
            label=f"at most {limit} at once" if limit > 1 else "one at a time",
        )
        ax.plot(load, p50, color=COLOUR[colour], linewidth=1.2, alpha=0.7)
        ax.axvline(capacity[limit], color=COLOUR[colour], linestyle=(0, (2, 3)), linewidth=1.2)
        said.append(
            f"At most {limit}: capacity {capacity[limit]:.2f} requests a second, p95 {p95[0]:.2f} s "
            f"at {load[0]:g} a second and {p95[-1]:.1f} s at {load[-1]:.3g}"
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="requests a second that arrive",
        ylabel="latency (s), simulated",
        ylim=(0.7, 40),
    )
    ax.set_xticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
    ax.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, inside="upper left")
    return plots.show(
        fig,
        alt="Latency against load in a simulated queue, median and 95th percentile, for three limits on the "
        "batch. " + ". ".join(said) + ".",
        caption="A larger limit on the batch raises the server's capacity (dotted), beyond which the queue "
        "grows without bound. Thick: 95th percentile. Thin: median. Simulated, with the shortest steps that "
        "an H100's memory bandwidth allows.",
    )


@plots.responsive
def timeline(static, continuous):
    """Two schedules of the same answers, each [(slot, first step, last step)] in order of arrival."""
    fig, axes = plots.new(plots.COLUMN, 3.5, rows=2, sharex=True)
    ends = []
    for ax, rows, title in zip(
        axes,
        (static, continuous),
        ("static: the batch ends together", "continuous: a slot is refilled at once"),
        strict=True,
    ):
        slots, end = 1 + max(slot for slot, _, _ in rows), max(last for _, _, last in rows)
        ends.append(end)
        ax.add_patch(
            Rectangle((0, -0.42), end, slots - 0.16, facecolor=COLOUR["grey"], alpha=0.22, linewidth=0)
        )
        for number, (slot, first, last) in enumerate(rows):
            colour = COLOUR["blue" if number < slots else "orange"]
            ax.add_patch(
                Rectangle(
                    (first + 0.04, slot - 0.42),
                    last - first - 0.08,
                    0.84,
                    facecolor=colour,
                    alpha=0.85,
                    linewidth=0,
                )
            )
            box = {"facecolor": plots.PAPER, "edgecolor": "none", "pad": 1, "alpha": 0.85}
            ax.text((first + last) / 2, slot, chr(65 + number), ha="center", va="center", bbox=box, **SMALL)
        busy = sum(last - first for _, first, last in rows) / (slots * end)
        ax.set(ylim=(slots - 0.4, -0.6), xlim=(0, max(max(r[2] for r in static), end) + 0.3))
        ax.set_title(f"{title}: {end} steps, {busy:.0%} busy", loc="left", fontsize=11)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
    axes[1].set_xlabel("decoding steps")
    axes[1].set_xticks(range(0, max(ends) + 1, 3))
    return plots.show(
        fig,
        alt=f"Two schedules of eight answers in four slots. Static batches need {ends[0]} steps and leave "
        "slots idle until the longest answer ends. Continuous batching refills each slot at once and "
        f"needs {ends[1]} steps.",
        caption=f"Refilled at once, four slots write the same eight answers, A to H, in {ends[1]} steps "
        f"instead of {ends[0]}. Grey is a slot that computes nothing anybody wants. Steps, not seconds.",
    )


@plots.responsive
def cache_room(texts, room, longest=4096, page=16, shared=512):
    """The memory for caches, in tokens: `texts` (their lengths now) with a reservation of `longest` each, in
    pages, and in pages of which the first `shared` tokens are common.
    """
    paged = [-(-text // page) * page for text in texts]
    beyond = [-(-(text - shared) // page) * page for text in texts]
    rows = {"reserved": [longest] * len(texts), "pages": paged, "shared": [shared, *beyond]}
    fig, ax = plots.new(plots.COLUMN, 2.1)
    for y, pieces in enumerate(rows.values()):
        ax.barh(y, room, height=0.7, color=COLOUR["grey"], alpha=0.22, linewidth=0)
        starts = np.cumsum([0, *pieces[:-1]])
        used = texts if y == 0 else pieces
        colours = [COLOUR["blue" if number % 2 else "orange"] for number in range(len(pieces))]
        if y == 2:
            colours[0] = COLOUR["green"]
        ax.barh([y] * len(used), used, left=starts, height=0.7, color=colours, alpha=0.85, linewidth=0)
    ax.set(xlim=(0, room), ylim=(2.5, -0.5), xlabel="places for tokens")
    ax.set_yticks(range(3), list(rows))
    ax.locator_params(axis="x", nbins=4 if plots.on_phone() else 8)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    free = [room - sum(pieces) for pieces in rows.values()]
    return plots.show(
        fig,
        alt=f"{len(texts)} texts in a memory of {room:,} places. With reservations of {longest:,} they leave "
        f"{free[0]:,} free, and {sum(texts):,} hold a token; in pages {free[1]:,} are free, with a shared "
        f"beginning of {shared} {free[2]:,}.",
        caption=f"{len(texts)} texts in the middle of their answers reserve {1 - free[0] / room:.0%} of the "
        f"memory and fill {sum(texts) / room:.0%} of it. In pages they take {1 - free[1] / room:.0%}, and "
        f"{1 - free[2] / room:.0%} with the beginning that all share stored once: green, at the left. Orange "
        "and blue take turns from text to text; grey holds nothing.",
        evidence=["counted"],
    )
