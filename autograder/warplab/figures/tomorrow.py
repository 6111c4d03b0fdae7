"""Figures of chapter 14, and what each kernel of its ladder of products for Hopper moves and issues.

The kernels are those of the experiment, evidence/experiments/hopper_ladder.cu.
"""

from dataclasses import dataclass

import yaml
from matplotlib.patches import Rectangle

from warplab import plots, specs
from warplab.evidence.experiments.hopper import BOX, RUNGS
from warplab.evidence.measure import RESULTS, published
from warplab.figures.precision import rate_bar, recorded_on, said_with_software

INK, COLOUR = plots.INK, plots.PALETTE
SMALL = {"fontsize": 10.5}
LABELS = {  # {rung (a kernel of the ladder): its name and what it changes}
    "threads_copy": "1 all threads copy, mma",
    "one_thread_copies": "2 one thread copies, mma",
    "warpgroup_multiplies": "3 one thread copies, wgmma",
    "roles_apart": "4 roles apart",
    "a_cluster_shares": "5 a cluster shares",
}
DEEP, BF16 = BOX[0], 2  # numbers of k in a stage; bytes of one


@dataclass(frozen=True)
class StageCounts:
    """The work of a block in one stage of 64 numbers of k, derived by hand: bytes, operations, instructions.

    ``from_l2``: bytes that L2 delivers for the block; half of a multicast. ``asked``: instructions that
    request copies. ``products``: matrix instructions. ``loads``: instructions that load their operands into
    registers.
    """

    flops: int
    from_l2: int
    into_shared: int
    out_of_shared: int
    asked: int
    loads: int
    products: int

    def each(self, what: str) -> float:
        """A field's value for a thousand operations."""
        return 1000 * getattr(self, what) / self.flops


def step(name: str) -> StageCounts:
    """The StageCounts of a rung."""
    rows, cols, threads, _, mapped = RUNGS[name]
    warps, deep = threads // 32, DEEP // 16
    flops, tiles = 2 * rows * cols * DEEP, (rows + cols) * DEEP * BF16
    shared = cols * DEEP * BF16 // 2 if name == "a_cluster_shares" else 0  # the other block requests it
    boxes = (rows + cols) // BOX[1]
    asked = boxes if mapped else tiles // 16 // 32
    if name in (
        "threads_copy",
        "one_thread_copies",
    ):  # a warp: 64 x 32 by m16n8k16, six ldmatrix of 512 bytes
        loads = warps * deep * 6
        return StageCounts(flops, tiles, tiles, loads * 512, asked, loads, warps * deep * 4 * 4)
    groups = rows // 64 * deep  # wgmma: each reads 64 rows of a and all columns of b, 16 deep
    read = groups * (64 + cols) * 16 * BF16
    return StageCounts(flops, tiles - shared, tiles, read, asked - bool(shared), 0, groups * 4)


def steps() -> dict[str, StageCounts]:
    return {name: step(name) for name in RUNGS}


def profiled() -> dict[str, dict]:
    """Nsight Compute's counts of one launch of each rung and of the library.

    Bytes for 1,000 operations: ``into_sms``, ``from_l2``, ``shared``, ``hbm``. ``l2_a_clock``: bytes that L2
    reads in a clock of the SMs. ``instructions``: for a million operations. ``busy``: the share of time in
    which Tensor Cores are busy. ``per_clock``: operations in a busy clock.
    """
    table = yaml.safe_load((RESULTS / "climbed.yml").read_text(encoding="utf-8"))
    work, sms = 2 * table["side"] ** 3, specs.get(table["card"])["sms"].value
    return {
        name: {
            "kernel": row["kernel"],
            "into_sms": 1000 * row["into_sms"] / work,
            "from_l2": 1000 * 32 * row["l2_read_sectors"] / work,
            "l2_a_clock": 32 * row["l2_read_sectors"] / row["cycles"],
            "shared": 1000 * 128 * row["shared_wavefronts"] / work,
            "hbm": 1000 * row["hbm_read"] / work,
            "instructions": 1e6 * row["instructions"] / work,
            "busy": row["tensor_active"] / 100,
            "per_clock": work / sms / row["cycles"] / row["tensor_active"] * 100,
        }
        for name, row in table["kernels"].items()
    }


@plots.responsive
def levels(card="h100-sxm"):
    """Bytes that each rung moves for a thousand operations, into the SMs and in shared memory."""
    facts, found = specs.get(card), steps()
    per_clock = facts["peak_bf16"].si / facts["sms"].value / facts["tensor_clock"].si
    port = 1000 * 128 / per_clock
    fig, (left, right) = plots.new(plots.COLUMN, 3.0, phone=(plots.PHONE, 6.0), columns=2)
    said = []
    for y, (name, one) in enumerate(found.items()):
        asked, moved = one.each("from_l2"), (one.each("out_of_shared"), one.each("into_shared"))
        left.barh(y, asked, 0.62, color=COLOUR["blue"], alpha=0.8)
        left.text(asked + 0.3, y, f"{asked:.1f}", va="center", **SMALL)
        right.barh(y, moved[0], 0.62, color=COLOUR["green"], alpha=0.8)
        right.barh(y, moved[1], 0.62, left=moved[0], color=COLOUR["orange"], alpha=0.8)
        right.text(sum(moved) + 2, y, f"{moved[0]:.0f} + {moved[1]:.0f}", va="center", **SMALL)
        said.append(
            f"{LABELS[name]}: {asked:.1f} from L2, {moved[0]:.0f} read in shared memory and "
            f"{moved[1]:.0f} written"
        )
    right.axvline(port, color=INK, linewidth=2)
    for ax, title, most in ((left, "asked of L2", 21), (right, "shared memory: read + written", 96)):
        ax.set(xlim=(0, most), ylim=(len(found) - 0.4, -0.6))
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("bytes for 1,000 operations")
    names = [label[:1] for label in LABELS.values()] if plots.on_phone() else list(LABELS.values())
    left.set_yticks(range(len(names)), names)
    right.set_yticks(range(len(names)), names if plots.on_phone() else [""] * len(names))
    return plots.show(
        fig,
        alt=f"Bytes moved for a thousand operations by five kernels. {'; '.join(said)}. At the BF16 peak of "
        f"an {facts.short} the port of shared memory has {port:.1f}.",
        caption="With mma shared memory cannot deliver the reads (green) of the peak, with wgmma it can. The "
        f"vertical line is 128 bytes a clock at the {facts.short}'s dense BF16 peak. Whether writes (orange) "
        f"wait for reads NVIDIA does not say. Derived from the tiles: {'; '.join(LABELS.values())}.",
        evidence=["theory"],
    )


# What is busy when, in each of three organisations: (row, begin, end, colour); the unit is arbitrary.
PLANS = {
    "all threads copy and multiply (1)": [
        *(("threads", 5 * i, 5 * i + 1.2, "orange") for i in range(3)),
        *(("threads", 5 * i + 1.2, 5 * i + 4.6, "blue") for i in range(3)),
        *(("copies", 5 * i + 1.2, 5 * i + 3.6, "green") for i in range(3)),
        *(("Tensor Cores", 5 * i + 1.6, 5 * i + 4.6, "purple") for i in range(3)),
    ],
    "one thread copies, a warpgroup multiplies (3)": [
        *(("threads", 4 * i, 4 * i + 0.2, "orange") for i in range(4)),
        *(("threads", 4 * i + 0.2, 4 * i + 0.5, "blue") for i in range(4)),
        *(("copies", 4 * i + 0.2, 4 * i + 2.6, "green") for i in range(4)),
        *(("Tensor Cores", 4 * i + 0.5, 4 * i + 3.5, "purple") for i in range(4)),
    ],
    "roles apart, a ring of stages (4, 5)": [
        *(("threads", 3 * i, 3 * i + 0.2, "orange") for i in range(5)),
        *(("threads", 3 * i + 0.5, 3 * i + 0.8, "blue") for i in range(5)),
        *(("copies", 3 * i + 0.2, 3 * i + 2.6, "green") for i in range(5)),
        ("Tensor Cores", 0.8, 15, "purple"),
    ],
}
ROWS = ("threads", "copies", "Tensor Cores")


@plots.responsive
def roles():
    """A schematic of three ways to organise a product: which parts are busy when."""
    fig, axes = plots.new(plots.COLUMN, 4.6, rows=len(PLANS), sharex=True)
    for ax, (title, parts) in zip(axes, PLANS.items(), strict=True):
        for row, begin, end, colour in parts:
            ax.barh(ROWS.index(row), end - begin, 0.66, left=begin, color=COLOUR[colour], alpha=0.85)
        ax.set_yticks(range(len(ROWS)), ROWS)
        ax.set(xlim=(0, 15), ylim=(len(ROWS) - 0.4, -0.6), xticks=[])
        ax.set_title(title, loc="left", fontsize=11)
    axes[-1].set_xlabel("time, in no unit")
    handles = [
        Rectangle((0, 0), 1, 1, color=COLOUR[c], alpha=0.85) for c in ("orange", "blue", "green", "purple")
    ]
    plots.legend(fig, handles, ["asks for a copy", "issues products", "bytes under way", "multiplying"])
    return plots.show(
        fig,
        alt="Three schematic timelines of threads, copies and Tensor Cores. Where all threads copy and "
        "multiply, asking for copies takes time and the Tensor Cores pause in every round. Where one "
        "thread asks and a warpgroup issues products, asking is short, but the Tensor Cores still pause "
        "between rounds. With separate roles and a ring of stages they do not pause.",
        caption="With roles apart the Tensor Cores do not pause. In the others a pause is filled by another "
        "block where several fit on an SM; the larger the tiles, the fewer fit. A schematic, not measured.",
        evidence=["theory"],
    )


@plots.responsive
def climb(side: int, device: str, card: str):
    """TFLOP/s of each rung as recorded, beside the library's, another author's and the dense peak."""
    (own,), (others,) = recorded_on(device, "hopper_ladder"), published("hopper_ladder")
    peak = specs.get(card)["peak_bf16"].si / 1e12
    rates = {p.series: p.rate / 1e12 for e in (own, others) for p in e.points if p.x == side}
    rows = [(f"course: {name}", label, "blue") for name, label in LABELS.items()]
    rows += [
        ("torch bf16", "cuBLAS, by torch", "orange"),
        ("best by hand, BF16", "fast.cu, published", "green"),
    ]
    best = max(rates[f"course: {name}"] for name in LABELS)
    fig, ax = plots.new(plots.COLUMN, 3.6)
    said = []
    for y, (series, label, colour) in enumerate(rows):
        text = f"{rates[series]:,.0f}, {rates[series] / peak:.0%}"
        rate_bar(ax, y, rates[series], colour, peak, text, behind=True)
        said.append(f"{label}: {text}")
    ax.set_yticks(range(len(rows)), [label for _, label, _ in rows])
    ax.set(xlim=(0, 1500), ylim=(len(rows) - 0.4, -0.6), xlabel="TFLOP/s")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return plots.show(
        fig,
        alt=f"Products of side {side:,} in BF16, in TFLOP/s and as a share of the dense peak of {peak:,.0f}. "
        f"{'; '.join(said)}.",
        caption=f"The fastest kernel of ours reaches {100 * best / peak:.0f} % of the dense BF16 peak "
        "(vertical line), cuBLAS"
        f" {100 * rates['torch bf16'] / peak:.0f} %. Side {side:,}. The green bar is another "
        f"author's, on an H100. {said_with_software(own)}",
        evidence=["recorded", "published"],
    )
