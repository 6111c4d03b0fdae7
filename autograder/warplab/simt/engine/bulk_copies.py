"""Bulk copies by TMA: ``cp.async.bulk``, ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk``, which one
thread starts and a unit of the SM makes; and ``st.async``.

A copy to shared memory completes at an mbarrier: it decreases the bytes that the current phase expects by its
size, the fill of a box beyond the array's edges included. A copy to global memory belongs to a bulk group of
the thread that started it. The engine copies at once; ``bulk_watch`` checks that no thread uses the memory
too early, and ``mbarrier`` completes phases. For other threads, the copy is ordered by that phase, as if the
thread that started it had written the data and arrived then.

Rules: PTX ISA, "cp.async.bulk" and "Tensors"; ``swizzle`` has the layouts of swizzled boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from warplab.simt.engine import mbarrier
from warplab.simt.engine.address_space import Access
from warplab.simt.engine.async_copies import WORD, words_of
from warplab.simt.engine.atomics import OPERATIONS, update
from warplab.simt.engine.bulk_watch import BulkWatch
from warplab.simt.engine.clusters import MEMORIES, RANK_SHIFT, WITHIN
from warplab.simt.engine.generic_addresses import resolve
from warplab.simt.engine.groups import Group
from warplab.simt.engine.loadstore import slots_of, taken
from warplab.simt.engine.movement import SPACES
from warplab.simt.engine.swizzle import PIECE, swizzled
from warplab.simt.engine.tensor_maps import ALIGNED, SIZE, Map, decoded
from warplab.simt.errors import InvalidLaunch, MisalignedAccess, OutOfBounds, UseAfterFree, Wording
from warplab.simt.ptx.parser import Instr, Vec
from warplab.simt.ptx.ptx_types import HALVES, TYPES, last_type

TILE_ALIGNED = 128  # bytes: the alignment of a box in shared memory
RANK = re.compile(r"([1-5])d")
WAYS = (  # (destination, source) of a copy
    ["shared", "global"],
    ["cluster", "global"],
    ["cluster", "shared"],
    ["global", "shared"],
)


def bulk(code, instr):
    """The handler of ``cp.async.bulk`` and ``cp.reduce.async.bulk``. The forms that it does not have (im2col,
    gather, byte masks) have modifiers that the table refuses.
    """
    mods, operands = instr.mods, list(instr.operands)
    if "prefetch" in mods:
        return
    if "commit_group" in mods:
        code.emit("memory.watch(bulk_copies.BulkWatch).commit(group)")
        return
    if "wait_group" in mods:
        code.emit(f"memory.watch(bulk_copies.BulkWatch).wait_group(group, {int(operands[0].value)})")
        return
    ways = [SPACES[mod] for mod in mods if SPACES.get(mod) in ("global", *MEMORIES)]
    reduces, kind = mods[0] == "reduce", last_type(mods)
    operation = next((mod for mod in mods if mod in OPERATIONS), None) if reduces else None
    if ways not in WAYS or (operation is None) == reduces or (kind in HALVES and operation != "add"):
        raise code.unsupported(instr)
    to_global, from_global = (way == "global" for way in ways)
    if reduces and not to_global:
        raise code.unsupported(instr, "a reduction in shared memory")
    opcode = "red" if reduces else "ld" if from_global else "st"
    site = _site(code, instr, opcode)
    tile = next((operand for operand in operands[:2] if isinstance(operand, Vec)), None)
    rank = next((int(mod[0]) for mod in mods if RANK.fullmatch(mod)), 0)
    if (tile is None) == ("tensor" in mods) or (tile is not None and len(tile.items[1].items) != rank):
        raise code.unsupported(instr)
    ends = []
    for operand in operands[:2]:
        if isinstance(operand, Vec):
            corner = ", ".join(code.use(index, "i4") for index in operand.items[1].items)
            ends.append(f"({_pair(code, operand.items[0])}, {corner})")
        else:
            ends.append(_pair(code, operand))
    rest = operands[2:]
    size = "None" if tile is not None else code.use(rest.pop(0), "u4")
    at = f"memory, group, {site}, {', '.join(ends)}, {size}"
    if to_global:
        code.emit(f"bulk_copies.store({at}, {operation!r}, {kind!r})")
        return
    bar = _pair(code, rest.pop(0))
    mask = code.use(rest.pop(0), "u2") if "multicast::cluster" in mods else "None"
    code.emit(f"bulk_copies.load({at}, {bar}, {mask}, {ways!r})")


def _site(code, instr, opcode: str) -> int:
    """The site of both sides of a copy; observers see it as a load, store or reduction of words past L1."""
    there = Instr(opcode, ("global", "cg", "b32"), instr.operands, None, instr.line, instr.file, instr.text)
    return code.site(there)


def _pair(code, operand) -> str:
    base, offset = code.base_and_offset(operand)
    return f"({base}, {offset})"


class Pieces(Group):
    """A copy as a group for observers: a lane for each word or 16 bytes inside the array, in rows of 32 as if
    each row were a warp. ``asks``: how many requests are counted; ``saved``: for each piece, how many times
    more it would be read without multicast.
    """

    def __init__(self, machine, lanes: np.ndarray, asks: int, saved: np.ndarray | int = 0):
        super().__init__(machine, lanes, {}, False)
        self.asks, self.saved = asks, saved

    @cached_property
    def started(self) -> np.ndarray:
        """The index of each thread's first piece."""
        return np.flatnonzero(np.r_[True, self.lanes[1:] != self.lanes[:-1]])

    @cached_property
    def rank(self) -> np.ndarray:
        sizes = np.diff(self.started, append=self.size)
        return np.arange(self.size) - np.repeat(self.started, sizes)

    @cached_property
    def firsts(self) -> np.ndarray:
        return np.flatnonzero(self.column == 0)

    @cached_property
    def column(self) -> np.ndarray:
        return self.rank % 32

    @cached_property
    def warps(self) -> int:
        return self.firsts.size

    @cached_property
    def row(self) -> np.ndarray:
        return np.cumsum(self.column == 0) - 1


def load(memory, group, site: int, there, here, size, bar, mask, ways):
    """Copy to shared memory: of the thread's own block, of the block in an address from ``mapa``, or of each
    block of the cluster whose bit is set in ``mask``.
    """
    for part, (to, origin, bytes_, at, blocks) in _alike(group, there, here, size, bar, mask):
        if ways[1] == "global":
            own, source = None, _Global(memory, part, site, origin, bytes_, "read")
            data, saved = source.bytes(), 0 if blocks is None else np.bitwise_count(blocks).astype(int) - 1
            source.tell("read", None, saved)
        else:
            source = _Row(memory, part, site, bytes_)
            own = _Shared(memory, part, site, origin, source, "shared", "read")
            data = own.tell_read()
        everybody = np.ones(part.size, bool)
        of_rank = {None: everybody} if blocks is None else {r: blocks >> r & 1 > 0 for r in range(16)}
        for rank, chosen in of_rank.items():
            if chosen.any():
                some = part if chosen.all() else part.split(chosen, frozenset())
                space = ways[0] if rank is None else "cluster"
                target = _Shared(memory, some, site, _of_block(to, rank, chosen), source, space, "write")
                phases = target.write(data[chosen], _of_block(at, rank, chosen), space, own is not None)
                if own is not None:
                    own.keep(phases)


def store_async(memory, group, site: int, space, there, offset: int, dtype, values, bar, at: int):
    """``st.async``: a store of a few bytes that completes at an mbarrier of the block that it writes to."""
    size = np.dtype(dtype).itemsize * len(values)
    memory.store(group, site, space, there, offset, dtype, values)
    use = mbarrier.live(memory, group, site, space, bar, at, "lets a store complete at {}", True)
    access = memory.checked(group, site, space, there, offset, size, "write")
    for words in words_of(group, access.offset + offset, size):
        memory.watch(BulkWatch).fill(group.lanes, words, use.phases, site)
    mbarrier.brought(use, np.array([size]))


def _of_block(pair, rank: int | None, chosen):
    """The same address in shared memory, in the block of a rank (None: unchanged)."""
    base = pair[0][chosen]
    return (base if rank is None else base & WITHIN | np.uint64(rank + 1) << RANK_SHIFT), pair[1]


def store(memory, group, site: int, there, here, size, operation, kind):
    """Copy from shared to global memory, or combine both by ``operation``."""
    for part, (to, origin, bytes_) in _alike(group, there, here, size):
        target = _Global(memory, part, site, to, bytes_, "write", kind)
        source = _Shared(memory, part, site, origin, target, "shared", "read")
        target.write(source.read(), operation)


def _alike(group, *values) -> Iterator[tuple[Any, tuple]]:
    """Split a group into parts whose lanes copy the same array or tensor map and the same size, each with its
    part of the values.
    """
    flat = [_broadcast(value, group.size) for value in values]
    keys = [group.lanes * 0]
    for value in flat[:2]:
        keys.append(slots_of(value[0]) if _is_pair(value) else value[0][0])
    if isinstance(flat[2], np.ndarray):
        keys.append(flat[2])
    _, key = np.unique(np.stack([k.astype(np.uint64) for k in keys]), axis=1, return_inverse=True)
    for each in np.unique(key):
        mask = key.reshape(-1) == each
        yield group if mask.all() else group.split(mask, frozenset()), taken(tuple(flat), mask)


def _is_pair(value) -> bool:
    """Whether an end of a copy is (address, offset), not (tensor map, index, ...)."""
    return isinstance(value[0], np.ndarray)


def _broadcast(value, size: int):
    if isinstance(value, tuple):
        return tuple(_broadcast(one, size) for one in value)
    return np.broadcast_to(value, (size,)) if isinstance(value, np.ndarray) else value


class _Row:
    """One end of a copy: ``size`` contiguous bytes for each lane."""

    map: Map | None = None
    there: np.ndarray | None = None

    def __init__(self, memory, group, site: int, size):
        self.memory, self.group, self.site = memory, group, site
        if size is not None:
            self.size = int(size[0])
            said = f"copies {self.size} bytes; bulk copies are of multiples of {PIECE} bytes"
            hint = "the number of bytes, or a loop for the rest"
            self._refuse(MisalignedAccess, self.size % PIECE or not self.size, said, hint)

    def _refuse(self, kind, bad, does: Wording, hint: str) -> None:
        self.memory.machine.refuse(kind, self.group, self.site, np.asarray(bad), does, hint)


class _Global(_Row):
    """The end of a copy in global memory: ``size`` bytes for each lane, from an address on or a box of a
    tensor map. ``at``: the byte offsets of the elements in their region, a row a lane; ``there``: which
    elements are in the array (None: all). ``type``: the PTX type of the elements.
    """

    def __init__(self, memory, group, site: int, end, size, what: str, type_: str = ""):
        super().__init__(memory, group, site, size)
        self.type = type_ or "b32"
        if _is_pair(end):
            access = memory.checked(group, site, "global", *end, self.size, what, PIECE)
            first = np.broadcast_to(access.offset + end[1], (group.size,))
            step = TYPES[self.type].bytes
            self.region, self.at = access.region, first[:, None] + np.arange(0, self.size, step)
        else:
            self.map = one = self._map(end)
            self.type, self.size = one.type, one.bytes
            self._refuse_between_pieces(end[1], one.itemsize)
            if what != "read":
                self._refuse_negative(end[1:])
            at, self.there = one.places([*end[1:]])
            self.at = at + (one.address - self.region.base)
        self.kind = TYPES[self.type].bits
        said, read_only = f"writes to {self.region.label}, which is read-only", not self.region.writable
        self._refuse(OutOfBounds, what != "read" and read_only, said, "copy the array first: array.copy()")

    def _refuse_between_pieces(self, column: np.ndarray, itemsize: int) -> None:
        """Refuse a box that begins between pieces of 16 bytes. A GPU ends such a launch with
        CUDA_ERROR_ILLEGAL_INSTRUCTION (seen on an H200).
        """
        begins = column.astype(np.int64) * itemsize
        self._refuse(
            MisalignedAccess,
            begins % PIECE != 0,
            lambda i: (
                f"begins a box at index {column[i]} of the innermost dimension, byte {begins[i]} of a row"
            ),
            f"an index whose byte is a multiple of {PIECE}",
        )

    def _refuse_negative(self, corner) -> None:
        """Refuse to store a box that begins before the array, as a GPU does with the same error. Loading such
        a box is allowed (seen on an H200).
        """
        before = np.stack(corner).astype(np.int32).min(axis=0)
        self._refuse(
            OutOfBounds,
            before < 0,
            lambda i: f"writes a box that begins at the index {before[i]}, before the array",
            "boxes that begin at index 0 or later; what is beyond the end is left out",
        )

    def _map(self, end) -> Map:
        """The tensor map that an instruction uses; refuses one that is invalid or does not fit."""
        space, address = resolve(end[0][0][:1] + np.uint64(end[0][1]))
        region = self.memory.space.find(int(address[0])) if space == "global" else None
        at = int(address[0]) - region.base if region is not None else -1
        data = region.data[at : at + SIZE].tobytes() if region is not None and at >= 0 else b""
        one = decoded(data) if len(data) == SIZE else None
        where = "local memory" if space == "local" else region.place(at) if region is not None else "nowhere"
        hint = "the parameter, const __grid_constant__ CUtensorMap, and the argument, warplab.tensor_map"
        self._refuse(InvalidLaunch, one is None, f"uses an invalid tensor map ({where})", hint)
        said = f"uses a tensor map at an address that is not a multiple of {ALIGNED}"
        self._refuse(MisalignedAccess, at % ALIGNED, said, "alignas(64) where it is stored")
        assert one is not None
        said = f"gives {len(end) - 1} coordinates for a tensor map of {len(one.dims)} dimensions"
        hint = "the instruction (.1d, .2d, .3d) and the array's dimensions"
        self._refuse(InvalidLaunch, len(one.dims) != len(end) - 1, said, hint)
        found, freed = self.memory.space.find(one.address), self.memory.space.freed(one.address)
        said = f"copies from or to {freed.label if freed else 'an array'}, which has been freed"
        hint = "keep the array for as long as its tensor map is used"
        self._refuse(UseAfterFree, found is None, said, hint)
        assert found is not None
        self.region = found
        return one

    @cached_property
    def _index(self) -> np.ndarray:
        return self.at // int(self.kind[1])

    def bytes(self) -> np.ndarray:
        """The data, a row of 16-byte pieces for each lane."""
        view = self.region.view(self.kind)
        if self.there is None or self.there.all():
            found = view[self._index]
        else:
            fill = np.array(self.map.fill if self.map else 0, self.kind)
            found = np.where(self.there, view[np.where(self.there, self._index, 0)], fill)
        return np.ascontiguousarray(found).view("V16")

    def write(self, data: np.ndarray, operation: str | None) -> None:
        """Store rows of pieces, or combine them with the array by ``operation``; only inside the array."""
        values, index = data.view(self.kind), self._index
        if self.there is not None:
            values, index = values[self.there], index[self.there]
        if operation is None:
            view = self.region.view(self.kind)
            before = view[index]
            view[index] = values
            after = self._words()
            view[index] = before
            self.tell("write", after)
            view[index] = values
            return
        self.tell("atomic", None)
        halves = self.type in HALVES
        bits = self.kind if halves else TYPES[self.type].value
        operation = f"{operation}.{self.type}" if halves else operation
        update(
            self.region.view(bits), index.reshape(-1), operation, values.view(bits).reshape(-1), None, False
        )

    @cached_property
    def _touched(self) -> tuple[np.ndarray, np.ndarray]:
        """(words of the region that are accessed, the lane of the group that accesses each)."""
        lane = np.broadcast_to(np.arange(self.group.size)[:, None], self.at.shape)
        at, lane = (self.at, lane) if self.there is None else (self.at[self.there], lane[self.there])
        at, lane = at.reshape(-1), lane.reshape(-1)
        words = at // WORD
        if self.kind == "u8":
            words, lane = (words[:, None] + np.arange(2)).reshape(-1), np.repeat(lane, 2)
        elif self.kind != "u4":
            new = np.r_[True, (words[1:] != words[:-1]) | (lane[1:] != lane[:-1])][: words.size]
            words, lane = words[new], lane[new]
        return words, lane

    def _words(self) -> np.ndarray:
        words, view = self._touched[0], self.region.view("u4")
        return view[np.minimum(words, view.size - 1)] if view.size else words.astype("u4")

    def tell(self, what: str, values, saved: np.ndarray | int = 0) -> None:
        """Tell the observers of the access; ``saved``: as in ``Pieces``, for each lane's copy."""
        words, lane = self._touched
        at = words * WORD if words.size else np.zeros(1, np.int64)
        access = Access(at.astype(np.uint64) + np.uint64(self.region.base), self.region, at)
        given = None if values is None else (values,)
        spared = np.broadcast_to(saved, (self.group.size,))[lane]
        pieces = Pieces(self.memory.machine, self.group.lanes[lane], self.group.size, spared)
        _tell(self.memory, pieces, self.site, access, WORD, "global", what, given)


class _Shared:
    """The end of a copy in shared memory, of the own block or another one of the cluster. The ``other`` end
    determines its size and layout.
    """

    def __init__(self, memory, group, site: int, end, other: _Row, space: str, what: str):
        self.memory, self.group, self.site, self.other = memory, group, site, other
        machine = memory.machine
        piece = np.arange(0, other.size, PIECE)
        piece = other.map.in_shared(piece) if other.map else piece
        width, aligned = int(piece[-1]) + PIECE, TILE_ALIGNED if other.map else PIECE
        access = memory.checked(group, site, space, *end, width, what, aligned)
        within, offset = (np.broadcast_to(x + end[1], (group.size,)) for x in (access.within, access.offset))
        away = offset // machine.shared_stride != machine.block_of_lane[group.lanes]
        self.space = "cluster" if away.any() else "shared"
        self.within = swizzled(within[:, None] + piece, other.map.swizzle if other.map else 0)
        self.at = self.within + (offset - within)[:, None]  # bytes of the chunk's shared memory

    def tell_read(self) -> np.ndarray:
        """The data, a row of pieces for each lane. Observers are told of pieces that are inside the array."""
        there = self.other.there
        if there is not None:
            there = there.reshape(*self.at.shape, -1).any(axis=2)
        self._tell("read", None, False, there)
        return self.memory.machine.shared.view("V16")[self.at // PIECE]

    def read(self) -> np.ndarray:
        """``tell_read`` for a copy that belongs to a bulk group."""
        data = self.tell_read()
        self.keep()
        return data

    def keep(self, phases=None) -> None:
        """The bytes must not be overwritten before the copy's group, or the ``phases``, are complete."""
        lanes = np.repeat(self.group.lanes, self.at.shape[1])
        phases = phases if phases is None else np.repeat(phases, self.at.shape[1])
        for part in range(PIECE // WORD):
            words = self.at.reshape(-1) // WORD + part
            self.memory.watch(BulkWatch).read(lanes, words, self.site, phases)

    def write(self, data: np.ndarray, bar, space: str, asks: bool) -> np.ndarray:
        """Store rows of pieces, and complete at the mbarriers ``bar``. Returns the phases they are in."""
        memory, does = self.memory, "lets a bulk copy complete at {}"
        use = mbarrier.live(memory, self.group, self.site, space, bar[0], bar[1], does, True)
        self._tell("write", tuple(np.ascontiguousarray(data.view("u4").reshape(-1, 4).T)), asks)
        memory.machine.shared.view("V16")[self.at // PIECE] = data
        watch, ends = memory.watch(BulkWatch), use.phases
        lanes, phases = (np.repeat(x, self.at.shape[1]) for x in (self.group.lanes, ends))
        for part in range(PIECE // WORD):
            watch.fill(lanes, self.at.reshape(-1) // WORD + part, phases, self.site)
        mbarrier.brought(use, self.other.size)
        return ends

    def _tell(self, what, values, asks: bool, there=None) -> None:
        at, within = self.at, self.within
        lanes = np.broadcast_to(self.group.lanes[:, None], at.shape)
        if there is not None:
            at, within, lanes = at[there], within[there], lanes[there]
        at, within, lanes = (np.ascontiguousarray(x).reshape(-1) for x in (at, within, lanes))
        if at.size:
            access = Access(within.astype(np.uint64), self.memory.machine.shared, at, within)
            pieces = Pieces(self.memory.machine, lanes, asks * self.group.size)
            _tell(self.memory, pieces, self.site, access, PIECE, self.space, what, values)


def _tell(memory, pieces: Pieces, site: int, access: Access, width: int, space: str, what: str, values):
    for observer in [*memory.observers]:
        observer.bulk(memory.machine, pieces, site, access, width, space, what, values)
