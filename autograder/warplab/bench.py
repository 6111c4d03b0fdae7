"""``bench(fn, *args)``: how long a call takes, with enough samples to trust. Host clock, or CUDA events where there is CUDA.

A kernel on the SIMT engine is refused: its run time says nothing about a GPU.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field

from .device import device
from .profile import is_launcher

WARM_UP_S, MAX_S, MIN_SAMPLES, MAX_SAMPLES, PRECISION = 0.1, 2.0, 10, 200, 0.01


@dataclass(frozen=True)
class Timing:
    """Times in seconds: ``median``, interquartile range ``iqr``, ``n`` samples; ``clock`` is "host" or "cuda"."""

    samples: tuple[float, ...] = field(repr=False)
    clock: str
    device: str

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
        return f"{seconds(self.median)} median, {seconds(self.iqr)} interquartile range, {self.n} samples, {self.clock} clock, on {self.device}"

    __repr__ = __str__


def seconds(value: float) -> str:
    """A time with three significant digits and a unit that fits: "1.23 ms"."""
    if value == 0:
        return "0 s"
    exponent = min(max(math.floor(math.log10(abs(value)) / 3), -3), 0)
    scaled = value / 10.0 ** (3 * exponent)
    digits = max(0, 2 - math.floor(math.log10(abs(scaled)))) if scaled else 0
    return f"{scaled:.{digits}f} {('ns', 'µs', 'ms', 's')[exponent + 3]}"


class NotTimed(RuntimeError):
    """The thing cannot be timed here in a way that means something."""


def half_width(samples) -> float:
    """Half of the 95 % confidence interval of the median, from order statistics, as a share of the median."""
    s, n = sorted(samples), len(samples)
    reach = 1.96 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - reach)), min(n - 1, math.ceil(n / 2 + reach))
    return (s[high] - s[low]) / 2 / statistics.median(s)


def bench(fn, *args, max_seconds: float = MAX_S) -> Timing:
    """Time ``fn(*args)``: at least 10 samples, until the median is known to 1 % or ``max_seconds`` have passed.

    Warm-up calls come first. A kernel, or a function that is given device arrays, is timed by CUDA events around one call
    on an idle device. Anything else is timed by the host's monotonic clock, which on a CUDA machine stops only when
    the device is idle again.
    Raises NotTimed for a kernel on the SIMT engine: profile() counts it, nothing here can time it.
    """
    cuda_here = device().kind == "cuda"
    kernel = is_launcher(fn)
    if kernel and not cuda_here:
        raise NotTimed(
            "this machine has no CUDA GPU: the SIMT engine counts a kernel's work (warplab.profile) but its run time is not a GPU's"
        )
    on_device = cuda_here and (kernel or any(_on_device(a) for a in args))
    sample = _cuda_sampler(fn, args) if on_device else _host_sampler(fn, args, cuda_here)
    start = time.perf_counter()
    sample()
    while time.perf_counter() - start < WARM_UP_S:
        sample()
    samples: list[float] = []
    start = time.perf_counter()
    while len(samples) < MAX_SAMPLES:
        samples.append(sample())
        if len(samples) >= MIN_SAMPLES and (half_width(samples) < PRECISION or time.perf_counter() - start > max_seconds):
            break
        if len(samples) >= 3 and time.perf_counter() - start > 5 * max_seconds:
            break
    return Timing(tuple(samples), "cuda" if on_device else "host", device().name if on_device else _processor())


def _on_device(value) -> bool:
    return getattr(value, "is_cuda", False) or getattr(value, "__cuda_ndarray__", False)


def _host_sampler(fn, args, cuda_here: bool):
    from numba import cuda

    wait = cuda.synchronize if cuda_here else lambda: None

    def sample() -> float:
        wait()
        start = time.perf_counter()
        fn(*args)
        wait()
        return time.perf_counter() - start

    return sample


def _cuda_sampler(fn, args):
    from numba import cuda

    begin, end = cuda.event(), cuda.event()

    def sample() -> float:
        cuda.synchronize()
        begin.record()
        fn(*args)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    return sample


def _processor() -> str:
    """The CPU's name from /proc/cpuinfo, else the platform's."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    import platform

    return platform.processor() or platform.machine()
