"""The load-store unit: checks every memory access of a kernel, tells the observers, and does it.

The functions that ``translate`` makes of basic blocks call its ``load``, ``store``, ``atomic`` and ``param``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from warplab.simt.engine import clusters, warp
from warplab.simt.engine.address_space import REGION_SHIFT, UNMAPPED, Access, AddressSpace, Region
from warplab.simt.engine.atomics import update
from warplab.simt.engine.generic_addresses import PARAMETERS, in_several_spaces, resolve, space_keys
from warplab.simt.engine.groups import joined
from warplab.simt.engine.indices import last_index
from warplab.simt.engine.taint import Tainted, loaded, origins_of
from warplab.simt.engine.wrapped import plain
from warplab.simt.errors import ClusterMisuse, MisalignedAccess, OutOfBounds, UseAfterFree
from warplab.simt.observer import Observer

Watch = TypeVar("Watch", bound=Observer)
ALL_LANES = 0xFFFFFFFF


class SeveralPlaces(Exception):
    """The lanes of one access go to several state spaces or arrays: lanes with equal ``keys`` to one."""

    def __init__(self, keys: np.ndarray):
        self.keys = keys


class LoadStoreUnit:
    """The memory of one machine. Addresses are uint64 arrays, one a lane or one for all lanes of a group."""

    def __init__(self, machine):
        self.machine, self.program, self.observers = machine, machine.program, machine.observers
        self.space: AddressSpace = machine.space
        self.stored_origins: list[np.ndarray] | None = None  # of tainted values in the current store

    def param(self, name: str, offset: int, dtype: str) -> np.ndarray:
        data = self.machine.launch.params[name]
        return np.frombuffer(data, dtype, 1, offset)

    def parameter(self, address: np.ndarray) -> np.ndarray:
        """Generic addresses of parameters, which are mapped as read-only global memory at the first call."""
        machine = self.machine
        if machine.parameters is None:
            data = self._parameters()
            machine.parameters = self.space.add(data, "the kernel's parameters", writable=False)
        return address + np.uint64(machine.parameters.base - PARAMETERS)

    def _parameters(self) -> np.ndarray:
        parameters = self.program.function.params
        data = np.zeros(max(p.offset + p.size for p in parameters), np.uint8)
        for p in parameters:
            data[p.offset : p.offset + p.size] = np.frombuffer(self.machine.launch.params[p.name], np.uint8)
        return data

    def param_at(self, site, address: np.ndarray, offset: int, dtype: str) -> np.ndarray:
        """Load a parameter by a computed address, as LLVM does to select one of two parameters."""
        data = self._parameters()
        width, at = np.dtype(dtype).itemsize, address.view(np.int64) + (offset - PARAMETERS)
        if at.min() < 0 or at.max() + width > data.size:
            message = f"a thread reads outside of the kernel's parameters, which have {data.size} bytes"
            raise self.program.error(OutOfBounds, site, message, "the index into the parameter")
        return data[at[:, np.newaxis] + np.arange(width)].view(dtype)[:, 0]

    def prepare(self, group, space: str, address: np.ndarray) -> Access:
        """The Access of the addresses in one register, cached by the identity of the register's array."""
        key = (space, id(address))
        found = group.accesses.get(key)
        if found is not None and found.source is address:
            return found
        if space != "global":
            access = self._own(group, space, address)
        else:
            region = self.space.find(int(address[0])) or UNMAPPED
            access = Access(address, region, (address - np.uint64(region.base)).view(np.int64))
        if len(group.accesses) > 64:
            group.accesses.clear()
        group.accesses[key] = access
        return access

    def _own(self, group, space: str, address: np.ndarray) -> Access:
        """The Access of addresses in a block's shared or a thread's local memory."""
        m, within = self.machine, address.view(np.int64)
        if space == "cluster":
            return clusters.reached(m, group, address)
        region, base, step = (
            (m.shared, m.shared_base, m.shared_stride)
            if space == "shared"
            else (m.local, m.local_base, self.program.local_size)
        )
        offset = within + (base if group.full else base[group.lanes])
        return Access(address, region, offset, within, step)

    def access(self, group, site, space, address: Any, offset, width, what, values=None, aligned=0):
        """Check an access of ``width`` bytes a lane and tell the observers.

        Returns (access, origins); ``origins`` is None, or for a read of uninitialised memory (the origins of
        its parts, the observer that found it): the last arguments of ``taint.loaded``. ``aligned``: the
        alignment in bytes, if it is not ``width``. Raises SeveralPlaces if lanes access several state spaces
        or arrays.
        """
        if isinstance(address, Tainted):
            address.refuse(group, "uses it as an address", self.program.sites[site])
        if space == "generic":
            if in_several_spaces(address):
                raise SeveralPlaces(space_keys(address))
            space, address = resolve(address)
        if space == "cluster":
            own = clusters.are_own(group, address)
            if own.any():
                if not own.all():
                    raise SeveralPlaces(own)
                space, address = "shared", address & clusters.WITHIN
        access = self.checked(group, site, space, address, offset, width, what, aligned)
        if what != "read" and not access.region.writable:
            who, label = self.machine.thread_name(group.lanes[0]), access.region.label
            raise self.program.error(
                OutOfBounds,
                site,
                f"{who} writes to {label}, which is read-only",
                "copy the array first: array.copy()",
            )
        origins = None
        for o in self.observers:
            found = o.accessed(self.machine, group, site, access, offset, width, space, what, values)
            origins = origins or found
        return access, origins

    def checked(self, group, site, space, address, offset, width, what, aligned=0) -> Access:
        """The Access of these addresses, checked for bounds and alignment."""
        access = self.prepare(group, space, address)
        size = self.size_of(space, access)
        if access.high + offset + width > size or (
            (offset < 0 or access._low is not None) and access.low + offset < 0
        ):
            if space == "global" and self._several_regions(address, offset):
                raise SeveralPlaces(slots_of(address))
            self.fault(group, site, access, offset, width, size, space, what)
        grain = (aligned or width) - 1
        if (access.bits | offset) & grain and np.any((access.offset + offset) & grain):
            self.misaligned(group, site, access, offset, grain + 1, space, what)
        return access

    def size_of(self, space: str, access: Access) -> int:
        """Bytes of the memory that a thread may access there."""
        if space == "global":
            return access.region.size
        return self.program.local_size if space == "local" else self.machine.shared_size

    def load(self, group, site, space, address, offset, dtype, count):
        """Load ``count`` neighbouring elements a lane: an array, or a list of arrays if ``count`` > 1."""
        width = np.dtype(dtype).itemsize
        try:
            access, origins = self.access(group, site, space, address, offset, width * count, "read")
        except SeveralPlaces as found:
            return _apart(found.keys, self.load, group, site, space, address, offset, dtype, count)
        view = access.region.view(dtype)
        index = access.index(width.bit_length() - 1, offset)
        if origins:
            return loaded(view, index, count, *origins)
        return view[index] if count == 1 else [view[index + i] for i in range(count)]

    def store(self, group, site, space, address, offset, dtype, values):
        """Store neighbouring elements a lane: ``values`` is a tuple of arrays, the elements in order."""
        width = np.dtype(dtype).itemsize
        given = values
        if Tainted in map(type, values):
            self.stored_origins, values = [origins_of([value]) for value in values], plain(values)
        try:
            access, _ = self.access(group, site, space, address, offset, width * len(values), "write", values)
        except SeveralPlaces as found:
            return _apart(found.keys, self.store, group, site, space, address, offset, dtype, given)
        view = access.region.view(dtype)
        index = access.index(width.bit_length() - 1, offset)
        self.stored_origins = None
        for i, value in enumerate(values):
            # if all lanes write one address, the value of some lane remains: here the last lane's
            view[index + i if i else index] = value[-1] if index.size == 1 < value.size else value

    def atomic(self, group, site, space, address, offset, dtype, operation, value: Any, compare: Any, wanted):
        """Read-modify-write at each lane's address. Returns the old values if ``wanted``, else None."""
        width = np.dtype(dtype).itemsize
        for one in (value, compare):
            if isinstance(one, Tainted):
                one.refuse(group, "passes it to an atomic", self.program.sites[site])
        try:
            access, origins = self.access(group, site, space, address, offset, width, "atomic")
        except SeveralPlaces as found:
            rest = address, offset, dtype, operation, value, compare, wanted
            return _apart(found.keys, self.atomic, group, site, space, *rest)
        index = np.broadcast_to(access.index(width.bit_length() - 1, offset), (group.size,))
        old = update(access.region.view(dtype), index, operation, value, compare, wanted)
        return old if old is None or not origins else loaded(old, np.arange(old.size), 1, *origins)

    def _several_regions(self, address, offset) -> bool:
        """Whether the lanes' addresses are in several slots, each of which has a mapped region."""
        slots = np.unique((address + np.uint64(offset & (1 << 64) - 1)) >> np.uint64(REGION_SHIFT))
        return slots.size > 1 and all(int(s) in self.space.regions for s in slots)

    def warp_barrier(self, group, mask) -> None:
        """``syncwarp`` of whole warps, or of the lanes in each lane's member mask."""
        if not (mask == ALL_LANES).all():
            first = group.lanes - group.column  # lane 0 of each lane's warp
            pairs = np.unique(np.stack(np.broadcast_arrays(first, mask.astype(np.int64))), axis=1)
            threads = self.machine.thread_of_lane[pairs[0]][:, np.newaxis] + np.arange(32)
            there = threads < self.machine.launch.threads
            named = (pairs[1][:, np.newaxis] >> np.arange(32) & 1).astype(bool)
            if (there & ~named).any():
                together, column = np.nonzero(there & named)
                for o in self.observers:
                    o.met(self.machine, pairs[0][together] + column, together)
                return
        for o in self.observers:
            o.warp_barrier(self.machine, group)

    def check_members(self, group, mask, site: int) -> None:
        """Warn of a warp-wide exchange whose member ``mask`` names absent lanes, or omits a lane that takes
        part.
        """
        if mask is group.present or ("lanes", site) in self.machine.sync_warnings:
            return
        if mask.size == 1:  # a mask that is one value is checked once for each group
            exchange = site, int(mask[0])
            if exchange in group.noted:
                return
            group.noted.add(exchange)
        if self.machine.absent.outside(group, mask, site, self.machine.program.sites[site]):
            return
        if group.absent is not None and (mask & group.absent).any():
            self.machine.absent.add(group, mask, site)
        else:
            group.present = mask

    def shuffle(self, group, site, mode: str, value, b, c, mask):
        """``shfl.sync``: (value of each lane's source, whether the source is in range)."""
        lanes = [x.now if isinstance(x, Tainted) else x for x in (b, c, mask)]
        got, good, missing = warp.shuffle(group.table, mode, value, *lanes)
        if missing is not None:
            for o in self.observers:
                got = o.missed(self.machine, group, site, missing, got)
        tainted = next((x for x in (b, c) if isinstance(x, Tainted)), None)
        if tainted is not None:
            origins = origins_of([b, c])
            return tainted.of(plain(got), np.maximum(origins, origins_of([got]))), tainted.of(good, origins)
        return got, good

    def watch(self, kind: type[Watch]) -> Watch:
        """The chunk's observer of class ``kind``, added at the first call. It comes before the others, as its
        errors say more than a race would.
        """
        found = next((o for o in self.observers if isinstance(o, kind)), None)
        if found is None:
            found = kind(self.machine)  # pyright: ignore[reportCallIssue] - all that are asked for take it
            self.observers.insert(0, found)
        return found

    def fence(self, group, wide: bool) -> None:
        for o in self.observers:
            o.fence(self.machine, group, wide)

    def fault(self, group, site, access, offset, width, size, space, what):
        """Raise OutOfBounds or UseAfterFree for the first lane that is not within ``size`` bytes."""
        bad = np.flatnonzero((access.within + offset < 0) | (access.within + offset + width > size))
        lane, at, who = self._first(group, access, offset, bad)
        place, does, region = self.place(space, access.region, at, width), _verb(what), access.region
        message = f"{who} {does} {place}"
        hint = "the bounds check before this line, and the order of the indices (row, column)"
        if space == "global":
            address = int(access.source[bad[0]]) + offset
            freed = self.space.freed(address)
            if freed:
                message = f"{who} {does} {freed.place(address - freed.base)}, which has been freed"
                hint = "keep a reference to the device array for as long as kernels use it"
                raise self.program.error(UseAfterFree, site, message, hint)
            if region is UNMAPPED:
                message = f"{who} {does} address {address:#x}, where nothing is allocated"
                hint = "where the pointer comes from, and whether its index can be that large or negative"
                raise self.program.error(OutOfBounds, site, message, hint)
            message += f", {_extent(region)}"
            hint += _other_name(region, at)
        elif space == "cluster" and access.within[bad[0]] >> 40:
            rank, blocks = int(access.source[bad[0]] >> clusters.RANK_SHIFT) - 1, self.machine.cluster_size
            asked = f"block {rank}" if rank < clusters.NO_RANK else "a block of a rank below 0 or far beyond"
            message = f"{who} {does} shared memory of {asked} of its cluster, which has {blocks}"
            hint = "the rank given to map_shared_rank or mapa, and the cluster's size: __cluster_dims__"
            raise self.program.error(ClusterMisuse, site, message, hint)
        elif space != "local":
            message += f", {self.program.shared_extent(at, size)}"
            hint = "the index on this line, and the size with which the array was made"
            if self.program.dynamic_symbols:
                hint = "the bytes of shared memory in kernel[grid, block, stream, bytes]; then the index"
            if space == "shared" and at >= clusters.OTHERS:
                message = f"{who} {does} an address in another block's shared memory as one in its own"
                hint = "ld.shared::cluster and its kin for an address that mapa gave: it is another block's"
        else:
            message = f"{who} {does} {width} bytes outside of its local memory, which has {size} bytes"
        acts = (self.machine.act(lane, self.program.sites[site], does, place),)
        raise self.program.error(OutOfBounds, site, message, hint, acts)

    def misaligned(self, group, site, access, offset, width, space, what):
        """Raise MisalignedAccess for the first lane whose address is not a multiple of ``width``."""
        bad = np.flatnonzero((access.within + offset) % width)
        _, at, who = self._first(group, access, offset, bad)
        raise self.program.error(
            MisalignedAccess,
            site,
            f"{who} {_verb(what)} {width} bytes at once at {self.place(space, access.region, at, 1)}, at an "
            f"address that is not a multiple of {width}",
            "the type that the pointer is read as: "
            "an access of n bytes wants an address that is a multiple of n",
        )

    def _first(self, group, access, offset, bad) -> tuple[int, int, str]:
        """(first bad lane, the byte that it accesses, its thread's name and how many more there are)."""
        lane, others = int(group.lanes[bad[0]]), (bad.size if access.within.size > 1 else group.size) - 1
        more = f" (and {others:,} more)" if others else ""
        return lane, int(access.within[bad[0]]) + offset, self.machine.thread_name(lane) + more

    def place(self, space: str, region: Region, at: int, width: int) -> str:
        """The name of what is at a byte: an element of an array, or the thread's local memory."""
        if space == "global":
            return "" if region is UNMAPPED else region.place(at)
        return "its local memory" if space == "local" else self.program.shared_place(at, width)


def _extent(region) -> str:
    """The region's last valid index, in words, for an out-of-bounds error."""
    if region.shape and 0 not in region.shape:
        return f"whose last element is {last_index(region.shape)}"
    return f"which has {region.size // region.itemsize:,} elements"


def _other_name(region, byte: int) -> str:
    """A hint for an access past the end of a 2-D array: which index in the last row is the same place."""
    element = (byte - region.start) // region.itemsize
    if (
        len(region.shape) != 2
        or 0 in region.shape
        or region.order == "F"
        or element < region.size // region.itemsize
    ):
        return ""
    rows, columns = region.shape
    return f"; if your indices were [{rows - 1}, {element - (rows - 1) * columns}], that is the same place"


def slots_of(address: np.ndarray) -> np.ndarray:
    """The slot of the address space that each address is in; no two arrays share a slot."""
    return address >> np.uint64(REGION_SHIFT)


def _apart(keys: np.ndarray, act: Callable, group, *arguments):
    """Run ``act(group, *arguments)`` separately for the lanes of each key, and join the results."""
    places = [keys == key for key in np.unique(keys)]
    done = [act(group.split(mask, frozenset()), *taken(arguments, mask)) for mask in places]
    if done[0] is None:
        return None
    if isinstance(done[0], list):
        return [joined(list(parts), places, group.size) for parts in zip(*done)]
    return joined(done, places, group.size)


def taken(value: Any, mask: np.ndarray) -> Any:
    """``value`` for the lanes in ``mask``: arrays with an element a lane are indexed, also inside tuples."""
    if isinstance(value, tuple):
        return tuple(taken(one, mask) for one in value)
    return value[mask] if getattr(value, "size", 1) > 1 else value


def _verb(what: str) -> str:
    return "reads" if what == "read" else "writes"
