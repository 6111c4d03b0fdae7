"""Data and still pictures of the explorables in chapters 4 and 5; stills replace them in print."""

from warplab import plots, specs
from warplab.plots import warp_request
from warplab.simt.counters.watch import WarpRequest

SIDE = 256  # of the matrices, as in chapter 4
SECTOR = 32  # bytes


def strides():
    """One warp's load of float32 at four strides and offsets."""
    settings = (("stride 1", 1, 0), ("stride 1, offset 1", 1, 1), ("stride 2", 2, 0), ("stride 8", 8, 0))
    return _requests(
        (
            WarpRequest(0, "global", "read", LANES, offsets, 4, f"an array of float32, {name}")
            for name, stride, offset in settings
            for offsets in [tuple(4 * (lane * stride + offset) for lane in LANES)]
        ),
        "A warp's load of float32 at four strides",
    )


def columns():
    """One warp's load of a column of a shared tile, with rows of 32, 33, 34 and 36 words."""
    return _requests(
        (
            WarpRequest(0, "shared", "read", LANES, tuple(4 * width * lane for lane in LANES), 4, "the tile")
            for width in (32, 33, 34, 36)
        ),
        "A warp's load of a column of tiles 32, 33, 34 and 36 words wide",
    )


LANES = tuple(range(32))


def _requests(requests, alt):
    """The pictures of several requests, one above the other."""
    drawn = [warp_request.svg(r, f"{warp_request.finding(r, r.label)}.") for r in requests]
    return plots.Figure(None, "".join(drawn), alt, None)


def race():
    """The traffic of three kernels with blocks of 16 x 16 threads, and a roof's ridge point."""
    kernels = {"no tile": (False, 1), "tile of 16": (True, 1), "tile of 64, patch of 4 × 4": (True, 4)}
    asked = {name: loaded(SIDE, SIDE, 16, *kernel) for name, kernel in kernels.items()}
    intensity = {name: 2 * SIDE**3 / (n + 4 * SIDE**2) for name, n in asked.items()}
    fig, ax = plots.new(5.2, 2.4)
    colours = [plots.PALETTE[name] for name in ("orange", "blue", "green")]
    ax.barh(range(3), [n / 2**20 for n in asked.values()], height=0.4, color=colours)
    for y, (name, n) in enumerate(asked.items()):
        told = f"{name}: {n / 2**20:g} MiB, {intensity[name]:.1f} FLOP a byte"
        ax.text(0, y - 0.3, told, va="bottom", fontsize=10.5)
    ax.set(ylim=(2.4, -0.75), xlabel="MiB asked for")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    said = "; ".join(f"{name}: {n / 2**20:g} MiB" for name, n in asked.items())
    return plots.show(
        fig, alt=f"Bytes that three kernels ask for to multiply matrices of {SIDE} × {SIDE}. {said}."
    )


def loaded(side, steps, block, tiled, patch):
    """Bytes that a launch loads from global memory in `steps` of the sum, as derived in chapter 4."""
    warps = side * side // patch**2 // 32
    if tiled:
        return warps * -(-steps // block) * 2 * patch * 4 * SECTOR
    return warps * steps * (32 // block + -(-4 * block // SECTOR)) * SECTOR


def roof():
    """The matrices' side, and the roofs of an H100 SXM in FP32; that of L2 is what others measured."""
    h100 = specs.get("h100-sxm")
    facts = {"peak": "peak_fp32", "l1": "l1_bandwidth", "l2": "l2_measured", "memory": "memory_bandwidth"}
    return {"side": SIDE, "name": h100.short} | {name: h100[fact].si for name, fact in facts.items()}
