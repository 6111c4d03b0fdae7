"""Figures of chapter 2: caches, a core beside an SM, memory on the chip, an SM taken
apart, latency hiding, occupancy, crossover.
"""

import numpy as np
from matplotlib.patches import Rectangle

from warplab import plots, specs

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
MIB = 2**20
# One Zen 4 core, not in the registry: L1 (instructions and data) and L2 in bytes;
# physical registers as count x bytes.
ZEN4_L1, ZEN4_L2 = 64 * 2**10, 2**20
ZEN4_REGISTERS = 224 * 8 + 192 * 64
ROLES = {"control": "orange", "cache": "gold", "registers": "purple", "arithmetic": "blue"}


@plots.responsive
def staircase(kib, ns):
    """Live: the time of a step of a pointer chase in ns, against its size in KiB. Each load waits for the
    last.
    """
    fig, ax = plots.new(plots.COLUMN, 2.9)
    ax.plot(kib, ns, color=COLOUR["blue"], alpha=0.4, linewidth=1.5)
    ax.plot(kib, ns, markersize=8, linestyle="none", **plots.MARKERS["live"])
    for x, y, side in ((kib[0], ns[0], "left"), (kib[-1], ns[-1], "right")):
        ax.annotate(f"{y:.3g} ns", (x, y), (0, 8), textcoords="offset points", ha=side, fontsize=10.5)
    ax.set(xscale="log", yscale="log", xlabel="size of the walk", ylabel="one step, ns")
    ax.set(xlim=(kib[0] / 1.6, kib[-1] * 1.6), ylim=(min(ns) / 1.5, max(ns) * 2.2))
    named = kib[::2] if plots.on_phone() else kib
    ax.set_xticks(named, [f"{k} KiB" if k < 1024 else f"{k // 1024} MiB" for k in named])
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500) if min(ns) / 1.5 < t < max(ns) * 2.2]
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.minorticks_off()
    ax.grid(axis="y")
    said = "; ".join(f"{k} KiB: {t:.3g} ns" for k, t in zip(kib, ns, strict=True))
    return plots.show(
        fig,
        alt=f"Time of one step of a walk through memory in random order, live on this machine. {said}.",
        caption="Measured here, now. The further away a number lies, the longer the same instruction takes: "
        "the curve rises where the walk outgrows a cache.",
        evidence=["live"],
    )


@plots.responsive
def core_and_sm():
    """A CPU core and an SM side by side; a schematic, not a measurement of areas."""
    fig, ax = plots.new(plots.COLUMN, 3.5)
    ax.set(xlim=(0, 13.2), ylim=(7.5, -1.2))
    ax.set_axis_off()
    ax.text(3.0, -0.75, "a CPU core", ha="center", weight="bold")
    ax.text(10.0, -0.75, "an SM of a GPU", ha="center", weight="bold")
    core = (
        (0, 0, 6, 2.4, "control", "predict, reorder, undo"),
        (0, 2.5, 6, 1.9, "cache", "caches"),
        (0, 4.5, 1.4, 2.0, "registers", "regs"),
        (1.5, 4.5, 4.5, 2.0, "arithmetic", ""),
    )
    for x, y, width, height, role, text in core:
        _part(ax, x, y, width, height, role, text)
    for col in range(4):
        _part(ax, 1.72 + 1.07 * col, 4.65, 0.9, 0.9, "arithmetic", "")
    ax.text(3.75, 6.05, "a few wide units", ha="center", va="center")
    for quarter in range(4):
        x, y = 7.0 + 3.05 * (quarter % 2), 2.55 * (quarter // 2)
        _part(ax, x, y, 2.95, 0.4, "control", "")
        _part(ax, x, y + 0.45, 2.95, 0.85, "registers", "registers")
        for lane in range(32):
            _part(ax, x + 0.185 * (lane % 16), y + 1.37 + 0.54 * (lane // 16), 0.17, 0.5, "arithmetic", "")
    _part(ax, 7.0, 5.15, 6.0, 1.35, "cache", "shared memory and L1")
    handles = [Rectangle((0, 0), 1, 1, facecolor=COLOUR[c], alpha=0.5, edgecolor=INK) for c in ROLES.values()]
    plots.legend(fig, handles, list(ROLES))
    return plots.show(
        fig,
        alt="Schematic of a CPU core beside an SM. The core: a large block that predicts, reorders and "
        "undoes, caches, a small block of registers and a few wide arithmetic units. The SM: four "
        "quarters, each with a thin strip of control, a large block of registers and 32 lanes; below "
        "them shared memory and L1.",
        caption="A schematic, its areas not measured. The core spends on finishing one stream of "
        "instructions early; the SM on many lanes, and on registers for warps that wait.",
    )


@plots.responsive
def on_chip():
    """Bytes on the chip by kind, in all and for each hardware thread, of an EPYC 9654 and an H100 SXM."""
    chips = chip_bytes()
    fig, ax = plots.new(plots.COLUMN, 2.7)
    look = {"registers": ("purple", 0.85), "L1": ("gold", 0.95), "L2": ("green", 0.75), "L3": ("blue", 0.55)}
    for y, (name, (parts, threads)) in enumerate(chips.items()):
        left = 0.0
        for kind, size in parts.items():
            colour, alpha = look[kind]
            ax.barh(
                y,
                size / MIB,
                left=left,
                height=0.56,
                color=COLOUR[colour],
                alpha=alpha,
                edgecolor=INK,
                linewidth=0.6,
            )
            if size / MIB > (40 if plots.on_phone() else 25):
                ax.text(
                    left + size / MIB / 2, y, f"{size / MIB:.0f}", ha="center", va="center", fontsize=10.5
                )
            left += size / MIB
        each = f"{_bytes(cache_of(parts) / threads)} of cache a thread"
        ax.text(0, y + 0.33, f"{threads:,} threads: {each}", va="top", fontsize=10.5)
    ax.set(xlabel="MiB on the chip", ylim=(1.75, -0.5), xlim=(0, 520))
    ax.set_yticks(range(len(chips)), list(chips))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, facecolor=COLOUR[c], alpha=a, edgecolor=INK) for c, a in look.values()]
    plots.legend(fig, handles, ["registers", "L1 (GPU: with shared memory)", "L2", "L3"])
    said = "; ".join(
        f"{name}: "
        + ", ".join(f"{kind} {size / MIB:.1f} MiB" for kind, size in parts.items())
        + f", {threads:,} threads"
        for name, (parts, threads) in chips.items()
    )
    return plots.show(
        fig,
        alt=f"Stacked bars of the memory on two chips. {said}.",
        caption="Computed from data sheets. The CPU keeps data near a few threads; the GPU keeps threads, "
        "and holds as many bytes of registers as of L1.",
    )


def chip_bytes():
    """{chip: ({kind: bytes}, hardware threads)} for the CPU and the GPU that the chapter compares."""
    cpu, gpu = specs.get("epyc-9654"), specs.get("h100-sxm")
    cores, sms = cpu["cores"].value, gpu["sms"].value
    return {
        "EPYC 9654": (
            {
                "registers": cores * ZEN4_REGISTERS,
                "L1": cores * ZEN4_L1,
                "L2": cores * ZEN4_L2,
                "L3": cpu["l3_cache"].si,
            },
            cpu["threads"].value,
        ),
        "H100 SXM": (
            {
                "registers": sms * gpu["register_file_per_sm"].si,
                "L1": sms * gpu["unified_cache_per_sm"].si,
                "L2": gpu["l2_cache"].si,
            },
            gpu["max_resident_threads"].value,
        ),
    }


def cache_of(parts):
    """The bytes of all caches in a value of chip_bytes()."""
    return sum(size for kind, size in parts.items() if kind != "registers")


@plots.responsive
def anatomy():
    """The parts of an SM of an H100 with their numbers, all from the registry."""
    gpu = specs.get("h100-sxm")
    quarters, lanes = gpu["warp_schedulers_per_sm"].value, gpu["fp32_lanes_per_sm"].value
    across = 2 if plots.on_phone() else quarters
    width, below = 3.15 * across, 6.7 * (quarters // across)
    fig, ax = plots.new(plots.COLUMN, 4.4, phone=(plots.PHONE, 6.0))
    ax.set(xlim=(0, width), ylim=(below + 2.9, -0.2))
    ax.set_axis_off()
    for quarter in range(quarters):
        x, y = 3.15 * (quarter % across), 6.7 * (quarter // across)
        _part(ax, x, y, 3.0, 6.55, None, "")
        _part(ax, x + 0.1, y + 0.2, 2.8, 0.9, "control", "scheduler: 1 warp\ninstruction a clock", 10)
        registers = f"{gpu['registers_per_sm'].value // quarters:,} registers"
        warps = f"for up to {gpu['max_warps_per_sm'].value // quarters} warps"
        _part(ax, x + 0.1, y + 1.25, 2.8, 1.5, "registers", f"{registers}\n{warps}", 10)
        for lane in range(lanes // quarters):
            at = x + 0.1 + 0.352 * (lane % 8), y + 2.95 + 0.5 * (lane // 8)
            _part(ax, *at, 0.31, 0.44, "arithmetic", "")
        ax.text(x + 1.5, y + 5.2, f"{lanes // quarters} FP32 lanes", ha="center", va="center", fontsize=10)
        _part(ax, x + 0.1, y + 5.55, 2.8, 0.8, "tensor", "Tensor Core", 10)
    shared = (
        f"{gpu['unified_cache_per_sm'].text()} of L1, of which up to {gpu['shared_memory_per_sm'].text()} "
        "shared memory"
    )
    folded = shared.replace("which up", "which\nup") if plots.on_phone() else shared
    _part(ax, 0, below + 0.15, width - 0.15, 1.35 if plots.on_phone() else 0.95, "cache", folded)
    sms = gpu["sms"].value
    lines = (
        f"× {sms} SMs = {sms * quarters} schedulers, {sms * lanes:,} lanes,",
        f"up to {gpu['max_resident_threads'].value:,} threads in residence",
    )
    ax.text(width / 2, below + 2.25, "\n".join(lines), ha="center", va="center", weight="bold")
    return plots.show(
        fig,
        alt=f"One SM of an H100: {quarters} quarters, each with a scheduler that issues one warp instruction "
        f"a clock, {gpu['registers_per_sm'].value // quarters:,} registers for up to "
        f"{gpu['max_warps_per_sm'].value // quarters} warps, {lanes // quarters} FP32 lanes and a Tensor "
        f"Core. Below, {shared}. {lines[0]} {lines[1]}.",
        caption="What is sold as 128 cores: four schedulers, each of which tells 32 lanes what to do.",
    )


@plots.responsive
def hiding(shares, load, arithmetic):
    """Simulated and predicted share of busy clock cycles.

    shares: {arithmetic instructions for each load: [share of cycles that issue, for 1, 2, 3 ... warps]};
    load, arithmetic: cycles until the next instruction of the same warp may issue after each.
    """
    fig, ax = plots.new(plots.COLUMN, 3.5)
    for colour, (count, measured) in zip(("blue", "orange", "green"), shares.items(), strict=True):
        warps = np.arange(1, len(measured) + 1)
        law = np.minimum(1, warps * (count + 1) / (load + count * arithmetic))
        ax.plot(warps, 100 * law, color=COLOUR[colour], linewidth=1.4, linestyle=(0, (5, 3)))
        ax.plot(warps, 100 * np.array(measured), "o", color=COLOUR[colour], markersize=5)
        end = (len(measured), 100 * measured[-1])
        ax.annotate(
            f"{count} for each load", end, (8, 0), textcoords="offset points", va="center", fontsize=10.5
        )
    top = max(len(measured) for measured in shares.values())
    ax.set(xlim=(0, top * 1.38), ylim=(0, 107), xlabel="warps of a scheduler", ylabel="cycles that issue, %")
    ax.set_xticks(range(0, top + 1, 4))
    ax.grid(axis="y")
    said = "; ".join(
        f"{n} arithmetic instructions for each load: {100 * m[-1]:.0f} % with {len(m)} warps"
        for n, m in shares.items()
    )
    return plots.show(
        fig,
        alt=f"Share of cycles in which a simulated scheduler issues, rising with the count of warps. {said}. "
        "The points lie on Little's law or under it, most of all where it nears 100 %.",
        caption="Simulated (points) under Little's law (dashed), which is a bound. Sixteen warps hide a "
        f"load of {load} cycles only if each brings enough arithmetic of its own.",
    )


@plots.responsive
def occupancy_limits():
    """Occupancy on an H100's SM against registers a thread and shared memory a block,
    for blocks of 256 threads.
    """
    limit = specs.for_arch("sm_90")
    most = limit["max_warps_per_sm"].value
    fig, (left, right) = plots.new(plots.COLUMN, 3.1, columns=2, sharey=True)
    registers = np.arange(16, 256)
    left.step(
        registers,
        [100 * resident_warps(r, 0, 256) / most for r in registers],
        where="mid",
        color=COLOUR["purple"],
    )
    left.set(xlabel="registers a thread", ylabel="occupancy, %", xlim=(16, 256), ylim=(0, 108))
    left.set_xticks([32, 64, 128, 255])
    kib = np.arange(0, 228)
    right.step(
        kib, [100 * resident_warps(16, k * 1024, 256) / most for k in kib], where="mid", color=COLOUR["gold"]
    )
    right.set(xlabel="shared memory a block, KiB", xlim=(0, 228))
    if plots.on_phone():
        right.set(ylabel="occupancy, %")
    right.set_xticks([0, 48, 100, 227])
    for ax in (left, right):
        ax.grid(axis="y")
    points = ", ".join(f"{r}: {100 * resident_warps(r, 0, 256) / most:.0f} %" for r in (32, 33, 64, 128, 255))
    tables = ", ".join(
        f"{k} KiB: {100 * resident_warps(16, k * 1024, 256) / most:.0f} %" for k in (16, 32, 48, 100, 227)
    )
    return plots.show(
        fig,
        alt="Two falling staircases of occupancy for blocks of 256 threads. By registers a thread: "
        f"{points}. By shared memory a block: {tables}.",
        caption="Blocks of 256 threads on an H100's SM, which takes whole blocks only: occupancy falls in "
        "steps, and the 33rd register of a thread costs a quarter of the warps.",
    )


def resident_warps(registers, shared, threads):
    """Warps of one kernel on an H100's SM: registers a thread, shared bytes and threads a block."""
    limit = specs.for_arch("sm_90")
    warps = -(-threads // limit["warp_size"].value)
    unit, quarters = limit["register_allocation_unit"].value, limit["warp_schedulers_per_sm"].value
    per_warp = -(-registers * 32 // unit) * unit
    by_registers = limit["registers_per_sm"].value // quarters // per_warp * quarters // warps
    step = limit["shared_memory_allocation_unit"].si
    taken = -(-(shared + limit["reserved_shared_memory_per_block"].si) // step) * step
    by_shared = int(limit["shared_memory_per_sm"].si // taken)
    return warps * min(
        limit["max_warps_per_sm"].value // warps, limit["max_blocks_per_sm"].value, by_registers, by_shared
    )


@plots.responsive
def crossover(sizes, cpu, gpu=None):
    """Times of an n x n product on one CPU core (live) and on the GPU (live, or None: not
    recorded yet), seconds.
    """
    fig, ax = plots.new(plots.COLUMN, 3.3)
    ax.plot(sizes, cpu, linestyle="-", linewidth=1.2, markersize=7, **plots.MARKERS["live"])
    ax.annotate(
        "one CPU core, live",
        (sizes[-1], cpu[-1]),
        (-9, 3),
        textcoords="offset points",
        ha="right",
        fontsize=10.5,
    )
    if gpu is None:
        said = "GPU: none on this machine"
        box = {"facecolor": PAPER, "edgecolor": COLOUR["grey"], "pad": 4}
        ax.text(
            0.97,
            0.06,
            said,
            transform=ax.transAxes,
            ha="right",
            style="italic",
            color=COLOUR["grey"],
            bbox=box,
        )
    else:
        style = plots.MARKERS["live"] | {"color": COLOUR["orange"], "markerfacecolor": COLOUR["orange"]}
        ax.plot(sizes, gpu, linestyle="-", linewidth=1.2, markersize=7, **style)
        ax.annotate(
            "GPU, live",
            (sizes[-1], gpu[-1]),
            (-9, -14),
            textcoords="offset points",
            ha="right",
            fontsize=10.5,
        )
        said = "GPU: " + ", ".join(plots.duration(t) for t in gpu)
    ax.set(xscale="log", yscale="log", xlabel="n, for a product of two n × n matrices", ylabel="one product")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    every = [*cpu, *(gpu or [])]
    ticks = [t for t in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1) if min(every) / 3 < t < max(every) * 3]
    ax.set_yticks(ticks, [plots.duration(t) for t in ticks])
    ax.set(ylim=(min(every) / 3, max(every) * 3))
    ax.minorticks_off()
    ax.grid()
    times = ", ".join(f"n = {n}: {plots.duration(t)}" for n, t in zip(sizes, cpu, strict=True))
    return plots.show(
        fig,
        alt=f"Time of one product of two n by n matrices. One CPU core, live: {times}. {said}.",
        caption="Small products cost what a call costs, large ones what the arithmetic costs. "
        + (
            "No GPU was here to draw its curve: recorded ones follow."
            if gpu is None
            else "The curves cross where the GPU starts to win."
        ),
        evidence=["live"],
    )


def _part(ax, x, y, width, height, role, text, size=11):
    """Draw a labelled rectangle, tinted by its role; unfilled for the role None."""
    colour = COLOUR["green"] if role == "tensor" else COLOUR[ROLES[role]] if role else None
    if colour:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=0.5, linewidth=0))
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, linewidth=0.8))
    if text:
        ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size)


def _bytes(size):
    """Bytes as text with a suitable unit: "2.5 MiB", "322 bytes"."""
    return f"{size / MIB:.1f} MiB" if size >= MIB else f"{size:.0f} bytes"
