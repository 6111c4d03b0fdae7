"""A model of the caches: which requests the L1 caches and L2 answer, and which bytes come from HBM.

A model, not a count. Its rules are those of Accel-Sim's configurations of NVIDIA's GPUs: lines of 128 bytes
with four sectors that are filled one by one; the least recently used line is replaced; L1 passes every store
on to L2 and makes no room for it; L2 keeps what is stored without fetching it, and writes a line to HBM when
it is replaced. Atomics are done in L2. Ours beyond these: 16 ways at both levels with hashed sets; block b
runs on SM b modulo the SMs; all blocks that fit run at once and in step; an L1 has what the resident blocks
leave of the SM's memory; caches are cold at the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from warplab.hardware import specs
from warplab.hardware.target import Target
from warplab.simt.counters.collect import SECTOR_SHIFT, by_warp
from warplab.simt.observer import Observer
from warplab.simt.toolchain.ptxas import assemble, blocks_per_sm

WAYS = 16
LINE_SHIFT = 7
PAST_L1 = {"cg", "cv", "volatile", "relaxed", "acquire"}
L1_READS, L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, HBM_READS, HBM_WRITES = range(7)


@dataclass(frozen=True)
class ModelledCaches:
    """What the model says of one launch on ``device``, in sectors of 32 bytes. Modelled, never counted.

    ``l1_reads`` and ``l1_hits``: sectors that loads ask L1 for, and those that were there. ``l2_reads`` and
    ``l2_hits``: sectors that L2 is asked for, and those that were there. ``l2_writes``: sectors stored, all
    taken by L2. ``hbm_reads`` and ``hbm_writes``: sectors from and to HBM. ``left_in_l2``: sectors stored
    that are still only in L2 when the launch ends.
    """

    device: str
    l1_reads: int
    l1_hits: int
    l2_reads: int
    l2_hits: int
    l2_writes: int
    hbm_reads: int
    hbm_writes: int
    left_in_l2: int

    @property
    def l1_hit_rate(self) -> float:
        """Share of the sectors loaded that L1 answers, 0 to 1 (``l1tex__t_sector_hit_rate`` of loads)."""
        return self.l1_hits / self.l1_reads if self.l1_reads else 0.0

    @property
    def l2_hit_rate(self) -> float:
        """Share of L2's sectors that it had, stores counted as had (``lts__t_sector_hit_rate``), 0 to 1."""
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


@numba.njit(cache=True)
def _way_of(tags, stamps, line, now):
    """The way of ``line`` in its set, and whether it was there; a new line is given the oldest way."""
    oldest = 0
    for way in range(tags.size):
        if tags[way] == line:
            stamps[way] = now
            return way, True
        if stamps[way] < stamps[oldest]:
            oldest = way
    stamps[oldest] = now
    return oldest, False


@numba.njit(cache=True)
def _set_of(line, sets):
    mixed = np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(20)) % np.uint64(sets))


@numba.njit(cache=True)
def _serve(sectors, sms, stores, past_l1, l1, l2, counts, clock):
    """Serve one instruction's sectors in order. A cache: tags, stamps, sectors that are there, dirty ones."""
    tags1, stamps1, there1, _ = l1
    tags2, stamps2, there2, dirty2 = l2
    for i in range(sectors.size):
        now = clock + i
        line, bit = sectors[i] >> 2, np.uint8(1 << (sectors[i] & 3))
        if not past_l1 and not stores:
            counts[L1_READS] += 1
            row = _set_of(line, tags1.shape[1])
            tags, present = tags1[sms[i], row], there1[sms[i], row]
            way, known = _way_of(tags, stamps1[sms[i], row], line, now)
            if not known:
                tags[way], present[way] = line, 0
            if present[way] & bit:
                counts[L1_HITS] += 1
                continue
            present[way] |= bit
        row = _set_of(line, tags2.shape[0])
        way, known = _way_of(tags2[row], stamps2[row], line, now)
        if not known:
            for sector in range(4):
                counts[HBM_WRITES] += dirty2[row, way] >> sector & 1
            tags2[row, way], there2[row, way], dirty2[row, way] = line, 0, 0
        if not stores:
            counts[L2_READS] += 1
            if there2[row, way] & bit:
                counts[L2_READ_HITS] += 1
            else:
                counts[HBM_READS] += 1
        else:
            counts[L2_WRITES] += 1
            dirty2[row, way] |= bit
        there2[row, way] |= bit
    return clock + sectors.size


class CacheModel(Observer):
    """Observer that sends every access to global memory through the model. Read ``result()`` afterwards."""

    def __init__(self, device: str):
        """``device``: of the registry, with its SMs, its L2 and its architecture's memory in an SM.

        Raises SpecError where the registry does not have them.
        """
        self._spec = specs.get(device)
        self._sms = int(self._spec["sms"].value)
        self._inside_sm, self._l2 = (
            int(self._spec["unified_cache_per_sm"].si),
            _empty(self._spec["l2_cache"].si),
        )
        self._l1: tuple | None = None
        self._counts, self._clock = np.zeros(7, np.int64), 1

    def at_once(self, machine) -> int:
        """The blocks that are resident together on all SMs; L1 gets what they leave of an SM's memory."""
        program, launch = machine.program, machine.launch
        limits = Target.of(self._spec.arch).limits
        registers = assemble(program.ptx, program.entry, self._spec.arch).registers
        fits = min(blocks_per_sm(registers, machine.shared_size, launch.threads, limits).values())
        resident = max(1, min(fits, -(-launch.blocks // self._sms)))
        shared = resident * (machine.shared_size + limits.reserved_shared if machine.shared_size else 0)
        self._l1 = _empty(self._inside_sm - shared, self._sms)
        return max(1, fits) * self._sms

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        if space != "global" or not group.size:
            return
        start = access.region.base + access.offset + offset
        address = np.broadcast_to(start, (group.size,))
        table = by_warp(machine, group, address >> SECTOR_SHIFT)
        if width >= 1 << SECTOR_SHIFT:  # pieces of a tile: a whole sector, or parts of two
            last = by_warp(machine, group, (address + width - 1) >> SECTOR_SHIFT)
            table = np.hstack([table, last])
        table = np.sort(table, axis=1)
        new = np.ones(table.shape, bool)
        new[:, 1:] = table[:, 1:] != table[:, :-1]
        assert self._l1 is not None
        block = machine.first_block + machine.block_of_lane[group.lanes[group.firsts]]
        row = np.nonzero(new)[0]
        sectors, sms = table[new], (block % self._sms)[row]
        past = what == "atomic" or bool(PAST_L1 & set(machine.program.sites[site].mods))
        for stores in {"read": (False,), "write": (True,), "atomic": (False, True)}[what]:
            self._clock = _serve(sectors, sms, stores, past, self._l1, self._l2, self._counts, self._clock)

    def result(self) -> ModelledCaches:
        """The traffic of all launches so far."""
        l1_reads, l1_hits, l2_reads, l2_hits, l2_writes, hbm_reads, hbm_writes = map(int, self._counts)
        left = int(np.unpackbits(self._l2[3]).sum())
        return ModelledCaches(
            self._spec.short, l1_reads, l1_hits, l2_reads, l2_hits, l2_writes, hbm_reads, hbm_writes, left
        )


def _empty(size: float, *caches: int):
    """Of each cache of ``size`` bytes: tags, stamps of the last use, and bits of sectors there and dirty."""
    shape = *caches, max(1, (int(size) >> LINE_SHIFT) // WAYS), WAYS
    return np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape, np.uint8), np.zeros(shape, np.uint8)
