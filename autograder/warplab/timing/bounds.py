"""Lower bounds of a launch's time: at each level, the counted work divided by the device's peak rate.

This is theory, from counts and data sheets; a launch takes at least as long as the longest bound. The rates:

- arithmetic: the peak of the unit; for CUDA cores and special-function units (16 results a clock on each SM)
  at the boost clock;
- L1 and shared memory: 128 bytes a clock on each SM, 32 banks of 4 bytes (CUDA C++ Programming Guide); that
  global memory passes these banks is our reading of 46 launches on an H200;
- L2: its bandwidth, for the distinct sectors, each of which must cross it once;
- HBM: its bandwidth, for the bytes that the caches cannot hold.

An SM without a block does nothing, so 16 blocks use at most 16 of 132 SMs. If all blocks do the same work,
133 blocks on 132 SMs take as long as two on one SM; counts do not show whether they do, so ``equal`` must be
given. The launch overhead is not a bound, as a full queue hides it. Two things have no bound here, so the
longest bound need not be the limit: the issue of instructions (of machine code, which is not counted), and
the serialisation of lanes at the address of an atomic.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass

from warplab.hardware import specs
from warplab.rendering import render
from warplab.simt.counters.footprint import Footprint
from warplab.simt.profile import Profile
from warplab.timing.bench import seconds

L1, L2 = "L1 and shared memory", "L2"
WAVEFRONT = 128  # bytes
UNITS = {"half_lanes": "16 bits on CUDA cores", "special": "Special functions"}


@dataclass(frozen=True)
class LaunchWork:
    """The counted work of a launch.

    ``flops``: by unit, named like a peak of the registry without "peak_". ``wavefronts``: passes of 128 bytes
    through L1 and shared memory. ``fetched``, ``written``, ``touched``: bytes of distinct sectors, as in
    ``Footprint``. ``blocks``: thread blocks of the grid; ``equal``: all blocks do the same work.
    """

    flops: dict[str, float]
    wavefronts: float
    fetched: float
    written: float
    touched: float
    blocks: int
    equal: bool = False

    @staticmethod
    def of(profile: Profile, least: Footprint | None = None) -> LaunchWork:
        """The work of a profiled launch. ``least``: the distinct sectors, needed for the profile of a sample
        of blocks, which does not have them; raises ValueError without it.
        """
        if not (least := least or profile.footprint):
            sample = "a sample of the blocks does not show which sectors are distinct"
            raise ValueError(f"{sample}: profile the whole grid")
        moved, blocks = (least.fetched, least.written, least.touched), math.prod(profile.grid)
        return LaunchWork(dict(profile.unit_flops), profile.l1_wavefronts, *moved, blocks)

    def at(self, level: str, device: str, warm: bool = False) -> float:
        """Bytes that must pass a ``level`` (L1, L2 or the device's memory); ``warm``: as in ``bounds``."""
        if level == L1:
            return self.wavefronts * WAVEFRONT
        if level == L2:
            return self.fetched + self.written
        spec = specs.get(device)
        l2 = spec["l2_cache"].si if "l2_cache" in spec else math.inf
        return max(0, self.touched - l2) if warm else self.fetched + max(0, self.written - l2)


@dataclass(frozen=True)
class LevelBound:
    """``amount`` of ``unit`` to do at ``level``, at most ``rate`` a second: at least ``seconds``."""

    level: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        return self.amount / self.rate


@dataclass(frozen=True)
class Bounds:
    """The bounds of one launch on ``device``, the longest first, and the levels without a known rate."""

    device: str
    bounds: tuple[LevelBound, ...]
    unknown: tuple[str, ...]

    @property
    def binds(self) -> LevelBound:
        """The longest bound: the launch takes at least as long."""
        return self.bounds[0]

    @property
    def at_least(self) -> float:
        """Seconds if everything overlaps: the longest bound."""
        return self.binds.seconds

    @property
    def without_overlap(self) -> float:
        """Seconds if nothing overlaps: the sum of all bounds."""
        return sum(bound.seconds for bound in self.bounds)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """(level, work, rate, least time) as the table shows them."""
        rows = [
            (b.level, f"{b.amount:,.0f} {b.unit}", f"{b.rate / 1e12:,.3g} T{b.unit}/s", seconds(b.seconds))
            for b in self.bounds
        ]
        return rows + [(level, "", "no sourced rate", "unknown") for level in self.unknown]

    def __str__(self) -> str:
        return html.unescape(render("warplab.timing", "bounds.txt.j2", bounds=self, seconds=seconds))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render("warplab.timing", "bounds.html.j2", bounds=self, seconds=seconds)


def bounds(launch: Profile | LaunchWork, device: str = "h100-sxm", warm: bool = False) -> Bounds:
    """The least time of a launch on a device of the registry, level by level.

    ``warm``: the launch is repeated on the same data, so that what fits L2 need not come from HBM again. Else
    it starts with cold caches, and only what it stores may stay in L2.
    Raises SpecError for an unknown device, TypeError for an object that is not a profile, ValueError for a
    launch without any counted work.
    """
    work = LaunchWork.of(launch) if isinstance(launch, Profile) else launch
    if not isinstance(work, LaunchWork):
        takes = "the result of warplab.profile(kernel[grid, block], ...)"
        raise TypeError(f"bounds() takes {takes}, and got {type(launch).__name__}")
    spec = specs.get(device)
    sms = spec["sms"].value
    busy = work.blocks / sms / math.ceil(work.blocks / sms) if work.equal else min(1.0, work.blocks / sms)
    asked = [(_unit_name(unit), n, "FLOP", f"peak_{unit}", busy) for unit, n in work.flops.items()]
    facts = (L1, "l1_bandwidth", busy), (L2, "l2_bandwidth", 1.0), (memory_of(spec), "memory_bandwidth", 1.0)
    asked += [(level, work.at(level, device, warm), "B", fact, share) for level, fact, share in facts]
    found, unknown = [], []
    for level, amount, unit, fact, share in asked:
        if amount and fact in spec:
            found.append(LevelBound(level, amount, unit, spec[fact].si * share))
        elif amount:
            unknown.append(level)
    if not found:
        raise ValueError("nothing was counted that has a bound: no arithmetic, and no access to memory")
    return Bounds(spec.short, tuple(sorted(found, key=lambda bound: -bound.seconds)), tuple(unknown))


def memory_of(spec: specs.Spec) -> str:
    """The name of a device's own memory: "HBM3", "GDDR6X"."""
    return str(spec["memory_type"].value) if "memory_type" in spec else "memory"


def _unit_name(unit: str) -> str:
    """A unit's name for the table: "FP32 on CUDA cores", "BF16 on Tensor Cores"."""
    if unit in UNITS:
        return UNITS[unit]
    where = "CUDA cores" if unit in ("fp32", "fp64") else "Tensor Cores"
    return f"{unit.removesuffix('_tensor').upper()} on {where}"
