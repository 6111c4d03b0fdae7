"""How an experiment's calls are timed. Needs torch; on CUDA the clock is the device's.

- "cuda": on a device kept busy with overwriting a buffer larger than its L2 cache: event, call, event. The call's launch is
  queued while the buffer is written, so launch overhead is not in it, and every call starts with a cold L2.
- "host": the host's monotonic clock around the call, the device idle before and after.
- "queue": the host's clock around 100 calls that are not waited for, divided by 100: what a launch costs the CPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..bench import half_width
from .record import Point

MIN_SAMPLES, MAX_SAMPLES, PRECISION, QUEUED = 10, 60, 0.01, 100
FLUSH_BYTES = 512 << 20  # above twice any L2, and long enough to hide the launch of what comes after


@dataclass(frozen=True)
class Case:
    """One thing to time: ``call()`` does it once. The other fields are those of record.Point."""

    series: str
    x: float
    call: Callable[[], object]
    clock: str = "host"
    bytes: int = 0
    flops: int = 0
    roof: str = ""


class Timer:
    """Times Cases on "cuda" or "cpu". ``seconds``: the most that one case may take, warm-up not counted."""

    def __init__(self, where: str, seconds: float = 0.5):
        import torch

        self.torch, self.where, self.seconds = torch, where, seconds
        self.scratch = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda") if where == "cuda" else None

    def wait(self) -> None:
        if self.where == "cuda":
            self.torch.cuda.synchronize()

    def time(self, case: Case) -> Point:
        """Warm up (at least 3 calls and 50 ms), then sample until the median is known to 1 % or the time is up."""
        sample = {"cuda": self._events, "host": self._host, "queue": self._queue}[case.clock]
        warmups, start = 0, time.perf_counter()
        while warmups < 3 or (time.perf_counter() - start < 0.05 and warmups < 1000):
            case.call()
            self.wait()
            warmups += 1
        samples: list[float] = []
        start = time.perf_counter()
        while len(samples) < MAX_SAMPLES:
            samples.append(sample(case.call))
            enough = len(samples) >= MIN_SAMPLES and half_width(samples) < PRECISION
            late = time.perf_counter() - start > self.seconds
            if enough or (late and len(samples) >= 5):
                break
        what = {name: getattr(case, name) for name in ("series", "x", "clock", "bytes", "flops", "roof")}
        return Point.of(samples, warmups, **what)

    def _events(self, call) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.wait()
        self.scratch.zero_()
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def _host(self, call) -> float:
        self.wait()
        start = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - start

    def _queue(self, call) -> float:
        self.wait()
        start = time.perf_counter()
        for _ in range(QUEUED):
            call()
        spent = time.perf_counter() - start
        self.wait()
        return spent / QUEUED
