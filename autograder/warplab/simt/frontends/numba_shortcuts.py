"""numba's compiler, with detours left out that lead to the same result.

As with what ``numba_compiling`` keeps, every kernel has the PTX that it has without
(``tests/simt/test_numba_compiling.py`` compares), and what is refused is refused in the same words.
"""

from __future__ import annotations

import functools
import linecache
import re
import warnings

from llvmlite.ir import _utils as llvm_names
from llvmlite.ir import types as llvm_types
from llvmlite.ir import values as llvm_values
from numba.core.types import abstract as numba_types
from numba.cuda import lowering as numba_lowering
from numba.cuda import types
from numba.cuda.core import compiler_machinery as numba_machinery
from numba.cuda.core import errors as numba_errors
from numba.cuda.core import event as numba_events
from numba.cuda.core import inline_closurecall as numba_inline
from numba.cuda.core import ir as numba_ir
from numba.cuda.core import typed_passes as numba_passes
from numba.cuda.core import typeinfer as numba_inference
from numba.cuda.cudadrv import nvvm as numba_nvvm

_installed: list[str] = []


def install() -> None:
    """Put all of it in numba's place. Idempotent."""
    if _installed:
        return
    _installed.append("all")
    _know_instances_by_class()
    _enter_contexts_directly()
    _run_passes_directly()
    _catch_warnings_once_a_round()
    _resolve_calls_once()
    _look_for_lists_first()
    _look_for_closures_first()
    _name_values_in_one_step()
    _write_instructions_directly()
    _write_debug_locations_directly()
    _find_definitions_by_their_text()
    _give_nvvm_what_it_needs()


def _know_instances_by_class() -> None:
    """numba's types are abstract base classes, of which Python asks whether a class was registered as one of
    them; none is.
    """
    meta = numba_types._TypeMetaclass
    meta.__instancecheck__, meta.__subclasscheck__ = type.__instancecheck__, type.__subclasscheck__


class _ErrorContext:
    """What numba tells of where an error of its own came from: ``new_error_context`` without a generator."""

    __slots__ = ("text", "args", "named")

    def __init__(self, fmt_, *args, **kwargs):
        self.text, self.args, self.named = fmt_, args, kwargs

    def __enter__(self):
        place = self.named.get("loc")
        if place is not None and not place.filename.startswith(numba_errors._numba_path):
            numba_errors.loc_info.update(self.named)

    def __exit__(self, kind, error, traceback):
        if isinstance(error, numba_errors.NumbaError):
            error.add_context(numba_errors._format_msg(self.text, self.args, self.named))


def _enter_contexts_directly() -> None:
    """Each statement that is lowered, and each step of type inference, has such a context."""
    for module in (numba_errors, numba_inference, numba_lowering):
        module.new_error_context = _ErrorContext


def _run_passes_directly() -> None:
    """Around each pass, of which a kernel has 26, numba takes two locks, tells whoever listens, reads the
    clock six times and looks for what no pass leaves behind.
    """
    manager = numba_machinery.PassManager
    plain = manager._runPass

    @functools.wraps(plain)
    def run_one(self, index, pss, internal_state):
        if (
            self._print_before
            or self._print_after
            or self._print_wrap
            or any(numba_events._registered.values())
        ):
            plain(self, index, pss, internal_state)
            return
        pss.analysis = self._analysis
        with _ErrorContext(f"Pass {pss.name()}"):
            pss.run_initialization(internal_state)
            pss.run_pass(internal_state)
            pss.run_finalizer(internal_state)

    manager._runPass = run_one


class _WarningsOfLine:
    """Gives the warnings that were caught meanwhile to numba, with the line that they are of."""

    def __init__(self, fixer, filename, lineno):
        self.fixer, self.place = fixer, (filename, lineno)

    def __enter__(self): ...

    def __exit__(self, kind, error, traceback):
        caught, others = self.fixer._warplab_caught
        if kind is None and caught:
            for w in caught:
                if issubclass(w.category, self.fixer._category):
                    filename, lineno = self.place
                    key = filename or w.filename, lineno or w.lineno, w.category
                    self.fixer._warnings[key].add(str(w.message))
                else:
                    others.append(w)
        caught.clear()


def _catch_warnings_once_a_round() -> None:
    """numba catches warnings anew at each step of a round of type inference."""
    network = numba_inference.ConstraintNetwork
    plain = network.propagate

    @functools.wraps(plain)
    def propagate(self, typeinfer):
        others: list = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", typeinfer.warnings._category)
            typeinfer.warnings._warplab_caught = caught, others
            errors = plain(self, typeinfer)
        for w in others:
            warnings.warn_explicit(str(w.message), w.category, w.filename, w.lineno)
        return errors

    network.propagate = propagate
    numba_errors.WarningsFixer.catch_warnings = lambda self, *place, **named: _WarningsOfLine(
        self, *place, **named
    )


def _resolve_calls_once() -> None:
    """Each round of type inference resolves all calls. A call whose types, its result's with them, are those
    of the last time has nothing new to say.
    """
    call = numba_inference.CallConstraint
    plain = call.resolve

    @functools.wraps(plain)
    def resolve(self, typeinfer, typevars, fnty):
        if self.kws or self.vararg or not isinstance(fnty, types.Function):
            plain(self, typeinfer, typevars, fnty)
            return
        names = [*(v.name for v in self.args), self.target]
        given = fnty, [typevars[name].type for name in names]
        if self.__dict__.get("_warplab_resolved") == given:
            return
        plain(self, typeinfer, typevars, fnty)
        found = [typevars[name].type for name in names]
        if None not in found and found[-1].is_precise():
            self._warplab_resolved = fnty, found

    call.resolve = resolve


def _look_for_lists_first() -> None:
    """Arrays of a list's values are looked for in all blocks, and for that it is found out where each
    variable lives. A block without a list has none.
    """
    rewrite, rewrites = numba_inline.RewriteArrayOfConsts, numba_passes.NopythonRewrites
    plain, plain_pass = rewrite.match, rewrites.run_pass

    def has_list(block) -> bool:
        return next(block.find_exprs("build_list"), None) is not None

    @functools.wraps(plain)
    def match(self, func_ir, block, typemap, calltypes):
        return has_list(block) and plain(self, func_ir, block, typemap, calltypes)

    @functools.wraps(plain_pass)
    def run_pass(self, state):
        if any(map(has_list, state.func_ir.blocks.values())):
            return plain_pass(self, state)
        numba_passes.rewrites.rewrite_registry.apply("after-inference", state)
        return True

    rewrite.match, rewrites.run_pass = match, run_pass


def _look_for_closures_first() -> None:
    """Calls of closures and of ``reduce``, and comprehensions, are written out, for which it is found out
    where each variable lives. A function that has none of them stays as it is.
    """
    inliner = numba_inline.InlineClosureCallPass
    plain = inliner.run

    def written_out(value) -> bool:
        if isinstance(value, numba_ir.expr_types):
            reduces = value.op == "getattr" and value.attr == "reduce"
            return reduces or value.op in ("make_function", "build_list")
        return getattr(value, "value", None) is functools.reduce

    @functools.wraps(plain)
    def run(self):
        statements = (i for block in self.func_ir.blocks.values() for i in block.body)
        if any(written_out(i.value) for i in statements if isinstance(i, numba_ir.assign_types)):
            plain(self)

    inliner.run = run


def _name_values_in_one_step() -> None:
    """llvmlite gives each value a name of its own."""

    def register(self, name, deduplicate=False):
        used = self._useset
        if name in used:
            if not deduplicate:
                raise llvm_names.DuplicatedNameError(name)
            stem, numbers = name, self._basenamemap
            while name in used:
                numbers[stem] = number = numbers[stem] + 1
                name = f"{stem}.{number}"
        used.add(name)
        return name

    llvm_names.NameScope.register = register


def _write_instructions_directly() -> None:
    """llvmlite keeps each instruction's text, which is read once."""

    def descr(self, buf):
        buf.append(f"{self._format_name()}:\n")
        for instr in self.instructions:
            buf.append(
                "  " if isinstance(instr.type, llvm_types.VoidType) else f"  {instr.get_reference()} = "
            )
            instr.descr(buf)
            buf.append("\n")

    llvm_values.Block.descr = descr


def _write_debug_locations_directly() -> None:
    """Most instructions have a line, and nothing else, as metadata."""
    holder = llvm_names._HasMetadata
    plain = holder._stringify_metadata

    @functools.wraps(plain)
    def stringify_metadata(self, leading_comma=False):
        if len(self.metadata) != 1 or not leading_comma:
            return plain(self, leading_comma)
        ((name, value),) = self.metadata.items()
        return f", !{name} {value.get_reference()}"

    holder._stringify_metadata = stringify_metadata


def _find_definitions_by_their_text() -> None:
    """numba parses a kernel's source for the line with ``def``, which mostly stands below one decorator."""
    plain = numba_lowering.get_func_def_lineno
    decorator = re.compile(r"\s*@[\w.]+(?:\([\w\s.,=]*\))?\s*")

    @functools.wraps(plain)
    def get_func_def_lineno(pyfunc):
        code = pyfunc.__code__
        first, below = (linecache.getline(code.co_filename, code.co_firstlineno + i) for i in (0, 1))
        definition = rf"\s*def\s+{re.escape(code.co_name)}\s*\("
        if decorator.fullmatch(first) and re.match(definition, below) and not hasattr(pyfunc, "__wrapped__"):
            return code.co_firstlineno + 1
        return plain(pyfunc)

    numba_lowering.get_func_def_lineno = get_func_def_lineno


def _give_nvvm_what_it_needs() -> None:
    """numba has NVVM look through the code for mistakes before it compiles it, and brings the library of
    mathematical functions also where none is called. Mistakes are looked for where it does not compile.
    """
    unit = numba_nvvm.CompilationUnit
    plain, plain_add, plain_library = unit.compile, unit.add_module, unit.lazy_add_module
    plain_verify = unit.verify

    @functools.wraps(plain_add)
    def add_module(self, buffer):
        self._calls_library = getattr(self, "_calls_library", False) or b"__nv_" in buffer
        plain_add(self, buffer)

    @functools.wraps(plain_library)
    def lazy_add_module(self, buffer):
        if self._calls_library:
            plain_library(self, buffer)

    @functools.wraps(plain)
    def compile(self):
        try:
            return plain(self)
        except Exception:
            plain_verify(self)  # its message says what is wrong
            raise

    unit.add_module, unit.lazy_add_module = add_module, lazy_add_module
    unit.verify, unit.compile = lambda self: None, compile
