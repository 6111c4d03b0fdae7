"""The machine and the memory on which a launch is traced: see ``tracing``."""

from __future__ import annotations

import numpy as np

from warplab.simt.engine.address_space import Region
from warplab.simt.engine.atomics import update
from warplab.simt.engine.generic_addresses import in_several_spaces, resolve
from warplab.simt.engine.groups import Group
from warplab.simt.engine.loadstore import LoadStoreUnit
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.tracing import CannotTrace, Parameter, Pointer, Trace, Traced

OWN = ("shared", "local")  # memory that a launch begins with uninitialised


class TracingMachine(Machine):
    """Runs a launch of a ``kind`` and traces it."""

    def __init__(self, kind):
        super().__init__(kind.repeats.program, kind.space, kind.launch)
        self.functions = kind.repeats.functions
        self.trace = Trace()
        self.memory = TracingMemory(self, kind)
        self.own_sizes: dict[str, int] = {}

    def _start_chunk(self, first: int, count: int) -> None:
        super()._start_chunk(first, count)
        # the first chunk is the largest
        self.own_sizes = self.own_sizes or {"shared": self.shared.size, "local": self.local.size}
        self.memory.is_traced = {}

    def _merge(self, groups: list[Group], live: frozenset[str]) -> Group:
        lanes, full, places = self._together(groups)
        registers = self.trace.joined([g.regs for g in groups], places, lanes.size, live)
        return Group(self, lanes, registers, full)


class TracingMemory(LoadStoreUnit):
    """Records accesses. Shared and local memory are those of the machine; regions of global memory that are
    written are copied first.
    """

    def __init__(self, machine: TracingMachine, kind):
        super().__init__(machine)
        self.trace, self.kind = machine.trace, kind
        self.copies: dict[int, Region] = {}  # by the number of the region
        # by memory, of each byte whether it holds what differs from launch to launch
        self.is_traced: dict[str, np.ndarray] = {}
        self.sources: dict[str, frozenset[Parameter] | None] = dict.fromkeys(OWN, frozenset())

    def param(self, name, offset, dtype):
        now = super().param(name, offset, dtype)
        parameter = (name, offset, now.itemsize)
        repeats = self.kind.repeats
        if parameter in self.kind.numbers:
            return Pointer(now, frozenset({parameter}))
        if repeats.parameters[parameter] and parameter not in repeats.values:
            text = f"frombuffer(params[{name!r}], {dtype!r}, 1, {offset})"
            self.trace.constants["frombuffer"] = np.frombuffer
            return self.trace.value(text, now, None, {"frombuffer"})
        return now

    def param_at(self, group, site, address, offset, dtype):
        raise CannotTrace

    def exchanged(self, group, mask, site) -> None:
        """The whole launch looks for lanes that are elsewhere."""
        if isinstance(mask, Traced):
            raise mask.not_constant()

    def missed(self, group, site) -> None:
        """Likewise."""

    def _place(self, group, address, offset: int, width: int, count: int, space: str):
        """The number of the region of an access, the region, and the numbers of its elements."""
        if isinstance(address, Traced):
            raise address.not_constant()
        if isinstance(address, Pointer) != (space == "global"):
            raise CannotTrace
        access = self.prepare(group, space, address.now if isinstance(address, Pointer) else address)
        region, number = access.region, len(self.kind.regions)
        if isinstance(address, Pointer):
            numbers = {self.kind.numbers[origin] for origin in address.origins}
            number = next((i for i in numbers if self.kind.regions[i] is region), -1)
        else:
            number += OWN.index(space)
        if number < 0 or region is None or (access.bits | offset) & (width - 1):
            raise CannotTrace
        if access.low + offset < 0 or access.high + offset + width * count > region.size:
            raise CannotTrace  # lanes point into several regions, or outside
        return number, self.copies.get(number, region), access.index(width.bit_length() - 1, offset)

    def _load(self, group, site, address, offset, dtype, count, space):
        dtype = str(np.dtype(dtype).str[1:])
        width = int(dtype[1:])
        number, region, index = self._place(group, address, offset, width, count, space)
        view = region.view(dtype)
        sources = self.sources.get(space)
        if space == "global" and dtype[0] != "f" and region.size <= self.kind.repeats.most_contents:
            sources = frozenset(p for p in address.origins if self.kind.numbers[p] == number)
        places = [index + i if i else index for i in range(count)]
        loaded = [self._loaded(number, view, place, dtype, space, sources) for place in places]
        return loaded[0] if count == 1 else loaded

    def _loaded(self, number: int, view: np.ndarray, index: np.ndarray, dtype: str, space: str, sources):
        now, traced = view[index], self.is_traced.get(space)
        if space in OWN and (traced is None or not _cells(traced, view)[index].any()):
            return now
        if number in self.kind.contents:
            return now
        place = self.trace.place(index)
        text = f"{self.trace.view(number, dtype)}[{place}]" + ".copy()" * (":" in place)
        return self.trace.value(text, now, sources, (), reads=space)

    def _store(self, group, site, address, offset, dtype, values, space):
        width = np.dtype(dtype).itemsize
        number, region, index = self._place(group, address, offset, width, len(values), space)
        for i, value in enumerate(values):
            if index.size == 1 < value.size:
                value = value[-1:]
            place = index + i if i else index
            view = self._written(number, region, dtype, space, place, isinstance(value, Traced), [value])
            view[place] = value.now if isinstance(value, Traced) else value
            text = (
                f"{self.trace.view(number, dtype)}[{self.trace.place(place)}] = {self.trace.operand(value)}"
            )
            self.trace.step(text, "", (), writes=space)

    def atomic(
        self, group, site, space, address, offset, dtype, operation, value, compare=None, wants_old=True
    ):
        number, region, index = self._place(group, address, offset, np.dtype(dtype).itemsize, 1, space)
        index = np.broadcast_to(index, (group.size,))
        view = self._written(number, region, dtype, space, index, True, [value, compare])
        operands = operation, value, compare, wants_old
        now = update(view, index, *(x.now if isinstance(x, Traced) else x for x in operands))
        given = ", ".join(map(self.trace.operand, (index, *operands)))
        text = f"update({self.trace.view(number, dtype)}, {given})"
        if not wants_old:
            return self.trace.step(text, "", {"update"}, reads=space, writes=space)
        return self.trace.value(text, now, None, {"update"}, reads=space, writes=space)

    def _written(self, number: int, region: Region, dtype, space: str, index, is_traced: bool, values):
        """The elements of a region that is about to be written at ``index``."""
        if space == "global":
            self.trace.wrote_global = True
            if not region.writable:
                raise CannotTrace
            if number not in self.copies:
                self.copies[number] = Region(0, region.data.copy(), "")
            return self.copies[number].view(dtype)
        if is_traced and space not in self.is_traced:
            self.is_traced[space] = np.zeros(region.size, bool)
        view = region.view(dtype)
        if space in self.is_traced:
            _cells(self.is_traced[space], view)[index] = is_traced
        for value in values if is_traced else ():
            known, more = self.sources[space], value.sources if isinstance(value, Traced) else frozenset()
            self.sources[space] = None if known is None or more is None else known | more
        return view

    def load_generic(self, group, site, address, offset, dtype, count):
        space, address = self._resolved(address)
        return self._load(group, site, address, offset, dtype, count, space)

    def store_generic(self, group, site, address, offset, dtype, values):
        space, address = self._resolved(address)
        self._store(group, site, address, offset, dtype, values, space)

    def _resolved(self, address):
        if isinstance(address, Pointer | Traced):
            return "global", address
        if in_several_spaces(address):
            raise CannotTrace
        return resolve(address)


def _cells(marks: np.ndarray, view: np.ndarray) -> np.ndarray:
    """The marks of a region's bytes, a row for each element of the ``view``."""
    return marks[: view.nbytes].reshape(view.size, view.itemsize)
