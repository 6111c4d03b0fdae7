"""Counters: an observer of the machine that counts instructions, requests, sectors,
wavefronts and divergence.

Definitions (Nsight Compute's): a *request* is one load, store or atomic instruction of one warp; a *sector*
is an aligned 32-byte piece of global memory, counted once a request; a *wavefront* is one pass through the 32
banks of 4 bytes in which shared memory keeps its data, as many as the bank with the most distinct words
needs; that L1 keeps global memory so is our reading (``Traffic.passes``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from warplab.simt.engine.async_copies import WORD
from warplab.simt.engine.bulk_watch import BulkWatch
from warplab.simt.engine.instructions import INSTRUCTIONS
from warplab.simt.observer import Observer
from warplab.simt.ptx.effects import effects_of
from warplab.simt.ptx.ptx_types import TYPES, last_type

SECTOR_SHIFT = 5
BANKS = 32


@dataclass
class Traffic:
    """Counts of one memory instruction in one memory space. A generic address reveals its space only when
    it runs, and may reach another one the next time.

    ``moved``: bytes that lanes asked for, summed over requests. Of copies by TMA, in the space "tma", the
    bytes in shared memory, and ``saved``: sectors that blocks would have read beside if each had fetched for
    itself what one multicast brought. For atomics: the ``lanes`` that took part,
    distinct ``addresses`` summed over requests, and the ``most`` lanes on one address in one request.
    """

    requests: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0
    moved: float = 0
    lanes: int = 0
    addresses: int = 0
    most: int = 0
    bytes: int = 0  # to other blocks' shared memory
    saved: int = 0

    @property
    def passes(self) -> float:
        """The fewest passes through an SM's L1 and shared memory.

        The wavefronts; and one for each four lines of 128 bytes, 16 sectors at most: L1 looks up four tags a
        clock (NVIDIA's developer forum, "Pascal L1 cache", thread 49571). That wavefronts of global memory
        follow shared memory's banks is our reading of 46 launches on an H200 (counted.yml): never
        more than ``l1tex__data_pipe_lsu_wavefronts``, 5 % fewer at most where global memory makes many.
        """
        return max(self.wavefronts, self.sectors / 16)


@dataclass
class Execution:
    """How often a basic block of ``size`` instructions ran: issues by warps, and by threads."""

    size: int
    warps: int = 0
    threads: int = 0
    branches: int = 0
    divergent: int = 0


def flops_of(instr) -> int:
    """Floating-point operations of one instruction in one thread.

    An FMA is 2, comparisons and moves are 0.
    """
    return effects_of(instr, INSTRUCTIONS).flops(instr)


def unit_of(instr) -> str:
    """Which unit does an instruction's floating-point operations: a peak's name in the registry.

    Tensor Cores by the type of their factors ("bf16"); CUDA cores "fp32" or "fp64", and "half_lanes" for
    16-bit types, of which the registry has no peak. "special": the special-function units, which approximate
    in 32 bits; a quotient is left to the CUDA cores, as ptxas may multiply instead.
    """
    if instr.opcode == "wgmma":
        return FACTORS[instr.mods[-1]]
    if instr.opcode in ("mma", "wmma"):
        types = [m for m in instr.mods if m in TYPES]
        return FACTORS[types[1]] if len(types) == 4 else "fp16"  # wmma's f16 form names the accumulators only
    unit = {"f64": "fp64", "f32": "fp32", "f32x2": "fp32"}.get(last_type(instr.mods) or "", "half_lanes")
    approximates = unit == "fp32" and "approx" in instr.mods and instr.opcode != "div"
    return "special" if approximates else unit


FACTORS = {
    "f16": "fp16",
    "bf16": "bf16",
    "tf32": "tf32",
    "f64": "fp64_tensor",
    "e4m3": "fp8",
    "e5m2": "fp8",
}  # of floating-point products


class Issued:
    """Instructions by warp of one chunk of thread blocks.

    A group's run of blocks is added up and written down once.
    """

    def __init__(self):
        self.all = 0  # by every warp
        self.by_warp = np.zeros(0, np.int64)  # beyond those
        self.group, self.pending = None, 0

    def add(self, group, instructions: int):
        if group is not self.group:
            self._settle()
            self.group = group
        self.pending += instructions

    def most(self) -> int:
        self._settle()
        return self.all + int(self.by_warp.max(initial=0))

    def _settle(self):
        group, pending, self.group, self.pending = self.group, self.pending, None, 0
        if group is None or not group.size:
            return
        if group.full:
            self.all += pending
            return
        if not self.by_warp.size:
            self.by_warp = np.zeros(group.machine.warps, np.int64)
        self.by_warp[group.warp[group.firsts]] += pending


class Counters(Observer):
    """The counting observer. Read ``traffic`` by (site, space), ``execution`` by block index, and
    ``busiest`` afterwards.

    ``busiest``: the most instructions that one warp issued.
    """

    def __init__(self):
        self.traffic: dict[tuple[int, str], Traffic] = {}
        self.execution: dict[int, Execution] = {}
        self.alone: dict[int, int] = {}  # by site, bytes
        self.busiest = 0
        self._issued = Issued()

    def executed(self, machine, group, block):
        e = self.execution.get(block.index)
        if e is None:
            e = self.execution[block.index] = Execution(block.size)
        e.warps += group.warps
        e.threads += group.size
        self._issued.add(group, e.size)

    def done(self, machine):
        self.busiest = max(self.busiest, self._issued.most())
        self._issued = Issued()

    def branched(self, machine, group, block, guard, uniform):
        e = self.execution[block.index]
        e.branches += group.warps
        if not uniform:
            taken = np.add.reduceat(guard, group.firsts, dtype=np.int64)
            size = np.diff(group.firsts, append=group.size)
            e.divergent += int(np.count_nonzero((taken > 0) & (taken < size)))

    def accessed(self, machine, group, site, access, offset, width, space, what, values):
        t = self.traffic.get((site, space))
        if t is None:
            if machine.program.sites[site].opcode == "wgmma":
                alone = self._alone(machine, group, access) * width
                self.alone[site] = self.alone.get(site, 0) + alone
                return  # the Tensor Cores read their operands: no request of the warp's
            t = self.traffic[site, space] = Traffic()
        t.requests += group.warps
        if what == "atomic":
            addresses, most = count_addresses(machine, group, access.offset)
            t.lanes, t.addresses, t.most = t.lanes + group.size, t.addresses + addresses, max(t.most, most)
        # the rows of ldmatrix come from some lanes and go to all
        t.moved += (
            group.size * width / 32
            if "matrix" in machine.program.sites[site].text[:9]
            else group.warps * width
        )
        if space == "global":
            # a whole number of sectors further on, the pattern is the same
            key = "sectors", offset % 32, width
            if key not in access.pattern:
                access.pattern[key] = count_sectors(machine, group, access.offset + offset, width)
            t.sectors += access.pattern[key]
        if space != "local":
            if space == "cluster":
                t.bytes += group.size * width
            # a whole number of words further on, every bank moves alike
            key = "wavefronts", offset % 4, width
            if key not in access.pattern:
                access.pattern[key] = count_wavefronts(machine, group, access.offset + offset, width)
            wavefronts, ideal = access.pattern[key]
            t.wavefronts += wavefronts
            t.ideal += ideal

    def _alone(self, machine, group, access) -> int:
        """How many of these places, which a product reads, lie in blocks to which nothing is under way."""
        watch = next((o for o in machine.observers if type(o) is BulkWatch), None)
        filled = [words * WORD for copies in watch.filling.values() for words in copies] if watch else []
        busy = np.unique(np.concatenate([*filled, np.zeros(0, np.int64)]) // machine.shared_stride)
        free = ~np.isin(access.offset // machine.shared_stride, busy)
        # of a small operand several lanes of a warp group read the same places
        return np.unique((group.lanes // 128 << 40 | access.offset)[free]).size

    def bulk(self, machine, group, site, access, width, space, what, values):
        t = self.traffic.setdefault((site, "tma"), Traffic())
        t.requests += group.asks
        if space != "global" or not group.size:
            t.moved += group.size * width
            return
        thread = np.zeros(group.size, np.int64)
        thread[group.started] = 1
        new = np.unique(np.cumsum(thread) << 40 | access.offset >> SECTOR_SHIFT, return_index=True)[1]
        t.sectors += new.size
        t.saved += int(group.saved[new].sum())


def compiled(function):
    """A function of the host, compiled by numba; kept on disk where this user may write anywhere."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # no folder for it, beside the package or in a home
        return numba.njit(function)


def by_warp(machine, group, values: np.ndarray) -> np.ndarray:
    """One row of 32 a warp.

    Lanes that are not in the group repeat their warp's first value, which adds no distinct one.
    """
    if group.full and machine.regular:
        return values.reshape(-1, 32)
    row, column = group.row, group.column
    table = np.repeat(values[group.firsts][:, None], 32, axis=1)
    table[row, column] = values
    return table


def count_distinct(table: np.ndarray) -> int:
    """Distinct values in each row, added up."""
    steps = np.diff(table, axis=1)
    if (steps < 0).any():
        steps = np.diff(np.sort(table, axis=1), axis=1)
    return table.shape[0] + int(np.count_nonzero(steps))


def count_addresses(machine, group, address: np.ndarray) -> tuple[int, int]:
    """Distinct addresses, summed over the group's warps, and the most lanes of a warp that share one."""
    if address.size == 1:
        return group.warps, int(np.bincount(group.row).max())
    order = np.lexsort((address, group.row))
    row, ordered = group.row[order], address[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]) | (row[1:] != row[:-1])])
    return starts.size, int(np.diff(np.r_[starts, ordered.size]).max())


def sectors_by_warp(machine, group, address: np.ndarray, width: int) -> np.ndarray:
    """The 32-byte sectors of ``width`` bytes a lane, aligned to its width: one row a warp."""
    table = by_warp(machine, group, address >> SECTOR_SHIFT)
    if width >= 1 << SECTOR_SHIFT:  # pieces of a tile: a whole sector, or parts of two
        table = np.hstack([table, by_warp(machine, group, (address + width - 1) >> SECTOR_SHIFT)])
    return table


def count_sectors(machine, group, address: np.ndarray, width: int) -> int:
    """32-byte sectors that the group's warps touch in one instruction."""
    if address.size == 1:
        return group.warps * max(1, width >> SECTOR_SHIFT)
    return count_distinct(sectors_by_warp(machine, group, address, width))


def count_wavefronts(machine, group, address: np.ndarray, width: int) -> tuple[int, int]:
    """Wavefronts, and the fewest that the distinct words need (32 words in each),
    summed over the group's warps.
    """
    words_per_lane = max(1, width // 4)
    word = address >> 2
    if word.size == 1:
        return group.warps, group.warps
    table = by_warp(machine, group, word)
    if words_per_lane == 1 and (table.max(axis=1) - table.min(axis=1) < BANKS).all():
        return group.warps, group.warps
    if words_per_lane > 1:
        table = (table[:, :, None] + np.arange(words_per_lane)).reshape(table.shape[0], -1)
    table = np.sort(table, axis=1)
    new = np.diff(table, axis=1, prepend=-1) != 0
    rows = table.shape[0]
    slot = (np.arange(rows)[:, None] * BANKS + (table & (BANKS - 1)))[new]
    per_bank = np.bincount(slot, minlength=rows * BANKS).reshape(rows, BANKS)
    distinct = np.count_nonzero(new, axis=1)
    return int(per_bank.max(axis=1).sum()), int((-(-distinct // BANKS)).sum())
