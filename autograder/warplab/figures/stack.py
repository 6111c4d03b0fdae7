"""Figures of chapter 8: the stack, its stairs, one product down to machine code, queues, overlap, fusion."""

import inspect
import re
import struct
import subprocess
import tempfile

from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from warplab import plots
from warplab.simt.toolchain import ptxas

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
CODE = {"family": "DejaVu Sans Mono", "fontsize": 9.5}
INSTRUCTION = 16  # bytes of one machine instruction since Volta (jia2018)
LIBRARIES = (
    ("products", "cuBLAS, cuBLASLt", "blue"),
    ("convolutions", "cuDNN", "blue"),
    ("attention", "FlashAttention, cuDNN, …", "purple"),
    ("most of the rest", "PyTorch's own kernels", "green"),
    ("what you compile", "Triton, by torch.compile", "green"),
    ("what you write", "numba, CUDA C++, Triton", "green"),
    ("between GPUs", "NCCL", "blue"),
)


@plots.responsive
def stack():
    """The software stack from Python to the SMs, with the libraries side by side."""
    fig, ax = _canvas(4.3, (0, 10), (12.1, -0.1))
    _floor(ax, 0, "your Python", "x @ w", "orange")
    _floor(ax, 1.35, "PyTorch", "operators, autograd, dispatcher", "orange")
    for i, (what, who, colour) in enumerate(LIBRARIES):
        y = 2.75 + 0.92 * i
        _box(ax, 0, y, 3.7, 0.76, None)
        _box(ax, 4.2, y, 5.8, 0.76, COLOUR[colour])
        ax.text(0.2, y + 0.41, what, va="center", **SMALL)
        ax.text(4.4, y + 0.41, who, va="center", **SMALL)
        ax.annotate(
            "",
            (4.2, y + 0.38),
            (3.7, y + 0.38),
            arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0},
        )
    _floor(ax, 9.4, "CUDA runtime, driver", "queues, memory, loading", "grey")
    _floor(ax, 10.75, "GPU", "machine code on the SMs", "grey")
    said = "; ".join(f"{what}: {who}" for what, who, _ in LIBRARIES)
    return plots.show(
        fig,
        alt="The stack of a PyTorch program on an NVIDIA GPU. Python calls PyTorch, whose dispatcher picks, "
        f"side by side: {said}. All of them launch kernels through the CUDA runtime and driver, and the "
        "GPU executes machine code.",
        caption="Not a chain but a switchboard: the operation decides which library's kernel is launched. "
        "Blue: NVIDIA's libraries. Green: kernels by PyTorch's authors, by compilers, or by you; "
        "yours are launched without PyTorch. Attention has a choice.",
    )


@plots.responsive
def stairs(times):
    """Live: times of the same eight multiply-adds done in several ways, and of a large product.

    times: {label: seconds}.
    """
    rows = [plots.Time(label, seconds) for label, seconds in times.items()]
    said = "; ".join(f"{label}: {plots.duration(seconds)}" for label, seconds in times.items())
    return plots.show(
        plots.times(rows),
        alt=f"Times measured on one core of this machine. {said}.",
        caption="Live, one core of this CPU: a 2 × 2 product takes the time of the call and not of its "
        "arithmetic, and each further layer adds its own.",
        evidence=["live"],
    )


@plots.responsive
def levels(kernel, profile):
    """One line of a product at four levels from Python to machine code, with the kernel's size at each level.

    kernel: the compiled numba kernel. profile: warplab.profile of it.
    """
    python = inspect.getsource(kernel.py_func)
    ir = next(iter(kernel.inspect_llvm().values()))
    cubin = assembled(profile.ptx)
    code, sass = machine_code(cubin), [line for line in listing(cubin) if line.startswith("FFMA")]
    rows = (
        ("Python", _line(python, r"acc \+="), f"{len(python):,} characters", "orange"),
        ("NVVM IR", _line(ir, r"= f(mul|add) ").split(", !dbg")[0], f"{len(ir):,} characters", "purple"),
        ("PTX", _line(profile.ptx, r"fma\.rn\.f32"), f"{profile.ptx_instructions:,} instructions", "blue"),
        (
            "SASS",
            sass[0] if sass else f"{code.hex(' ')[:33]} …",
            f"{len(code):,} bytes, {len(code) // INSTRUCTION:,} instructions",
            "green",
        ),
    )
    fig, ax = _canvas(3.9, (0, 10), (8.0, 0))
    for i, (level, line, size, colour) in enumerate(rows):
        y = 0.05 + 2.1 * i
        _box(ax, 0, y, 10, 1.35, COLOUR[colour])
        ax.text(0.2, y + 0.38, level, va="center", weight="bold")
        ax.text(9.8, y + 0.38, size, va="center", ha="right", **SMALL)
        ax.text(0.2, y + 0.97, line[:52], va="center", **CODE)
        if i:
            ax.annotate(
                "",
                (5, y),
                (5, y - 0.75),
                arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0},
            )
            ax.text(5.2, y - 0.38, ("numba", "NVVM", "ptxas")[i - 1], va="center", **SMALL)
    said = "; ".join(f"{level}: {size}, for example {line}" for level, line, size, _ in rows)
    return plots.show(
        fig,
        alt=f"One kernel at four levels, for {profile.arch}. {said}.",
        caption=f"Of {profile.ptx_instructions:,} instructions of PTX the assembler makes "
        f"{len(code) // INSTRUCTION:,} of machine code. The same kernel at four levels, compiled here for "
        f"{profile.arch}, with the line that multiplies and adds"
        + ("." if sass else " (of the machine code the first bytes, since nvdisasm is not installed here)."),
    )


def _line(text, pattern):
    return " ".join(next(line for line in text.splitlines() if re.search(pattern, line)).split())


def assembled(ptx):
    """The ELF file that ptxas makes of the kernel in `ptx`."""
    (kernel,) = re.findall(r"\.entry\s+([\w$]+)", ptx)
    return ptxas.assemble(ptx, kernel).cubin


def machine_code(cubin):
    """The SASS bytes of all kernels in `cubin`: the .text sections of the ELF file."""
    (table,), (entry, count, names) = (
        struct.unpack_from("<Q", cubin, 0x28),
        struct.unpack_from("<HHH", cubin, 0x3A),
    )
    headers = [
        struct.unpack_from("<II4Q", cubin, table + entry * i) for i in range(count)
    ]  # name, type, flags, address, offset, size
    start = headers[names][4]
    return b"".join(cubin[h[4] : h[4] + h[5]] for h in headers if cubin[start + h[0] :].startswith(b".text."))


def listing(cubin):
    """The machine instructions of `cubin` as text, one a line; empty where nvdisasm is not installed."""
    nvdisasm = ptxas.find("nvdisasm")
    if nvdisasm is None:
        return []
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        run = subprocess.run([nvdisasm, "-c", file.name], capture_output=True, text=True, check=True)
    return re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", run.stdout, re.M)


def loads_and_fmas(lines, fmas=4):
    """The order of loads and FMAs in a program, up to FMA number `fmas`, as a string such as "LLFLLF"."""
    kinds = "".join(
        "L" if re.match(r"LDG|ld\.global", line) else "F" if re.match(r"FFMA|fma\.rn\.f32", line) else ""
        for line in lines
    )
    ends = [m.end() for m in re.finditer("F", kinds)]
    return kinds[: ends[min(fmas, len(ends)) - 1]] if ends else ""


@plots.responsive
def order(profile):
    """Loads and FMAs of the unrolled loop in program order, in PTX and in machine code."""
    orders = {
        "PTX": loads_and_fmas(profile.ptx.replace("\t", "").splitlines()),
        "SASS": loads_and_fmas(listing(assembled(profile.ptx))),
    }
    fig, ax = _canvas(1.7, (-2.0, 12.2), (2.5, -0.2))
    for y, (name, kinds) in enumerate(orders.items()):
        ax.text(-0.3, 1.25 * y + 0.4, name, ha="right", va="center", weight="bold")
        for x, kind in enumerate(kinds):
            _box(ax, x, 1.25 * y, 0.86, 0.8, COLOUR["blue" if kind == "L" else "orange"])
            ax.text(x + 0.43, 1.25 * y + 0.42, kind, ha="center", va="center")
        if not kinds:
            ax.text(
                0,
                1.25 * y + 0.4,
                "nvdisasm is not installed here",
                va="center",
                style="italic",
                color=COLOUR["grey"],
            )
    said = "; ".join(f"{name}: {kinds or 'not known here'}" for name, kinds in orders.items())
    return plots.show(
        fig,
        alt=f"Order of loads, L, and fused multiply-adds, F, in the unrolled loop. {said}.",
        caption="PTX keeps the order of the Python; the assembler moves the loads ahead, so that their "
        "latencies overlap. Loads (L) and FMAs (F) of the unrolled loop, everything else left out.",
    )


def queue(launch, run, count, graph=False):
    """A model of `count` kernels being launched and run: two lists of (start, end), in the units of `launch`.

    The host takes `launch` for each launch and never waits; the device runs each for `run`, in order. graph:
    one launch for all.
    """
    host = [(0.0, launch)] if graph else [(i * launch, (i + 1) * launch) for i in range(count)]
    device, free = [], 0.0
    for i in range(count):
        start = max(free, host[0 if graph else i][1])
        free = start + run
        device.append((start, free))
    return host, device


@plots.responsive
def queues(launch=5, count=8):
    """Three queues to one scale, in microseconds: short kernels, longer kernels, short kernels as a graph."""
    cases = (
        ("kernels of 2 µs", 2, False),
        ("kernels of 10 µs", 10, False),
        ("kernels of 2 µs, one graph", 2, True),
    )
    fig, axes = plots.new(plots.COLUMN, 3.9, rows=3, sharex=True)
    said = []
    for ax, (title, run, graph) in zip(axes, cases, strict=True):
        host, device = queue(launch, run, count, graph)
        for y, spans, colour in ((0, host, "orange"), (1, device, "blue")):
            for start, end in spans:
                ax.add_patch(
                    Rectangle(
                        (start, y - 0.32),
                        end - start,
                        0.64,
                        facecolor=COLOUR[colour],
                        edgecolor=plots.PAPER,
                        linewidth=1.2,
                    )
                )
        ax.plot([host[-1][1]] * 2, [-0.45, 1.45], color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
        busy = count * run / device[-1][1]
        ax.set_title(f"{title}: done at {device[-1][1]:g} µs", loc="left", fontsize=11)
        ax.set(ylim=(1.6, -0.6), xlim=(0, 90))
        ax.set_yticks([0, 1], ["host", "device"])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        said.append(
            f"{title}: the last launch returns at {host[-1][1]:g}, the device is done at {device[-1][1]:g} "
            f"and busy {busy:.0%} of the time"
        )
    axes[-1].set_xlabel("µs (a model)")
    return plots.show(
        fig,
        alt=f"A model of {count} launches at {launch} µs each, in microseconds. {'. '.join(said)}.",
        caption="With short kernels the device waits for launches, long ones queue up, and a graph is "
        "launched once. The dashed line is where a timer stops that does not wait. A model, no measurement.",
    )


def pipeline(pieces, stages, overlap):
    """A model of when each stage of each piece runs: [piece][stage] = (start, end).

    stages: durations of copy in, run, copy out; each has its own engine, which works in order. Without
    `overlap` everything is in one stream, so each operation waits for the one before it.
    """
    done, engines, last = [], [0.0] * len(stages), 0.0
    for _ in range(pieces):
        row, ready = [], 0.0 if overlap else last
        for stage, duration in enumerate(stages):
            start = max(ready, engines[stage])
            ready = engines[stage] = start + duration
            row.append((start, ready))
        last = ready
        done.append(row)
    return done


@plots.responsive
def overlap(pieces=4, stages=(2, 3, 2)):
    """One stream against a stream for each piece, in milliseconds."""
    fig, axes = plots.new(plots.COLUMN, 3.5, rows=2, sharex=True)
    colours = ("blue", "orange", "green", "purple")
    ends = []
    for ax, (title, apart) in zip(
        axes, (("one stream", False), ("a stream for each piece", True)), strict=True
    ):
        plan = pipeline(pieces, stages, apart)
        ends.append(plan[-1][-1][1])
        for piece, row in enumerate(plan):
            for y, (start, end) in enumerate(row):
                ax.add_patch(
                    Rectangle(
                        (start, y - 0.38),
                        end - start,
                        0.76,
                        facecolor=COLOUR[colours[piece % 4]],
                        alpha=0.75,
                        edgecolor=plots.PAPER,
                    )
                )
                ax.text((start + end) / 2, y, str(piece + 1), ha="center", va="center", color=INK, **SMALL)
        ax.set_title(f"{title}: done at {ends[-1]:g} ms", loc="left", fontsize=11)
        ax.set(ylim=(2.6, -0.6), xlim=(0, 30))
        ax.set_yticks(range(3), ["copy in", "run", "copy out"])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    axes[-1].set_xlabel("ms (a model)")
    return plots.show(
        fig,
        alt=f"{pieces} pieces, each copied in for {stages[0]} ms, worked on for {stages[1]} ms and copied "
        f"out for {stages[2]} ms. In one stream the last is done at {ends[0]:g} ms. With a stream for "
        "each piece the three engines work on different pieces at once and the last is done at "
        f"{ends[1]:g} ms.",
        caption=f"A model: with a stream for each piece the copies run beside the kernels, and the job takes "
        f"{ends[1]:g} ms instead of {ends[0]:g}. The numbers are pieces. Inside a stream the order holds; "
        "different streams may use the two copy engines and the SMs at the same time.",
    )


@plots.responsive
def fusion(profiles):
    """Sectors requested by several kernels and by a fused one.

    profiles: {name: Profile}, the fused one last.
    """
    fig, ax = plots.new(plots.COLUMN, 2.2)
    *steps, fused = profiles.items()
    totals = []
    for y, row in enumerate((steps, [fused])):
        left = 0
        for name, p in row:
            first = left
            for part, colour in ((p.global_load.sectors, "blue"), (p.global_store.sectors, "orange")):
                ax.barh(
                    y,
                    part,
                    left=left,
                    height=0.5,
                    color=COLOUR[colour],
                    alpha=0.8,
                    edgecolor=plots.PAPER,
                    linewidth=1.5,
                )
                left += part
            ax.text(first, y - 0.31, name, va="bottom", **SMALL)
        ax.annotate(f"{left:,}", (left, y), (5, 0), textcoords="offset points", va="center", **SMALL)
        totals.append(left)
    ax.set(xlim=(0, totals[0] * 1.17), ylim=(1.45, -0.75), xlabel="sectors of 32 bytes asked for")
    ax.set_yticks([0, 1], ["three", "one"])
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=COLOUR[colour], alpha=0.8) for colour in ("blue", "orange")]
    plots.legend(fig, handles, ["loads", "stores"])
    said = "; ".join(
        f"{name}: {p.global_load.sectors:,} loaded, {p.global_store.sectors:,} stored"
        for name, p in profiles.items()
    )
    return plots.show(
        fig,
        alt=f"Sectors of bias and GELU in three kernels and in one. {said}. {totals[0]:,} in all against "
        f"{totals[1]:,}.",
        caption=f"Counted: one kernel asks for {totals[1]:,} sectors where three ask for {totals[0]:,}, "
        f"{totals[0] / totals[1]:.2f} times as many. What the three hand to each other is stored and "
        "fetched again.",
        evidence=["counted"],
    )


def _canvas(height, xlim, ylim):
    """An empty drawing, a column wide, whose coordinates are the drawing's own."""
    fig, ax = plots.new(plots.COLUMN, height)
    ax.set(xlim=xlim, ylim=ylim)
    ax.set_axis_off()
    return fig, ax


def _box(ax, x, y, width, height, colour):
    if colour:
        ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=0.22, linewidth=0))
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, linewidth=1.1))


def _floor(ax, y, name, does, colour):
    _box(ax, 0, y, 10, 1.0, COLOUR[colour])
    ax.text(0.2, y + 0.53, name, va="center", weight="bold")
    ax.text(9.8, y + 0.53, does, va="center", ha="right", **SMALL)


KINDS = {
    "linear": "blue",
    "mm": "blue",
    "gelu": "purple",
    "sum": "gold",
}  # of an operator's name; all others are grey


@plots.responsive
def trace(events):
    """Who ran when: the operators of a profile that no other operator called, a row for each name."""
    called = [
        event
        for event in events
        if event.name.startswith("aten::")
        and not (event.cpu_parent and event.cpu_parent.name.startswith("aten::"))
    ]
    start = min(event.time_range.start for event in events)
    end = max(event.time_range.end for event in events)
    totals = {}
    for event in called:
        totals[event.name] = totals.get(event.name, 0) + event.time_range.elapsed_us()
    names = sorted(totals, key=lambda name: totals[name], reverse=True)[:6]
    fig, ax = plots.new(plots.COLUMN, 2.7)
    for y, name in enumerate(names):
        spans = [
            ((event.time_range.start - start) / 1e3, event.time_range.elapsed_us() / 1e3)
            for event in called
            if event.name == name
        ]
        colour = next((colour for kind, colour in KINDS.items() if kind in name), "grey")
        ax.broken_barh(spans, (y - 0.35, 0.7), facecolor=COLOUR[colour], linewidth=0)
    ax.set_yticks(range(len(names)), [name.removeprefix("aten::") for name in names])
    ax.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, (end - start) / 1e3), xlabel="ms since the step began")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    busy = sum(totals.values()) / (end - start)
    said = ", ".join(f"{name.removeprefix('aten::')} {totals[name] / 1e3:.2f} ms" for name in names)
    return plots.show(
        fig,
        alt=f"Timeline of one training step, measured here: {said}, of {(end - start) / 1e3:.2f} ms in all. "
        "Products come first in the forward pass and again in the backward pass.",
        caption=f"Live: operators are at work for {busy:.0%} of the step; the rest is dispatch, autograd and "
        "the profiler itself. The rows are the operators that took longest.",
        evidence=["live"],
    )
