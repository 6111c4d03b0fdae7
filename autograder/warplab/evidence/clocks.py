"""How an experiment's calls are timed. Needs torch. The clocks:

- "cuda": CUDA events before and after the call. The device first overwrites a buffer larger than its L2
  cache, while the call is queued; so launch overhead is not included, and every call starts with a cold L2.
- "host": the host's monotonic clock around the call, the device idle before and after.
- "queue": the host's clock around 100 calls without a wait, divided by 100: the CPU's cost of a launch.
- "none": the call itself returns the sample, in the case's ``unit``: bytes held, joules used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from warplab.evidence.record import Point
from warplab.timing.bench import half_width

MIN_SAMPLES, MAX_SAMPLES, PRECISION, QUEUED = 10, 60, 0.01, 100
FLUSH_BYTES = 512 << 20  # more than twice any L2; writing it takes long enough to hide the call's launch


@dataclass(frozen=True)
class Workload:
    """A case to time: ``call()`` does it once. The other fields are those of record.Point.

    ``before()``, if given, is called before each timed call and is not timed; on the "cuda" clock after
    the cache has been overwritten. ``per``: the number of equal operations in one call; a sample is the time
    of one of them.
    """

    series: str
    x: float
    call: Callable[[], object]
    clock: str = "host"
    bytes: int = 0
    flops: int = 0
    roof: str = ""
    unit: str = "s"
    before: Callable[[], object] | None = None
    per: int = 1


class Timer:
    """Times Workloads on "cuda" or "cpu". ``seconds``: the limit for one case, without its warm-up."""

    def __init__(self, where: str, seconds: float = 0.5):
        import torch

        self.torch, self.where, self.seconds = torch, where, seconds
        size = FLUSH_BYTES if where == "cuda" else 0
        self.scratch = torch.empty(size, dtype=torch.uint8, device=where)

    def wait(self) -> None:
        if self.where == "cuda":
            self.torch.cuda.synchronize()

    def time(self, case: Workload) -> Point:
        """Warm up (at least 3 calls and 50 ms), then sample until the median is known to 1 % or the time is
        up.
        """
        clock = {
            "cuda": self._events,
            "host": self._host,
            "queue": self._queue,
            "none": lambda call, _: float(call()),
        }[case.clock]
        before = case.before or (lambda: None)
        warmups, start = 0, time.perf_counter()
        while warmups < 3 or (time.perf_counter() - start < 0.05 and warmups < 1000):
            case.call()
            self.wait()
            warmups += 1
        samples: list[float] = []
        start = time.perf_counter()
        while len(samples) < MAX_SAMPLES:
            samples.append(clock(case.call, before) / case.per)
            enough = len(samples) >= MIN_SAMPLES and half_width(samples) < PRECISION
            late = time.perf_counter() - start > self.seconds
            if enough or (late and len(samples) >= 5):
                break
        what = {
            name: getattr(case, name) for name in ("series", "x", "clock", "bytes", "flops", "roof", "unit")
        }
        return Point.of(samples, warmups, **what)

    def _events(self, call, before) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.wait()
        self.scratch.zero_()
        before()
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def _host(self, call, before) -> float:
        before()
        self.wait()
        start = time.perf_counter()
        call()
        self.wait()
        return time.perf_counter() - start

    def _queue(self, call, before) -> float:
        before()
        self.wait()
        start = time.perf_counter()
        for _ in range(QUEUED):
            call()
        spent = time.perf_counter() - start
        self.wait()
        return spent / QUEUED
