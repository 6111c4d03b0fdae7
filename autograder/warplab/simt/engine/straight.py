"""The late part of a launch as one function without a branch: made of what ``tape`` has noted.

What nobody needs is left out: operations, and of those whose result for a lane is the same wherever the lane
stands, lanes. Which element of a vector a thread gets by way of shared memory, shuffles and branches is one
index here. Sources alike, as of launches on arrays of other sizes, are compiled once.
"""

from __future__ import annotations

import functools
import re
from types import FunctionType

import numpy as np

from warplab.simt.engine.atomics import update
from warplab.simt.engine.tape import FAILS, MOST_CELLS, Noted, NotedMemory, Noting, Tape, Value
from warplab.simt.engine.translate import NAMES

MOST_STEPS = 1 << 11  # of a function, which takes some ten microseconds each to compile
FEW = 128  # elements up to which NumPy takes those of an index as quickly as a slice
# Of a sum or a product of two NaNs NumPy keeps the one or the other: it depends on where they stand.
SAME_EVERYWHERE = {np.subtract, np.divide, np.negative, np.absolute, np.sqrt, np.ndarray.view, np.where}
VARIABLE = re.compile(r"\b[vg]\d+\b")
MODULES = {name: module if module is np else Noting(module) for name, module in NAMES.items()}


def straight(kept, regions):
    """``function(regions)`` that does the late part of a launch, and whether the launch's own memories must
    stand behind the regions. It returns False where a branch goes another way. None where it cannot be noted.

    ``regions``: of a launch of the kind that has run. Nothing is written to them.
    """
    tape = Tape()
    memory = NotedMemory(tape, regions, kept, _followed(kept, len(regions)))
    functions: dict = {}
    with np.errstate(all="ignore"):
        try:
            for late, known, group, expected in kept.steps:
                if late not in functions:
                    functions[late] = FunctionType(late.__code__, late.__globals__ | MODULES)
                guard = functions[late](memory, known, memory.registers[group])
                if isinstance(guard, Value) and expected is not None:
                    tape.note("branch", None, (guard, expected))
        except FAILS:
            return None
    if len(tape.steps) > MOST_STEPS:
        return None
    writer = _Writer(tape)
    return writer.function(), any(number >= len(regions) for number in writer.touched)


def _followed(kept, regions: int) -> set[int]:
    """The numbers of the launch's own memories of which each access has the same width and none is atomic."""
    widths: dict[int, set[int]] = {}
    for number, dtype in kept.views:
        if number >= regions:
            widths.setdefault(number, set()).add(np.dtype(dtype).itemsize)
    small = (n for n, found in widths.items() if len(found) == 1 and kept.own[n - regions] <= MOST_CELLS)
    return set(small) - kept.atomics


@functools.lru_cache(maxsize=256)
def _compiled(source: str):
    return compile(source, "<late part>", "exec")


class _Writer:
    """Writes the source. A value's variable is ``v`` and its number, an index's or a constant's ``c`` and
    where it stands among the ``constants``.
    """

    def __init__(self, tape: Tape):
        self.steps = tape.steps
        self.needed: list[np.ndarray | None] = [None] * (tape.numbers + 1)  # of each value, which elements
        self.last_use = [-1] * (tape.numbers + 1)
        self.emitted: dict[int, int] = {}  # how many elements a value has here
        self.place: dict[int, np.ndarray] = {}  # of a value that was cut short: where an element is now
        self.lines: list[str] = []
        self.constants: list = []
        self.known: dict = {}  # names by what they stand for
        self.touched: set[int] = set()  # the numbers of regions

    def function(self):
        live = self._find_needed()
        writes = [i for i in live if self.steps[i].what in ("store", "atomic")]
        for i in live:
            self._write(i, self.steps[i], writes)
        names = ", ".join(["update", *(f"c{i}" for i in range(len(self.constants)))])
        body = "\n    ".join(self._forgetting())
        source = f"def bind({names}):\n  def late(regions):\n    {body}\n    return True\n  return late"
        namespace: dict = {}
        exec(_compiled(source), namespace)
        return namespace["bind"](update, *self.constants)

    def _forgetting(self) -> list[str]:
        """The lines, and behind each what nobody needs any more."""
        seen: set[str] = set()
        lines = []
        for line in reversed(self.lines):
            last = sorted(set(VARIABLE.findall(line)) - seen)
            seen.update(last)
            lines.append(f"{line}; del {', '.join(last)}" if last and "return" not in line else line)
        return lines[::-1]

    def _find_needed(self) -> list[int]:
        """The numbers of the steps that do something, in order; notes which elements are needed of what."""
        live = []
        for i in range(len(self.steps) - 1, -1, -1):
            step = self.steps[i]
            outs = step.out if isinstance(step.out, tuple) else (step.out,)
            wanted = [out for out in outs if out is not None and self.needed[out.number] is not None]
            if step.what in ("call", "load") and not wanted:
                continue
            live.append(i)
            lanes = self._lanes(step)
            for arg in step.args:
                if isinstance(arg, Value):
                    self._need(i, arg, lanes)
        return live[::-1]

    def _lanes(self, step: Noted) -> np.ndarray | None:
        """The lanes that are needed of a step, None for all."""
        if not isinstance(step.out, Value):
            return None
        needed = self.needed[step.out.number]
        if needed is None or needed.all() or not (step.what == "load" or _is_by_lane(step)):
            return None
        return np.flatnonzero(needed)

    def _need(self, i: int, value: Value, lanes: np.ndarray | None) -> None:
        step = self.steps[i]
        until = i
        if not isinstance(step.function, np.ufunc) and step.function is not np.ndarray.astype:
            # what comes out may be what went in, or a view of it
            outs = step.out if isinstance(step.out, tuple) else (step.out,)
            until = max([i, *(self.last_use[out.number] for out in outs if out is not None)])
        held, which, element = _elements(value, lanes)
        for k, base in enumerate(held):
            if isinstance(base, Value):
                n = base.number
                self.last_use[n] = max(self.last_use[n], until)
                if self.needed[n] is None:
                    self.needed[n] = np.zeros(base.size, bool)
                self.needed[n][element if which is None else element[which == k]] = True

    def _write(self, i: int, step: Noted, writes: list[int]) -> None:
        lanes = self._lanes(step)
        if isinstance(step.out, Value):
            self.emitted[step.out.number] = step.out.size if lanes is None else lanes.size
            if lanes is not None:
                place = self.place[step.out.number] = np.zeros(step.out.size, np.intp)
                place[lanes] = np.arange(lanes.size)
        getattr(self, f"_{step.what}")(i, step, lanes, writes)

    def _load(self, i: int, step: Noted, lanes, writes) -> None:
        number, dtype, index = step.args
        index = index if lanes is None else index[lanes]
        stays = not any(i < w <= self.last_use[step.out.number] for w in writes)
        dense = self._slice(index)
        place = self._constant(index if dense is None or not stays else dense)
        self.lines.append(f"v{step.out.number} = {self._view(number, dtype)}[{place}]")

    def _store(self, i: int, step: Noted, lanes, writes) -> None:
        number, dtype, index, value = step.args
        dense = self._slice(index) if index.size > FEW else None
        place = self._constant(index if dense is None else dense)
        stored = self._operand(value)
        self.lines.append(f"{self._view(number, dtype)}[{place}] = {stored}")

    def _call(self, i: int, step: Noted, lanes, writes) -> None:
        given = [self._operand(arg, lanes) for arg in step.args]
        given += [f"{name}={self._operand(value)}" for name, value in step.settings.items()]
        call = f"{self._constant(step.function)}({', '.join(given)})"
        if isinstance(step.out, Value):
            self.lines.append(f"v{step.out.number} = {call}")
            return
        self.lines.append(f"parts = {call}")
        for place, out in enumerate(step.out):
            if self.needed[out.number] is not None:
                self.emitted[out.number] = out.size
                self.lines.append(f"v{out.number} = parts[{place}]")

    def _atomic(self, i: int, step: Noted, lanes, writes) -> None:
        number, dtype, index, operation, value, compare, wants_old = step.args
        operands = ", ".join(map(self._operand, (index, operation, value, compare, wants_old)))
        target = "" if step.out is None else f"v{step.out.number} = "
        self.lines.append(f"{target}update({self._view(number, dtype)}, {operands})")

    def _branch(self, i: int, step: Noted, lanes, writes) -> None:
        guard, expected = step.args
        way = np.broadcast_to(expected, guard.shape).tobytes()
        self.lines.append(f"if {self._operand(guard)}.tobytes() != {self._constant(way)}: return False")

    def _view(self, number: int, dtype: str) -> str:
        self.touched.add(number)
        return self._named(f"regions[{number}].view({dtype!r})")

    def _operand(self, value, lanes: np.ndarray | None = None) -> str:
        """An expression for a value or an array, cut down to lanes, or for anything else."""
        if isinstance(value, str | bool | int | None):
            return repr(value)
        if not isinstance(value, Value):
            whole = lanes is None or not isinstance(value, np.ndarray) or value.size == 1
            return self._constant(value if whole else value[lanes])
        held, which, element = _elements(value, lanes)
        names, sizes = [], []
        for base in held:
            is_value = isinstance(base, Value)
            names.append(f"v{base.number}" if is_value else self._constant(base))
            sizes.append(self.emitted[base.number] if is_value else base.size)
        if which is None:
            return self._taken(names[0], self._places(held[0], element), sizes[0])
        starts, place = np.cumsum([0, *sizes[:-1]])[which], element.copy()
        for k, base in enumerate(held):
            place[which == k] = self._places(base, element[which == k])
        return self._taken(self._together(names), starts + place, sum(sizes))

    def _places(self, base, element: np.ndarray) -> np.ndarray:
        """Where elements of a value stand in what is left of it."""
        cut = self.place.get(base.number) if isinstance(base, Value) else None
        return element if cut is None else cut[element]

    def _taken(self, name: str, element: np.ndarray, size: int) -> str:
        """The elements of a variable, which has ``size`` of them."""
        if element.size == size and np.array_equal(element, np.arange(size)):
            return name
        dense = self._slice(element)
        return self._named(f"{name}[{self._constant(element if dense is None else dense)}]")

    def _together(self, names: list[str]) -> str:
        return self._named(f"{self._constant(np.concatenate)}(({', '.join(names)}))")

    def _named(self, expression: str) -> str:
        """A variable of what is used again and again."""
        if expression not in self.known:
            self.known[expression] = f"g{len(self.known)}"
            self.lines.append(f"{self.known[expression]} = {expression}")
        return self.known[expression]

    @staticmethod
    def _slice(index: np.ndarray) -> slice | None:
        """An index of neighbours in order."""
        first, last = int(index[0]), int(index[-1])
        if last - first != index.size - 1 or (index.size > 2 and not (np.diff(index) == 1).all()):
            return None
        return slice(first, last + 1)

    def _constant(self, value) -> str:
        if isinstance(value, np.ndarray):
            key: tuple = (value.dtype, value.shape, value.tobytes())
        elif isinstance(value, slice):
            key = slice, value.start, value.stop
        else:
            key = (id(value),)
        if key not in self.known:
            self.known[key] = f"c{len(self.constants)}"
            self.constants.append(value)
        return self.known[key]


def _elements(value: Value, lanes: np.ndarray | None) -> tuple[list, np.ndarray | None, np.ndarray]:
    """Of which values the lanes of a value are elements, for each lane of which, and which element."""
    held, which, element = value.moved or ([value], None, np.arange(value.size))
    if lanes is None or value.size == 1:
        return held, which, element
    element = element[lanes]
    if which is None:
        return held, None, element
    used, which = np.unique(which[lanes], return_inverse=True)
    return [held[i] for i in used], which if used.size > 1 else None, element


def _is_by_lane(step: Noted) -> bool:
    """Whether a lane's result is the same wherever it stands among the others."""
    function, arrays = step.function, [a for a in step.args if isinstance(a, Value | np.ndarray)]
    if step.settings or any(array.size not in (1, step.out.size) for array in arrays):
        return False
    if function in SAME_EVERYWHERE:
        return True
    if isinstance(function, np.ufunc):
        return getattr(np, function.__name__, None) is not function or all(
            a.dtype.kind != "f" for a in arrays
        )
    return function is np.ndarray.astype and arrays[0].dtype.kind != "f"
