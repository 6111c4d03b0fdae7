"""The load-store unit: every access that a kernel makes to memory, checked,
reported to the observers, and done.

The blocks that ``translate`` makes call ``load_<space>``, ``store_<space>`` and ``param`` here.
"""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.address_space import REGION_SHIFT, Access
from warplab.simt.engine.atomics import update
from warplab.simt.engine.generic_addresses import PARAMETERS, in_several_spaces, resolve, space_keys
from warplab.simt.engine.indices import index_text, last_index
from warplab.simt.errors import MisalignedAccess, OutOfBounds, UseAfterFree

ALL_LANES = 0xFFFFFFFF


class LoadStoreUnit:
    """Memory as the lanes of one machine see it.

    Addresses are uint64 arrays, one a lane or one for all lanes of the group.
    """

    def __init__(self, machine):
        self.machine, self.program, self.space, self.observers = (
            machine,
            machine.program,
            machine.space,
            machine.observers,
        )

    def param(self, name: str, offset: int, dtype: str) -> np.ndarray:
        data = self.machine.launch.params[name]
        return np.frombuffer(data, dtype, 1, offset)

    def param_at(self, group, site, address: np.ndarray, offset: int, dtype: str) -> np.ndarray:
        """What lies at addresses in the space of parameters: LLVM chooses between two parameters so."""
        parameters = self.program.function.params
        data = np.zeros(max(p.offset + p.size for p in parameters), np.uint8)
        for p in parameters:
            data[p.offset : p.offset + p.size] = np.frombuffer(self.machine.launch.params[p.name], np.uint8)
        width, at = np.dtype(dtype).itemsize, address.view(np.int64) + (offset - PARAMETERS)
        if at.min() < 0 or at.max() + width > data.size:
            raise OutOfBounds(
                f"a thread reads outside of the kernel's parameters, which have {data.size} bytes",
                kernel=self.program.name,
                where=self.program.line_of_site(site),
                hint="the index into the parameter",
            )
        return data[at[:, np.newaxis] + np.arange(width)].view(dtype)[:, 0]

    def prepare(self, group, space: str, address: np.ndarray) -> Access:
        """Prepare (or find again) the addresses of one register value.

        The register array itself is the key.
        """
        key = (space, id(address))
        found = group.accesses.get(key)
        if found is not None and found.source is address:
            return found
        if space != "global":
            m, within = self.machine, address.view(np.int64)
            region, base, step = (
                (m.shared, m.shared_base, m.shared_stride)
                if space == "shared"
                else (m.local, m.local_base, self.program.local_size)
            )
            offset = within + (base if group.full else base[group.lanes])
            access = Access(address, region, offset, within, step)
        else:
            region = self.space.find(int(address[0]))
            access = Access(
                address, region, (address - np.uint64(region.base if region else 0)).view(np.int64)
            )
        if len(group.accesses) > 64:
            group.accesses.clear()
        group.accesses[key] = access
        return access

    def _ready(self, group, site, address, offset, dtype, count, space, what) -> Access | None:
        """The prepared access, checked.

        None if lanes point into several live regions, which the caller then splits.
        """
        access = self.prepare(group, space, address)
        total = np.dtype(dtype).itemsize * count
        size = {"shared": self.machine.shared_size, "local": self.program.local_size}.get(space)
        if size is None:
            size = access.region.size if access.region else 0
        if access.high + offset + total > size or (
            (offset < 0 or access._low is not None) and access.low + offset < 0
        ):
            if space == "global" and self._several_regions(address, offset):
                return None
            self.fault(group, site, access, offset, total, size, space, what)
        if (access.bits | offset) & (total - 1) and np.any((access.offset + offset) & (total - 1)):
            self.misaligned(group, site, access, offset, total, space, what)
        return access

    def _load(self, group, site, address, offset, dtype, count, space):
        access = self._ready(group, site, address, offset, dtype, count, space, "read")
        if access is None:
            return _apart(
                group,
                slots_of(address),
                address,
                (),
                lambda part, at, _: self._load(part, site, at, offset, dtype, count, space),
            )
        width = np.dtype(dtype).itemsize
        for o in self.observers:
            o.accessed(self.machine, group, site, access, offset, width * count, space, "read", None)
        view = access.region.view(dtype)
        index = access.index(width.bit_length() - 1, offset)
        return view[index] if count == 1 else [view[index + i] for i in range(count)]

    def _store(self, group, site, address, offset, dtype, values, space):
        access = self._ready(group, site, address, offset, dtype, len(values), space, "write")
        if access is None:
            return _apart(
                group,
                slots_of(address),
                address,
                values,
                lambda part, at, v: self._store(part, site, at, offset, dtype, v, space),
            )
        width = np.dtype(dtype).itemsize
        if not access.region.writable:
            who = self.machine.thread_name(int(group.lanes[0]))
            raise OutOfBounds(
                f"{who} writes to {access.region.label}, which is read-only",
                kernel=self.program.name,
                where=self.program.line_of_site(site),
                hint="copy the array first: array.copy()",
            )
        for o in self.observers:
            o.accessed(self.machine, group, site, access, offset, width * len(values), space, "write", values)
        view = access.region.view(dtype)
        index = access.index(width.bit_length() - 1, offset)
        for i, value in enumerate(values):
            # where all lanes write one address some lane's value stays: here the last lane's
            view[index + i if i else index] = value[-1] if index.size == 1 < value.size else value

    def atomic(
        self, group, site, space, address, offset, dtype, operation, value, compare=None, wants_old=True
    ):
        """Read-modify-write at each lane's address.

        Returns what each lane found (None unless ``wants_old``).
        """

        def again(part, at, operands):
            return self.atomic(part, site, space, at, offset, dtype, operation, *operands, wants_old)

        if space == "generic":
            if in_several_spaces(address):
                return _apart(group, space_keys(address), address, (value, compare), again)
            space, address = resolve(address)
        access = self._ready(group, site, address, offset, dtype, 1, space, "write")
        if access is None:
            return _apart(group, slots_of(address), address, (value, compare), again)
        for o in self.observers:
            o.accessed(
                self.machine, group, site, access, offset, np.dtype(dtype).itemsize, space, "atomic", None
            )
        shift = np.dtype(dtype).itemsize.bit_length() - 1
        index = np.broadcast_to(access.index(shift, offset), (group.size,))
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
        if in_several_spaces(address):
            return _apart(
                group,
                space_keys(address),
                address,
                (),
                lambda part, at, _: self.load_generic(part, site, at, offset, dtype, count),
            )
        space, address = resolve(address)
        return self._load(group, site, address, offset, dtype, count, space)

    def store_generic(self, group, site, address, offset, dtype, values):
        if in_several_spaces(address):
            _apart(
                group,
                space_keys(address),
                address,
                values,
                lambda part, at, v: self.store_generic(part, site, at, offset, dtype, v),
            )
            return
        space, address = resolve(address)
        self._store(group, site, address, offset, dtype, values, space)

    def _several_regions(self, address, offset) -> bool:
        """Whether every lane points into a mapped region, and not all into the same one."""
        slots = np.unique((address + np.uint64(offset & (1 << 64) - 1)) >> np.uint64(REGION_SHIFT))
        return slots.size > 1 and all(int(s) in self.space.regions for s in slots)

    def warp_barrier(self, group, mask) -> None:
        """``syncwarp``, by all lanes of their warps or by those in each one's mask."""
        if not (mask == ALL_LANES).all():
            first = group.lanes - group.column  # of each one's warp
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

    def exchanged(self, group, mask, site: int) -> None:
        """Note a warp-wide exchange whose member ``mask`` may name lanes that are elsewhere."""
        if group.absent is None or mask is group.present or ("lanes", site) in self.machine.doubts:
            return
        if mask.size == 1:  # the same when the group comes here again
            exchange = site, int(mask[0])
            if exchange in group.noted:
                return
            group.noted.add(exchange)
        if (mask & group.absent).any():
            self.machine.absent.add(group, mask, site)
        else:
            group.present = mask

    def missed(self, group, site: int) -> None:
        for o in self.observers:
            o.missed(self.machine, group, site)

    def fence(self, group, wide: bool) -> None:
        for o in self.observers:
            o.fence(self.machine, group, wide)

    def fault(self, group, site, access, offset, width, size, space, what):
        where = self.program.line_of_site(site)
        raw = access.offset if space == "global" else access.source.view(np.int64)
        bad = np.flatnonzero((raw + offset < 0) | (raw + offset + width > size))
        lane = int(group.lanes[bad[0]])
        at = int(raw[bad[0]]) + offset
        others = (bad.size if raw.size > 1 else group.size) - 1
        who = self.machine.thread_name(lane) + (f" (and {others:,} more)" if others else "")
        region = access.region
        if space == "global":
            address = int(access.source[bad[0]]) + offset
            freed = self.space.freed(address)
            if freed:
                index = index_text((address - freed.base) // freed.itemsize, freed.shape or (0,), freed.order)
                raise UseAfterFree(
                    f"{who} {_verb(what)} element {index} of {freed.label}, which has been freed",
                    kernel=self.program.name,
                    where=where,
                    hint="keep a reference to the device array for as long as kernels use it",
                )
            if region is None:
                raise OutOfBounds(
                    f"{who} {_verb(what)} address {address:#x}, where nothing is allocated",
                    kernel=self.program.name,
                    where=where,
                    hint="where the pointer comes from, and whether its index can be that large or negative",
                )
            place = region.place(at)
            message = f"{who} {_verb(what)} {place}, {_extent(region)}"
        elif space == "shared":
            place = self.program.shared_place(at, width)
            message = f"{who} {_verb(what)} {place}, {self.program.shared_extent(at, size)}"
        else:
            place = "its local memory"
            message = f"{who} {_verb(what)} {width} bytes outside of its local memory, which has {size} bytes"
        hint = "the bounds check before this line, and the order of the indices (row, column)"
        if space == "global":
            hint += _other_name(region, at)
        if space == "shared" and self.program.dynamic_symbols:
            hint = (
                "the bytes of dynamic shared memory in the launch, kernel[grid, block, stream, bytes]; "
                "then the index"
            )
        acts = (self.machine.act(lane, self.program.sites[site], _verb(what), place),)
        raise OutOfBounds(message, kernel=self.program.name, where=where, hint=hint, acts=acts)

    def misaligned(self, group, site, access, offset, width, space, what):
        raw = access.offset if space == "global" else access.source.view(np.int64)
        bad = np.flatnonzero((raw + offset) % width)
        lane, others = int(group.lanes[bad[0]]), (bad.size if raw.size > 1 else group.size) - 1
        at = int(raw[bad[0]]) + offset
        place = f"its {space} memory"
        if space == "global":
            place = access.region.place(at)
        elif space == "shared":
            place = self.program.shared_place(at, 1)
        who = self.machine.thread_name(lane) + (f" (and {others:,} more)" if others else "")
        raise MisalignedAccess(
            f"{who} {_verb(what)} {width} bytes at once at {place}, at an address that is not a multiple of "
            f"{width}",
            kernel=self.program.name,
            where=self.program.line_of_site(site),
            hint="the type that the pointer is read as: "
            "an access of n bytes wants an address that is a multiple of n",
        )


def _extent(region) -> str:
    """The region's last valid index, in words, for an out-of-bounds error."""
    if region.shape and 0 not in region.shape:
        return f"whose last element is {last_index(region.shape)}"
    return f"which has {region.size // region.itemsize:,} elements"


def _other_name(region, byte: int) -> str:
    """Of a place behind a table's last row: the index of that row that leads there, maybe the one meant."""
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
    """The slot of the address space that each address lies in; an array has slots of its own."""
    return address >> np.uint64(REGION_SHIFT)


def _apart(group, keys: np.ndarray, address: np.ndarray, values, act):
    """Run ``act(part of the group, addresses, values)`` for the lanes of each key,
    and put the lanes' results together.
    """
    done = []
    for key in np.unique(keys):
        mask = keys == key
        mine = tuple(v if v is None or v.size == 1 else v[mask] for v in values)
        done.append((mask, act(group.split(mask, frozenset()), address[mask], mine)))
    first = done[0][1]
    if first is None:
        return None
    if isinstance(first, list):
        return [_joined(group, [(mask, got[i]) for mask, got in done]) for i in range(len(first))]
    return _joined(group, done)


def _joined(group, done) -> np.ndarray:
    out = np.empty(group.size, done[0][1].dtype)
    for mask, got in done:
        out[mask] = got
    return out


def _verb(what: str) -> str:
    return "reads" if what == "read" else "writes"
