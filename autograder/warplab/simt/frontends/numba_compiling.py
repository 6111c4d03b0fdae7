"""numba's own compiler, made to do once what it does again and again.

Compiling a kernel is what a student's first launch and the grading of a class wait for, and most of that time
is numba's. Each function here stands in for one of numba's or llvmlite's and gives the same result: every
kernel has the PTX that it has without (``tests/simt/test_numba_compiling.py`` compares). What is kept is kept
within a process. And a kernel that does not compile says so in a notebook in the course's words.

Beside ``numba_hook`` and ``numba_shortcuts`` this is the only file that touches private names of numba and
llvmlite.
"""

from __future__ import annotations

import functools
import gc

from llvmlite.ir import values as llvm_values
from numba.core.types import functions as numba_functions
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda import types
from numba.cuda.core import base as numba_base
from numba.cuda.core import compiler_lock as numba_lock
from numba.cuda.core import ir as numba_ir
from numba.cuda.core import postproc as numba_postproc
from numba.cuda.core import targetconfig as numba_targetconfig
from numba.cuda.core import transforms as numba_transforms
from numba.cuda.typing import context as numba_typing
from numba.cuda.typing import templates as numba_templates

OPERATORS = ("_operator", "builtins")  # where Python has what numba types as an operator
MANY_OBJECTS = 200_000  # of some fifty kernels
PLAIN = (types.Number, types.Boolean, types.Array, types.NoneType)

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
    _refresh_when_grown()
    _leave_out_what_is_for_the_host()
    _keep_types_of_operators()
    _find_operators_at_once()
    _list_variables_by_type()
    _keep_signatures()
    _leave_out_lives_of_variables()
    _leave_out_types_of_variables()
    _collect_no_garbage()
    _say_in_words_what_is_refused()


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


def _refresh_when_grown() -> None:
    """numba looks for new declarations at every step of type inference. Registries only grow, so while none
    has grown there is nothing to find.
    """
    for context in (numba_base.BaseContext, numba_typing.BaseContext):
        plain = context.refresh

        @functools.wraps(plain)
        def refresh(self, plain=plain):
            known = self.__dict__.setdefault("_warplab_registries", {"lists": (), "size": -1})
            size = sum(map(len, known["lists"]))
            if size == known["size"]:
                below = getattr(self, "typing_context", None)
                if below is not None:
                    below.refresh()
                return
            plain(self)
            known["lists"] = [
                getattr(registry, part)
                for registry, loader in self._registries.items()
                for part in loader.registry_items
            ]
            known["size"] = size  # of before: what has come meanwhile is found the next time

        context.refresh = refresh


def _leave_out_what_is_for_the_host() -> None:
    """numba-cuda takes over what other libraries declare to numba. Once ``@njit`` has compiled something,
    numba's own functions for the host are among it, such as ``np.random.rand``. They do not compile in a
    kernel, and the error would be about their insides.
    """
    plain = numba_typing.BaseContext.install_registry

    @functools.wraps(plain)
    def install_registry(self, registry, external_defs_only=False):
        if external_defs_only:
            self._registries.setdefault(registry, _OfOthers(registry))
        plain(self, registry, external_defs_only)

    numba_typing.BaseContext.install_registry = install_registry


class _OfOthers(numba_templates.RegistryLoader):
    """What a registry of numba's has of others."""

    def new_registrations(self, name):
        new = super().new_registrations(name)
        return (one for one in new if name != "globals" or not any(map(_is_numbas, one[1].templates)))


def _is_numbas(template) -> bool:
    module = _module_of(getattr(template, "_overload_func", None)) or ""
    return module.startswith("numba.") and module != "numba.core.extending"  # register_jitable, of anybody


def _keep_types_of_operators() -> None:
    """``a[i] + b[i]`` is asked for in each round of type inference, and tries all overloads of [] and +."""
    plain = numba_functions.BaseFunction.get_call_type
    known: dict[tuple, object] = {}

    def is_plain(kind) -> bool:
        if isinstance(kind, types.BaseTuple):
            return all(map(is_plain, kind))
        return isinstance(kind, PLAIN)

    @functools.wraps(plain)
    def get_call_type(self, context, args, kws):
        if kws or _module_of(self.typing_key) not in OPERATORS or not all(map(is_plain, args)):
            return plain(self, context, args, kws)
        flags = numba_targetconfig.ConfigStack.top_or_none()
        key = context, self, args, len(self.templates)
        found = known.get((*key, flags))
        if found is None:
            found = plain(self, context, args, kws)
            known[*key, flags.copy() if flags else None] = found
        return found

    numba_functions.BaseFunction.get_call_type = get_call_type


def _find_operators_at_once() -> None:
    """numba asks first whether an operator is a constant, and whether its type has a method ``__call__``."""
    context = numba_typing.BaseContext
    plain_value, plain_attribute = context.resolve_value_type, context.resolve_getattr

    @functools.wraps(plain_value)
    def resolve_value_type(self, val):
        found = self._lookup_global(val) if _module_of(val) == "_operator" else None
        return plain_value(self, val) if found is None else found

    @functools.wraps(plain_attribute)
    def resolve_getattr(self, typ, attr):
        if attr == "__call__" and isinstance(typ, types.Function):
            if next(self._get_attribute_templates(typ), None) is None:
                return None
        return plain_attribute(self, typ, attr)

    context.resolve_value_type, context.resolve_getattr = resolve_value_type, resolve_getattr


def _module_of(value) -> str | None:
    return getattr(value, "__module__", None)


def _list_variables_by_type() -> None:
    """The variables of a statement are looked for in everything that it holds; what is looked into is a
    matter of its type.
    """
    kinds: dict[type, int] = {}
    order = (numba_ir.var_types, numba_ir.inst_types, (list, tuple), dict)

    def kind_of(value) -> int:
        kind = next((number for number, group in enumerate(order) if isinstance(value, group)), 4)
        kinds[type(value)] = kind
        return kind

    @functools.wraps(numba_ir.Inst._rec_list_vars)
    def rec_list_vars(self, val):
        found: list = []
        ahead = [val]
        while ahead:
            value = ahead.pop()
            kind = kinds.get(type(value))
            if kind is None:
                kind = kind_of(value)
            if kind == 0:
                found.append(value)
            elif kind == 1:
                found += value.list_vars()
            elif kind == 2:
                ahead += reversed(value)
            elif kind == 3:
                ahead += reversed(value.values())
        return found

    numba_ir.Inst._rec_list_vars = rec_list_vars


def _keep_signatures() -> None:
    """Whether an implementation takes a line is read off its signature each time that it is called."""
    numba_base._has_loc = functools.lru_cache(maxsize=4096)(numba_base._has_loc)


def _leave_out_lives_of_variables() -> None:
    """After each pass numba finds out where each variable lives; nine in ten times nobody asks.

    What is left out is kept for generators alone, and of use to nothing else.
    """
    processor = numba_postproc.PostProcessor
    plain = processor.run

    @functools.wraps(plain)
    def run(self, emit_dels=False, extend_lifetimes=False):
        function = self.func_ir
        if function.is_generator:
            plain(self, emit_dels, extend_lifetimes)
            return
        function.blocks = numba_transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = numba_postproc.VariableLifetime(function.blocks)
        function.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    processor.run = run


def _leave_out_types_of_variables() -> None:
    """A debugger reads the types of variables. Where it has only lines to read, one type does for all."""
    builder = numba_debuginfo.CUDADIBuilder
    plain, plain_of_function = builder._var_type, builder._di_subroutine_type
    byte = {"name": "byte", "size": 8, "encoding": llvm_values.DIToken("DW_ATE_unsigned_char")}

    def only_lines(self):
        return self.emission_kind == "DebugDirectivesOnly"

    @functools.wraps(plain)
    def var_type(self, lltype, size, datamodel=None):
        if only_lines(self):
            return self.module.add_debug_info("DIBasicType", byte)
        return plain(self, lltype, size, datamodel=datamodel)

    @functools.wraps(plain_of_function)
    def di_subroutine_type(self, line, function, argmap):
        if only_lines(self):
            return self.module.add_debug_info("DISubroutineType", {"types": self.module.add_metadata([])})
        return plain_of_function(self, line, function, argmap)

    builder._var_type, builder._di_subroutine_type = var_type, di_subroutine_type


def _say_in_words_what_is_refused() -> None:
    """IPython asks an error how to show it: a kernel that does not compile, without numba's frames."""
    plain = numba_dispatcher._Kernel.__init__

    @functools.wraps(plain)
    def init(self, py_func, *args, **kwargs):
        try:
            plain(self, py_func, *args, **kwargs)
        except Exception as error:
            if not hasattr(error, "_render_traceback_"):
                vars(error)["_render_traceback_"] = functools.partial(_shown, error, py_func)
            raise

    numba_dispatcher._Kernel.__init__ = init


def _shown(error: Exception, function) -> list[str]:
    # here, so that the rest can stand in numba's place without the engine, as its test has it
    from warplab.simt.errors import led_here
    from warplab.simt.frontends.numba_words import does_not_compile

    return [*led_here(error), f"{type(error).__name__}: {does_not_compile(error, function)}"]


def _collect_no_garbage() -> None:
    """A compilation makes so many objects that Python looks through all that live, numba's own among them,
    several times; nearly all of them go by themselves. The others join the objects that have lived long
    without being looked through, and are when there are many of them.
    """
    plain = numba_dispatcher._Kernel.__init__
    left = 0  # objects that compilations left behind since the last look through all

    @functools.wraps(plain)
    @numba_lock.global_compiler_lock  # numba's own: one thread at a time turns collection off and on
    def init(self, *args, **kwargs):
        nonlocal left
        enabled = gc.isenabled()
        gc.disable()
        try:
            plain(self, *args, **kwargs)
        finally:
            if enabled:
                left += gc.get_count()[0]
                if left > MANY_OBJECTS:
                    left = 0
                    gc.collect()
                elif not gc.get_freeze_count():  # of somebody who froze some, those stay frozen
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    numba_dispatcher._Kernel.__init__ = init
