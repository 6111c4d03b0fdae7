"""``bench(fn, *args)``: the time of a call, by the host's clock, or by CUDA events for kernels on a GPU.

A kernel on the SIMT engine is refused, because its run time says nothing about a GPU.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field

from numba import cuda

from warplab.hardware.device import device, processor
from warplab.simt.watched import is_launcher
from warplab.timing.cuda_timer import cuda_timer
from warplab.timing.samples import MAX_SECONDS, PRECISION, enough, half_width

HOST_WARM_UP_S, MAX_S, HOST_MIN_SAMPLES, HOST_MAX_SAMPLES = 0.1, 2.0, 10, 200


@dataclass(frozen=True)
class Timing:
    """Times in seconds: ``median``, interquartile range ``iqr``, ``n`` samples. ``clock``: "host" or "cuda".

    On a GPU, ``overhead`` is the time of an empty sample, ``megahertz`` the lowest and highest SM clock.
    """

    samples: tuple[float, ...] = field(repr=False)
    clock: str
    device: str
    overhead: float = 0.0
    megahertz: tuple[float, float] | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def iqr(self) -> float:
        low, _, high = statistics.quantiles(self.samples, n=4)
        return high - low

    @property
    def n(self) -> int:
        return len(self.samples)

    def __str__(self) -> str:
        return (
            f"{seconds(self.median)} median, {seconds(self.iqr)} interquartile range, {self.n} samples, "
            f"{self.clock} clock, on {self.device}"
        )

    __repr__ = __str__


def seconds(value: float) -> str:
    """A time as text, with three significant digits and a suitable unit: "1.23 ms"."""
    if value == 0:
        return "0 s"
    exponent = min(max(math.floor(math.log10(abs(value)) / 3), -3), 0)
    scaled = value / 10.0 ** (3 * exponent)
    digits = max(0, 2 - math.floor(math.log10(abs(scaled)))) if scaled else 0
    return f"{scaled:.{digits}f} {('ns', 'µs', 'ms', 's')[exponent + 3]}"


class NotTimed(RuntimeError):
    """The call cannot be timed meaningfully on this machine."""


def bench(fn, *args, max_seconds: float = MAX_S) -> Timing:
    """Time ``fn(*args)`` until the median is known to 1 % or ``max_seconds`` have passed.

    A kernel, or a function called with device arrays, is timed by CUDA events on an idle device with a cold
    L2 cache, 20 to 100 times, after a warm-up of 10 calls and 1 s. Anything else is timed by the host's
    monotonic clock, 10 to 200 times, after a warm-up of 0.1 s; with a GPU, each sample ends when the device
    is idle again.

    Raises NotTimed for a kernel on the SIMT engine, whose work profile() counts.
    """
    cuda_here = device().kind == "cuda"
    kernel = is_launcher(fn)
    if kernel and not cuda_here:
        raise NotTimed(
            "this machine has no CUDA GPU: the SIMT engine counts a kernel's work (warplab.profile) "
            "but its run time is not a GPU's"
        )
    if cuda_here and (kernel or any(_on_device(a) for a in args)):
        return _on_cuda(fn, args, max_seconds)
    sample = _host_sampler(fn, args, cuda_here)
    start = time.perf_counter()
    sample()
    while time.perf_counter() - start < HOST_WARM_UP_S:
        sample()
    samples: list[float] = []
    start = time.perf_counter()
    while len(samples) < HOST_MAX_SAMPLES:
        samples.append(sample())
        elapsed = time.perf_counter() - start
        if len(samples) >= HOST_MIN_SAMPLES and (half_width(samples) < PRECISION or elapsed > max_seconds):
            break
        if len(samples) >= 3 and elapsed > 5 * max_seconds:
            break
    return Timing(tuple(samples), "host", processor())


def _on_cuda(fn, args, max_seconds: float) -> Timing:
    """``bench`` by the device's clock (warplab.timing.cuda_timer)."""
    cuda.current_context()

    def call():
        fn(*args)

    timer = cuda_timer()
    timer.warm_up(call)
    samples, clocks = [], []
    start = time.perf_counter()
    while not samples or not enough(samples, (time.perf_counter() - start) * MAX_SECONDS / max_seconds):
        seconds, clock = timer.sample(call)
        samples.append(seconds)
        clocks.append(clock)
    return Timing(tuple(samples), "cuda", device().name, timer.overhead(), (min(clocks), max(clocks)))


def _on_device(value) -> bool:
    return getattr(value, "is_cuda", False) or getattr(value, "__cuda_ndarray__", False)


def _host_sampler(fn, args, cuda_here: bool):
    wait = cuda.synchronize if cuda_here else lambda: None

    def sample() -> float:
        wait()
        start = time.perf_counter()
        fn(*args)
        wait()
        return time.perf_counter() - start

    return sample
