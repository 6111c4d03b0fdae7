"""Figures of chapter 10: the ring, bytes against ranks, overlap, ZeRO's stages, a split
MLP, a pipeline, and where scaling stops.
"""

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from warplab import plots, vram

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}
LIVE = {**plots.MARKERS["live"], "markersize": 8}
PARTS = {
    "weights": "blue",
    "gradients": "orange",
    "FP32 weights": "purple",
    "first moment": "green",
    "second moment": "gold",
}


def ring_steps(n=4):
    """What each rank holds after each step of a ring all-reduce: [(counts[rank][part],
    {(rank, part) just received})], start first.
    """
    counts = [[1] * n for _ in range(n)]
    states = [([row[:] for row in counts], set())]
    for step in range(2 * (n - 1)):
        given = [(rank, (rank - step) % n, counts[rank][(rank - step) % n]) for rank in range(n)]
        for rank, part, count in given:
            right = (rank + 1) % n
            counts[right][part] = counts[right][part] + count if step < n - 1 else count
        states.append(([row[:] for row in counts], {((rank + 1) % n, part) for rank, part, _ in given}))
    return states


@plots.responsive
def ring(n=4):
    """The steps drawn: a row for each rank, a column for each part of the buffer, the
    number of ranks summed in each cell.
    """
    states = ring_steps(n)
    fig, axes = plots.new(plots.COLUMN, 3.5, phone=(plots.PHONE, 2.7), rows=2, columns=n)
    for number, ax in enumerate(axes.flat):
        ax.set_axis_off()
        ax.set(xlim=(-0.08, n + 0.08), ylim=(n + 0.08, -0.08), aspect="equal")
        place = number if number < n else number - n
        shown = number if number < n else n + place - 1  # the second row starts with the end of the first
        counts, fresh = states[shown]
        for rank in range(n):
            for part in range(n):
                whole = counts[rank][part] == n
                colour = COLOUR["green" if whole else "blue"]
                ax.add_patch(
                    Rectangle(
                        (part, rank),
                        1,
                        1,
                        facecolor=colour,
                        alpha=0.55 if whole else 0.08 + 0.14 * (counts[rank][part] - 1),
                        linewidth=0,
                    )
                )
                new = (rank, part) in fresh and not (number == n)
                ax.add_patch(
                    Rectangle(
                        (part + 0.06, rank + 0.06),
                        0.88,
                        0.88,
                        fill=False,
                        edgecolor=COLOUR["orange"] if new else INK,
                        linewidth=2.2 if new else 0.4,
                    )
                )
                ax.text(part + 0.5, rank + 0.53, counts[rank][part], ha="center", va="center", **SMALL)
        ax.set_title("start" if shown == 0 else f"after {shown}", fontsize=10.5, pad=4)
    return plots.show(
        fig,
        alt=f"A ring all-reduce of {n} ranks in {len(states) - 1} steps. Each grid has a row for each rank "
        "and a column for each part; a cell says how many ranks' numbers are summed in it. After step "
        f"{n - 1} each rank has one part with all {n}; after step {len(states) - 1} all have all.",
        caption="A row is a rank, a column a part of its buffer, a number how many ranks are summed there; "
        f"orange has just arrived. Top: reduce-scatter, {n - 1} steps to one finished part each. "
        "Bottom: all-gather, the same number to pass them round.",
    )


@plots.responsive
def traffic(counted):
    """Times its buffer that the busiest rank sends. counted: {n: (to one and back,
    ring)}, counted in real processes; theory dashed.
    """
    fig, ax = plots.new(plots.COLUMN, 3.3)
    ranks = range(2, 17)
    ax.plot(ranks, [n - 1 for n in ranks], **THEORY)
    ax.plot(ranks, [2 * (n - 1) / n for n in ranks], **THEORY)
    for place, (name, colour) in enumerate((("all to one, and back", "orange"), ("ring", "blue"))):
        style = {
            **LIVE,
            "color": COLOUR[colour],
            "markerfacecolor": COLOUR[colour],
            "markeredgecolor": COLOUR[colour],
        }
        ax.plot(
            list(counted),
            [pair[place] for pair in counted.values()],
            linestyle="none",
            label=f"{name}, counted",
            **style,
        )
    ax.text(10.6, 11.2, "n − 1", ha="right", **SMALL)
    ax.text(12, 2.4, "2(n − 1)/n", **SMALL)
    ax.set(xlabel="ranks", ylabel="buffers sent by the busiest", ylim=(0, 15.5))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid()
    plots.legend(fig, inside="upper left")
    said = "; ".join(f"{n} ranks: {one:.2f} and {round_:.2f}" for n, (one, round_) in counted.items())
    return plots.show(
        fig,
        alt=f"Buffers sent by the busiest rank, counted through one rank and in a ring. {said}. Theory: n − "
        "1, and 2(n − 1)/n, which stays below 2.",
        caption="Counted in real processes, theory dashed: through one rank the traffic of the busiest grows "
        "with their number; in a ring it stays below two buffers.",
        evidence=["counted", "theory"],
    )


def all_reduces(layers, backward, exchange, together):
    """When backward runs and when gradients travel: two lists of (start, end). A model:
    `layers` equal pieces, one wire.

    backward, exchange: seconds for all of them. together: an exchange may start as soon
    as its own piece of backward is done.
    """
    compute = [(i * backward / layers, (i + 1) * backward / layers) for i in range(layers)]
    wire, free = [], 0.0 if together else backward
    for _, ready in compute:
        start = max(free, ready if together else 0.0)
        free = start + exchange / layers
        wire.append((start, free))
    return compute, wire


@plots.responsive
def overlap(forward, backward, exchange, buckets=8):
    """The step's timeline with the exchange after backward, and in buckets beside it.
    Times in milliseconds.
    """
    fig, axes = plots.new(plots.COLUMN, 3.1, rows=2, sharex=True)
    ends = []
    for ax, (title, together) in zip(
        axes, (("afterwards", False), (f"in {buckets} buckets", True)), strict=True
    ):
        compute, wire = all_reduces(buckets, backward, exchange, together)
        ends.append(forward + wire[-1][1])
        ax.add_patch(
            Rectangle((0, -0.35), forward, 0.7, facecolor=COLOUR["grey"], alpha=0.6, edgecolor=plots.PAPER)
        )
        ax.text(forward / 2, 0, "forward", ha="center", va="center", **SMALL)
        for y, spans, colour in ((0, compute, "blue"), (1, wire, "orange")):
            for start, end in spans:
                ax.add_patch(
                    Rectangle(
                        (forward + start, y - 0.35),
                        end - start,
                        0.7,
                        facecolor=COLOUR[colour],
                        alpha=0.75,
                        edgecolor=plots.PAPER,
                    )
                )
        ax.set_title(f"{title}: {ends[-1]:,.0f} ms", loc="left", fontsize=11)
        ax.set(ylim=(1.55, -0.55), xlim=(0, (forward + backward + exchange) * 1.03))
        ax.set_yticks([0, 1], ["compute", "all-reduce"])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("ms (a model)")
    return plots.show(
        fig,
        alt=f"A model of one training step: forward {forward:.0f} ms, backward {backward:.0f} ms, all-reduce "
        f"{exchange:.0f} ms. One after the other {ends[0]:,.0f} ms; with each of {buckets} buckets sent "
        f"as soon as it is ready {ends[1]:,.0f} ms.",
        caption="A model from the numbers of the text, not a measurement. Sent in buckets while the rest of "
        f"backward runs, all but the last bucket's travel is hidden: {ends[1]:,.0f} ms instead of "
        f"{ends[0]:,.0f}.",
    )


@plots.responsive
def zero(parameters=7.5e9, ranks=64):
    """State on each GPU by ZeRO stage, stacked."""
    fig, ax = plots.new(plots.COLUMN, 2.9)
    totals = []
    for stage in range(4):
        left = 0.0
        for part, size in vram.zero_bytes(parameters, ranks, stage).items():
            ax.barh(stage, size / 1e9, left=left, height=0.62, color=COLOUR[PARTS[part]], alpha=0.85)
            left += size / 1e9
        ax.annotate(
            f"{left:.1f} GB" if stage else f"{left:.0f} GB",
            (left, stage),
            (4, 0),
            textcoords="offset points",
            va="center",
            **SMALL,
        )
        totals.append(left)
    ax.set(xlim=(0, totals[0] * 1.2), ylim=(3.55, -0.55), xlabel="GB of state on each GPU")
    ax.set_yticks(range(4), ["full copies", "stage 1", "stage 2", "stage 3"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in PARTS.values()]
    plots.legend(fig, handles, list(PARTS))
    said = "; ".join(
        f"{name}: {total:.1f} GB"
        for name, total in zip(("full copies", "stage 1", "stage 2", "stage 3"), totals, strict=True)
    )
    return plots.show(
        fig,
        alt=f"Stacked bars of training state on each of {ranks} GPUs for {parameters / 1e9:g} billion "
        f"parameters in mixed precision with Adam. {said}.",
        caption=f"Computed, {parameters / 1e9:g} B parameters on {ranks} GPUs: the three FP32 parts are "
        "three quarters of the state, so sharding them alone brings most of the relief; only stage "
        "3 takes the weights below their full size.",
        evidence=["theory"],
    )


@plots.responsive
def split_mlp(ranks=2):
    """The MLP cut for tensor parallelism: columns of the first matrix, rows of the
    second, one sum at the end.
    """
    fig, ax = plots.new(plots.COLUMN, 2.5)
    ax.set(xlim=(-0.3, 14.6), ylim=(6.2, 0.3))
    ax.set_axis_off()
    boxes = (
        (0, 2.2, 1.4, 2, "x"),
        (2.2, 2.2, 4, 2, "up"),
        (7.1, 2.2, 1.4, 2, "h"),
        (9.4, 1.2, 2, 4, "down"),
        (12.3, 2.2, 2, 2, "y"),
    )
    half = {"up": (2, 0), "h": (0.7, 0), "down": (0, 2)}
    for x, y, width, height, name in boxes:
        dx, dy = half.get(name, (0, 0))
        for rank in range(ranks if name in half else 1):
            size = (dx or width, dy or height)
            colour = COLOUR[("blue", "orange")[rank] if name in half else "grey"]
            ax.add_patch(
                Rectangle(
                    (x + dx * rank, y + dy * rank),
                    *size,
                    facecolor=colour,
                    alpha=0.45,
                    edgecolor=INK,
                    linewidth=1.1,
                )
            )
        ax.text(x + width / 2, y - 0.25, name, ha="center", va="bottom", **SMALL)
    for x, sign in ((1.8, "·"), (6.65, "→"), (8.95, "·"), (11.85, "=")):
        ax.text(x, 3.2, sign, ha="center", va="center", fontsize=14)
    ax.text(6.65, 4.4, "GELU", ha="center", va="top", **SMALL)
    ax.text(4.2, 4.75, "cut by columns", ha="center", va="top", **SMALL)
    ax.text(10.4, 5.5, "cut by rows", ha="center", va="top", **SMALL)
    ax.text(13.3, 4.4, "the sum of\nboth rooms'", ha="center", va="top", **SMALL)
    ax.text(0.7, 4.4, "in both\nrooms", ha="center", va="top", **SMALL)
    return plots.show(
        fig,
        alt="An MLP cut for two ranks. The input is in both. The first matrix is cut by columns, so each "
        "rank gets half of the hidden layer; the second by rows, so each rank makes a full-size half of "
        "every sum, and one all-reduce adds them.",
        caption="Blue is one room's, orange the other's. Columns first, rows second: between the two "
        "products each room has just the half of h that it needs, and they meet once, to add.",
    )


@plots.responsive
def pipelines(plans, stages=4):
    """plans: {micro-batches: [(stage, micro-batch, direction, start, end)]}, in ticks
    of a micro-batch: drawn for one and the same batch.
    """
    fig, axes = plots.new(plots.COLUMN, 1.75 * len(plans), rows=len(plans), sharex=True)
    said = []
    for ax, (parts, plan) in zip(axes, plans.items(), strict=True):
        end = max(row[-1] for row in plan)
        idle = 1 - sum(stop - start for *_, start, stop in plan) / (stages * end)
        for stage, part, direction, start, stop in plan:
            left, width = start / parts, (stop - start) / parts
            colour = COLOUR["blue" if direction > 0 else "orange"]
            ax.add_patch(
                Rectangle(
                    (left, stage - 0.42),
                    width,
                    0.84,
                    facecolor=colour,
                    alpha=0.6,
                    edgecolor=plots.PAPER,
                    linewidth=0.8,
                )
            )
            if parts <= 4:
                ax.text(left + width / 2, stage, part + 1, ha="center", va="center", fontsize=10)
        ax.set_title(f"{parts} micro-batches: {idle:.0%} idle", loc="left", fontsize=11)
        ax.set(
            ylim=(stages - 0.4, -0.6), xlim=(0, max(row[-1] / m for m, rows in plans.items() for row in rows))
        )
        ax.set_yticks(range(stages), [f"room {stage}" for stage in range(stages)])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        said.append(f"{parts} micro-batches: {idle:.1%} idle, done at {end / parts:.2f}")
    axes[-1].set_xlabel("time (1: the whole batch forward through one room)")
    return plots.show(
        fig,
        alt=f"Schedules of one batch in a pipeline of {stages} rooms, simulated. {'; '.join(said)}; without "
        "a bubble it would be 3.",
        caption="Simulated, the same batch cut finer and finer: blue forward, orange backward (twice as "
        "long), numbers are micro-batches. The empty corners shrink, the work stays.",
    )


@plots.responsive
def scaling(measured, predicted, cores):
    """Seconds of a step against ranks, measured here, with the model dashed. Both {ranks: seconds}."""
    fig, ax = plots.new(plots.COLUMN, 3.0)
    ax.plot(list(predicted), [1e3 * s for s in predicted.values()], **THEORY, label="model")
    ax.plot(
        list(measured), [1e3 * s for s in measured.values()], linestyle="none", label="measured here", **LIVE
    )
    ax.set(
        xlabel="ranks",
        ylabel="ms for one step",
        ylim=(0, 1150 * max(*measured.values(), *predicted.values())),
        xlim=(0.8, max(measured) + 0.2),
    )
    ax.set_xticks(list(measured))
    ax.grid()
    plots.legend(fig, inside="lower left")
    said = ", ".join(
        f"{n}: {1e3 * s:.0f} ms measured, {1e3 * predicted[n]:.0f} by the model" for n, s in measured.items()
    )
    most = max(measured)
    return plots.show(
        fig,
        alt=f"Time of a training step of one batch against the ranks that share it, on {cores} cores. "
        f"{said}.",
        caption=f"Live, {cores} core{'s' if cores > 1 else ''}, the fastest of several steps; the model "
        f"(compute shared by the cores, plus a ring) is dashed. {most} ranks are "
        f"{measured[1] / measured[most]:.2f} times as fast as one.",
        evidence=["live", "theory"],
    )
