"""A model of the caches: which requests hit in L1 and in L2, and how many bytes come from HBM.

The results are modelled, not counted. Rules from Accel-Sim's configurations of NVIDIA's GPUs: lines of 128
bytes with four sectors that are filled one by one; the least recently used line is replaced; a store
allocates its line in L1 and goes on to L2, and a later load of the sector hits in L1 only if the store wrote
the whole sector; L2 keeps stored sectors without fetching them, and writes a line to HBM when it is replaced.
Atomics are done in L2. Shared memory takes its part of an SM's memory in the steps of the CUDA C++
Programming Guide.

Our own assumptions: 16 ways at both levels with hashed sets; block b runs on SM b modulo the number of SMs;
all blocks that fit run at once and in step; caches are cold at the start. The appendix "Measured by others"
compares the model with profilers' reports.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from warplab.hardware import specs
from warplab.hardware.target import Target
from warplab.simt.counters.collect import SECTOR_SHIFT, compiled, sectors_by_warp
from warplab.simt.observer import Observer
from warplab.simt.toolchain.ptxas import assemble, blocks_per_sm

WAYS = 16
LINE_SHIFT = 7
PAST_L1 = {"cg", "cv", "volatile", "relaxed", "acquire"}
SHARED_SIZES = (0, 8, 16, 32, 64, 100, 132, 164, 196)  # KiB of an SM's memory that can be shared memory


@dataclass(frozen=True)
class ModelledCaches:
    """The model's result for one launch on ``device``, in sectors of 32 bytes. Modelled, never counted.

    ``l1_reads`` and ``l1_hits``: sectors that loads request from L1, and the hits among them. ``l1_writes``
    and ``l1_write_hits``: sectors stored, and those whose line was in L1. ``l2_reads`` and ``l2_hits``:
    sectors requested from L2, and the hits among them. ``l2_writes``: sectors stored, all of which L2 takes.
    ``hbm_reads`` and ``hbm_writes``: sectors from and to HBM. ``left_in_l2``: dirty sectors that are still
    in L2 when the launch ends.
    """

    device: str
    l1_reads: int = 0
    l1_hits: int = 0
    l1_writes: int = 0
    l1_write_hits: int = 0
    l2_reads: int = 0
    l2_hits: int = 0
    l2_writes: int = 0
    hbm_reads: int = 0
    hbm_writes: int = 0
    left_in_l2: int = 0

    @property
    def l1_hit_rate(self) -> float:
        """L1's hit rate of loads and stores by sector (``l1tex__t_sector_hit_rate``), 0 to 1."""
        asked = self.l1_reads + self.l1_writes
        return (self.l1_hits + self.l1_write_hits) / asked if asked else 0.0

    @property
    def l1_load_hit_rate(self) -> float:
        """L1's hit rate of loads alone (``l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate``), 0 to 1."""
        return self.l1_hits / self.l1_reads if self.l1_reads else 0.0

    @property
    def l2_hit_rate(self) -> float:
        """L2's hit rate by sector, where every store is a hit (``lts__t_sector_hit_rate``), 0 to 1."""
        asked = self.l2_reads + self.l2_writes
        return (self.l2_hits + self.l2_writes) / asked if asked else 0.0

    @property
    def l2_bytes(self) -> int:
        """Bytes between the SMs and L2, both ways."""
        return (self.l2_reads + self.l2_writes) << SECTOR_SHIFT

    @property
    def hbm_bytes(self) -> int:
        """Bytes between L2 and HBM, both ways, until the launch ends."""
        return (self.hbm_reads + self.hbm_writes) << SECTOR_SHIFT


@compiled
def _set_of(line, sets):
    """The set of a line. Neighbouring lines are in neighbouring sets; each round of ``sets`` lines begins at
    another set (a hash of the round's number), so that power-of-two strides spread over the sets.
    """
    mixed = np.uint64(line // sets + 1) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((np.uint64(line) + (mixed >> np.uint64(32))) % np.uint64(sets))


@compiled
def _way_of(tags, stamps, line, now):
    """(way of ``line`` in its set, whether it was there); a new line replaces the least recently used one."""
    oldest = 0
    for way in range(tags.size):
        if tags[way] == line:
            stamps[way] = now
            return way, True
        if stamps[way] < stamps[oldest]:
            oldest = way
    stamps[oldest] = now
    return oldest, False


@compiled
def _lookup(sectors, warps, sms, whole, stores, cache, clock):
    """(hit or miss of each request, number of dirty sectors evicted); requests are served in order.

    ``sms``: the cache of each request; ``whole``: whether a store writes the whole sector; ``stores``:
    whether it is a store; ``cache``: as ``_empty`` returns it. A store hits if its line is in the cache,
    unless the same warp's request has just allocated it.
    """
    tags, stamps, there, dirty = cache
    hits, left = np.zeros(sectors.size, np.bool_), 0
    allocated, allocator = -1, -1  # the line that was allocated last, and the warp that requested it
    for i in range(sectors.size):
        line, bit = sectors[i] >> 2, np.uint8(1 << (sectors[i] & 3))
        at = sms[i], _set_of(line, tags.shape[1])
        way, known = _way_of(tags[at], stamps[at], line, clock + i)
        present, changed = there[at], dirty[at]
        if not known:
            for sector in range(4):
                left += changed[way] >> sector & 1
            tags[at][way], present[way], changed[way], allocated, allocator = line, 0, 0, line, warps[i]
        hits[i] = allocated != line or allocator != warps[i] if stores[i] else (present[way] & bit) != 0
        if whole[i] or not stores[i]:
            present[way] |= bit
        if stores[i]:
            changed[way] |= bit
    return hits, left


class CacheModel(Observer):
    """Observer that passes every access to global memory to the model. Read ``result()`` afterwards."""

    def __init__(self, device: str, smaller: int = 1):
        """``device``: a device of the registry that has the number of SMs, the size of L2 and the memory of
        an SM; raises SpecError where one is missing.

        ``smaller``: divides the number of SMs and the size of each L1, and by its square the size of L2, so
        that matrices with sides divided by it behave as the full-size ones on the full-size device.
        """
        self._spec, self._smaller = specs.get(device), smaller
        self._sms = round(self._spec["sms"].value / smaller)
        self._inside_sm = int(self._spec["unified_cache_per_sm"].si)
        self._l2 = _empty(1, self._spec["l2_cache"].si / smaller**2)
        self._l1: tuple = ()
        self._counts, self._clock = Counter(), 1
        self._wave = 0  # blocks that run at once in a grid of several waves: they start at different times
        self._l2_requests: list[np.ndarray] = []  # requests to L2: rows of time, block, sector, 1 for a store
        self._postponed = np.zeros((4, 0), np.int64)  # requests that fall into the next chunk's time

    def blocks_at_once(self, machine) -> int:
        """The blocks that are resident on all SMs together; L1 gets the memory of an SM that they leave."""
        program, launch = machine.program, machine.launch
        limits = Target.of(self._spec.arch).limits
        registers = assemble(program.ptx, program.entry, self._spec.arch).registers
        fits = min(blocks_per_sm(registers, machine.shared_size, launch.threads, limits).values())
        resident = max(1, min(fits, -(-launch.blocks // self._sms)))
        asked = resident * (machine.shared_size + limits.reserved_shared)
        step = next((kib << 10 for kib in SHARED_SIZES if kib << 10 >= asked), limits.shared_per_sm)
        self._l1 = _empty(self._sms, (self._inside_sm - min(step, limits.shared_per_sm)) / self._smaller)
        self._serve(self._postponed)
        blocks_at_once = max(1, fits) * self._sms
        self._wave = blocks_at_once if launch.blocks > blocks_at_once else 0
        return blocks_at_once

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        """Ask L1 for the sectors of a request; those that it misses, and all stores, are noted for L2."""
        if space != "global" or not group.size:
            return
        start = access.region.base + access.offset + offset
        address = np.broadcast_to(start, (group.size,))
        table = np.sort(sectors_by_warp(machine, group, address, width), axis=1)
        new = np.diff(table, axis=1, prepend=-1) != 0
        block = machine.block_of_lane[group.lanes[group.firsts]]
        turn = 7 * (machine.first_block // self._wave) if self._wave else 0
        row = np.nonzero(new)[0]
        sectors, sms = table[new], ((block + turn) % self._sms)[row]
        lanes = np.diff(np.flatnonzero(new), append=new.size)
        whole = (lanes * width >= 1 << SECTOR_SHIFT) & group.full
        past = what == "atomic" or bool(PAST_L1 & set(machine.program.sites[site].mods))
        for stores in {"read": (False,), "write": (True,), "atomic": (False, True)}[what]:
            onward = np.ones(sectors.size, bool)
            if not past:
                every = np.full(sectors.size, stores)
                hits, _ = _lookup(sectors, row, sms, whole, every, self._l1, self._clock)
                asked, had = ("l1_writes", "l1_write_hits") if stores else ("l1_reads", "l1_hits")
                self._counts.update({asked: sectors.size, had: np.count_nonzero(hits)})
                onward = every | ~hits
            self._clock += sectors.size
            what_when = len(self._l2_requests), block[row[onward]], sectors[onward], stores
            self._l2_requests.append(np.array(np.broadcast_arrays(*what_when)))

    def done(self, machine):
        """Send the chunk's requests to L2, in the order of time. If there are several waves, block j of n
        runs j/n of a wave late.
        """
        steps = len(self._l2_requests)
        asked = np.hstack([self._postponed, *self._l2_requests])
        if self._wave:
            asked[0] += asked[1] * steps // self._wave
        asked = asked[:, np.argsort(asked[0], kind="stable")]
        now = np.searchsorted(asked[0], steps)
        self._serve(asked[:, :now])
        self._postponed, self._l2_requests = asked[:, now:] - [[steps], [0], [0], [0]], []
        self._postponed[1] = 0

    def _serve(self, asked):
        sectors, stores = asked[2:]
        hits, left = _lookup(sectors, *np.zeros_like(asked[:2]), stores, stores, self._l2, self._clock)
        reads, had = int(np.count_nonzero(stores == 0)), int(np.count_nonzero(hits[stores == 0]))
        found = {"l2_reads": reads, "l2_hits": had, "l2_writes": stores.size - reads}
        self._counts.update(found | {"hbm_reads": reads - had, "hbm_writes": left})
        self._clock += sectors.size
        self._postponed = self._postponed[:, :0]

    def result(self) -> ModelledCaches:
        """The modelled traffic of all launches so far."""
        self._serve(self._postponed)
        self._counts["left_in_l2"] = np.unpackbits(self._l2[3]).sum()
        return ModelledCaches(self._spec.short, **{name: int(n) for name, n in self._counts.items()})


def _empty(caches: int, size: float):
    """Empty caches of ``size`` bytes: tags, times of last use, bits of valid and of dirty sectors."""
    shape = caches, max(1, (int(size) >> LINE_SHIFT) // WAYS), WAYS
    return np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
