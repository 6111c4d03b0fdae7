"""The machine and the memory on which a launch is traced: see ``tracing``."""

from __future__ import annotations

from typing import Any

import numpy as np

from warplab.simt.engine.address_space import Region
from warplab.simt.engine.atomics import update
from warplab.simt.engine.generic_addresses import in_several_spaces, resolve
from warplab.simt.engine.loadstore import LoadStoreUnit
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.tracing import CannotTrace, LaunchTrace, Parameter, Pointer, Traced, sources_of
from warplab.simt.engine.wrapped import plain

OWN = ("shared", "local")  # memory that is uninitialised when a launch begins


class TracingMachine(Machine):
    """Runs a launch of a ``kind`` and traces it."""

    def __init__(self, kind):
        super().__init__(kind.repeats.program, kind.space, kind.launch)
        self.trace = LaunchTrace()
        self.memory = self.accesses = TracingMemory(self, kind)
        self.own_sizes: list[int] = []  # bytes of shared and of local memory

    def _start_chunk(self, first: int, count: int) -> None:
        super()._start_chunk(first, count)
        # the first chunk is the largest
        self.own_sizes = self.own_sizes or [self.shared.size, self.local.size]
        self.accesses.is_traced = {}


class TracingMemory(LoadStoreUnit):
    """Records accesses. Stores go to the machine's shared and local memory, and to copies of regions of
    global memory.
    """

    def __init__(self, machine: TracingMachine, kind):
        super().__init__(machine)
        self.trace, self.kind = machine.trace, kind
        self.copies: dict[int, Region] = {}  # by the number of the region
        # by state space, for each byte: whether its value may differ between launches
        self.is_traced: dict[str, np.ndarray] = {}
        self.sources: dict[str, frozenset[Parameter] | None] = dict.fromkeys(OWN, frozenset())

    def param(self, name, offset, dtype):
        """A parameter: a Pointer into a region, a Traced float, or a constant of the kind."""
        now = super().param(name, offset, dtype)
        parameter = (name, offset, now.itemsize)
        if parameter in self.kind.numbers:
            return Pointer(now, frozenset({parameter}))
        if self.kind.repeats.parameters[parameter]:
            text = f"{self.trace.operand(np.frombuffer)}(params[{name!r}], {dtype!r}, 1, {offset})"
            return self.trace.value(text, now, None)
        return now

    def _place(self, group, address, offset: int, width: int, count: int, space: str):
        """(number of the region, region, indices of the elements) of an access."""
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
        if number < 0 or (access.bits | offset) & (width - 1):
            raise CannotTrace
        if access.low + offset < 0 or access.high + offset + width * count > region.size:
            raise CannotTrace
        return number, self.copies.get(number, region), access.index(width.bit_length() - 1, offset)

    def load(self, group, site, space, address: Any, offset, dtype, count):
        space, address = _resolved(space, address)
        number, region, index = self._place(group, address, offset, np.dtype(dtype).itemsize, count, space)
        sources = self.sources.get(space)
        if space == "global" and dtype[0] != "f" and region.size <= self.kind.repeats.most_contents:
            sources = frozenset(p for p in address.origins if self.kind.numbers[p] == number)
        view, loaded = region.view(dtype), []
        for place in (index + i if i else index for i in range(count)):
            if self._is_constant(number, space, view, place):
                loaded.append(view[place])
                continue
            text = self.trace.place(place)
            text = f"{self.trace.view(number, dtype)}[{text}]" + ".copy()" * (":" in text)
            loaded.append(self.trace.value(text, view[place], sources, reads=space))
        return loaded[0] if count == 1 else loaded

    def _is_constant(self, number: int, space: str, view: np.ndarray, index: np.ndarray) -> bool:
        """Whether the elements at ``index`` are the same in all launches of the kind."""
        if space == "global":
            return number in self.kind.contents
        return space not in self.is_traced or not _cells(self.is_traced[space], view)[index].any()

    def store(self, group, site, space, address, offset, dtype, values):
        space, address = _resolved(space, address)
        width = np.dtype(dtype).itemsize
        number, region, index = self._place(group, address, offset, width, len(values), space)
        for i, value in enumerate(values):
            if index.size == 1 < value.size:
                value = value[-1:]
            place = index + i if i else index
            view = self._written(number, region, dtype, space, place, [value], isinstance(value, Traced))
            view[place] = plain(value)
            cells = f"{self.trace.view(number, dtype)}[{self.trace.place(place)}]"
            self.trace.step(f"{cells} = {self.trace.operand(value)}", writes=space)

    def atomic(self, group, site, space, address, offset, dtype, *operands):
        """``operands``: operation, value, a compare-and-swap's expected value, whether its result is used."""
        number, region, index = self._place(group, address, offset, np.dtype(dtype).itemsize, 1, space)
        index = np.broadcast_to(index, (group.size,))
        view = self._written(number, region, dtype, space, index, operands, True)
        now = update(view, index, *plain(operands))
        given = ", ".join(map(self.trace.operand, (index, *operands)))
        text = f"{self.trace.operand(update)}({self.trace.view(number, dtype)}, {given})"
        if now is None:
            return self.trace.step(text, reads=space, writes=space)
        return self.trace.value(text, now, None, reads=space, writes=space)

    def _written(self, number: int, region: Region, dtype, space: str, index, values, is_traced: bool):
        """The elements, as ``dtype``, of a region that is about to be written at ``index``."""
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
        self.sources[space] = sources_of(values, self.sources[space])
        return view


def _resolved(space: str, address):
    """The space of addresses, and the addresses in it; a pointer's are global."""
    if space != "generic":
        return space, address
    if not isinstance(address, np.ndarray):
        return "global", address
    if in_several_spaces(address):
        raise CannotTrace
    return resolve(address)


def _cells(marks: np.ndarray, view: np.ndarray) -> np.ndarray:
    """The marks of a region's bytes, a row for each element of the ``view``."""
    return marks[: view.nbytes].reshape(view.size, view.itemsize)
