"""Claims about chips: cores, peaks, Tensor Cores, memories. All inputs are facts of the hardware registry."""

from warplab.hardware import specs
from workshop.claims.decision import Decision


def _near(value: float, target: float, share: float = 0.02) -> bool:
    return abs(value - target) <= share * target


def pixel_rate() -> Decision:
    """3,840 x 2,160 pixels, 120 times a second, against the cycles of one CPU core."""
    rate = 3840 * 2160 * 120
    cycles = specs.get("epyc-9654")["boost_clock"].si / rate
    return Decision(
        {"millions of pixels, many times a second": rate > 1e6 * 24}, {"rate": rate / 1e6, "cycles": cycles}
    )


def cpu_cores() -> Decision:
    cores = specs.get("epyc-9654")["cores"].value
    return Decision({"dozens, not thousands": cores < 1000, "64 at most": cores <= 64}, {"cores": cores})


def gpu_cores() -> Decision:
    h100 = specs.get("h100-sxm")
    lanes, sms = h100["fp32_lanes"].value, h100["sms"].value
    return Decision(
        {"a core is a lane": lanes > 1000, "a core fetches its own instructions": sms > 1000},
        {"lanes": lanes, "sms": sms},
    )


def h100_lanes() -> Decision:
    sxm, pcie = (specs.get(name)["fp32_lanes"].value for name in ("h100-sxm", "h100-pcie"))
    return Decision({"SXM": sxm == 16_896, "PCIe": pcie == 16_896}, {"sxm": sxm, "pcie": pcie})


def consumer_lanes() -> Decision:
    small, lanes = 768, specs.get("rtx-4090")["fp32_lanes"].value  # 768: GTX 1050 Ti, cuda_core_list
    readings = {"GTX 1050 Ti": 100 <= small < 1000, "RTX 4090": 100 <= lanes < 1000}
    return Decision(readings, {"small": small, "lanes": lanes})


def t4_ratio() -> Decision:
    """Is a T4's peak about three times that of a server CPU's cores, or of a third of them?"""
    cpu, t4 = specs.get("epyc-9654")["peak_fp32"].si, specs.get("t4")
    ratios = {
        "third": t4["peak_fp32"].si / (cpu / 3),
        "fp32": t4["peak_fp32"].si / cpu,
        "fp16": t4["peak_fp16"].si / cpu,
    }
    return Decision({name: 2 <= ratio <= 4.5 for name, ratio in ratios.items()}, ratios)


def many_cores() -> Decision:
    """128 Zen 4c cores at 3.1 GHz (servethehome2023), with a Zen 4 core's lanes, against an H100."""
    epyc, h100, cores, clock = specs.get("epyc-9654"), specs.get("h100-sxm"), 128, 3.1e9
    each = epyc["peak_fp32"].si / epyc["cores"].value / epyc["base_clock"].si  # FLOP a clock
    cpu = cores * clock * each
    gaps = {name: h100[f"peak_{name}"].si / cpu for name in ("fp32", "bf16")}
    readings = {"128 cores": cores >= 128} | {f"level in {name}": gap <= 1.5 for name, gap in gaps.items()}
    return Decision(readings, {"cores": cores, "cpu": cpu / 1e12} | gaps)


def speedup_range() -> Decision:
    """Ratios of peaks, GPU to a server CPU of its time."""
    cpu, h100, a100 = specs.get("epyc-9654"), specs.get("h100-sxm"), specs.get("a100-sxm")
    ratios = {
        "fp32": h100["peak_fp32"].si / cpu["peak_fp32"].si,
        "door": h100["memory_bandwidth"].si / cpu["memory_bandwidth"].si,
        "a100": a100["peak_bf16"].si / cpu["peak_fp32"].si,
        "h100": h100["peak_bf16"].si / cpu["peak_fp32"].si,
    }
    return Decision({name: 10 <= ratio <= 100 for name, ratio in ratios.items()}, ratios)


def peak_gap() -> Decision:
    """Is the gap of peaks 200 times?"""
    cpu, h100 = specs.get("epyc-9654"), specs.get("h100-sxm")
    gaps = {name: h100[f"peak_{name}"].si / cpu["peak_fp32"].si for name in ("fp32", "bf16", "fp8")}
    return Decision({name: gap >= 200 for name, gap in gaps.items()}, gaps)


def one_lane_is_slow() -> Decision:
    lane, core = specs.get("h100-sxm")["boost_clock"].si, specs.get("epyc-9654")["boost_clock"].si
    cpu = specs.get("epyc-9654")
    wide = cpu["peak_fp32"].si / cpu["cores"].value / cpu["base_clock"].si
    return Decision(
        {"clock": lane < core, "operations a clock": 2 < wide},
        {"lane": lane / 1e9, "core": core / 1e9, "wide": wide},
    )


def integers() -> Decision:
    """INT8 on Tensor Cores against a CPU that fits four bytes where one FP32 number was."""
    gpu, cpu = specs.get("h100-sxm")["peak_int8"].si, 4 * specs.get("epyc-9654")["peak_fp32"].si
    return Decision({"INT8, peak against peak": cpu > gpu}, {"gpu": gpu / 1e12, "ratio": gpu / cpu})


def cpu_tflops() -> Decision:
    fp32 = specs.get("epyc-9654")["peak_fp32"].si / 1e12
    return Decision(
        {"FP32": 2 <= fp32 <= 4, "FP64, half as wide": 2 <= fp32 / 2 <= 4}, {"fp32": fp32, "fp64": fp32 / 2}
    )


def bits_for_bytes() -> Decision:
    """ "32 GB GPU, 1.2 Tbps; CPU, 100 Gbps", read as written, against the 32 GB V100 and an EPYC."""
    v100, cpu = specs.get("v100-sxm2"), specs.get("epyc-9654")
    gpu_bits, cpu_bits = 8 * v100["memory_bandwidth"].si, 8 * cpu["memory_bandwidth"].si
    channel = cpu["memory_data_rate"].si * cpu["memory_channel_width"].value / 8
    readings = {"GPU": _near(gpu_bits, 1.2e12, 0.5), "CPU": _near(cpu_bits, 100e9, 0.5)}
    numbers = {
        "gpu_said": 1.2e12 / 8 / 1e9,
        "gpu_is": v100["memory_bandwidth"].si / 1e9,
        "cpu_said": 100 / 8,
        "channel": channel / 1e9,
    }
    return Decision(readings, numbers)


def power() -> Decision:
    """Watts, and joules for the same FP32 work, peak against peak."""
    gpu, cpu = specs.get("h100-sxm"), specs.get("epyc-9654")
    of_gpu, of_cpu = (chip["tdp"].si / chip["peak_fp32"].si for chip in (gpu, cpu))
    readings = {"power": gpu["tdp"].si > cpu["tdp"].si, "energy for the same work": of_gpu > of_cpu}
    return Decision(readings, {"gpu": gpu["tdp"].si, "cpu": cpu["tdp"].si, "ratio": of_cpu / of_gpu})


def v100_tensor_cores() -> Decision:
    v100 = specs.get("v100-sxm2")
    return Decision(
        {"count": v100["tensor_cores"].value == 640, "year": v100.year == 2017},
        {"count": v100["tensor_cores"].value},
    )


def _multiply_adds_a_clock(name: str, clock: str) -> float:
    chip = specs.get(name)
    return chip["peak_fp16"].si / (2 * chip["tensor_cores"].value * chip[clock].si)


def tensor_core_block() -> Decision:
    """FP16 multiply-adds of one Tensor Core in one clock: a 4 x 4 x 4 product is 64, an
    8 x 8 x 8 product 512.
    """
    chips = {
        "v100": ("v100-sxm2", "boost_clock"),
        "a100": ("a100-sxm", "boost_clock"),
        "h100": ("h100-sxm", "tensor_clock"),
    }
    rates = {key: _multiply_adds_a_clock(*chip) for key, chip in chips.items()}
    return Decision({key: _near(rate, 64) or _near(rate, 512) for key, rate in rates.items()}, rates)


def tensor_core_formats() -> Decision:
    """Which chips' Tensor Cores take BF16, INT8 and FP8."""
    wanted = {"peak_bf16", "peak_int8", "peak_fp8"}
    return Decision({name: wanted <= set(specs.get(name)) for name in ("v100-sxm2", "a100-sxm", "h100-sxm")})


def twice_as_fast() -> Decision:
    h100 = specs.get("h100-sxm")
    tf32, fp32 = (h100["peak_bf16"].si / h100[name].si for name in ("peak_tf32", "peak_fp32"))
    return Decision(
        {"against TF32": _near(tf32, 2, 0.1), "against FP32": _near(fp32, 2, 0.1)},
        {"tf32": tf32, "fp32": fp32},
    )


def h100_756() -> Decision:
    sxm, pcie = (specs.get(name)["peak_bf16"].value for name in ("h100-sxm", "h100-pcie"))
    return Decision({"PCIe": _near(pcie, 756), "SXM": _near(sxm, 756)}, {"sxm": sxm, "pcie": pcie})


def h100_1979() -> Decision:
    h100 = specs.get("h100-sxm")
    sparse, dense = h100["peak_bf16_sparse"].value, h100["peak_bf16"].value
    return Decision(
        {"with 2:4 sparsity": _near(sparse, 1979), "dense": _near(dense, 1979)},
        {"sparse": sparse, "dense": dense},
    )


def shared_228() -> Decision:
    sizes = {arch: specs.for_arch(arch)["shared_memory_per_sm"].value for arch in ("sm_80", "sm_89", "sm_90")}
    return Decision({arch: size == 228 for arch, size in sizes.items()}, sizes)


def h100_bandwidth() -> Decision:
    sxm, pcie = (specs.get(name)["memory_bandwidth"].si / 1e12 for name in ("h100-sxm", "h100-pcie"))
    return Decision({"SXM": _near(sxm, 3.35), "PCIe": _near(pcie, 3.35)}, {"sxm": sxm, "pcie": pcie})


def memory_bandwidths() -> Decision:
    """Peaks of the memory, GPU against one socket of a server's CPU."""
    cpu = specs.get("epyc-9654")["memory_bandwidth"].si
    times = {name: specs.get(name)["memory_bandwidth"].si / cpu for name in ("h100-sxm", "rtx-4090", "t4")}
    return Decision(
        {name: ratio > 1 for name, ratio in times.items()},
        {"h100": times["h100-sxm"], "rtx": times["rtx-4090"], "t4": times["t4"]},
    )


def pcie_is_narrow() -> Decision:
    h100 = specs.get("h100-sxm")
    memory, host = h100["memory_bandwidth"].si, h100["pcie_each_way"].si
    return Decision(
        {"the memory is ten times as wide": memory > 10 * host}, {"ratio": memory / host, "host": host / 1e9}
    )


def one_order() -> Decision:
    """Each scheduler of an H100 gives an order of its own to a warp's 32 lanes."""
    h100 = specs.get("h100-sxm")
    orders = h100["sms"].value * h100["warp_schedulers_per_sm"].value
    return Decision({"the lanes of a warp": True, "all lanes": orders == 1}, {"orders": orders})


def bf16_range() -> Decision:
    """torch's own limits of the two formats."""
    import torch

    wide, short = torch.finfo(torch.float32), torch.finfo(torch.bfloat16)
    return Decision(
        {"the same range": _near(short.max, wide.max), "fewer digits": short.eps > wide.eps},
        {"largest": short.max / 1e38, "step": short.eps, "finer": short.eps / wide.eps},
    )


def private_registers() -> Decision:
    """One thread a lane would make a thread's registers a lane's. An SM keeps more threads than lanes."""
    h100 = specs.get("h100-sxm")
    threads, lanes = h100["max_threads_per_sm"].value, h100["fp32_lanes_per_sm"].value
    return Decision(
        {"a lane has one thread": threads == lanes},
        {"threads": threads // lanes, "registers": h100["registers_per_sm"].value},
    )


def hbm_sizes() -> Decision:
    sizes = {
        name: specs.get(name)["memory_capacity"].value
        for name in ("v100-sxm2", "a100-sxm", "h100-sxm", "mi300x", "h200-sxm", "b200")
    }
    return Decision(
        {n: 24 <= size <= 80 for n, size in sizes.items()},
        {"mi300x": sizes["mi300x"], "h200": sizes["h200-sxm"], "b200": sizes["b200"]},
    )


def gddr() -> Decision:
    kinds = {name: specs.get(name)["memory_type"].value for name in ("rtx-4090", "t4", "h100-sxm")}
    return Decision(
        {n: kind.startswith("GDDR") for n, kind in kinds.items()},
        {n.split("-")[0]: kind for n, kind in kinds.items()},
    )


def cpu_memory() -> Decision:
    kind = specs.get("epyc-9654")["memory_type"].value
    hbm = 64  # GB, of an Intel Xeon Max: xeon_max
    readings = {"EPYC 9654": kind.startswith("HBM"), "Xeon Max": hbm >= 200}
    return Decision(readings, {"kind": kind, "hbm": hbm})


def rtx_4090_memory() -> Decision:
    card = specs.get("rtx-4090")
    return Decision({"RTX 4090": card["memory_capacity"].value == 24}, {"kind": card["memory_type"].value})


def card_sizes() -> Decision:
    sizes = {
        name: specs.get(name)["memory_capacity"].value
        for name in ("rtx-4090", "a100-sxm", "h100-sxm", "mi300x", "h200-sxm", "b200")
    }
    return Decision(
        {n: size in (24, 40, 80) for n, size in sizes.items()},
        {"mi300x": sizes["mi300x"], "h200": sizes["h200-sxm"], "b200": sizes["b200"]},
    )
