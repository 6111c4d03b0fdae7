"""The base class of arrays that track something through generated code: values that differ between launches
(``tracing``), and uninitialised values (``taint``).

The generated code needs no change for them: NumPy passes operations on such an array to its method ``call``,
and the engine's own functions, which generated code gets by ``modules_for_wrapped``, go to ``through``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


def _method(name: str):
    function = getattr(np.ndarray, name)
    return lambda self, *args, **settings: self.call(function, (self, *args), settings)


class WrappedArray(NDArrayOperatorsMixin):
    """An array-like object; ``now`` is the NumPy array of its elements."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, now: np.ndarray):
        self.now, self.size, self.dtype, self.shape = now, now.size, now.dtype, now.shape

    view, astype, copy, reshape = map(_method, ("view", "astype", "copy", "reshape"))

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        return self.call(ufunc if method == "__call__" else getattr(ufunc, method), inputs, settings)

    def __array_function__(self, function, types, args, settings):
        return self.call(function, args, settings)

    def call(self, function: Callable, args, settings) -> Any:
        """The result of a NumPy function with this array among its arguments."""
        raise NotImplementedError

    def through(self, function: Callable, args) -> Any:
        """The result of a function of the engine with this array among its arguments."""
        raise NotImplementedError

    def decides(self, group, block) -> np.ndarray:
        """The elements, of which the end of basic block ``block`` makes a branch, a vote or a member mask."""
        raise NotImplementedError

    def joined(self, parts: list, places: list, size: int) -> Any:
        """``groups.joined`` for a register with this array among its ``parts``."""
        raise NotImplementedError


def wrapped_in(values) -> Iterator[Any]:
    """The wrapped arrays among ``values``, also inside tuples and lists."""
    for value in values:
        if isinstance(value, WrappedArray):
            yield value
        elif isinstance(value, list | tuple):
            yield from wrapped_in(value)


def plain(value) -> Any:
    """An argument with each wrapped array in it replaced by its NumPy array."""
    if isinstance(value, list | tuple):
        return type(value)(plain(item) for item in value)
    return value.now if isinstance(value, WrappedArray) else value


def modules_for_wrapped(*modules: ModuleType) -> dict[str, SimpleNamespace]:
    """The modules by name, their functions replaced by some that accept wrapped arrays too."""
    return {module.__name__.rpartition(".")[2]: _module(module) for module in modules}


def _module(module: ModuleType) -> SimpleNamespace:
    functions = {name: f for name, f in vars(module).items() if isinstance(f, FunctionType)}
    taking = {name: _taking(f) for name, f in functions.items() if name not in vars(module).get("UFUNCS", ())}
    return SimpleNamespace(**{**vars(module), **taking})


def _taking(function: Callable) -> Callable:
    def called(*args):
        found = next(wrapped_in(args), None)
        return function(*args) if found is None else found.through(function, args)

    return called
