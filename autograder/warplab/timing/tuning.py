"""``triton.autotune`` on the engine, which has no times: it chooses the configuration with the least bound.

A bound is theory, and ignores latency, occupancy and spilled registers, so the chosen configuration may not
be the fastest on a GPU. With a GPU, Triton measures times as usual.
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

DEVICE = "a100-sxm"  # a device of the architecture that Triton compiles for on the engine
BLOCKS = 8  # blocks of a candidate that run; counts of a larger grid are scaled


class TunedByBound(UserWarning):
    """``triton.autotune`` chose by bounds, because the engine has no times."""


def by_bound(launch: Callable[[], None], quantiles=(), **settings) -> list[float]:
    """Replaces ``do_bench`` in ``triton.autotune``: returns a candidate's longest bound, and to decide ties
    the sum of its bounds, in seconds.
    """
    if not triton_hook.is_recording():  # statements of tasks explain it, so no warning in a check
        warnings.warn(
            "triton.autotune: the SIMT engine has no times, so the configuration is used whose counts allow "
            f"the least time on an {specs.get(DEVICE).short} (warplab.bounds: theory, not a time)",
            TunedByBound,
            stacklevel=7,
        )
    found = bound_of(launch)
    return [found.at_least, found.without_overlap] if found else [0.0, 0.0]


def bound_of(launch: Callable[[], None]) -> Bounds | None:
    """The bounds of a Triton launch on DEVICE, counted on copies of its tensors; None if it does no work.

    Of a grid of more than BLOCKS blocks only a sample runs, and then the distinct sectors are an estimate.
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
