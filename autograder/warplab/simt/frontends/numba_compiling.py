"""What changes in how numba compiles a kernel for CUDA; what it compiles for the host is left alone.

Three changes save time, each over 5 % of what a first launch and the grading of a class wait for: two
skip work and give the same PTX (``tests/simt/test_numba_compiling.py`` compares), one postpones garbage
collection. Two word errors. Beside ``numba_hook`` no other file touches private names of numba and llvmlite.
"""

from __future__ import annotations

import functools
import gc

from llvmlite.ir import values as llvm_values
from numba.core.types import functions as numba_functions
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda import types
from numba.cuda.core import compiler_lock as numba_lock
from numba.cuda.core import targetconfig as numba_targetconfig
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
    _leave_out_what_is_for_the_host()
    _keep_types_of_operators()
    _leave_out_types_of_variables()
    _collect_no_garbage()
    _say_in_words_what_is_refused()


def _leave_out_what_is_for_the_host() -> None:
    """Leave numba's functions for the host, such as ``np.random.rand``, undeclared in kernels.

    numba-cuda takes over what other libraries declare to numba. Once ``@njit`` has compiled something,
    numba's own host functions are among it. They do not compile in a kernel, and the error would be about
    their internals.
    """
    plain = numba_typing.BaseContext.install_registry

    @functools.wraps(plain)
    def install_registry(self, registry, external_defs_only=False):
        if external_defs_only:
            self._registries.setdefault(registry, _OfOthers(registry))
        plain(self, registry, external_defs_only)

    numba_typing.BaseContext.install_registry = install_registry


class _OfOthers(numba_templates.RegistryLoader):
    """Loads from a registry of numba's what other libraries declared."""

    def new_registrations(self, name):
        new = super().new_registrations(name)
        return (one for one in new if name != "globals" or not any(map(_is_numbas, one[1].templates)))


def _is_numbas(template) -> bool:
    module = _module_of(getattr(template, "_overload_func", None)) or ""
    return module.startswith("numba.") and module != "numba.core.extending"  # register_jitable, of anybody


def _keep_types_of_operators() -> None:
    """Cache the type of ``a[i] + b[i]``: each round of type inference tries all overloads of [] and +."""
    plain = numba_functions.BaseFunction.get_call_type
    known: dict[tuple, object] = {}

    def is_plain(kind) -> bool:
        if isinstance(kind, types.BaseTuple):
            return all(map(is_plain, kind))
        return isinstance(kind, PLAIN)

    @functools.wraps(plain)
    def get_call_type(self, context, args, kws):
        for_cuda = isinstance(context, numba_typing.BaseContext)
        if (
            not for_cuda
            or kws
            or _module_of(self.typing_key) not in OPERATORS
            or not all(map(is_plain, args))
        ):
            return plain(self, context, args, kws)
        flags = numba_targetconfig.ConfigStack.top_or_none()
        key = context, self, args, len(self.templates), flags.summary() if flags else ""
        if key not in known:
            known[key] = plain(self, context, args, kws)
        return known[key]

    numba_functions.BaseFunction.get_call_type = get_call_type


def _module_of(value) -> str | None:
    return getattr(value, "__module__", None)


def _leave_out_types_of_variables() -> None:
    """Debug information of lines alone needs no types of variables: one type stands for all."""
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
    """Show the error of a kernel that does not compile without numba's frames: IPython asks the error how."""
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
    # imported here, so that the test can install the rest without the engine
    from warplab.simt.errors import led_here
    from warplab.simt.frontends.numba_words import does_not_compile

    return [*led_here(error), f"{type(error).__name__}: {does_not_compile(error, function)}"]


def _collect_no_garbage() -> None:
    """Turn garbage collection off while a kernel is compiled.

    A compilation makes so many objects that several full collections run, and nearly all of them are freed by
    their reference counts. What is left joins the oldest generation, which is collected when much has come.
    """
    plain = numba_dispatcher._Kernel.__init__
    left = 0  # objects that compilations left behind since the last full collection

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
