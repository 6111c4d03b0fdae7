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
    """The state after each step of a ring all-reduce, the initial one first.

    [(counts, received)]: counts[rank][part] is how many ranks' values are summed in that part; received is
    the set of (rank, part) that arrived in this step.
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
    """The steps of a ring all-reduce: a row for each rank, a column for each part of the buffer, and in each
    cell the number of ranks summed.
    """
    states = ring_steps(n)
    fig, axes = plots.new(plots.COLUMN, 3.5, phone=(plots.PHONE, 2.7), rows=2, columns=n)
    for number, ax in enumerate(axes.flat):
        ax.set_axis_off()
        ax.set(xlim=(-0.08, n + 0.08), ylim=(n + 0.08, -0.08), aspect="equal")
        place = number if number < n else number - n
        shown = number if number < n else n + place - 1  # the second row repeats the last state of the first
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
    """How many times its buffer the busiest of n ranks sends; theory is dashed.

    counted: {n: (all to one and back, ring)}, counted in real processes.
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
        caption="Through one rank the traffic of the busiest grows with their number; in a ring it stays "
        "below two buffers. Counted in real processes, theory dashed.",
        evidence=["counted", "theory"],
    )


def all_reduces(layers, backward, exchange, together):
    """A model of backward passes and gradient exchanges: two lists of (start, end), for `layers` equal
    pieces.

    backward, exchange: seconds for all pieces. together: an exchange may start as soon as its own piece of
    backward is done; exchanges share one link.
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
    """Timelines of a step with the exchange after backward, and overlapping it in buckets. Times in ms."""
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
        caption="Sent in buckets while the rest of backward runs, all but the last bucket's travel hides: "
        f"{ends[1]:,.0f} ms instead of {ends[0]:,.0f}. A model from the numbers of the text, not a "
        "measurement.",
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
        caption="The three FP32 parts are three quarters of the state, so sharding them alone brings most of "
        "the relief; only stage 3 takes the weights below their full size. Computed, "
        f"{parameters / 1e9:g} B parameters on {ranks} GPUs.",
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
    ax.text(13.3, 4.4, "the sum of\nboth ranks'", ha="center", va="top", **SMALL)
    ax.text(0.7, 4.4, "on both\nranks", ha="center", va="top", **SMALL)
    return plots.show(
        fig,
        alt="An MLP cut for two ranks. The input is in both. The first matrix is cut by columns, so each "
        "rank gets half of the hidden layer; the second by rows, so each rank makes a full-size half of "
        "every sum, and one all-reduce adds them.",
        caption="Columns first, rows second: between the two products each rank has just the half of h that "
        "it needs, and one all-reduce adds. Blue is one rank's, orange the other's.",
    )


def gpipe(stages, parts):
    """Each rank's passes, [(kind, stage, part)], in GPipe's order: all forward, then all backward."""
    return [
        [("F", rank, part) for part in range(parts)] + [("B", rank, part) for part in reversed(range(parts))]
        for rank in range(stages)
    ]


def interleaved(ranks, parts, chunks):
    """Each rank's passes in the interleaved 1F1B order of Narayanan et al. (2021).

    Rank r has `chunks` stages: r, r + ranks, ... `ranks` must divide the number of parts.
    """

    def nth(rank, number, kind):
        chunk = number // ranks % chunks
        part = number // (ranks * chunks) * ranks + number % ranks
        return kind, (chunk if kind == "F" else chunks - 1 - chunk) * ranks + rank, part

    orders, total = [], parts * chunks
    for rank in range(ranks):
        ahead = min(total, 2 * (ranks - 1 - rank) + (chunks - 1) * ranks)
        forward, backward = ([nth(rank, number, kind) for number in range(total)] for kind in "FB")
        pairs = zip(forward[ahead:], backward, strict=False)
        rest = backward[total - ahead :]
        orders.append(forward[:ahead] + [each for pair in pairs for each in pair] + rest)
    return orders


def zero_bubble(stages, parts):
    """Each rank's passes in the order ZB-H1 (Qi et al. 2024): 1F1B with split backward passes; the gradients
    of weights, W, follow `rank` parts later.
    """
    orders = []
    for rank in range(stages):
        ahead = min(parts, stages - 1 - rank)
        order = [("F", rank, part) for part in range(ahead)]
        for part in range(parts):
            order += [("F", rank, ahead + part)] * (ahead + part < parts)
            order.append(("B", rank, part))
            order += [("W", rank, part - rank)] * (part >= rank)
        orders.append(order + [("W", rank, part) for part in range(max(0, parts - rank), parts)])
    return orders


PASSES = {"F": ("forward", "blue"), "B": ("backward", "orange"), "W": ("gradient of the weights", "green")}


def schedule_facts(plan):
    """(end, idle share, most micro-batches held by a rank) of a simulated plan.

    If a rank has v stages, a micro-batch in one of them counts 1 / v.
    """
    ranks, end = 1 + max(row[0] for row in plan), max(row[-1] for row in plan)
    stages = 1 + max(row[2] for row in plan)
    busy = sum(stop - start for *_, start, stop in plan)
    freed = "W" if any(row[1] == "W" for row in plan) else "B"
    most = 0
    for rank in range(ranks):
        held = 0
        for _, kind, *_ in sorted((row for row in plan if row[0] == rank), key=lambda row: row[-2]):
            held += (kind == "F") - (kind == freed)
            most = max(most, held)
    return end, 1 - busy / (ranks * end), most * ranks / stages


@plots.responsive
def schedules(plans):
    """Pipeline schedules to one scale. plans: {name: [(rank, kind, stage, micro-batch, start, end)]}, in
    units of a forward pass."""
    height = 1.5 * len(plans) + 0.8
    fig, axes = plots.new(plots.COLUMN, height, phone=(plots.PHONE, height), rows=len(plans), sharex=True)
    longest, said = max(row[-1] for plan in plans.values() for row in plan), []
    for ax, (name, plan) in zip(axes, plans.items(), strict=True):
        end, idle, held = schedule_facts(plan)
        ranks = 1 + max(row[0] for row in plan)
        for rank, kind, stage, part, start, stop in plan:
            late = stage >= ranks
            ax.add_patch(
                Rectangle(
                    (start, rank - 0.42),
                    stop - start,
                    0.84,
                    facecolor=COLOUR[PASSES[kind][1]],
                    alpha=0.85 if late else 0.5,
                    edgecolor=plots.PAPER,
                    linewidth=0.8,
                )
            )
            if stop - start >= 1:
                ax.text((start + stop) / 2, rank, part + 1, ha="center", va="center", fontsize=10)
        ax.set_title(f"{name}: {idle:.0%} idle, holds up to {held:g}", loc="left", fontsize=11)
        ax.axvline(end, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        ax.set(ylim=(ranks - 0.4, -0.6), xlim=(0, longest * 1.01))
        ax.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        said.append(f"{name}: {idle:.1%} idle, done at {end:g}, up to {held:g} micro-batches held")
    axes[-1].set_xlabel("time (1: a micro-batch forward through a quarter of the model)")
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[colour], alpha=0.6) for _, colour in PASSES.values()]
    plots.legend(fig, handles, [name for name, _ in PASSES.values()])
    return plots.show(
        fig,
        alt=f"Schedules of eight micro-batches in a pipeline of four ranks, simulated, to one scale. "
        f"{'; '.join(said)}. Without a bubble each would be done at 24.",
        caption="1F1B holds fewer micro-batches than GPipe and idles as long. Interleaving and a split "
        "backward pass shorten the idle time at both ends. Simulated, the same work four times. Numbers are "
        "micro-batches; the stronger colour is a rank's second stage. A rank holds the micro-batches whose "
        "activations it keeps.",
        evidence=["theory"],
    )


@plots.responsive
def regions(clusters, least_tokens, most_ways, runs=((1024, 128), (2048, 128))):
    """Where training is bound by communication: tokens a GPU and step against GPUs that share a copy.

    clusters: {name: (card, GPUs of an NVLink domain)}; least_tokens(g, card, domain) and most_ways(card,
    domain) are the limits at the dense peak; runs: those of Llama 3, drawn in the first cluster.
    """
    fig, axes = plots.new(plots.COLUMN, 4.0, columns=2, sharey=True)
    shares = [2 ** (number / 8) for number in range(0, 73)]
    low, high, said = 16, 2**18, []
    for number, (ax, (name, (card, domain))) in enumerate(zip(axes, clusters.items(), strict=True)):
        edge = [max(low, least_tokens(share, card, domain)) for share in shares]
        ways = most_ways(card, domain)
        ax.fill_betweenx(shares, low, edge, color=COLOUR["orange"], alpha=0.35, linewidth=0)
        for below, above, colour in ((1, ways, "blue"), (ways, 512, "green")):
            inside = [below <= share <= above * 1.001 for share in shares]
            ax.fill_betweenx(
                shares,
                edge,
                high,
                where=inside,
                color=COLOUR[colour],
                alpha=0.25,
                linewidth=0,
                interpolate=True,
            )
        ax.plot(edge, shares, color=INK, linewidth=1.8)
        ax.plot([0.4 * tokens for tokens in edge], shares, **THEORY)
        ax.axhline(ways, color=INK, linewidth=1.0)
        ax.text(high * 0.9, ways * 0.92, f"tensor, up to {ways:.0f} ways", ha="right", va="top", **SMALL)
        ax.text(high * 0.9, ways * 1.08, "and a pipeline", ha="right", va="bottom", **SMALL)
        ax.text(high * 0.9, 1.06, "data parallel, FSDP", ha="right", va="bottom", **SMALL)
        ax.text(low * 1.2, 1.5, "gradients\nlast longer", ha="left", va="bottom", **SMALL)
        for tokens, share in runs if number == 0 else ():
            ax.plot([tokens], [share], **{**LIVE, "color": INK, "linestyle": "none", "marker": "D"})
        if number == 0:
            ax.annotate("Llama 3 405B", runs[-1], (8, -3), textcoords="offset points", **SMALL)
        ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(1, 512), title=name)
        ax.set_xlabel("tokens on a GPU in a step")
        ax.set_xticks([2**power for power in (6, 9, 12, 15)], ["64", "512", "4k", "32k"])
        ax.set_yticks([1, 8, 64, 512], ["1", "8", "64", "512"])
        ax.minorticks_off()
        said.append(
            f"{name}: alone from {least_tokens(1, card, domain):,.0f} tokens a GPU on, with 128 GPUs to a "
            f"copy from {least_tokens(128, card, domain):,.0f}; tensor parallelism up to {ways:.0f} ways"
        )
    axes[0].set_ylabel("GPUs that share a copy")
    return plots.show(
        fig,
        alt="Two maps of where a training step is bound by communication, at the dense BF16 peak and the "
        f"peak of the links. {'. '.join(said)}. Both runs of Llama 3 405B, 1,024 and 2,048 tokens on a GPU "
        "with 128 GPUs to a copy, lie where gradients hide.",
        caption="Plain data parallelism is limited by the network in nodes of eight, by NVLink in NVL72. "
        "Computed for Llama 3 405B, at the peak. Orange: the gradients' all-reduce takes longer than "
        "the backward pass (dashed: the same border for kernels at 40 % of the peak). Blue: tensor "
        "parallelism alone can share a copy. Green, above the horizontal line: it needs a pipeline too. "
        "Diamonds: Llama 3 405B's two runs. NVL72 has nine times as many GPUs, and network cards, to a node.",
        evidence=["theory"],
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
        caption=f"{most} ranks need {measured[most] / measured[1]:.2f} of one rank's time where the model "
        f"says {predicted[most] / measured[1]:.2f}. Live, {cores} core{'s' if cores > 1 else ''}, the "
        "fastest of several steps; the model (compute shared by the cores, plus a ring) is dashed.",
        evidence=["live", "theory"],
    )
