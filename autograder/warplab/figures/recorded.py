"""Captions of figures of our records: sentences with numbers and comparisons computed from the record."""

from warplab.evidence.measure import place
from warplab.evidence.roofs import roof
from warplab.evidence.side_by_side import model
from warplab.plots.evidence import duration
from warplab.plots.measured import in_words

FINDINGS = {}
ASKED = {"crossover": "How long does a call take on the GPU, by its size?"}  # a record holds no CPU's times


def finding(measurement, device=None):
    """ "H100: one kernel is 3.6 times as fast as separate ones." of the first record, or of that of `device`;
    empty where there is none, or where it lacks a point that the sentence needs.
    """
    for evidence in measurement.evidence:
        if evidence.kind not in ("recorded", "contributed") or device not in (None, evidence.device):
            continue
        if measurement.name in FINDINGS:
            try:
                return f"{model(evidence.device)}: {FINDINGS[measurement.name](Taken(evidence))}"
            except LookupError:
                return ""
    return ""


class Taken:
    """The points of one record. Raises LookupError for a point that it lacks."""

    def __init__(self, evidence):
        self.device, self.series = evidence.device, evidence.series()

    def at(self, series, x):
        return {p.x: p for p in self.series[series]}[x]

    def first(self, series):
        return min(self.series[series], key=lambda p: p.x)

    def last(self, series):
        return max(self.series[series], key=lambda p: p.x)

    def largest(self, *names):
        """The largest x that all these series have."""
        shared = set.intersection(*({p.x for p in self.series[name]} for name in names))
        return sorted(shared)[-1]

    def of_peak(self, point):
        """A point's rate as a share of the peak that it names."""
        peak = roof(self.device, point.roof)
        if not peak:
            raise LookupError(point.roof)
        return f"{percent(point.rate / peak)} of the {point.roof.upper()} peak"


def found(name):
    """Decorator: register a function from Taken to the sentence on the experiment `name`."""

    def register(say):
        FINDINGS[name] = say
        return say

    return register


def compared(ours, theirs):
    """How paired times compare, in words with the verb: "is 3.6 to 4.6 times as fast as"."""
    ratios = sorted(other / one for one, other in zip(ours, theirs, strict=True))
    if 0.95 < ratios[0] and ratios[-1] < 1.05:
        return "is as fast, within 5 %, as"
    if ratios[0] >= 1:
        return f"is {span(ratios)} times as fast as"
    longer = sorted(1 / ratio for ratio in ratios)
    return f"takes {span(longer)} times as long as"


def span(sorted_numbers):
    ends = [f"{n:.1f}" if n < 99.5 else f"{n:,.0f}" for n in (sorted_numbers[0], sorted_numbers[-1])]
    return " to ".join(dict.fromkeys(ends))


def digits(number):
    """A number with three significant digits, or all digits before the point."""
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.3g}"


def percent(share):
    """A share as text: "86 %", "2.1 %"."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.2g} %"


def speed(point):
    """A point's rate as text: "2.42 TB/s", or in TFLOP/s for arithmetic."""
    unit = "FLOP/s" if point.flops and point.roof not in ("memory", "pcie") else "B/s"
    size, prefix = (1e12, "T") if point.rate >= 1e12 else (1e9, "G")
    return f"{digits(point.rate / size)} {prefix}{unit}"


def listed(parts):
    if not parts:
        raise LookupError("nothing to list")
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


@found("crossover")
def _(t):
    points = sorted(t.series["cuda: addition"], key=lambda p: p.x)
    flat = points[0]
    for p in points:
        if p.median > 1.1 * points[0].median:
            break
        flat = p
    alone = "" if any(name.startswith("cpu") for name in t.series) else " The record has no CPU beside it."
    return (
        f"an addition takes {duration(points[0].median)} for {place(points[0])} numbers, at most a tenth "
        f"longer up to {place(flat)}, and {duration(points[-1].median)} for {place(points[-1])}.{alone}"
    )


@found("occupancy")
def _(t):
    one = max(t.series["a load at a time"], key=lambda p: p.rate)
    enough = sorted(p.x for p in t.series["four loads at a time"] if p.rate >= one.rate)
    best = max(t.series["four loads at a time"], key=lambda p: p.rate)
    four = (
        f"reach as much from {enough[0]:g} warps on, and {speed(best)} at best"
        if enough
        else "never reach as much"
    )
    return (
        f"with one load under way in each thread, {one.x:g} warps reach {speed(one)}, read and written. "
        f"Four loads a thread {four}."
    )


@found("divergence")
def _(t):
    most = t.last("the same arithmetic")
    ratio = most.median / t.at("the same arithmetic", 1).median
    return f"{most.x:g} paths in a warp take {digits(ratio)} times as long as one."


@found("reduction")
def _(t):
    x = t.largest("reduce_atomic", "reduce_tree", "reduce_shuffle")
    atomic, tree, shuffle = (t.at(f"reduce_{how}", x) for how in ("atomic", "tree", "shuffle"))
    return (
        f"{place(atomic)} numbers take {duration(atomic.median)} with an atomic for each, "
        f"{duration(tree.median)} with a tree in each block and {duration(shuffle.median)} with shuffles."
    )


@found("matmul_by_size")
def _(t):
    ours = [f"course: matmul_{how}" for how in ("naive", "register_tiled")]
    x = t.largest(*ours, "torch fp32", "torch bf16")
    naive, patch, fp32, bf16 = (t.at(name, x) for name in (*ours, "torch fp32", "torch bf16"))
    apart = max(abs(p.rate / t.at("torch bf16", p.x).rate - 1) for p in t.series["torch fp16"])
    return (
        f"at a side of {place(naive)} the naive kernel reaches {t.of_peak(naive)}, the register tile "
        f"{t.of_peak(patch)}, PyTorch {t.of_peak(fp32)} and {t.of_peak(bf16)}. TF32, BF16 and FP16 are "
        "formats of the Tensor Cores. FP16 is not drawn: it is within "
        f"{percent(apart)} of BF16 at every side."
    )


@found("latency")
def _(t):
    sizes = ((1 << 12, "4 KiB"), (1 << 22, "4 MiB"), (1 << 30, "1 GiB"))
    said = [f"{duration(t.at('one thread', x).median)} from a table of {words}" for x, words in sizes]
    return f"a load takes {listed(said)}."


@found("host_device_transfer")
def _(t):
    x = t.largest("pinned, to the device", "pageable, to the device")
    pinned, pageable = (t.at(f"{kind}, to the device", x) for kind in ("pinned", "pageable"))
    return (
        f"{x / 1e6:,.0f} MB go to the device at {speed(pinned)} from pinned memory and at "
        f"{speed(pageable)} from pageable memory."
    )


@found("copy_bandwidth")
def _(t):
    ends = [t.first("copy kernel"), t.at("copy kernel", 8), t.last("copy kernel")]
    said = listed([f"{speed(p)} at a stride of {p.x:g}" for p in ends])
    return f"the copy kernel moves {said}, counting only the numbers asked for."


@found("random_reads")
def _(t):
    x = t.largest("in order", "at random")
    random, order = (t.at(name, x) for name in ("at random", "in order"))
    said = compared([random.median], [order.median])
    return f"from a table of {x / 2**30:.3g} GiB, reading at random {said} reading in order."


@found("transpose")
def _(t):
    x = t.largest("transpose_naive", "transpose_tiled", "transpose_padded")
    naive, tiled, padded = (t.at(f"transpose_{how}", x).median for how in ("naive", "tiled", "padded"))
    return (
        f"at a side of {x:,.0f} the tile {compared([tiled], [naive])} the naive kernel. The padded tile "
        f"{compared([padded], [naive])} the naive kernel."
    )


@found("softmax")
def _(t):
    one, four = (
        t.series["cuda: one kernel"],
        [t.at("cuda: four steps", p.x) for p in t.series["cuda: one kernel"]],
    )
    said = compared([p.median for p in one], [p.median for p in four])
    return f"one kernel {said} separate ones, from {place(t.first('cuda: one kernel'))} to " + (
        f"{place(t.last('cuda: one kernel'))} columns."
    )


@found("rooflines")
def _(t):
    low, high = t.first("multiply-adds in a chain"), t.last("multiply-adds in a chain")
    bandwidth = roof(t.device, "memory")
    if not bandwidth:
        raise LookupError("memory")
    share = low.bytes / low.median / bandwidth
    return (
        f"at {low.x:g} FLOP a byte the multiply-adds use {percent(share)} of the peak bandwidth. At "
        f"{high.x:g} FLOP a byte they reach {t.of_peak(high)}, and the register-tiled product reaches "
        f"{t.of_peak(t.last('matmul_register_tiled'))}."
    )


@found("attention")
def _(t):
    x = t.largest("cuda: matrix stored", "cuda: fused")
    stored, fused = (t.at(f"cuda: {how}", x).median for how in ("matrix stored", "fused"))
    return f"{x:,.0f} tokens take {duration(stored)} with the matrix stored and {duration(fused)} without it."


@found("hopper_ladder")
def _(t):
    ours = [name for name in t.series if name.startswith("course: ")]
    x = t.largest(*ours, "torch bf16")
    first = t.at(ours[0], x)
    best = max(ours, key=lambda name: t.at(name, x).rate)
    theirs = t.at("torch bf16", x)
    share = t.at(best, x).rate / theirs.rate
    return (
        f"at a side of {x:,.0f} the first kernel makes {speed(first)} and the fastest, "
        f"“{in_words(best)}”, {speed(t.at(best, x))}. That is {percent(share)} of PyTorch's {speed(theirs)}."
    )


@found("checkpointing")
def _(t):
    none = t.first("no checkpoints")
    name, least = min(((name, t.first(name)) for name in t.series), key=lambda pair: pair[1].x)
    return (
        f"without checkpoints a step holds {digits(none.x)} GB and takes {duration(none.median)}. The least "
        f"is {digits(least.x)} GB, in {duration(least.median)}, with {name}."
    )


@found("training_memory")
def _(t):
    said = [f"{name.removesuffix(', Adam')}: {digits(t.first(name).x)} GB" for name in t.series]
    return f"what a step holds at its peak, with Adam. {'; '.join(said)}."


@found("memory_by_part")
def _(t):
    x = t.largest(*t.series)
    said = [f"{name} {digits(t.at(name, x).median / 1e9)} GB" for name in t.series]
    return f"with {x:g} sequences in the batch, {listed(said)}."


@found("training_by_format")
def _(t):
    x = t.largest(*t.series)
    full = t.at("fp32", x).median
    said = [
        f"{name.upper()} {compared([t.at(name, x).median], [full])} FP32"
        for name in t.series
        if name != "fp32"
    ]
    return f"for a step at a width of {x:,.0f}, {listed(said)}."


@found("matmul_in_eight_bits")
def _(t):
    x = t.largest(*t.series)
    wmma, int8, fp8 = (t.at(name, x) for name in ("course: WMMA, fp16", "torch int8", "torch fp8"))
    return (
        f"at a side of {x:,.0f} PyTorch reaches {t.of_peak(int8)} and {t.of_peak(fp8)}, and the WMMA kernel "
        f"without tiling {t.of_peak(wmma)}."
    )


@found("launch_overhead")
def _(t):
    said = [f"{in_words(name)}: {duration(t.first(name).median)}" for name in t.series]
    return f"time of an empty launch. {'; '.join(said)}."


@found("stream_overlap")
def _(t):
    best = min(t.series["a stream a piece"], key=lambda p: p.median)
    whole = t.at("one stream", 1).median
    return (
        f"{best.x:g} pieces, each in a stream of its own, take {duration(best.median)}. That "
        f"{compared([best.median], [whole])} one piece in one stream."
    )


@found("graph_replay")
def _(t):
    x = t.largest("launched one by one", "one graph")
    apart, graph = (t.at(name, x).median / x for name in ("launched one by one", "one graph"))
    said = f"{duration(apart)} launched one by one and {duration(graph)} in a graph"
    return f"of {x:,.0f} kernels in a row each takes {said}."


@found("bias_and_gelu")
def _(t):
    x = t.largest("the formula, six operators", "bias, then F.gelu", "one kernel")
    six, two, one = (
        t.at(name, x).median for name in ("the formula, six operators", "bias, then F.gelu", "one kernel")
    )
    return (
        f"for {x:,.0f} numbers one kernel {compared([one], [six])} six operators. It "
        f"{compared([one], [two])} two operators."
    )


@found("decode_batch")
def _(t):
    points = [t.first("cuda: a step"), t.at("cuda: a step", 128), t.last("cuda: a step")]
    return f"a step takes {listed([f'{duration(p.median)} for a batch of {p.x:g}' for p in points])}."


@found("prefill_and_decode")
def _(t):
    x = t.largest("cuda: prefill", "cuda: decode")
    prompt, token = (t.at(f"cuda: {what}", x).median for what in ("prefill", "decode"))
    return f"a prompt of {x:,.0f} tokens takes {duration(prompt)}, one token after it {duration(token)}."


@found("energy")
def _(t):
    return f"joules a call: {'; '.join(f'{name} {digits(t.first(name).x)}' for name in t.series)}."
