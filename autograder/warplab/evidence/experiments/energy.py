"""Energy by the card's own meter. The horizontal axis is joules a call, as NVML counts
them; the time is measured as everywhere.
"""

import ctypes
import time

import torch

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.evidence.experiments.inference import _model, _prompts, _step

SECONDS = (
    3.0  # NVML's counter moves every tenth of a second or so: long enough for one step of it not to matter
)


def _meter():
    """A function that reads the millijoules used by CUDA device 0 since its driver was
    loaded (Volta and later). Raises OSError without NVML.
    """
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    handle = ctypes.c_void_p()
    name = f"GPU-{torch.cuda.get_device_properties(0).uuid}".encode()
    for error in (nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle))):
        if error:
            raise OSError(f"NVML answers error {error} for {name.decode()}; does nvidia-smi -L list it?")

    def millijoules():
        value = ctypes.c_ulonglong()
        if error := nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(value)):
            raise OSError(f"NVML gives no energy counter (error {error}); it needs Volta or later")
        return value.value

    return millijoules


def _joules(call, millijoules):
    """Joules of one call, the mean over at least SECONDS of calls one after another. An
    idle card's power is part of it.
    """
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    before, start, calls = millijoules(), time.perf_counter(), 0
    while time.perf_counter() - start < SECONDS:
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        calls += 10
    return (millijoules() - before) / 1e3 / calls


@experiment(
    question="What does an operation cost in joules?", chapter="11-choosing", x="joules a call (NVML)"
)
def energy(where):
    """Products in two formats, a copy, and a step of decoding for one request and for 128."""
    millijoules = _meter()
    n = 8192
    for name, kind, roof in (
        ("product, FP32", torch.float32, "fp32"),
        ("product, BF16", torch.bfloat16, "bf16"),
    ):
        a, b = torch.randn(2, n, n, device=where, dtype=kind)
        call = lambda a=a, b=b: torch.mm(a, b)  # noqa: E731
        yield Workload(name, _joules(call, millijoules), call, "cuda", flops=2 * n**3, roof=roof)
    source = torch.empty(1 << 30, dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    copy = lambda: target.copy_(source)  # noqa: E731
    yield Workload("copy of 1 GiB", _joules(copy, millijoules), copy, "cuda", bytes=2 << 30, roof="memory")
    model, weights = _model(where)
    for batch in (1, 128):
        cache = []
        model(_prompts(batch, 16, where), cache)
        token = _prompts(batch, 1, where)
        call = lambda token=token, cache=cache: _step(model, token, cache)  # noqa: E731
        yield Workload(
            f"decode, {batch} at once",
            _joules(call, millijoules),
            call,
            "cuda",
            flops=2 * weights * batch,
            roof="fp16",
        )
