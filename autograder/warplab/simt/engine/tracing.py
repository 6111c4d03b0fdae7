"""Tracing a launch: its operations on loaded values become a Python function that later launches replay.

A trace runs the kernel's own block functions once more, on a machine without observers. Memory gives them a
``Traced`` array for whatever may differ in the next launch: loaded values and float parameters. Each NumPy
operation on one becomes a line of the function. Everything else, such as indices, branches and the places of
accesses in their arrays, is the same in all launches of a kind (``repeats``) and becomes a constant.

A ``Pointer`` is an address that the launch was given. It may be added to; an access through it is recorded as
an index into the array that it points to. Stores to global memory go to copies while a trace runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from warplab.simt.engine.atomics import update
from warplab.simt.engine.groups import joined, same_number
from warplab.simt.engine.translate import NAMES

Parameter = tuple[str, int, int]  # its name, an offset in it, and how many bytes are loaded
STEPS = 1 << 12  # lines of a function, each of which takes some 20 microseconds to compile
BYTES = 1 << 24  # of a function's constants
FEW = 16  # elements up to which NumPy gathers as quickly as it copies a slice


class CannotTrace(Exception):
    """The kernel does with a traced value or a pointer what cannot be recorded."""


class Depends(Exception):
    """The trace needs more of its launch to be the same in all launches of the kind: the ``values`` of some
    parameters, or the ``contents`` of the arrays that they point to.
    """

    def __init__(
        self, values: frozenset[Parameter] = frozenset(), contents: frozenset[Parameter] = frozenset()
    ):
        super().__init__()
        self.values, self.contents = values, contents


class Pointer(NDArrayOperatorsMixin):
    """Addresses in arrays: ``now`` in this launch, ``origins`` the parameters that they come from."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, now: np.ndarray, origins: frozenset[Parameter]):
        self.now, self.origins = now, origins
        self.size, self.dtype, self.shape = now.size, now.dtype, now.shape

    def view(self, dtype):
        if np.dtype(dtype).itemsize != 8:
            raise Depends(values=self.origins)
        return Pointer(self.now.view(dtype), self.origins)

    def __getitem__(self, index):
        return Pointer(self.now[index], self.origins)

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        others = [x for x in inputs if x is not self]
        if ufunc is np.add and len(others) == 1 and not settings:
            if isinstance(others[0], Traced):
                raise others[0].not_constant()
            if isinstance(others[0], np.ndarray):
                return Pointer(self.now + others[0], self.origins)
        raise Depends(values=self.origins.union(*(x.origins for x in others if isinstance(x, Pointer))))

    def __getattr__(self, name):
        raise Depends(values=self.origins)


def _method(name: str):
    function = getattr(np.ndarray, name)
    return lambda self, *args, **settings: self.trace.call(function, (self, *args), settings)


class Traced(NDArrayOperatorsMixin):
    """An array that differs from launch to launch: ``now`` its elements in this one. ``name`` is its variable
    in the recorded function. ``sources``: the parameters that point to the small arrays of integers that it
    was computed from, None if it was computed from other memory too.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, name: str, now, sources: frozenset[Parameter] | None):
        self.trace, self.name, self.now, self.sources = trace, name, now, sources
        self.size, self.dtype, self.shape = now.size, now.dtype, now.shape

    view, astype, copy, reshape = map(_method, ("view", "astype", "copy", "reshape"))

    def __getitem__(self, index):
        text = f"{self.name}[{self.trace.place(index)}]"
        return self.trace.value(text, self.now[index], self.sources, {self.name})

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        return self.trace.call(ufunc if method == "__call__" else getattr(ufunc, method), inputs, settings)

    def __array_function__(self, function, types, args, settings):
        return self.trace.call(function, args, settings)

    def __getattr__(self, name):
        raise CannotTrace

    def __bool__(self):
        raise CannotTrace

    __len__ = __iter__ = __bool__

    def not_constant(self) -> Exception:
        """What to raise where the value would have to be the same in all launches of the kind."""
        return Depends(contents=self.sources) if self.sources else CannotTrace()


@dataclass
class Step:
    """A line of the function. ``reads`` and ``writes``: "shared" or "local" memory; it writes "global" if it
    has to run although nobody uses what it computes.
    """

    text: str
    target: str
    uses: set[str]
    reads: str = ""
    writes: str = ""


class Trace:
    """The steps recorded so far. Variables are named ``v``, constants ``c`` and views of memory ``m``, each
    with its number.
    """

    def __init__(self):
        self.steps: list[Step] = []
        self.constants: dict[str, object] = {"update": update, "joined": _joined, "same": _are_same}
        self.names: dict = {}
        self.uses: set[str] = set()  # the names in the step that is being written
        self.bytes = self.count = 0
        self.wrote_global = False

    def step(self, text: str, target: str, uses: Iterable[str], reads: str = "", writes: str = "") -> None:
        if len(self.steps) == STEPS:
            raise CannotTrace
        self.steps.append(Step(text, target, {*uses, *self.uses}, reads, writes))
        self.uses = set()

    def value(
        self, text: str, now, sources, uses: Iterable[str], reads: str = "", writes: str = ""
    ) -> Traced:
        """The result of a new step, ``now`` in this launch."""
        self.count += 1
        name = f"v{self.count}"
        self.step(f"{name} = {text}", name, uses, reads, writes)
        return Traced(self, name, np.asarray(now), sources)

    def call(self, function: Callable, args, settings) -> Traced:
        """The result of a call in which some argument is traced."""
        now = function(*_plain(args), **{name: _plain(x) for name, x in settings.items()})
        if not isinstance(now, np.ndarray | np.generic) or "out" in settings:
            raise CannotTrace
        given = [self.operand(x) for x in args] + [f"{n}={self.operand(x)}" for n, x in settings.items()]
        sources = _union([x.sources for x in _all_traced([*args, *settings.values()])])
        return self.value(f"{self.operand(function)}({', '.join(given)})", now, sources, ())

    def operand(self, value) -> str:
        """An expression for a value in the step that is being written."""
        if value is None or isinstance(value, str | int):
            return repr(value)
        if isinstance(value, list | tuple):
            return f"({''.join(self.operand(item) + ', ' for item in value)})"
        if isinstance(value, Pointer):
            raise Depends(values=value.origins)
        name = value.name if isinstance(value, Traced) else self._constant(value)
        self.uses.add(name)
        return name

    def place(self, index) -> str:
        """An index, as a slice where its elements are neighbours in order."""
        if isinstance(index, Traced):
            raise index.not_constant()
        if isinstance(index, np.ndarray) and index.ndim == 1 and index.size > FEW:
            first, last = int(index[0]), int(index[-1])
            if last - first == index.size - 1 and (np.diff(index) == 1).all():
                return f"{first}:{last + 1}"
        return self.operand(index)

    def view(self, number: int, dtype: str) -> str:
        """The variable of a region's elements."""
        name = self.names.setdefault((number, dtype), f"m{len(self.names)}")
        self.uses.add(name)
        return name

    def _constant(self, value) -> str:
        key: tuple = (id(value),)
        if key in self.names:
            return self.names[key]
        name = f"c{len(self.constants)}"
        if isinstance(value, np.ndarray):
            content = value.dtype.str, value.shape, value.tobytes()
            name = self.names.setdefault(content, name)
            if name in self.constants:
                return name
            self.bytes += value.nbytes
            if self.bytes > BYTES:
                raise CannotTrace
        self.names[key] = name
        self.constants[name] = value  # which keeps its id from being given to another
        return name

    def decided(self, value: Traced) -> np.ndarray:
        """What ``value`` is now, where the kernel's way depends on it: launches in which it is something else
        are not replayed. They must find that out before they write.
        """
        if value.sources:
            raise value.not_constant()
        if self.wrote_global:
            raise CannotTrace
        expected = self._constant(value.now.tobytes())
        text = f"if {value.name}.tobytes() != {expected}: return False"
        self.step(text, "", {value.name, expected}, writes="global")
        return value.now

    def joined(self, held: list[dict], places: list, size: int, names: frozenset[str]) -> dict:
        """``groups.joined``, where some registers are traced or hold pointers."""
        registers = {}
        for name in names:
            parts = [registers_of.get(name) for registers_of in held]
            known = [part for part in parts if part is not None]
            if not any(isinstance(part, Traced | Pointer) for part in known):
                registers |= joined(held, places, size, frozenset([name]))
            elif all(part is parts[0] for part in parts) and known[0].size == 1:
                registers[name] = known[0]
            elif any(isinstance(part, Pointer) for part in known):
                registers[name] = _joined_pointers(known, parts, places, size)
            elif len(known) == len(parts) and all(part.size == 1 for part in known):
                alike = self.decided(self.call(_are_same, (known,), {}))
                registers[name] = known[0] if alike else self.call(_joined, (parts, places, size), {})
            else:
                registers[name] = self.call(_joined, (parts, places, size), {})
        return registers

    def function(self) -> tuple[Callable, int, set[int]]:
        """The recorded function: ``replay(regions, params)``, False if the launch has to run as a whole. Then
        the bytes of its constants, and the numbers of the regions that it touches.
        """
        needed: set[str] = set()
        lines: list[str] = ["return True"]
        for step in reversed(self.steps):
            if step.writes != "global" and needed.isdisjoint({step.target, step.writes}):
                continue
            mine = {*step.uses, step.target} - {""}
            dead = sorted(name for name in mine - needed if name[0] == "v")
            lines += [f"del {', '.join(dead)}"] * bool(dead) + [step.text]
            needed |= {*step.uses, step.reads} - {""}
        views = {name: key for key, name in self.names.items() if name in needed and name[0] == "m"}
        lines += [f"{name} = regions[{number}].view({dtype!r})" for name, (number, dtype) in views.items()]
        body = "\n  ".join(reversed(lines))
        namespace = {name: value for name, value in self.constants.items() if name in needed}
        exec(compile(f"def replay(regions, params):\n  {body}", "<trace>", "exec"), namespace)
        size = sum(value.nbytes for value in namespace.values() if isinstance(value, np.ndarray))
        return namespace["replay"], size + 200 * len(lines), {number for number, _ in views.values()}


def _all_traced(values) -> list[Traced]:
    found: list[Traced] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += _all_traced(value)
        elif isinstance(value, Traced):
            found.append(value)
    return found


def _plain(value):
    """An argument as it is in this launch."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    return value.now if isinstance(value, Traced) else value


def _union(sources: list) -> frozenset[Parameter] | None:
    return None if None in sources else frozenset().union(*sources)


def _are_same(parts) -> np.ndarray:
    """Whether all of these numbers have the same bits."""
    return np.array(all(same_number(part, parts[0]) for part in parts))


def _joined(parts, places, size: int) -> np.ndarray:
    """A register of ``size`` lanes of which each group had a part; the lanes of one that had none are 0."""
    whole = np.zeros(size, next(part.dtype for part in parts if part is not None))
    for part, place in zip(parts, places):
        if part is not None:
            whole[place] = part
    return whole


def _joined_pointers(known: list, parts: list, places: list, size: int) -> Pointer:
    origins = frozenset().union(*(part.origins for part in known if isinstance(part, Pointer)))
    if not all(isinstance(part, Pointer) for part in known):
        raise Depends(values=origins)
    held = [{} if part is None else {"": part.now} for part in parts]
    return Pointer(joined(held, places, size, frozenset([""]))[""], origins)


class _Recording:
    """A module of the engine whose functions are traced: operation by operation, or as one call where they
    look at the values.
    """

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        return _recording(found) if callable(found) and not isinstance(found, type) else found


def _recording(function):
    def called(*args, **settings):
        traced = _all_traced(args)
        if not traced:
            return function(*args, **settings)
        try:
            return function(*args, **settings)
        except (CannotTrace, TypeError, ValueError):
            return traced[0].trace.call(function, args, settings)

    return called


RECORDING = {name: module if module is np else _Recording(module) for name, module in NAMES.items()}


def traceable(function: FunctionType) -> Callable:
    """The function of a basic block whose engine functions are recorded and whose guard is decided."""
    recording = FunctionType(function.__code__, function.__globals__ | RECORDING)

    def run(memory, group, registers):
        guard = recording(memory, group, registers)
        return memory.trace.decided(guard) if isinstance(guard, Traced) else guard

    return run
