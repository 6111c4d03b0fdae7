"""Figures of chapter 11: the shelf, a shopping table, the price of a token, how often
to save, three lives, and an autoscaled day.
"""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, prices, specs

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
THEORY = {"color": INK, "linestyle": (0, (5, 3)), "linewidth": 1.8}


@plots.responsive
def shelf(keys):
    """Memory against bandwidth of cards, with the lowest recorded price an hour and its date.

    Cards offered on marketplaces (other people's machines) are hollow.
    """
    fig, ax = plots.new(plots.COLUMN, 3.6)
    said = []
    for key in keys:
        card, offer = specs.get(key), prices.cheapest(key)
        x, y = card["memory_capacity"].si / 1e9, card["memory_bandwidth"].si / 1e12
        price = f"${offer.gpu_hour:.2f}, {offer.seen:%-d %b}" if offer else "no price recorded"
        style = {"markersize": 9, "color": COLOUR["blue"], "markeredgewidth": 1.8}
        if offer and "other people" in offer.note:
            style["markerfacecolor"] = plots.PAPER
            price += "*"
        left = key == "b200"
        ax.plot(x, y, "o", **style)
        place = {"a100-sxm": (-9, -4), "h100-sxm": (-9, 4)}.get(key, (-9, 0) if left else (9, 0))
        ax.annotate(
            f"{card.short}\n{price}",
            (x, y),
            place,
            textcoords="offset points",
            va="center",
            linespacing=1.15,
            ha="right" if place[0] < 0 else "left",
            **SMALL,
        )
        said.append(f"{card.short}: {x:.0f} GB, {y:.2f} TB/s, {price}")
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(12, 260),
        ylim=(0.22, 12),
        xlabel="GB of memory",
        ylabel="TB/s, peak",
    )
    ticks = [16, 24, 80, 180] if plots.on_phone() else [16, 24, 80, 141, 180]
    ax.set_xticks(ticks, [str(size) for size in ticks])
    ax.set_yticks([0.3, 1, 3, 10], ["0.3", "1", "3", "10"])
    ax.minorticks_off()
    ax.grid()
    return plots.show(
        fig,
        alt="Memory capacity against memory bandwidth of six cards, both logarithmic, with the lowest "
        f"recorded dollars an hour. {'; '.join(said)}.",
        caption="Memory and bandwidth grow together, and so does the price an hour from the RTX 4090 on. "
        "Data sheets, and the lowest recorded offer on demand for each card, with the day of 2026 on which "
        "it was seen. Hollow, with a star: other people's machines, which a provider only brokers.",
    )


@plots.responsive
def pick(keys, jobs, cards_for):
    """A table: how many cards each job needs, and their lowest recorded price in dollars an hour.

    The cheapest entry of a row is framed. jobs: {name: (bytes of weights or state, bytes of caches)}.
    cards_for(key, weights, cache) -> number of cards.
    """
    fig, ax = plots.new(plots.COLUMN, 0.62 * len(jobs) + 0.55)
    said, winners = [], []
    for column, key in enumerate(keys):
        ax.text(
            column + 0.5,
            -0.35,
            specs.get(key).short.removesuffix(" SXM").replace("RTX ", ""),
            ha="center",
            va="center",
            **SMALL,
        )
    for row, (name, sizes) in enumerate(jobs.items()):
        counts = [cards_for(key, *sizes) for key in keys]
        offers = [prices.cheapest(key) for key in keys]
        costs = [
            count * offer.gpu_hour if offer else np.inf for count, offer in zip(counts, offers, strict=True)
        ]
        winners.append(specs.get(keys[int(np.argmin(costs))]).short)
        ax.text(-0.08, row + 0.5, name, ha="right", va="center", linespacing=1.1, **SMALL)
        for column, (count, cost) in enumerate(zip(counts, costs, strict=True)):
            _draw_cell(ax, (column, row), count, cost, best=cost == min(costs))
        words = ", ".join(
            f"{specs.get(k).short} {n} for ${c:.2f}" for k, n, c in zip(keys, counts, costs, strict=True)
        )
        said.append(f"{' '.join(name.split())}: {words}")
    ax.set(xlim=(-0.1, len(keys)), ylim=(len(jobs), -0.7))
    ax.set_axis_off()
    return plots.show(
        fig,
        alt="Table of cards needed and their lowest recorded price an hour, by job and card. "
        f"{'; '.join(said)}.",
        caption=f"The lowest sum of a row, framed, is {' or '.join(dict.fromkeys(winners))}'s, links not "
        "considered. Computed, for ten requests of 1,000 tokens: cards needed, and dollars an hour for all "
        "of them. Green: one card is enough.",
    )


def _draw_cell(ax, place, count, cost, best):
    """Draw one cell of the table: number of cards and cost; green if one card is enough, framed if best."""
    (column, row), alone = place, count == 1
    colour, box = COLOUR["green" if alone else "grey"], ((column + 0.04, row + 0.06), 0.92, 0.88)
    ax.add_patch(Rectangle(*box, facecolor=colour, alpha=0.3 if alone else 0.15, linewidth=0))
    if best:
        ax.add_patch(Rectangle(*box, facecolor="none", edgecolor=COLOUR["orange"], linewidth=2.2))
    price = f"${cost:.2f}" if np.isfinite(cost) else "no price"
    words = {"ha": "center", "va": "center", "linespacing": 1.15, **SMALL}
    ax.text(column + 0.5, row + 0.5, f"{count}\n{price}", **words)


@plots.responsive
def tokens(keys, cost):
    """Dollars a million tokens by card and offer at the bandwidth bound, for one request and for a full
    memory.

    cost(offer, requests) -> dollars.
    """
    fig, ax = plots.new(plots.COLUMN, 4.4)
    rows, said = [], []
    for key in keys:
        rows += [
            (key, offer) for offer in prices.offers(key) if not offer.region.startswith(("eu-", "us-west"))
        ]
    lone = {
        "color": COLOUR["orange"],
        "markerfacecolor": plots.PAPER,
        "markersize": 8,
        "markeredgewidth": 1.8,
    }
    shown, batch = None, []
    for y, (key, offer) in enumerate(rows):
        full, alone = cost(offer), cost(offer, 1)
        ax.plot([full, alone], [y, y], **{**THEORY, "linewidth": 1.3})
        ax.plot(alone, y, "o", **lone)
        ax.plot(full, y, "o", markersize=8, color=COLOUR["blue"])
        ax.annotate(
            f"${full:.2f}", (full, y), (-8, 0), textcoords="offset points", ha="right", va="center", **SMALL
        )
        if key != shown:
            ax.axhline(y - 0.5, color=INK, linewidth=0.6, alpha=0.25)
        shown = key
        batch.append(alone / full)
        said.append(f"{specs.get(key).short}, {offer.provider}: {full:.2f} full, {alone:.2f} alone")
    short = {"h200-sxm": "H200", "a100-sxm": "A100", "h100-sxm": "H100", "rtx-4090": "4090"}
    labels = [f"{short.get(key, specs.get(key).short)}, {offer.provider.split()[0]}" for key, offer in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(
        xscale="log", xlim=(0.025, 25), ylim=(len(rows) - 0.4, -0.6), xlabel="dollars a million tokens, bound"
    )
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    ax.grid(axis="x")
    marks = [
        ax.plot([], [], "o", markersize=8, color=COLOUR["blue"])[0],
        ax.plot([], [], "o", **lone)[0],
    ]
    plots.legend(fig, marks, ["memory full of requests", "one request"])
    return plots.show(
        fig,
        alt="Dollars for a million tokens by offer, computed from the bandwidth's bound, logarithmic. "
        f"{'; '.join(said)}.",
        caption=f"A full memory makes a token up to {max(batch):.0f} times cheaper than one request does; "
        "on cards of 80 GB and more the provider counts next. Theory, one pass a token, 7 B weights in "
        "16 bits, 1,000 tokens a request, recorded prices: no software can be cheaper on these terms.",
        evidence=["theory"],
    )


@plots.responsive
def intervals(simulated):
    """The share of time lost against the interval between checkpoints, each of which takes a minute.

    simulated: {hours between interruptions: {minutes between checkpoints: share}}.
    """
    fig, ax = plots.new(plots.COLUMN, 3.5)
    minutes, said = np.geomspace(2.5, 110, 100), []
    for (hours, points), colour in zip(simulated.items(), ("orange", "blue", "green"), strict=True):
        share = 1 / minutes + minutes / (2 * 60 * hours)
        ax.plot(minutes, share, **{**THEORY, "color": COLOUR[colour]})
        ax.plot(
            list(points),
            list(points.values()),
            "o",
            markersize=7,
            color=COLOUR[colour],
            label="every hour" if hours == 1 else f"every {hours} h",
        )
        best = (2 * 60 * hours) ** 0.5
        ax.plot(best, (2 / 60 / hours) ** 0.5, "|", markersize=20, markeredgewidth=2, color=COLOUR[colour])
        said.append(
            f"Interrupted every {hours} h, best {best:.0f} minutes; simulated "
            + ", ".join(f"{m} min {s:.0%}" for m, s in points.items())
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="minutes of work between saves",
        ylabel="extra time",
        ylim=(0.015, 1.6),
    )
    ax.set_xticks([3, 6, 11, 22, 45, 90], ["3", "6", "11", "22", "45", "90"])
    ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["2 %", "5 %", "10 %", "20 %", "50 %", "100 %"])
    ax.minorticks_off()
    ax.grid()
    plots.legend(fig, title="interrupted", alignment="left")
    return plots.show(
        fig,
        alt="Share of time lost against the interval between saves of one minute. Theory is d/T + T/2M. "
        f"{'. '.join(said)}.",
        caption="The minimum is flat and moves right as interruptions become rarer. Frequent interruptions "
        "cost more than the theory says. Points simulated, Young's theory dashed, its best interval a bar.",
    )


@plots.responsive
def lives(whole, steps):
    """Live: losses of an undisturbed run, and of one interrupted twice.

    whole, steps[i]: {step: loss as hex}.
    """
    fig, (top, bottom) = plots.new(plots.COLUMN, 3.6, rows=2, sharex=True, height_ratios=[2.2, 1])
    value = lambda run: (list(run), [float.fromhex(loss[0]) for loss in run.values()])  # noqa: E731
    top.plot(*value(whole), color=COLOUR["grey"], linewidth=6, alpha=0.45, label="undisturbed")
    names = "until SIGTERM", "until SIGKILL", "to the end"
    said = []
    for row, (run, name, colour) in enumerate(zip(steps, names, ("blue", "orange", "green"), strict=True)):
        if not run:  # on a busy machine the interrupting signal may arrive after the last step
            continue
        x, y = value(run)
        top.plot(x, y, color=COLOUR[colour], linewidth=1.8, label=name)
        bottom.barh(row, x[-1] - x[0] + 1, left=x[0] - 1, height=0.6, color=COLOUR[colour], alpha=0.85)
        said.append(f"{name}: steps {x[0]} to {x[-1]}")
    again = sorted(steps[1].keys() & steps[2].keys())
    if again:
        bottom.barh(
            1,
            len(again),
            left=again[0] - 1,
            height=0.6,
            facecolor="none",
            edgecolor=plots.PAPER,
            hatch="////",
            linewidth=0,
        )
    top.set(ylabel="loss")
    bottom.set(xlabel="step", ylim=(2.6, -0.6))
    bottom.set_yticks(range(3), ["1st life", "2nd", "3rd"])
    bottom.tick_params(axis="y", length=0)
    plots.legend(fig, *top.get_legend_handles_labels())
    return plots.show(
        fig,
        alt="Loss against step of an undisturbed run and of one in three lives; the curves coincide. "
        f"{'. '.join(said)}. Done twice: {len(again)} steps.",
        caption=f"Live: three lives follow the undisturbed curve to the bit. Hatched: {len(again)} steps "
        "that SIGKILL cost, done again with the same losses.",
        evidence=["live"],
    )


@plots.responsive
def day(came, run, answer):
    """A day of an autoscaled service, with its surge enlarged: requests a second, replicas paid and ready,
    p95 latency. run: cluster.autoscale.Day.
    """
    fig, axes = plots.new(
        plots.COLUMN,
        4.9,
        rows=3,
        columns=2,
        sharex="col",
        sharey="row",
        height_ratios=[1, 1.5, 1.2],
        width_ratios=[1.5, 1],
    )
    changes = 1 + np.flatnonzero(np.diff(run.replicas).astype(bool) | np.diff(run.ready).astype(bool))
    kept = np.unique(np.array([0, *changes, len(run.times) - 1]))
    times, paid, ready, said = run.times[kept] / 3600, run.replicas[kept], run.ready[kept], []
    for (top, middle, bottom), width, begin, end in zip(
        axes.T, (600, 60), (0, 64_080), (86_400, 67_680), strict=True
    ):
        edges = np.arange(begin, end + 1, width)
        hours = (edges[:-1] + width / 2) / 3600
        which = np.where((came >= begin) & (came < end), np.digitize(came, edges) - 1, -1)
        p95 = np.array(
            [
                np.percentile(run.latency[which == i], 95) if (which == i).any() else np.nan
                for i in range(len(hours))
            ]
        )
        rate = np.bincount(which[which >= 0], minlength=len(hours)) / width
        top.step(hours, rate, where="mid", color=COLOUR["grey"], linewidth=1.4)
        middle.fill_between(
            times, paid, step="post", color=COLOUR["orange"], alpha=0.35, linewidth=0, label="replicas paid"
        )
        middle.step(times, ready, where="post", color=COLOUR["blue"], linewidth=1.3, label="replicas ready")
        bottom.step(hours, p95, where="mid", color=COLOUR["purple"], linewidth=1.6)
        bottom.axhline(answer, **{**THEORY, "linewidth": 1.3})
        said.append(f"{np.nanmax(p95):.0f} s by {width} seconds, at {hours[int(np.nanargmax(p95))]:.2f} h")
    for ax, label, high in zip(
        axes[:, 0], ("requests\na second", "replicas", "p95 (s)"), (None, 26, None), strict=True
    ):
        ax.set(ylabel=label, ylim=(0, high))
    axes[2, 0].set(xlabel="hour of the day", xlim=(0, 24))
    axes[2, 0].set_xticks([0, 6, 12, 18, 24])
    axes[2, 1].set(xlabel="the surge", xlim=(17.85, 18.75))
    axes[2, 1].set_xticks([18, 18.5], ["18:00", "18:30"])
    plots.legend(fig, *axes[1, 0].get_legend_handles_labels())
    return plots.show(
        fig,
        alt="A simulated day, and its surge enlarged. Requests rise from 0.4 a second at midnight to 8 at "
        f"noon, with a surge at 18:00. Replicas follow, from {run.replicas.min():.0f} to "
        f"{run.replicas.max():.0f}. The highest 95th percentile of the latency is {'; '.join(said)}; the "
        f"shortest answer takes {answer:.1f} s.",
        caption="Only the surge, faster than a cold start, makes requests wait. Simulated: replicas follow "
        "the day, paid before they are ready. Dashed: the shortest time of an answer.",
    )
