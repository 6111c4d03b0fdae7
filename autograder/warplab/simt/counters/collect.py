"""Counters: the observer that counts instructions, requests, sectors, wavefronts and divergence.

Definitions (Nsight Compute's): a *request* is one load, store or atomic instruction of one warp. A *sector*
is an aligned 32-byte piece of global memory, counted once a request. A *wavefront* is one pass through the 32
banks of shared memory, each 4 bytes wide; a request needs as many as distinct words lie in its busiest bank.
That global memory in L1 has the same banks is our reading of measurements (``Traffic.passes``).
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
    """Counts of one memory instruction in one state space. An instruction with generic addresses may access
    several spaces, one at each execution.

    ``ideal``: the fewest wavefronts possible. ``moved``: bytes a lane that requests asked for, summed over
    requests; for copies by TMA (in the space "tma") the bytes in shared memory. ``saved``: sectors that
    multicast saves, compared with one copy for each block. For atomics: the ``lanes`` that took part, the
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
        """A lower bound of the passes through an SM's L1 and shared memory.

        It is the wavefronts, or one pass for each four lines of 128 bytes (16 sectors) if that is more: L1
        looks up four tags a clock (NVIDIA's developer forum, "Pascal L1 cache", thread 49571). That
        wavefronts of global memory follow shared memory's banks is our reading of 46 launches on an H200
        (counted.yml): the bound never exceeded ``l1tex__data_pipe_lsu_wavefronts``, and was at most 5 % below
        it where global memory makes many.
        """
        return max(self.wavefronts, self.sectors / 16)


@dataclass
class Execution:
    """How often a basic block of ``size`` instructions ran, counted in warps and in threads, and the
    conditional branches at its end, counted in warps.
    """

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


def access_of(instr) -> str:
    """The kind of an instruction's accesses: "load", "store" or "atomic"."""
    memory = effects_of(instr, INSTRUCTIONS).memory
    return memory if memory in ("store", "atomic") else "load"


def unit_of(instr) -> str:
    """The unit that does an instruction's floating-point operations, as the registry names its peak.

    Tensor Cores are named by the type of the factors ("bf16"), CUDA cores "fp32" or "fp64". "half_lanes":
    16-bit types on CUDA cores, for which the registry has no peak. "special": the special-function units,
    which do 32-bit approximations; an approximate division counts for the CUDA cores, as ptxas may replace it
    by a multiplication.
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
    """Counts the instructions that each warp issues in one chunk of thread blocks.

    Successive basic blocks of the same group are summed first and added to its warps once.
    """

    def __init__(self):
        self.all = 0  # issued by every warp
        self.by_warp = np.zeros(0, np.int64)  # issued by each warp beyond ``all``
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
    """The counting observer. Afterwards read ``traffic`` by (site, space), ``execution`` by the index of the
    basic block, and ``busiest``, the most instructions that one warp issued.

    ``alone``: bytes of operands of ``wgmma``, by site, as ``Counts.operand_bytes_alone``.
    """

    def __init__(self):
        self.traffic: dict[tuple[int, str], Traffic] = {}
        self.execution: dict[int, Execution] = {}
        self.alone: dict[int, int] = {}
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
        """Count a request in the Traffic of its site and space. Sectors and wavefronts depend only on the
        addresses modulo a period, so ``access.pattern`` keeps them for later requests by the same register.
        """
        t = self.traffic.get((site, space))
        if t is None:
            if machine.program.sites[site].opcode == "wgmma":
                alone = self._alone(machine, group, access) * width
                self.alone[site] = self.alone.get(site, 0) + alone
                return  # the Tensor Cores read the operands, not a request of the warp
            t = self.traffic[site, space] = Traffic()
        t.requests += group.warps
        if what == "atomic":
            addresses, most = count_addresses(group, access.offset)
            t.lanes, t.addresses, t.most = t.lanes + group.size, t.addresses + addresses, max(t.most, most)
        # ldmatrix reads rows for some lanes' addresses and gives the elements to all
        t.moved += (
            group.size * width / 32
            if "matrix" in machine.program.sites[site].text[:9]
            else group.warps * width
        )
        if space == "global":
            # addresses moved by a whole number of sectors touch as many sectors
            key = "sectors", offset % 32, width
            if key not in access.pattern:
                access.pattern[key] = count_sectors(machine, group, access.offset + offset, width)
            t.sectors += access.pattern[key]
        if space != "local":
            if space == "cluster":
                t.bytes += group.size * width
            # addresses moved by a whole number of words need as many wavefronts
            key = "wavefronts", offset % 4, width
            if key not in access.pattern:
                access.pattern[key] = count_wavefronts(machine, group, access.offset + offset, width)
            wavefronts, ideal = access.pattern[key]
            t.wavefronts += wavefronts
            t.ideal += ideal

    def _alone(self, machine, group, access) -> int:
        """How many of the accessed places are in thread blocks that no copy by TMA is filling."""
        watch = next((o for o in machine.observers if type(o) is BulkWatch), None)
        filled = [words * WORD for copies in watch.filling.values() for words in copies] if watch else []
        busy = np.unique(np.concatenate([*filled, np.zeros(0, np.int64)]) // machine.shared_stride)
        free = ~np.isin(access.offset // machine.shared_stride, busy)
        # several lanes of a warp group read the same places of a small operand, which count once
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
    """A host function compiled by numba, cached on disk if there is a folder that this user may write to."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # no folder for the cache, neither beside the package nor in the home directory
        return numba.njit(function)


def by_warp(machine, group, values: np.ndarray) -> np.ndarray:
    """A table with a row of 32 values for each warp.

    Lanes that are not in the group get their warp's first value, which adds no distinct value to the row.
    """
    if group.full and machine.regular:
        return values.reshape(-1, 32)
    row, column = group.row, group.column
    table = np.repeat(values[group.firsts][:, None], 32, axis=1)
    table[row, column] = values
    return table


def count_distinct(table: np.ndarray) -> int:
    """The number of distinct values in each row, summed over the rows."""
    steps = np.diff(table, axis=1)
    if (steps < 0).any():
        steps = np.diff(np.sort(table, axis=1), axis=1)
    return table.shape[0] + int(np.count_nonzero(steps))


def count_addresses(group, address: np.ndarray) -> tuple[int, int]:
    """Distinct addresses, summed over the group's warps, and the most lanes of a warp that share one."""
    if address.size == 1:
        return group.warps, int(np.bincount(group.row).max())
    order = np.lexsort((address, group.row))
    row, ordered = group.row[order], address[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]) | (row[1:] != row[:-1])])
    return starts.size, int(np.diff(np.r_[starts, ordered.size]).max())


def sectors_by_warp(machine, group, address: np.ndarray, width: int) -> np.ndarray:
    """The numbers of the 32-byte sectors that each lane touches, one row a warp; accesses are aligned."""
    table = by_warp(machine, group, address >> SECTOR_SHIFT)
    if width >= 1 << SECTOR_SHIFT:  # a row of a matrix tile: a whole sector, or parts of two
        table = np.hstack([table, by_warp(machine, group, (address + width - 1) >> SECTOR_SHIFT)])
    return table


def count_sectors(machine, group, address: np.ndarray, width: int) -> int:
    """The number of 32-byte sectors that the group's warps touch in one instruction."""
    if address.size == 1:
        return group.warps * max(1, width >> SECTOR_SHIFT)
    return count_distinct(sectors_by_warp(machine, group, address, width))


def count_wavefronts(machine, group, address: np.ndarray, width: int) -> tuple[int, int]:
    """(wavefronts, the fewest for as many distinct words at 32 in each), summed over the group's warps."""
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
