"""Taint: propagates uninitialised values through a kernel, in arrays of the class ``Tainted``.

Each lane has an *origin*: the code of the uninitialised read (``sanitizer.uninitialised``), or 0 if its value
is initialised. A result is tainted if an operand is, unless the other operand alone decides it (``and`` with
zero, the other side of a ``selp``). Warp-wide functions taint the results of all lanes of a warp.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from warplab.simt.engine.warp import WarpTable
from warplab.simt.engine.wrapped import WrappedArray, plain, wrapped_in

DECIDES = {  # whether a value of one operand decides the result, whatever the other is
    np.bitwise_and: lambda x: x == 0,
    np.bitwise_or: lambda x: ~x == 0,
    np.multiply: lambda x: x == 0,
}
OF_WARP = ("multiply", "turn")  # functions that mix lanes, in addition to those of ``warp``
INITIALISED = np.zeros(1, np.int64)


class Tainted(WrappedArray):
    """An array with an origin for each lane. ``check``: the observer that refuses uses (``sanitizer``)."""

    def __init__(self, now: np.ndarray, origins: np.ndarray, check):
        super().__init__(now)
        self.origins, self.check = origins, check

    def __getitem__(self, index):
        return self.of(self.now[index], self.origins[index[0] if isinstance(index, tuple) else index])

    def of(self, now, origins: np.ndarray):
        """A result (or each of a tuple or list) with its origins; untainted if all of them are 0."""
        if isinstance(now, tuple | list):
            return type(now)(self.of(one, origins) for one in now)
        return Tainted(now, origins, self.check) if origins.any() else now

    def call(self, function, args, settings):
        """A NumPy function of tainted arrays; ``np.where`` and functions in DECIDES may drop a taint."""
        now = function(*plain(args), **settings)
        if function is np.where:
            return self.of(now, self._chosen(*args))
        if function in DECIDES and plain(args[0]).dtype.kind != "f":
            return self.of(now, self._masked(DECIDES[function], *args))
        return self.of(now, origins_of(args))

    def _chosen(self, takes_a, a, b) -> np.ndarray:
        if any(isinstance(x, Tainted) for x in (a, b)):
            self.check.discards()
        chosen = np.where(plain(takes_a), origins_of([a]), origins_of([b]))
        return np.maximum(chosen, origins_of([takes_a]))

    def _masked(self, decides, a, b) -> np.ndarray:
        """The origins of a result; where an initialised operand decides it, the other does not taint it."""
        self.check.discards()
        of_a, of_b = origins_of([a]), origins_of([b])
        left = np.where(decides(plain(b)) & (of_b == 0), 0, of_a)
        return np.maximum(left, np.where(decides(plain(a)) & (of_a == 0), 0, of_b))

    def through(self, function, args):
        """A function of the engine: those that mix lanes taint whole warps, others with memory refuse tainted
        arguments, and the rest are elementwise.
        """
        first = args[0]
        if isinstance(first, WarpTable):
            return self.of(function(*plain(args)), of_warp(first, origins_of(args)))
        if isinstance(first, WrappedArray) or not hasattr(first, "machine"):  # no memory
            return self.call(function, args, {})
        memory, group, site, *_ = args
        if function.__name__ not in OF_WARP:
            self.refuse(group, "uses it", memory.program.sites[site if isinstance(site, int) else site[0]])
        return self.of(function(*plain(args)), of_warp(group.table, origins_of(args)))

    def decides(self, group, block):
        how = {"branch": "lets it decide a branch", "barrier": "lets it decide a vote"}
        self.refuse(group, how.get(block.end, "uses it"), block.branch)

    def joined(self, parts, places, size):
        known = [(part, place) for part, place in zip(parts, places) if part is not None]
        now, origins = np.zeros(size, self.dtype), np.zeros(size, np.int64)
        for part, place in known:
            now[place], origins[place] = plain(part), origins_of([part])
        return self.of(now, origins)

    def refuse(self, group, how: str, instr) -> NoReturn:
        self.check.refuse(group, np.broadcast_to(self.origins, (group.size,)), how, instr)
        raise AssertionError("a tainted array has an origin")

    def __getattr__(self, name: str) -> Any:
        self.check.raise_for(int(self.origins.max()), "")

    def __bool__(self):
        return self.__getattr__("bool")

    __len__ = __iter__ = __bool__


def origins_of(values) -> np.ndarray:
    """The origins of a result of all these values."""
    found = [value.origins for value in wrapped_in(values)]
    return np.maximum.reduce(np.broadcast_arrays(*found)) if found else INITIALISED


def of_warp(table: WarpTable, origins: np.ndarray) -> np.ndarray:
    """For each lane the largest origin of its warp."""
    found = np.zeros(table.rows, np.int64)
    np.maximum.at(found, table.row, origins)
    return found[table.row]


def loaded(view, index, count: int, origins: list, check):
    """Load ``count`` elements a lane from memory whose parts have the given ``origins``."""
    out = []
    for i in range(count):
        parts = origins[i * len(origins) // count : max(1, (i + 1) * len(origins) // count)]
        value = Tainted(view[index + i if i else index], np.maximum.reduce(parts), check)
        out.append(value.of(value.now, value.origins))
    return out[0] if count == 1 else out
