"""Tracing a launch: its operations on loaded values become a Python function that later launches replay.

Tracing runs the kernel's block functions once more, on a machine without observers. Values that may differ in
the next launch (loaded values and float parameters) are ``Traced`` arrays, and each NumPy operation on one
becomes a line of the function. Everything else, such as indices, branches and the places of accesses in their
arrays, is the same in all launches of a kind (``repeats``) and becomes a constant.

A ``Pointer`` is an address among the launch's parameters. Constants may be added to it; an access through it
is recorded as an index into the array that it points to. Stores to global memory go to copies while tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warplab.simt.engine.groups import joined, same_number
from warplab.simt.engine.wrapped import WrappedArray, plain, wrapped_in

Parameter = tuple[str, int, int]  # name, byte offset in it, and bytes that are loaded
STEPS = 1 << 12  # most lines of a function; each takes some 20 microseconds to compile
BYTES = 1 << 24  # most bytes of a function's constants
FEW = 16  # elements up to which NumPy indexes by an array as quickly as by a slice


class CannotTrace(Exception):
    """The kernel does something with a traced value or a pointer that cannot be recorded."""


class DependsOnContents(Exception):
    """Addresses or branches depend on the contents of the arrays that these parameters point to."""


class Pointer(WrappedArray):
    """Addresses in arrays: ``now`` in this launch, ``origins`` the parameters that they come from."""

    def __init__(self, now: np.ndarray, origins: frozenset[Parameter]):
        super().__init__(now)
        self.origins = origins

    def view(self, dtype):
        if np.dtype(dtype).itemsize != 8:
            raise CannotTrace
        return Pointer(self.now.view(dtype), self.origins)

    def __getitem__(self, index):
        return Pointer(self.now[index], self.origins)

    def call(self, function, args, settings):
        others = [x for x in args if x is not self]
        if function is np.add and len(others) == 1 and not settings:
            if isinstance(others[0], Traced):
                raise others[0].not_constant()
            if isinstance(others[0], np.ndarray):
                return Pointer(self.now + others[0], self.origins)
        raise CannotTrace

    def through(self, function, args):
        return function(*args)

    def joined(self, parts, places, size):
        known = [part for part in parts if part is not None]
        if not all(isinstance(part, Pointer) for part in known):
            raise CannotTrace
        if len(known) == len(parts) and all(part is self for part in parts):
            return self
        now = joined([part and part.now for part in parts], places, size)
        return Pointer(now, frozenset().union(*(part.origins for part in known)))

    def __getattr__(self, name):
        raise CannotTrace


class Traced(WrappedArray):
    """An array that may differ between launches: ``now`` are its elements in this one, ``name`` is its
    variable in the recorded function. ``sources``: the parameters that point to the small integer arrays
    that it was computed from; None if it was computed from other memory too.
    """

    def __init__(self, trace: LaunchTrace, name: str, now, sources: frozenset[Parameter] | None):
        super().__init__(now)
        self.trace, self.name, self.sources = trace, name, sources

    def __getitem__(self, index):
        text = f"{self.trace.operand(self)}[{self.trace.place(index)}]"
        return self.trace.value(text, self.now[index], self.sources)

    def call(self, function, args, settings):
        return self.trace.call(function, args, settings)

    def through(self, function, args):
        """Record the operations inside ``function``, or the call as a whole if they cannot be recorded."""
        try:
            return function(*args)
        except (CannotTrace, TypeError, ValueError):
            return self.trace.call(function, args, {})

    def decides(self, group, block):
        return self.trace.decided(self)

    def joined(self, parts, places, size):
        known = [part for part in parts if part is not None]
        if any(isinstance(part, Pointer) for part in known):
            raise CannotTrace
        if len(known) == len(parts) and all(part.size == 1 for part in known):
            if all(part is self for part in parts) or self.trace.decided(self.call(_are_same, (known,), {})):
                return known[0]
        return self.call(joined, (parts, places, size), {})

    def __getattr__(self, name):
        raise CannotTrace

    def __bool__(self):
        raise CannotTrace

    __len__ = __iter__ = __bool__

    def not_constant(self) -> Exception:
        """The exception to raise where the value would have to be the same in all launches of the kind."""
        return DependsOnContents(self.sources) if self.sources else CannotTrace()


@dataclass
class TracedStep:
    """A line of the recorded function. ``target`` is the variable that it assigns, ``uses`` are the names in
    it; ``reads`` and ``writes`` are "shared" or "local" memory. ``writes`` is "global" for a line that must
    stay even if its target is unused.
    """

    text: str
    target: str
    uses: set[str]
    reads: str = ""
    writes: str = ""


class LaunchTrace:
    """The steps recorded so far. Variables are named ``v``, constants ``c`` and views of memory ``m``, and
    numbered.
    """

    def __init__(self):
        self.steps: list[TracedStep] = []
        self.constants: dict[str, object] = {}
        self.names: dict = {}  # names of constants, by identity and by content, and of views
        self.uses: set[str] = set()  # the names in the step that is being written
        self.bytes = 0  # of constants
        self.wrote_global = False

    def step(self, text: str, target: str = "", reads: str = "", writes: str = "") -> None:
        if len(self.steps) == STEPS or self.bytes > BYTES:
            raise CannotTrace
        self.steps.append(TracedStep(text, target, self.uses, reads, writes))
        self.uses = set()

    def value(self, text: str, now, sources, reads: str = "", writes: str = "") -> Traced:
        """Record a step that computes a value, whose elements in this launch are ``now``."""
        name = f"v{len(self.steps)}"
        self.step(f"{name} = {text}", name, reads, writes)
        return Traced(self, name, np.asarray(now), sources)

    def call(self, function: Callable, args, settings) -> Traced:
        """Record a call with a traced argument, and return its result."""
        now = function(*plain(args), **{name: plain(x) for name, x in settings.items()})
        if not isinstance(now, np.ndarray | np.generic) or "out" in settings:
            raise CannotTrace
        given = [self.operand(x) for x in args] + [f"{n}={self.operand(x)}" for n, x in settings.items()]
        sources = sources_of([*args, *settings.values()])
        return self.value(f"{self.operand(function)}({', '.join(given)})", now, sources)

    def operand(self, value) -> str:
        """An expression for a value in the step that is being written."""
        if value is None or isinstance(value, str | int):
            return repr(value)
        if isinstance(value, list | tuple):
            return f"({''.join(self.operand(item) + ', ' for item in value)})"
        if isinstance(value, Pointer):
            raise CannotTrace
        name = value.name if isinstance(value, Traced) else self._constant(value)
        self.uses.add(name)
        return name

    def place(self, index) -> str:
        """An expression for an index; a slice if its elements are consecutive."""
        if isinstance(index, Traced):
            raise index.not_constant()
        if isinstance(index, np.ndarray) and index.ndim == 1 and index.size > FEW:
            first, last = int(index[0]), int(index[-1])
            if last - first == index.size - 1 and (np.diff(index) == 1).all():
                return f"{first}:{last + 1}"
        return self.operand(index)

    def view(self, number: int, dtype: str) -> str:
        """The variable of a region's elements as ``dtype``."""
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
        self.names[key] = name
        self.constants[name] = value  # the reference keeps its id from being reused
        return name

    def decided(self, value: Traced) -> np.ndarray:
        """The elements of ``value`` in this launch, on which the control flow depends. The recorded function
        returns False if they differ, which must come before its first write to global memory.
        """
        if value.sources or self.wrote_global:
            raise value.not_constant()
        self.bytes += value.now.nbytes
        now, expected = self.operand(value), self.operand(value.now.tobytes())
        self.step(f"if {now}.tobytes() != {expected}: return False", writes="global")
        return value.now

    def function(self) -> tuple[Callable, set[int]]:
        """(recorded function, numbers of the regions that it accesses). The function takes regions and
        parameters, and returns False if the launch has to run in full. Steps without effect are left out.
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
        namespace: dict[str, Any] = {name: self.constants[name] for name in needed & self.constants.keys()}
        exec(compile(f"def replay(regions, params):\n  {body}", "<trace>", "exec"), namespace)
        return namespace["replay"], {number for number, _ in views.values()}


def sources_of(values, known: frozenset[Parameter] | None = frozenset()) -> frozenset[Parameter] | None:
    """The sources of a result of these values and of others whose sources are ``known``."""
    for value in wrapped_in(values):
        if isinstance(value, Traced):
            known = None if known is None or value.sources is None else known | value.sources
    return known


def _are_same(parts) -> np.ndarray:
    return np.array(all(same_number(part, parts[0]) for part in parts))
