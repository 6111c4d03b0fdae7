"""The load-store unit: every access that a kernel makes to memory, checked, reported to the observers, and done.

The blocks that ``translate`` makes call ``load_<space>``, ``store_<space>`` and ``param`` here.
"""

from __future__ import annotations

import numpy as np

from ..errors import MisalignedAccess, OutOfBounds
from .atomics import update
from .memory import LOCAL_WINDOW, REGION_SHIFT, SHARED_WINDOW, Access


class LoadStoreUnit:
    """Memory as the lanes of one machine see it. Addresses are uint64 arrays, one a lane or one for all lanes of the group."""

    def __init__(self, machine):
        self.machine, self.program, self.space, self.observers = machine, machine.program, machine.space, machine.observers

    def param(self, name: str, offset: int, dtype: str) -> np.ndarray:
        data = self.machine.launch.params[name]
        return np.frombuffer(data, dtype, 1, offset)

    def _prepare(self, group, space: str, address: np.ndarray) -> Access:
        """Prepare (or find again) the addresses of one register value; the register array itself is the key."""
        key = (space, id(address))
        found = group.accesses.get(key)
        if found is not None and found.source is address:
            return found
        if space != "global":
            base = self.machine.shared_base if space == "shared" else self.machine.local_base
            within, region = address.view(np.int64), self.machine.shared if space == "shared" else self.machine.local
            access = Access(address, region, within + (base if group.full else base[group.lanes]), within)
        else:
            region = self.space.find(int(address[0]))
            access = Access(address, region, (address - np.uint64(region.base if region else 0)).view(np.int64))
        if len(group.accesses) > 64:
            group.accesses.clear()
        group.accesses[key] = access
        return access

    def _ready(self, group, site, address, offset, dtype, count, space, what) -> Access | None:
        """The prepared access, checked; None if lanes point into several live regions, which the caller then splits."""
        access = self._prepare(group, space, address)
        total = np.dtype(dtype).itemsize * count
        size = {"shared": self.machine.shared_size, "local": self.program.local_size}.get(space)
        if size is None:
            size = access.region.size if access.region else 0
        if access.high + offset + total > size or ((offset < 0 or access._low is not None) and access.low + offset < 0):
            if space == "global" and self._several_regions(address, offset):
                return None
            self._fault(group, site, access, offset, total, size, space, what)
        if (access.bits | offset) & (total - 1) and np.any((access.offset + offset) & (total - 1)):
            self._misaligned(group, site, access, offset, total, space, what)
        return access

    def _load(self, group, site, address, offset, dtype, count, space):
        access = self._ready(group, site, address, offset, dtype, count, space, "read")
        if access is None:
            return self._split_by_region(group, site, address, offset, dtype, count, None)
        width = np.dtype(dtype).itemsize
        for o in self.observers:
            o.accessed(self.machine, group, site, access, offset, width * count, space, "read", None)
        view = access.region.view(dtype)
        shift = width.bit_length() - 1
        if offset % width:
            index = (access.offset + offset) >> shift
        else:
            index = access.index(shift)
            if offset:
                index = index + (offset >> shift)
        return view[index] if count == 1 else [view[index + i] for i in range(count)]

    def _store(self, group, site, address, offset, dtype, values, space):
        access = self._ready(group, site, address, offset, dtype, len(values), space, "write")
        if access is None:
            return self._split_by_region(group, site, address, offset, dtype, len(values), values)
        width = np.dtype(dtype).itemsize
        if not access.region.writable:
            raise OutOfBounds(
                f"a write to {access.region.label}, which is read-only",
                kernel=self.program.name,
                where=self.program.line_of_site(site),
                hint="copy the array first: array.copy()",
            )
        for o in self.observers:
            o.accessed(self.machine, group, site, access, offset, width * len(values), space, "write", values)
        view = access.region.view(dtype)
        index = (access.offset + offset) >> (width.bit_length() - 1)
        for i, value in enumerate(values):
            # where all lanes write one address some lane's value stays: here the last lane's
            view[index + i if i else index] = value[-1] if index.size == 1 < value.size else value

    def atomic(self, group, site, space, address, offset, dtype, operation, value, compare=None, wants_old=True):
        """Read-modify-write at each lane's address; returns what each lane found (None unless ``wants_old``)."""
        if space == "generic":
            space, address = self._resolve(site, address)
        access = self._ready(group, site, address, offset, dtype, 1, space, "write")
        if access is None:
            raise self.program.unsupported_site(site, "an atomic whose lanes point into different arrays")
        for o in self.observers:
            o.accessed(self.machine, group, site, access, offset, np.dtype(dtype).itemsize, space, "atomic", None)
        index = np.broadcast_to((access.offset + offset) >> (np.dtype(dtype).itemsize.bit_length() - 1), (group.size,))
        return update(access.region.view(dtype), index, operation, value, compare, wants_old)

    def load_global(self, group, site, address, offset, dtype, count):
        return self._load(group, site, address, offset, dtype, count, "global")

    load_const = load_global

    def load_shared(self, group, site, address, offset, dtype, count):
        return self._load(group, site, address, offset, dtype, count, "shared")

    def load_local(self, group, site, address, offset, dtype, count):
        return self._load(group, site, address, offset, dtype, count, "local")

    def store_global(self, group, site, address, offset, dtype, values):
        self._store(group, site, address, offset, dtype, values, "global")

    def store_shared(self, group, site, address, offset, dtype, values):
        self._store(group, site, address, offset, dtype, values, "shared")

    def store_local(self, group, site, address, offset, dtype, values):
        self._store(group, site, address, offset, dtype, values, "local")

    def load_generic(self, group, site, address, offset, dtype, count):
        space, address = self._resolve(site, address)
        return self._load(group, site, address, offset, dtype, count, space)

    def store_generic(self, group, site, address, offset, dtype, values):
        space, address = self._resolve(site, address)
        self._store(group, site, address, offset, dtype, values, space)

    def _resolve(self, site, address):
        """A generic address belongs to the space whose window it lies in."""
        windows = np.unique(address >> np.uint64(60))
        if windows.size > 1:
            raise self.program.unsupported_site(site, "a generic access whose lanes point into different memory spaces")
        if int(windows[0]) == SHARED_WINDOW >> 60:
            return "shared", address - np.uint64(SHARED_WINDOW)
        if int(windows[0]) == LOCAL_WINDOW >> 60:
            return "local", address - np.uint64(LOCAL_WINDOW)
        return "global", address

    def _several_regions(self, address, offset) -> bool:
        """Whether every lane points into a mapped region, and not all into the same one."""
        slots = np.unique((address + np.uint64(offset & (1 << 64) - 1)) >> np.uint64(REGION_SHIFT))
        return slots.size > 1 and all(int(s) in self.space.regions for s in slots)

    def _split_by_region(self, group, site, address, offset, dtype, count, values):
        out = [np.zeros(group.size, dtype) for _ in range(count)]
        slots = address >> np.uint64(REGION_SHIFT)
        for slot in np.unique(slots):
            mask = slots == slot
            part = group.split(mask, frozenset())
            if values is None:
                got = self._load(part, site, address[mask], offset, dtype, count, "global")
                for o, g in zip(out, got if count > 1 else [got]):
                    o[mask] = g
            else:
                self._store(part, site, address[mask], offset, dtype, tuple(v if v.size == 1 else v[mask] for v in values), "global")
        return out[0] if count == 1 else out

    def warp_barrier(self, group) -> None:
        for o in self.observers:
            o.warp_barrier(self.machine, group)

    # --- faults ---------------------------------------------------------------------------------------------------
    def _fault(self, group, site, access, offset, width, size, space, what):
        where = self.program.line_of_site(site)
        raw = access.offset if space == "global" else access.source.view(np.int64)
        bad = np.flatnonzero((raw + offset < 0) | (raw + offset + width > size))
        lane = int(group.lanes[bad[0]] if raw.size > 1 else group.lanes[0])
        at = int(raw[bad[0]]) + offset
        others = (bad.size if raw.size > 1 else group.size) - 1
        who = self.machine.thread_name(lane) + (f" (and {others} more)" if others else "")
        region = access.region
        if space == "global":
            address = int(access.source[bad[0]]) + offset
            freed = self.space.freed(address)
            if freed:
                raise OutOfBounds(
                    f"{who} {_verb(what)} {freed} after it was freed",
                    kernel=self.program.name,
                    where=where,
                    hint="keep a reference to the device array for as long as kernels use it",
                )
            if region is None:
                region = self.space.nearest(address)
                at = address - region.base if region else address
            if region is None:
                raise OutOfBounds(
                    f"{who} {_verb(what)} address {address:#x}, where nothing is allocated", kernel=self.program.name, where=where
                )
            item = region.itemsize
            message = (
                f"{who} {_verb(what)} element {at // item} of {region.label}, which has {region.size // item} elements "
                f"({width} bytes at byte offset {at} of {region.size})"
            )
        else:
            message = f"{who} {_verb(what)} {width} bytes at byte offset {at} of {space} memory, which has {size} bytes {'a block' if space == 'shared' else 'a thread'}"
        raise OutOfBounds(
            message,
            kernel=self.program.name,
            where=where,
            hint="the bounds check before this line, and the order of the indices (row, column)",
        )

    def _misaligned(self, group, site, access, offset, width, space, what):
        raw = access.offset if space == "global" else access.source.view(np.int64)
        bad = int(np.flatnonzero((raw + offset) % width)[0])
        raise MisalignedAccess(
            f"{self.machine.thread_name(int(group.lanes[bad]))} {_verb(what)} {width} bytes at byte offset {int(raw[bad]) + offset}, "
            f"not a multiple of {width}",
            kernel=self.program.name,
            where=self.program.line_of_site(site),
            hint="the element type of the pointer or view",
        )


def _verb(what: str) -> str:
    return "reads" if what == "read" else "writes"
