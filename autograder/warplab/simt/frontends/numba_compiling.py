"""numba's own compiler, made to do once what it does again and again.

Compiling a kernel is what a student's first launch and the grading of a class wait for, and most of that time
is numba's. Each function here stands in for one of numba's or llvmlite's and gives the same result: every
kernel has the PTX that it has without (``tests/simt/test_numba_compiling.py`` compares). What is kept is kept
within a process.

Beside ``numba_hook`` this is the only file that touches private names of numba and llvmlite.
"""

from __future__ import annotations

import functools

from llvmlite.ir import values as llvm_values
from numba.core.types import functions as numba_functions
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import types
from numba.cuda.core import base as numba_base
from numba.cuda.core import targetconfig as numba_targetconfig
from numba.cuda.typing import context as numba_typing

SCALARS = (types.Number, types.Boolean)
OF_LOWERING = ("functions", "getattrs", "setattrs", "casts", "constants")  # what a registry of numba's holds
OF_TYPING = ("functions", "attributes", "globals")

_installed: list[str] = []


def install() -> None:
    """Put all of it in numba's place. Idempotent."""
    if _installed:
        return
    _installed.append("all")
    _compare_flags_quickly()
    _keep_sizes_of_types()
    _keep_hashes_of_metadata()
    _keep_locations()
    _install_registries_once()
    _keep_types_of_operators()


def _compare_flags_quickly() -> None:
    """A compilation's flags are part of every key under which numba looks an overload up."""
    config = numba_targetconfig.TargetConfig

    def values(self):
        given = self._values
        return {name: given.get(name, option.default) for name, option in self.options.items()}

    def equal(self, other):
        if not isinstance(other, config):
            return NotImplemented
        same = type(self) is type(other) and self._values == other._values
        return same or self.values() == other.values()

    config.values, config.__eq__ = values, equal
    config.__hash__ = lambda self: hash(tuple(self.options))  # numba's is of the names alone, too


def _keep_sizes_of_types() -> None:
    """llvmlite writes and parses a module for each question of how large a type is."""
    plain = numba_base.BaseContext.get_abi_sizeof
    known: dict[str, int] = {}  # in the one data layout that CUDA has

    @functools.wraps(plain)
    def get_abi_sizeof(self, ty):
        text = str(ty)
        if "%" in text:  # a type with a name, which may mean another elsewhere
            return plain(self, ty)
        if text not in known:
            known[text] = plain(self, ty)
        return known[text]

    numba_base.BaseContext.get_abi_sizeof = get_abi_sizeof


def _keep_hashes_of_metadata() -> None:
    """A line's debug information names its function's, whose hash is that of all below it."""
    for kind in (llvm_values.DIValue, llvm_values.MDValue):
        plain = kind.__hash__

        def kept(self, plain=plain):
            found = self.__dict__.get("_warplab_hash")
            if found is None:
                found = self._warplab_hash = plain(self)
            return found

        kind.__hash__ = kept


def _keep_locations() -> None:
    """numba marks each statement with its line, and most lines have several."""
    plain = numba_debuginfo.DIBuilder._di_location

    @functools.wraps(plain)
    def di_location(self, line):
        known = self.__dict__.setdefault("_warplab_locations", {})
        key = line, id(self.subprograms[-1])  # the builder keeps its subprograms
        if key not in known:
            known[key] = plain(self, line)
        return known[key]

    numba_debuginfo.DIBuilder._di_location = di_location


def _install_registries_once() -> None:
    """Registries only grow, so one that has not grown has nothing new to install."""
    for context, parts in (
        (numba_base.BaseContext, OF_LOWERING),
        (numba_typing.BaseContext, OF_TYPING),
    ):
        plain = context.install_registry

        @functools.wraps(plain)
        def install_registry(self, registry, *rest, plain=plain, parts=parts, **options):
            sizes = tuple(len(getattr(registry, part)) for part in parts)
            seen = self.__dict__.setdefault("_warplab_sizes", {})
            if seen.get(registry) != sizes:
                plain(self, registry, *rest, **options)
                seen[registry] = sizes

        context.install_registry = install_registry


def _keep_types_of_operators() -> None:
    """``a + b`` of two float32 is asked for in each round of type inference, and tries all overloads of +."""
    plain = numba_functions.BaseFunction.get_call_type
    known: dict[tuple, object] = {}

    @functools.wraps(plain)
    def get_call_type(self, context, args, kws):
        of_operator = getattr(self.typing_key, "__module__", None) == "_operator"
        if kws or not of_operator or not all(isinstance(arg, SCALARS) for arg in args):
            return plain(self, context, args, kws)
        flags = numba_targetconfig.ConfigStack.top_or_none()
        key = context, self, args, len(self.templates)
        found = known.get((*key, flags))
        if found is None:
            found = plain(self, context, args, kws)
            known[*key, flags.copy() if flags else None] = found
        return found

    numba_functions.BaseFunction.get_call_type = get_call_type
