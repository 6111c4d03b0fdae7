"""Captions of figures of published measurements: sentences with numbers computed from `published.yml`."""

from warplab.evidence.measure import published
from warplab.evidence.side_by_side import model
from warplab.figures.recorded import compared, digits, listed, percent, span, speed
from warplab.plots.evidence import duration

FINDINGS = {}


def finding_of_others(name):
    """The sentence on published results of the experiment `name`; "" if none is written yet."""
    return FINDINGS[name](Others(published(name))) if name in FINDINGS else ""


class Others:
    """The numbers of several published sources. Raises LookupError for a number that none has."""

    def __init__(self, sources):
        self.sources = [(model(e.device.split(",")[0]), e.series()) for e in sources]
        self.devices = {}
        for device, series in self.sources:
            self.devices.setdefault(device, {}).update(series)

    def series(self, device, series):
        """{x: Point} of one device."""
        return {p.x: p for p in self.devices[device][series]}

    def last(self, device, series):
        return max(self.devices[device][series], key=lambda p: p.x)


def found(name):
    """Decorator: register a function from Others to the sentence on the experiment `name`."""

    def register(say):
        FINDINGS[name] = say
        return say

    return register


@found("crossover")
def _(o):
    gpu, copies, cpu = (
        o.series("GTX 1070 Ti", name)
        for name in ("GPU: product", "GPU: product, with both copies", "six cores: product")
    )
    wins = min(x for x in cpu if all(copies[more].median < cpu[more].median for more in cpu if more >= x))
    before = max(x for x in cpu if x < wins)
    side, next_side = (f"{(x / 2) ** (1 / 3):,.0f}" for x in (before, wins))
    times = [duration(row[before].median) for row in (gpu, copies, cpu)]
    return (
        f"GTX 1070 Ti: a product of side {side} takes {times[0]}, or {times[1]} with the copies there and "
        f"back. Six CPU cores take {times[2]}. From side {next_side} on the GPU wins even with the copies."
    )


@found("occupancy")
def _(o):
    shares, rates = [], []
    for device, series in o.devices.items():
        row = {p.x: p for p in series["a load at a time"]}
        shares.append(f"{percent(row[32].rate / row[64].rate)} on the {device}")
        rates.append(speed(row[64]))
    return (
        f"Of the bandwidth that 64 warps reach with one load a thread, 32 warps reach {listed(shares)}. "
        f"The 64 warps reach {listed(rates)}."
    )


@found("divergence")
def _(o):
    lanes = o.series("GTX 1070 Ti", "lanes disagree")
    warps = o.last("GTX 1070 Ti", "whole warps disagree")
    most, alone = lanes[max(lanes)], lanes[1].median
    return (
        f"GTX 1070 Ti: {most.x:g} paths within each warp take {digits(most.median / alone)} times as long as "
        f"one path, and {warps.x:g} paths, each in whole warps, {digits(warps.median / alone)} times as long."
    )


@found("reduction")
def _(o):
    names = ("an atomic a number", "a tree in shared memory", "by shuffles, several loads a thread")
    rates = [speed(o.last("RTX 4090", name)) for name in names]
    return (
        f"An RTX 4090 adds up {rates[0]} of numbers with an atomic for each, {rates[1]} with a tree in each "
        f"block, and {rates[2]} with shuffles and several loads a thread."
    )


@found("latency")
def _(o):
    near, far = [], []
    for series in o.devices.values():
        row = sorted(series["one thread"], key=lambda p: p.x)
        near.append(row[0])
        far.append(row[-1])
    gigabytes = f"{min(p.x for p in far) / 1e9:.0f} GB"
    said = [f"{duration(p.median)} on the {device}" for device, p in zip(o.devices, far, strict=True)]
    ratios = sorted(last.median / first.median for first, last in zip(near, far, strict=True))
    return (
        f"From a table of {gigabytes} a load takes {listed(said)}. That is {span(ratios)} times as long as "
        f"from a table of {min(p.x for p in near) / 1e3:.0f} KB."
    )


@found("host_device_transfer")
def _(o):
    pinned, pageable = (o.last("RTX 5090", f"{kind}, to the device").rate for kind in ("pinned", "pageable"))
    small, large = (pick(o.series("V100", "pinned, to the device").items())[1] for pick in (min, max))
    return (
        f"RTX 5090: pinned memory sends {pinned / pageable:.1f} times the bytes a second of pageable memory. "
        f"V100: {small.bytes / 1e3:.0f} KB at {speed(small)}, {large.bytes / 1e6:.0f} MB at {speed(large)}."
    )


@found("copy_bandwidth")
def _(o):
    names = {"RTX 4090": "strided copy", "GTX 1070 Ti": "strided read"}
    rows = {device: o.series(device, name) for device, name in names.items()}
    eight, most = (
        [f"{percent(row[s].rate / row[1].rate)} on the {device}" for device, row in rows.items()]
        for s in (8, 32)
    )
    return (
        f"Of the numbers a second at stride 1, {listed(eight)} are left at stride 8. At stride 32 it is "
        + (f"{listed(most)}.")
    )


@found("transpose")
def _(o):
    said = []
    for device, series in o.devices.items():
        rows = {name: {p.x: p.median for p in points} for name, points in series.items()}
        x = max(rows["naive"])
        naive = rows.pop("naive")[x]
        ways = [f"{naive / times[x]:.1f} times that of “{name}”" for name, times in rows.items()]
        said.append(f"{device}, side {x:,.0f}: the naive kernel's time is {listed(ways)}.")
    return " ".join(said)


@found("softmax")
def _(o):
    one, four = (o.series("GTX 1070 Ti", f"{n} kernel{s}") for n, s in (("one", ""), ("four", "s")))
    said = compared([p.median for p in one.values()], [four[x].median for x in one])
    return (
        f"GTX 1070 Ti: one kernel {said} four, from {min(one):,.0f} to {max(one):,.0f} columns. "
        f"RTX 4090: one kernel moves {speed(o.last('RTX 4090', 'one kernel'))}."
    )


@found("rooflines")
def _(o):
    rows = {device: o.series(device, "multiply-adds in a chain") for device in o.devices}
    grows = sorted(row[2.25].rate / row[0.25].rate for row in rows.values() if 2.25 in row)
    tops = [f"{speed(max(row.values(), key=lambda p: p.rate))} on the {name}" for name, row in rows.items()]
    return (
        f"With 2.25 FLOP a byte, nine times 0.25, a kernel makes {span(grows)} times the FLOP a second. "
        f"The longest chains reach {listed(tops)}."
    )


@found("attention")
def _(o):
    stored, fused = (o.series("GTX 1070 Ti", name) for name in ("matrix stored", "fused, Triton"))
    ways = [
        f"{compared([fused[x].median], [stored[x].median])} stored attention with {x:,.0f} tokens"
        for x in (min(stored), max(stored))
    ]
    best = o.last("B200", "fused, Triton")
    return (
        f"GTX 1070 Ti, FP32: fused attention {listed(ways)}. B200: with {best.x:,.0f} tokens it reaches "
        + (f"{speed(best)}.")
    )


@found("random_reads")
def _(o):
    order, random = (o.last("GTX 1070 Ti", how) for how in ("in order", "at random"))
    return (
        f"GTX 1070 Ti: from a table of {order.x / 2**30:.3g} GiB, reading in order moves {speed(order)} and "
        f"reading at random {speed(random)}."
    )


@found("checkpointing")
def _(o):
    said = []
    for device in o.devices:
        none, some = (o.last(device, f"{how} checkpoints") for how in ("no", "with"))
        said.append(
            f"{device}: with checkpoints a step holds {percent(some.x / none.x)} of the memory and takes "
            f"{some.median / none.median:.2f} times as long."
        )
    return " ".join(said)


@found("memory_by_part")
def _(o):
    peak = o.series("V100", "peak")
    said = [f"{digits(peak[x].median / 1e9)} GB with a batch of {x:g}" for x in (min(peak), max(peak))]
    weights = digits(o.last("V100", "weights").median / 1e9)
    return f"V100: the weights take {weights} GB, and a step holds at its peak {listed(said)}."


@found("training_memory")
def _(o):
    volta, ada = (o.devices[device] for device in ("V100", "RTX 4090"))
    cast = volta["autocast, Adam"][0].x / volta["FP32, Adam"][0].x
    short = ada["BF16 throughout"][0].x / ada["FP32"][0].x
    return (
        f"Of what a step in FP32 holds, autocast holds {percent(cast)} on the V100, and BF16 throughout "
        f"{percent(short)} on the RTX 4090."
    )


@found("training_by_format")
def _(o):
    def faster(device, new, old):
        rows = [(s[new][0].median, s[old][0].median) for name, s in o.sources if name == device and old in s]
        return compared(*zip(*rows, strict=True))

    eight = "fp8, a scale a tensor"
    return (
        f"Mixed precision with FP16 {faster('V100', 'mixed, fp16', 'fp32')} FP32 on the V100 and "
        f"{faster('A100', 'mixed, fp16', 'tf32')} TF32 on the A100. FP8 with a scale for each tensor "
        f"{faster('H100', eight, 'bf16')} BF16 on the H100 and {faster('MI300X', eight, 'bf16')} BF16 on the "
        "MI300X."
    )


@found("matmul_in_eight_bits")
def _(o):
    best = {d: s["torch fp8, best shape"][0] for d, s in o.devices.items() if "torch fp8, best shape" in s}
    wmma, wgmma = (o.last("H20", name) for name in ("WMMA from global memory", "wgmma and TMA, FP8"))
    said = [f"{speed(p)} on the {device}" for device, p in best.items()]
    return (
        f"PyTorch's best product in FP8 reaches {listed(said)}. "
        f"H20: {speed(wmma)} by WMMA from global memory, {speed(wgmma)} by wgmma and TMA in FP8."
    )


@found("hopper_ladder")
def _(o):
    hand, library = (o.last("H100", name) for name in ("best by hand, BF16", "cuBLAS BF16"))
    return (
        f"H100: at a side of {hand.x:,.0f} the best kernel by hand makes {speed(hand)} and cuBLAS "
        f"{speed(library)}."
    )


@found("launch_overhead")
def _(o):
    queued = [
        f"{duration(s['CUDA C++: queued'][0].median)} on the {device}"
        for device, s in o.sources
        if "CUDA C++: queued" in s
    ]
    triton = duration(o.last("GTX 1070 Ti", "Triton from Python: queued").median)
    return (
        f"Queueing a launch in CUDA C++ takes {listed(queued)}. From Python, with Triton, it takes {triton}."
    )


@found("graph_replay")
def _(o):
    def faster(device, x):
        one, graph = (o.series(device, name)[x].median for name in ("launched one by one", "one graph"))
        return f"{compared([graph], [one])} {x:g} launches"

    sizes = o.series("GTX 1070 Ti", "one graph")
    said = [faster("GTX 1070 Ti", x) for x in (min(sizes), max(sizes))]
    return f"GTX 1070 Ti: one graph {listed(said)}. RTX 4090: one graph {faster('RTX 4090', 10)}."


@found("stream_overlap")
def _(o):
    said = []
    for device, series in o.devices.items():
        (one,) = series["one stream"]
        best = min(p.median for name, row in series.items() if name != "one stream" for p in row)
        said.append(f"{percent(best / one.median)} on the {device}")
    return f"Of the time of one stream, several streams take {listed(said)}."


@found("bias_and_gelu")
def _(o):
    series = {name: row[0] for name, row in o.devices["RTX 4090"].items()}
    two = series.pop("bias, then F.gelu")
    said = [f"{duration(p.median)} with {name.split(', ')[1]}" for name, p in series.items()]
    return f"RTX 4090: two operators take {duration(two.median)}, and one kernel {listed(said)}."


@found("decode_batch")
def _(o):
    said = []
    for device in ("H100", "B200"):
        row = o.series(device, "Llama 3.1 8B: a step")
        few, many = (row[min(row, key=lambda x: abs(x - batch))] for batch in (8, 128))
        said.append(
            f"{device}: with {many.x:.0f} requests at once a step takes {many.median / few.median:.1f} times "
            f"as long as with {few.x:.0f}, and writes {many.x / few.x:.0f} times as many tokens."
        )
    return " ".join(said)


@found("prefill_and_decode")
def _(o):
    said = []
    for device, series in o.sources:
        if "prefill" in series:
            prompt, token = ({p.x: p.median for p in series[name]} for name in ("prefill", "decode"))
            said.append(f"{prompt[4096] / token[4096]:.0f} on the {device}")
    return (
        f"For a prompt of 4,096 tokens, prefill takes as long as so many steps of decoding: {listed(said)}."
    )


@found("energy")
def _(o):
    said = []
    for device in ("H100", "B200"):
        row = {int(name.split()[2]): s[0].x for name, s in o.devices[device].items() if "a token" in name}
        ends = [f"{digits(row[n])} J with {n:,} at once" for n in (min(row), max(row))]
        said.append(f"{device}: a token takes {listed(ends)}.")
    return " ".join(said)
