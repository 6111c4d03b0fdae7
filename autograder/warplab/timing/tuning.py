"""What ``triton.autotune`` chooses by on the engine, which has no times: the least time that counts allow.

A bound is theory, and says nothing about latency, occupancy or spilled registers: the chosen configuration
may not be the fastest on a GPU. There Triton chooses by the clock.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from warplab.hardware import specs
from warplab.simt.counters.collect import Counters
from warplab.simt.counters.footprint import DistinctSectors, Footprint
from warplab.simt.frontends import triton_hook
from warplab.simt.frontends.launch import LaunchContext
from warplab.simt.profile import summary
from warplab.timing.bounds import Bounds, LaunchWork, bounds

DEVICE = "a100-sxm"  # of the architecture that Triton compiles for here
BLOCKS = 8  # of a candidate that run; the counts of a larger grid are scaled


class TunedByBound(UserWarning):
    """``triton.autotune`` chose by a bound, as there are no times to choose by."""


def by_bound(launch: Callable[[], None], quantiles=(), **settings) -> list[float]:
    """Stands in for ``do_bench`` in ``triton.autotune``: the longest bound of a candidate and, for those
    that are equal in it, the sum of all its bounds, in seconds.
    """
    if not triton_hook.is_recording():  # a task that is checked has said it in its text
        warnings.warn(
            "triton.autotune: the SIMT engine has no times, so the configuration is used whose counts allow "
            f"the least time on an {specs.get(DEVICE).short} (warplab.bounds: theory, not a time)",
            TunedByBound,
            stacklevel=7,
        )
    found = bound_of(launch)
    return [found.at_least, found.without_overlap] if found else [0.0, 0.0]


def bound_of(launch: Callable[[], None]) -> Bounds | None:
    """The bounds of a Triton launch on DEVICE, counted on copies of its tensors; None if it does nothing.

    Of a grid of more than BLOCKS blocks a sample is counted: distinct sectors, too, are an estimate then.
    """
    counters, distinct, target = Counters(), DistinctSectors(), triton_hook.target()

    def context_of(grid, block) -> LaunchContext:
        return LaunchContext(target, (counters, distinct), min(BLOCKS, math.prod(grid)))

    machines = triton_hook.launch_on_engine(launch, (), {}, context_of)
    if not machines:
        return None
    counts = summary(machines[-1], counters, target, resources=False)
    ran, blocks = counts.sampled or (1, 1)
    least = sum(distinct.by_buffer(blocks / ran).values(), Footprint())
    work = LaunchWork.of(counts, least)
    return bounds(work, DEVICE) if work.wavefronts or any(work.flops.values()) else None
