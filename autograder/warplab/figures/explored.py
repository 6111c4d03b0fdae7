"""Data and still pictures of the explorables in chapters 2, 3, 9 and 10.

The data are numbers of the registry and of warplab.models for the scripts; the stills are shown in print and
where scripts do not run.
"""

from dataclasses import asdict

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs, vram
from warplab.hardware.target import Target

COLOUR = plots.PALETTE
SMALL = {"fontsize": 10.5}
# Shapes of published models: GPT-3 XL (brown2020, table 2.1) and Llama 2 (touvron2023).
MODELS = {
    "gpt-1b": {"parameters": 1.3e9, "layers": 24, "width": 2048},
    "llama-7b": {"parameters": 7e9, "layers": 32, "width": 4096},
    "llama-13b": {"parameters": 13e9, "layers": 40, "width": 5120},
    "llama-70b": {"parameters": 70e9, "layers": 80, "width": 8192},
}
LOAD, ALU = 700, 4  # cycles: an H100's load (dewing_latency), arithmetic (cuda_c_guide); chapter 2 cites both


def links():
    """Bandwidth of a link in one direction (bytes a second), and chapter 10's latency of a message."""
    h100 = specs.get("h100-sxm")
    bandwidth = {
        "nvlink": h100["nvlink_each_way"].si,
        "pcie": h100["pcie_each_way"].si,
        "network": 400e9 / 8,
        "ethernet": 10e9 / 8,
    }
    names = {
        "nvlink": "NVLink 4",
        "pcie": "PCIe 5 x16",
        "network": "a 400 Gbit/s network",
        "ethernet": "a 10 Gbit/s network",
    }
    return {"links": {"bandwidth": bandwidth, "names": names, "latency": 10e-6}}


def desks():
    """Bytes a parameter by recipe, shapes of models, and cards with their memory in bytes."""
    cards = [specs.get(key) for key in ("rtx-4090", "a100-sxm", "h100-sxm", "h200-sxm", "b200")]
    sizes = {card.key: {"name": card.short, "size": card["memory_capacity"].si} for card in cards}
    return {"recipes": vram.RECIPES, "models": MODELS, "cards": sizes}


def requests():
    """Chapter 9's gaps between arrivals, as multiples of their mean, and the inputs of its decoding bound."""
    gaps = np.random.default_rng(9).exponential(1.0, 4000)
    shape = {"weights": 7e9, "layers": 32, "width": 4096, "context": 1000, "tokens": 200}
    bandwidth = specs.get("h100-sxm")["memory_bandwidth"].si
    return {"gaps": [round(float(gap), 3) for gap in gaps], "bandwidth": bandwidth} | shape


def scheduler():
    """Cycles of a load and of arithmetic, schedulers of an SM, bytes in flight for the bandwidth."""
    h100 = specs.get("h100-sxm")
    needed = LOAD / h100["boost_clock"].si * h100["memory_bandwidth"].si / h100["sms"].value
    schedulers = h100["warp_schedulers_per_sm"].value
    return {"load": LOAD, "alu": ALU, "schedulers": schedulers, "needed": needed}


def limits():
    """Launch limits by architecture, sizes in bytes."""
    return {"limits": {arch: asdict(Target.of(arch).limits) for arch in specs.archs()}}


def batches(arrivals, limit, answer_time):
    """[(first, last, start, finish)] of a server that answers up to `limit` waiting requests together."""
    done, clock, first = [], 0.0, 0
    while first < len(arrivals):
        clock = max(clock, arrivals[first])
        last = min(int(np.searchsorted(arrivals, clock, "right")), first + limit)
        start, clock = clock, clock + answer_time(last - first)
        done.append((first, last, start, clock))
        first = last
    return done


@plots.responsive
def serving(limit=8, load=7.0, number=40):
    """Still: the first requests at a load near the capacity; lines are waiting times, bars answers."""
    given = requests()
    arrivals = np.cumsum(given["gaps"]) / load

    def answer_time(batch):
        cache = vram.kv_cache_bytes(given["layers"], given["width"], given["context"], batch)
        return given["tokens"] * (2 * given["weights"] + cache) / given["bandwidth"]

    fig, ax = plots.new(plots.COLUMN, 3.6)
    for turn, (first, last, start, finish) in enumerate(batches(arrivals, limit, answer_time)):
        for request in range(first, min(last, number)):
            ax.plot([arrivals[request], start], [request, request], color=COLOUR["orange"], linewidth=1)
            colour = COLOUR["green" if turn % 2 else "blue"]
            ax.barh(request, finish - start, left=start, height=0.8, color=colour)
    ax.set(xlabel="seconds", ylabel="requests", ylim=(number, -1))
    ax.set_yticks([])
    wall = limit / answer_time(limit)
    return plots.show(
        fig,
        alt=f"The first {number} requests as bars, at {load:g} a second, at most {limit} answered together.",
        caption=f"At most {limit} at once and {load:g} requests a second, with a capacity of {wall:.1f}: "
        "thin while a request waits, thick while it is answered.",
    )


@plots.responsive
def hiding(warps=4, arithmetic=15, rounds=2):
    """Still: four warps of a scheduler, each with a load, the wait for it, and arithmetic."""
    fig, ax = plots.new(plots.COLUMN, 2.3)
    chain = arithmetic * ALU
    for warp in range(warps):
        for turn in range(rounds):
            start = warp + turn * (LOAD + chain)  # warps issue in turn, a cycle apart
            ax.barh(warp, LOAD, left=start, height=0.12, color=COLOUR["gold"])
            ax.barh(warp, 8, left=start, height=0.7, color=COLOUR["orange"])
            ax.barh(warp, chain, left=start + LOAD, height=0.7, color=COLOUR["blue"])
    ax.set(xlabel="clock cycles", ylim=(warps - 0.4, -0.6))
    ax.set_yticks(range(warps), [f"warp {warp}" for warp in range(warps)])
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c]) for c in ("orange", "gold", "blue")]
    plots.legend(fig, handles, ["load", "waiting for it", "arithmetic"])
    busy = warps * (arithmetic + 1) / (LOAD + chain)
    return plots.show(
        fig,
        alt=f"{warps} warps on one scheduler: each loads, waits {LOAD} cycles, and computes for {chain}.",
        caption=f"{warps} warps with {arithmetic} arithmetic instructions for each load: by Little's law the "
        f"scheduler issues in at most {100 * busy:.0f} % of the cycles.",
    )


@plots.responsive
def amdahl(serial=0.1, workers=8):
    """Still: a job on one worker and on several; time to the right, workers downwards."""
    fig, (one, many) = plots.new(plots.COLUMN, 2.8, rows=2, sharex=True, height_ratios=[1, 3])
    for ax, n in ((one, 1), (many, workers)):
        ax.add_patch(Rectangle((0, 0), serial, n, facecolor=COLOUR["grey"], alpha=0.25))
        ax.add_patch(Rectangle((0, 0), serial, 1, facecolor=COLOUR["orange"], alpha=0.85))
        ax.add_patch(Rectangle((serial, 0), (1 - serial) / n, n, facecolor=COLOUR["blue"], alpha=0.85))
        ax.set(xlim=(0, 1.01), ylim=(n, 0), ylabel="one" if n == 1 else f"{n} workers")
        ax.set_yticks([])
    many.set_xlabel("time, of one worker's")
    speedup = 1 / (serial + (1 - serial) / workers)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in ("orange", "blue", "grey")]
    plots.legend(fig, handles, ["serial", "shared", "idle"])
    return plots.show(
        fig,
        alt=f"A job of which {serial:.0%} is serial, done by one worker and by {workers}: while one works on "
        "the serial part the others wait.",
        caption=f"{workers} workers finish {speedup:.1f} times as soon. The coloured area, the work, stays "
        "the same; the grey is a hall that waits.",
    )


@plots.responsive
def desk(model="llama-7b", ranks=8, tokens=2048):
    """Still: the memory of each of `ranks` cards in every stage of ZeRO."""
    shape = MODELS[model]
    kept = {"activations": vram.activation_bytes(shape["layers"], shape["width"], 32, tokens)}
    card = specs.get("h100-sxm")
    colours: dict[str, str] = dict(
        zip(vram.RECIPES["mixed, Adam"], ("blue", "orange", "purple", "green", "gold"), strict=True)
    )
    colours["activations"] = "grey"
    fig, ax = plots.new(plots.COLUMN, 3.4)
    totals = []
    for stage in range(4):
        bottom = 0.0
        for part, size in (vram.zero_bytes(shape["parameters"], ranks, stage) | kept).items():
            ax.bar(stage, size / 1e9, bottom=bottom, width=0.6, color=COLOUR[colours[part]], alpha=0.85)
            bottom += size / 1e9
        totals.append(f"{bottom:.1f} GB")
        ax.text(stage, bottom + 2, totals[-1], ha="center", **SMALL)
    size = card["memory_capacity"].si / 1e9
    ax.axhline(size, color=plots.INK, linestyle=(0, (5, 3)), linewidth=1.6)
    ax.text(3.4, size + 2, f"{card.short}: {size:.0f} GB", ha="right", **SMALL)
    ax.set(ylabel="GB on each card", ylim=(0, 140))
    ax.set_xticks(range(4), ["full copies", "stage 1", "stage 2", "stage 3"])
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in colours.values()]
    plots.legend(fig, handles, list(colours))
    return plots.show(
        fig,
        alt=f"Stacked bars of what lies on each of {ranks} cards that train 7 billion parameters: "
        f"{', '.join(totals)} from full copies to stage 3.",
        caption=f"7 billion parameters on {ranks} cards in mixed precision with Adam, {tokens:,} tokens on "
        "each: stages of ZeRO shrink the state, and the activations stay.",
    )
