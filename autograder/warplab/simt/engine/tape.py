"""What the late part of a launch does, noted operation by operation; ``straight`` makes a function of it.

The late functions (``early_and_late``) run once on a ``Value`` in the place of each array that follows from
loaded numbers. Every operation with one is noted, and done on the arrays of the day, so that sizes and dtypes
are known; nothing is written. What only goes from place to place is not noted: lanes that part and meet,
shuffles, and shared and local memory, whose places are all known. Such a value remembers of which others, and
of which of their elements, it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from warplab.simt.engine.address_space import Region
from warplab.simt.engine.groups import joined

MOST_CELLS = 1 << 22  # bytes of shared or of local memory whose contents are followed
MOST_BYTES = 1 << 26  # of all values together


class CannotNote(Exception):
    """A function looks at a value, or makes of it what is no vector."""


FAILS = (CannotNote, TypeError, ValueError)  # what comes of a value where only an array will do


class Value(NDArrayOperatorsMixin):
    """An array that differs from launch to launch, ``now`` its contents on this day.

    ``moved``: None of what was loaded or computed; of others the values that hold its elements, for each
    element which of these (None where there is one), and at which place in it.
    """

    __hash__ = None  # type: ignore[assignment]  # ``==`` is noted

    def __init__(self, tape: Tape, now: np.ndarray, moved: tuple | None = None):
        if now.ndim != 1:
            raise CannotNote
        self.tape, self.now, self.moved = tape, now, moved
        self.number = tape.number(now.nbytes)
        self.views: dict[np.dtype, Value] = {now.dtype: self}

    @property
    def size(self) -> int:
        return self.now.size

    @property
    def dtype(self) -> np.dtype:
        return self.now.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.now.shape

    @property
    def ndim(self) -> int:
        return 1

    def __getitem__(self, index):
        if isinstance(index, Value):
            raise CannotNote
        return self.tape.gathered([self], None, np.atleast_1d(np.arange(self.size)[index]))

    def view(self, dtype):
        dtype = np.dtype(dtype)
        if dtype.itemsize != self.dtype.itemsize:
            raise CannotNote
        if dtype not in self.views:
            if self.moved:
                held, which, element = self.moved
                other = self.tape.gathered([value.view(dtype) for value in held], which, element)
            else:
                other = self.tape.computed(np.ndarray.view, (self, dtype), {}, self.now.view(dtype))
            other.views = self.views
            self.views[dtype] = other
        return self.views[dtype]

    def astype(self, dtype):
        return self.tape.computed(np.ndarray.astype, (self, np.dtype(dtype)), {}, self.now.astype(dtype))

    def copy(self):
        return self

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        if method != "__call__" or ufunc.nout != 1 or "out" in settings:
            raise CannotNote
        return self.tape.call(ufunc, inputs, settings)

    def __array_function__(self, function, types, args, settings):
        return self.tape.call(function, args, settings)

    def __getattr__(self, name):
        """What an array has besides, and ``__array__``: somebody looks at the numbers."""
        raise CannotNote

    def __bool__(self):
        raise CannotNote

    def __len__(self):
        raise CannotNote


@dataclass
class Noted:
    """One operation: "call" of a ``function`` that computes, "load", "store", "atomic", or "branch", a guard
    and the way that it must go. ``out`` is a Value, several of them, or None.
    """

    what: str
    function: Callable | None
    args: tuple
    settings: dict = field(default_factory=dict)
    out: Any = None


class Tape:
    """What was noted of a launch."""

    def __init__(self):
        self.steps: list[Noted] = []
        self.numbers = self.bytes = 0

    def number(self, size: int) -> int:
        """The number of a new value. Raises CannotNote where there would be too much of them."""
        self.numbers, self.bytes = self.numbers + 1, self.bytes + size
        if self.bytes > MOST_BYTES:
            raise CannotNote
        return self.numbers

    def note(self, *step) -> Any:
        self.steps.append(Noted(*step))
        return self.steps[-1].out

    def computed(self, function, args, settings, now):
        """The value of a call that gave ``now``."""
        if isinstance(now, tuple):
            out = tuple(Value(self, np.asarray(part)) for part in now)
        else:
            out = Value(self, np.asarray(now))
        return self.note("call", function, args, settings, out)

    def call(self, function, args, settings):
        if any(isinstance(a, list | tuple) for a in args) or any(
            isinstance(s, Value) for s in settings.values()
        ):
            raise CannotNote
        plain = [a.now if isinstance(a, Value) else a for a in args]
        return self.computed(function, args, settings, function(*plain, **settings))

    def gathered(self, held: list, which: np.ndarray | None, element: np.ndarray):
        """The value made of elements of others; an array, where all of these are arrays."""
        if which is not None:
            used = np.unique(which)
            held = [held[i] for i in used]
            which = np.searchsorted(used, which) if used.size > 1 else None
        if any(isinstance(value, Value) and value.moved for value in held):
            held, which, element = _through(held, which, element)
            return self.gathered(held, which, element)
        whole = held[0] if which is None else None
        if isinstance(whole, Value) and np.array_equal(element, np.arange(whole.size)):
            return whole
        now = _now(held, which, element)
        if not any(isinstance(value, Value) for value in held):
            return now
        return Value(self, now, (held, which, element))

    def joined(self, held: list[dict], places: list, size: int, names: frozenset[str]) -> dict:
        """``groups.joined``, of what the groups hold. A number that is the same in all lanes is written out
        for each of them.
        """
        registers = {}
        for name in names:
            parts = [registers_of.get(name) for registers_of in held]
            if not any(isinstance(part, Value) for part in parts):
                registers |= joined(held, places, size, frozenset([name]))
                continue
            dtype = next(part.dtype for part in parts if part is not None)
            which, element = np.zeros(size, np.intp), np.zeros(size, np.intp)
            for i, (part, place) in enumerate(zip(parts, places), start=1):
                if part is not None:
                    which[place], element[place] = i, 0 if part.size == 1 else np.arange(part.size)
            nothing = np.zeros(1, dtype)
            known = [nothing if part is None else part for part in [None, *parts]]
            registers[name] = self.gathered(known, which, element)
        return registers


def _through(held: list, which, element) -> tuple[list, np.ndarray, np.ndarray]:
    """The same elements of values none of which is moved itself."""
    flat: list = []
    numbers: dict[int, int] = {}
    owners, elements = [], []
    for value in held:
        inner, of, at = (
            value.moved
            if isinstance(value, Value) and value.moved
            else ([value], None, np.arange(value.size))
        )
        for one in inner:
            if id(one) not in numbers:
                numbers[id(one)] = len(flat)
                flat.append(one)
        mine = np.array([numbers[id(one)] for one in inner])
        owners.append(mine[np.zeros(at.size, np.intp) if of is None else of])
        elements.append(at)
    starts = np.cumsum([0, *(part.size for part in elements[:-1])])
    place = element + (starts[which] if which is not None else 0)
    return flat, np.concatenate(owners)[place], np.concatenate(elements)[place]


def _now(held: list, which, element) -> np.ndarray:
    arrays = [value.now if isinstance(value, Value) else value for value in held]
    if which is None:
        return arrays[0][element]
    starts = np.cumsum([0, *(array.size for array in arrays[:-1])])
    return np.concatenate(arrays)[starts[which] + element]


class Noting:
    """A module of whose functions those that meet a value are noted: what they are made of, or, where they
    look at the numbers, the call itself.
    """

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        return _noting(found) if callable(found) and not isinstance(found, type) else found


def _noting(function):
    def called(*args, **settings):
        tape = next((a.tape for a in args if isinstance(a, Value)), None)
        if tape is None:
            return function(*args, **settings)
        before = len(tape.steps)
        try:
            return function(*args, **settings)
        except FAILS:
            del tape.steps[before:]
            return tape.call(function, args, settings)

    return called


class NotedMemory:
    """Memory as late functions see it while they are noted. ``followed``: numbers of those parts of ``own``
    memory whose contents are.
    """

    def __init__(self, tape: Tape, regions: list[Region], kept, followed: set[int]):
        self.tape, self.kept = tape, kept
        cells: dict[int, Cells] = {}
        self.views: list = []
        for number, dtype in kept.views:
            if number in followed:
                width = np.dtype(dtype).itemsize
                cells[number] = cells.get(number) or Cells(tape, kept.own[number - len(regions)], width)
                self.views.append(CellsView(cells[number], dtype))
            else:
                self.views.append(NotedView(tape, regions, number, dtype))
        self.registers: list[dict] = [{} for _ in range(kept.groups)]
        self.joined = tape.joined

    def param(self, name: str, offset: int, dtype: str) -> np.ndarray:
        return np.frombuffer(self.kept.params[name], dtype, 1, offset)

    def missed(self, group, site) -> None:
        """As in a launch."""

    def atomic(self, group, site, space, place, offset, dtype, operation, value, compare, wants_old):
        number, index = place
        out = Value(self.tape, np.zeros(index.size, dtype)) if wants_old else None
        args = number, dtype, index, operation, value, compare, wants_old
        return self.tape.note("atomic", None, args, {}, out)


class NotedView:
    """A region as elements of a dtype: what is loaded from it is noted, and what would be stored."""

    def __init__(self, tape: Tape, regions: list[Region], number: int, dtype: str):
        self.tape, self.number, self.dtype = tape, number, dtype
        self.array = regions[number].view(dtype) if number < len(regions) else None

    def __getitem__(self, index: np.ndarray) -> Value:
        now = np.zeros(index.size, self.dtype) if self.array is None else self.array[index]
        return self.tape.note("load", None, (self.number, self.dtype, index), {}, Value(self.tape, now))

    def __setitem__(self, index: np.ndarray, value) -> None:
        self.tape.note("store", None, (self.number, self.dtype, index, value))


class Cells:
    """Shared or local memory, all accesses to which are of one ``width``: whose element is in each cell."""

    def __init__(self, tape: Tape, size: int, width: int):
        self.tape, self.bits = tape, np.dtype(f"u{width}")
        self.which = np.zeros(size // width, np.intp)  # at first the array of one number that nobody wrote
        self.element = np.zeros(size // width, np.intp)
        self.held: list = [np.array([-1]).astype(self.bits)]


class CellsView:
    """The cells as elements of a dtype."""

    def __init__(self, cells: Cells, dtype: str):
        self.cells, self.dtype = cells, np.dtype(dtype)

    def __getitem__(self, index: np.ndarray):
        cells = self.cells
        return cells.tape.gathered(cells.held, cells.which[index], cells.element[index]).view(self.dtype)

    def __setitem__(self, index: np.ndarray, value) -> None:
        self.cells.which[index] = len(self.cells.held)
        self.cells.element[index] = 0 if value.size == 1 else np.arange(value.size)
        self.cells.held.append(value.view(self.cells.bits))
