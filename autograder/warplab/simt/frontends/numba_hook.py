"""numba.cuda without a GPU: a CUDA driver of our own under numba's own code.

The only file that uses private names of numba-cuda and of cuda.core; other files use its functions. Each name
and its reason are listed in ``tests/simt/private_names.yml``, which a test compares with this file
(numba-cuda is pinned). It replaces:
- the driver, by ``engine_driver``. Contexts, device arrays, slices and memory managers stay numba's.
- loading and launching a kernel, which the engine does instead of cuda.core.
- ``as_cuda_array``, ``is_cuda_array`` and DLPack of device arrays, so that CPU tensors of torch work as
  device arrays.
- parts of compiling: line information is always made, so that messages and counters can name source lines,
  also where numba's own code for it fails; a shared array's name and shape become part of the name of its
  PTX variable; garbage collection, a third of a first launch's time, is postponed.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import linecache
import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from cuda.bindings import driver as binding  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs
from cuda.core._utils.cuda_utils import CUDAError  # pyright: ignore[reportMissingImports] - likewise
from llvmlite import ir
from numba import cuda, from_dtype
from numba.cuda import codegen as numba_codegen
from numba.cuda import config, types
from numba.cuda import cudaimpl as numba_cudaimpl
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda.core import errors as numba_errors
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.cudadrv import nvvm as numba_nvvm
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.memory_management import rtsys  # pyright: ignore[reportMissingImports] - numba-cuda alone has it

from warplab.hardware.target import Target
from warplab.simt.engine.indices import shared_symbol
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch, reader_lines
from warplab.simt.frontends import torch_hook
from warplab.simt.frontends.arguments import check_signature, describe, flatten
from warplab.simt.frontends.engine_driver import DriverCalls, EngineDevice
from warplab.simt.frontends.launch import LaunchContext, run, translated
from warplab.simt.frontends.linking import linked_ptx
from warplab.simt.frontends.loaded import LoadedKernel, clear_exception, raise_exception
from warplab.simt.frontends.numba_words import does_not_compile
from warplab.simt.frontends.space import SPACE
from warplab.simt.frontends.torch_hook import (
    OF_ML_DTYPES,
    array_of,
    is_tensor,
    memory_of,
    refuse,
    tensor_of,
)

SHARED = 3  # the number of NVVM's address space for shared memory
OPERATORS = "_operator", "builtins"  # the modules of what numba types as an operator


def is_dispatcher(value) -> bool:
    """Whether a value is the result of ``@cuda.jit``."""
    return type(value) is numba_dispatcher.CUDADispatcher


def is_configured(value) -> bool:
    """Whether a value is numba's ``kernel[grid, block]``."""
    return isinstance(value, numba_dispatcher._LaunchConfiguration)


def numba_type(dtype: str, dimensions: int, kind: str):
    """numba's type for a "number" or a contiguous "array" (``kind``) of a NumPy dtype."""
    scalar = types.bfloat16 if dtype == "bfloat16" else from_dtype(np.dtype(dtype))
    return types.Array(scalar, dimensions, "C") if kind == "array" else scalar


@functools.cache
def _nothing():
    return cuda.jit(lambda: None)


def core_stream(stream):
    """cuda.core's stream for a stream of numba, or for 0, made as numba does for a launch."""
    return _nothing()[1, 1, stream].stream


def compiled_for(dispatcher, args):
    """numba's compiled kernel of a ``@cuda.jit`` function for the types of ``args``.

    Raises InvalidLaunch for arguments that the kernel does not take.
    """
    _check_arguments(dispatcher, args)
    return dispatcher.compile(tuple(dispatcher.typeof_pyval(a) for a in args))


def ptx_of(kernel, target: Target) -> tuple[str, ...]:
    """The PTX modules of a compiled numba kernel and of linked files; the first has the entry."""
    return _ptx_of_library(kernel.library, target)


def launch_on_engine(kernel, args, grid, block, dynamic_shared, context: LaunchContext) -> Machine:
    """Launch a compiled numba kernel. Raises as ``run`` does."""
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)  # None if from numba's disk cache
    names = code.co_varnames if code else [f"arg{i}" for i in range(len(args))]
    extensions = getattr(kernel, "extensions", ())
    values, regions, after = flatten(names, kernel.argument_types, args, SPACE, extensions)
    program = _program_of(kernel.library, context.target)
    machine = run(program, values, regions, grid, block, dynamic_shared, SPACE, context)
    for call in after:
        call()
    return machine


def _program_of(library, target: Target) -> Program:
    """The translated program of a kernel's code library, cached as an attribute of it."""
    known = getattr(library, "warplab_program", None)
    if known is None or known[0] is not target:
        modules = _ptx_of_library(library, target)
        entry = re.search(r"\.entry\s+([\w$]+)", modules[0])
        if entry is None:  # with numba's message
            raise RuntimeError("Missing entry_name - are you trying to get the cufunc for a device function?")
        program = translated(modules, entry[1], library.name.rpartition(".")[2], SPACE)
        for variable, region in program.globals.items():
            if variable.startswith("_cudapy_cmem"):  # cuda.const arrays have values, but PTX omits zeros
                region.unset = False
        known = library.warplab_program = target, program
    return known[1]


def _ptx_of_library(library, target: Target) -> tuple[str, ...]:
    """The PTX modules of a code library and of linked files; the first has the entry."""
    # from 9.0 on with "a": with instructions of this capability only
    capability = (*target.capability, "a" if target.capability >= (9, 0) else "")
    modules = library.get_asm_strs(cc=capability)  # several if the kernel is compiled for debugging
    first = next((m for m in modules if ".entry " in m), modules[0])
    folders = tuple(filter(None, (config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or "").split(":")))
    linked = (linked_ptx(item, capability, folders) for item in sorted(library._linking_files, key=str))
    return (first, *(m for m in modules if m is not first), *linked)


_NumbasDriver: Any = type(numba_driver.driver)


class EngineDriver(DriverCalls, _NumbasDriver):
    """Replaces numba-cuda's driver."""

    api_error = numba_driver.CudaAPIError


class RefusedLaunch(InvalidLaunch, CUDAError):
    """An InvalidLaunch that is also cuda.core's CUDAError, for code that catches that."""

    def __init__(self, refused: InvalidLaunch):
        Exception.__init__(self, f"{refused}\n  CUDA calls it CUDA_ERROR_INVALID_VALUE")
        self.kernel, self.where, self.hint = refused.kernel, refused.where, refused.hint


def _launch(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
    """Replaces ``_Kernel.launch``, which numba calls to launch a kernel."""
    if config.CUDA_WARN_ON_IMPLICIT_COPY and any(map(_would_be_copied, args)):
        # only if the reader has switched this warning on, as the engine copies nothing
        warning = "Host array used in CUDA kernel will incur copy overhead to/from device."
        warnings.warn(numba_errors.NumbaPerformanceWarning(warning), stacklevel=4)
    context = LaunchContext(numba_driver.driver.target)
    try:
        if kernel.debug:
            clear_exception(kernel, _program_of(kernel.library, context.target))
        launch_on_engine(kernel, args, griddim, blockdim, sharedmem, context)
        if kernel.debug:
            raise_exception(kernel, _program_of(kernel.library, context.target))
    except InvalidLaunch as refused:
        raise RefusedLaunch(refused) from None


def _would_be_copied(value) -> bool:
    return isinstance(value, np.ndarray) and not hasattr(value, "__cuda_memory__")


def _bind(kernel):
    """Replaces ``_Kernel.bind``, which numba calls once: runs the set-up callbacks of linked code."""
    setups = [getattr(item, "setup_callback", None) for item in kernel.library._linking_files]
    if any(setups) and not (module := kernel.library.get_cufunc().module).initialized:
        module.initialized = True
        for setup in filter(None, setups):
            setup(module)


def _loaded_kernel(library):
    """Replaces ``get_cufunc``: an object with the kernel's resources and its module's variables."""
    if not hasattr(library, "warplab_kernel"):
        target = numba_driver.driver.target
        program = _program_of(library, target)
        library.warplab_kernel = LoadedKernel(program, cuda.current_context(), target.limits)
    return library.warplab_kernel


def replacing(owner, name: str):
    """Decorator: the function replaces ``owner.name`` and gets the original as its first argument."""

    def put(function):
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def standing(*args, **kwargs):
            return function(plain, *args, **kwargs)

        setattr(owner, name, standing)
        return standing

    return put


@functools.cache
def ask_for_line_information() -> None:
    """Compile every kernel with line information; code generation is the same with and without."""
    # numba warns of functions without source lines, such as lambdas, but the reader did not ask for lines
    warnings.filterwarnings("ignore", "Could not find source for function", append=True)

    @replacing(numba_dispatcher.CUDADispatcher, "__init__")
    def init(plain, self, py_func, targetoptions, *args, **kwargs):
        stub = len(py_func.__code__.co_code) <= 6  # only a docstring: numba fails on its lines
        if not targetoptions.get("debug") and not stub:
            targetoptions = {**targetoptions, "lineinfo": True}
        plain(self, py_func, targetoptions, *args, **kwargs)

    @replacing(numba_nvvm, "compile_ir")
    def compile_ir(plain, llvmir, **options):
        # the linker refuses to mix NVRTC's modules (1: error on a mismatch) and numba's (2: warn), which
        # happens with the functions of float16
        if "gen-lto" in options:
            llvmir = [
                re.sub('i32 2, !"Debug Info Version"', 'i32 1, !"Debug Info Version"', s) for s in llvmir
            ]
        return plain(llvmir, **options)

    @replacing(numba_debuginfo.CUDADIBuilder, "_var_type")
    def var_type(plain, self, lltype, size, datamodel=None):
        # types of variables are not used where only lines are asked for, so all get the same one; numba fails
        # to describe some (a division by zero for a tuple of empty tuples)
        if self.emission_kind == "DebugDirectivesOnly":
            byte = {"name": "byte", "size": 8, "encoding": ir.DIToken("DW_ATE_unsigned_char")}
            return self.module.add_debug_info("DIBasicType", byte)
        return plain(self, lltype, size, datamodel=datamodel)

    @replacing(numba_cudaimpl, "_generic_array")
    def generic_array(plain, context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs):
        if addrspace == SHARED:
            name = re.match(r"\s*(\w+)\s*=[^=]", _line_of(builder.debug_metadata))
            symbol_name = shared_symbol(symbol_name, name[1] if name else "", shape, str(dtype))
        return plain(context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs)

    _watch_compilations()
    _keep_types_of_operators()


def _line_of(place) -> str:
    """The source line at a location of LLVM's debug information; "" if there is none."""
    if place is None:
        return ""
    location = dict(place.operands)
    file = dict(dict(location["scope"].operands)["file"].operands)
    names = os.path.join(file["directory"], file["filename"]), file["filename"]
    return next(filter(None, (linecache.getline(name, location["line"]) for name in names)), "")


def _watch_compilations() -> None:
    """Switch garbage collection off while a kernel is compiled, and note the source line in errors.

    A compilation makes so many objects that several full collections would run, though reference counts free
    nearly all of them. The line is noted for errors of numba that do not name it; IPython shows it (`show`).
    """
    running, found_enabled, lock = 0, False, threading.Lock()
    place = "", 0  # the last line in type inference; numba itself knows the line in code generation

    @replacing(numba_errors.WarningsFixer, "catch_warnings")
    def at(plain, self, filename=None, lineno=None):
        nonlocal place
        if filename and "numba" not in filename:
            place = filename, lineno
            numba_errors.loc_info.clear()
        return plain(self, filename, lineno)

    @contextlib.contextmanager
    def no_collection():
        nonlocal running, found_enabled
        with lock:
            found_enabled = gc.isenabled() if not running else found_enabled
            running += 1
            gc.disable()
        try:
            yield
        finally:
            with lock:
                running -= 1
                if found_enabled and not running:
                    gc.enable()

    @replacing(numba_dispatcher._Kernel, "__init__")
    def init(plain, self, py_func, *args, **kwargs):
        nonlocal place
        place = "", 0
        numba_errors.loc_info.clear()
        try:
            with no_collection():
                plain(self, py_func, *args, **kwargs)
        except Exception as error:
            made = numba_errors.loc_info.get("loc")
            noted = (made.filename, made.line) if made else place
            vars(error).update(warplab_place=noted, warplab_kernel=py_func)
            show(error, does_not_compile)
            raise


def _keep_types_of_operators() -> None:
    """Keep the signature of an operator on numbers and arrays, a sixth of the time of a compilation.

    Each round of type inference asks for that of every ``a[i] + b[i]``, and numba tries all overloads again.
    """
    known: dict[tuple, object] = {}

    def is_simple(kind) -> bool:
        if isinstance(kind, types.UniTuple):
            kind = kind.dtype  # the indices of an array
        return isinstance(kind, types.Number | types.Boolean | types.Array)

    @replacing(types.Function, "get_call_type")
    def get_call_type(plain, self, context, args, kws):
        module = getattr(self.typing_key, "__module__", None)
        for_host = not type(context).__module__.startswith("numba.cuda")
        if for_host or kws or module not in OPERATORS or not all(map(is_simple, args)):
            return plain(self, context, args, kws)
        key = context, self, args
        if key not in known:
            known[key] = plain(self, context, args, kws)
        return known[key]


def show(error: Exception, described: Callable[[Exception], str]) -> None:
    """Make IPython show an error as the reader's lines that led to it and a description, without frames."""

    def shown() -> list[str]:
        return [*reader_lines(error), f"{type(error).__name__}: {described(error)}"]

    if not hasattr(error, "_render_traceback_"):
        vars(error)["_render_traceback_"] = shown


NUMBAS_LAUNCH = numba_dispatcher._Kernel.launch  # the original, which a benchmark compares with


@functools.cache
def install(target: Target) -> None:
    """Make ``numba.cuda`` run on the engine, compiling for ``target``."""
    ask_for_line_information()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # lessons launch one block on purpose
    config.CUDA_WARN_ON_IMPLICIT_COPY = 0  # the engine copies nothing
    driver = numba_driver.driver
    vars(driver).clear()
    driver.__class__ = EngineDriver
    driver.__init__(target)
    numba_driver.ExperimentalDevice = lambda number=0: EngineDevice(target)
    numba_dispatcher._Kernel.bind, numba_dispatcher._Kernel.launch = _bind, _launch
    numba_codegen.CUDACodeLibrary.get_cufunc = _loaded_kernel
    check_first(numba_dispatcher.CUDADispatcher, numba_dispatcher._LaunchConfiguration, _check_arguments)
    share_with_torch(cuda, DeviceNDArray)
    torch_hook.install(_on_host)
    _count_kernel_allocations()


def _count_kernel_allocations() -> None:
    """numba's statistics of the memory that kernels allocate, from the engine's own ``malloc`` and ``free``.

    numba keeps them in a module that it loads past the driver's functions.
    """

    def statistics(stream=None):
        made, gone = SPACE.allocations, SPACE.releases  # an array is one allocation
        return SimpleNamespace(alloc=made, free=gone, mi_alloc=made, mi_free=gone)

    rtsys.get_allocation_stats = statistics
    for name in ("ensure_allocated", "ensure_initialized", "memsys_enable_stats", "memsys_disable_stats"):
        setattr(rtsys, name, lambda *_, **__: None)


def check_first(dispatcher, configured_kernel, check) -> None:
    """Check the configuration and the arguments of kernels before the library does, with better messages.

    ``dispatcher`` and ``configured_kernel`` are the library's classes. ``check(dispatcher, args)`` raises
    InvalidLaunch.
    """
    torch_hook.LAUNCHES += (dispatcher, "__getitem__"), (configured_kernel, "__call__")

    @replacing(dispatcher, "__getitem__")
    def configured(plain, self, configuration):
        try:
            return plain(self, configuration)
        except (TypeError, ValueError) as error:  # type and text stay numba's; only IPython shows more
            none = isinstance(configuration, tuple) and None in configuration
            words = "" if none else "; -(-n // 256) is n / 256 rounded up, a whole number"
            show(error, lambda error: f"{str(error).strip()}{words}")
            raise

    @replacing(configured_kernel, "__call__")
    def launch(plain, self, *args, **named):
        if named:
            raise InvalidLaunch(
                f"a kernel takes its arguments by their places, and {', '.join(named)} is given by name",
                kernel=self.dispatcher.py_func.__name__,
            )
        check(self.dispatcher, args)
        try:
            return plain(self, *args)
        except Exception:
            _check_lists(self.dispatcher, args)
            raise


def _check_lists(dispatcher, args) -> None:
    """Raise InvalidLaunch for a list, set or dict, for which numba compiles kernels that it cannot launch."""
    for name, value in zip(inspect.signature(dispatcher.py_func).parameters, args, strict=False):
        if isinstance(value, list | set | dict):
            raise InvalidLaunch(
                f"argument '{name}' is a {type(value).__name__}, and a kernel takes arrays, numbers and "
                "tuples of them",
                kernel=dispatcher.py_func.__name__,
                hint="np.array(values, dtype=np.float32)",
            ) from None


def _check_arguments(dispatcher, args) -> None:
    """Raise InvalidLaunch for a tensor that numba does not take, or a misfit to the kernel's signature."""
    check_tensors(dispatcher, args)
    if dispatcher.specialized and not dispatcher.extensions:
        _check_lists(dispatcher, args)
        [kernel] = dispatcher.overloads.values()
        function = dispatcher.py_func
        names = inspect.signature(function).parameters
        check_signature(function.__name__, names, kernel.argument_types, args, dispatcher.typeof_pyval)


def check_tensors(dispatcher, args) -> None:
    """Raise InvalidLaunch for a tensor among the arguments that numba does not take."""
    for number, value in enumerate(args):
        if not is_tensor(value):
            continue
        names = list(inspect.signature(dispatcher.py_func).parameters)
        name = names[number] if number < len(names) else str(number + 1)
        refuse(value, name)
        kind = str(value.dtype).removeprefix("torch.")
        if kind in OF_ML_DTYPES and kind != "bfloat16":
            raise InvalidLaunch(
                f"argument '{name}' is a tensor of {kind}, a type that numba does not have",
                kernel=dispatcher.py_func.__name__,
                hint=f"{name}.view(torch.uint8), its bits; or CUDA C++, whose <cuda_fp8.h> has the type",
            )


def share_with_torch(library, device_array) -> None:
    """Make ``cuda.as_cuda_array(tensor)``, ``torch.as_tensor(device_array)`` and DLPack work without a copy.

    ``library``: ``numba.cuda`` or its successor; ``device_array``: its class of device arrays.
    """

    @replacing(library, "as_cuda_array")
    def as_cuda_array(plain, obj, sync=True):
        return device_array_of(obj, library, device_array) if is_tensor(obj) else plain(obj, sync)

    @replacing(library, "is_cuda_array")
    def is_cuda_array(plain, obj):
        return is_tensor(obj) or plain(obj)

    def export(self, **wanted):
        array = _on_host(self)
        assert array is not None
        return (tensor_of(array) if array.dtype.name in OF_ML_DTYPES else array).__dlpack__(**wanted)

    device_array.__dlpack__ = export
    device_array.__dlpack_device__ = lambda self: (1, 0)  # DLPack's number of the CPU


class _Borrowed:
    """Keeps a tensor alive as long as a device array on its memory."""

    def __init__(self, tensor):
        self.tensor = tensor


def device_array_of(tensor, library, device_array):
    """A device array on a CPU tensor's memory."""
    array, (memory, start) = array_of(tensor, "tensor"), memory_of(tensor)
    region = SPACE.add(memory, "").holds(array, describe("tensor", array))
    region.start = start
    owner = _Borrowed(tensor)
    weakref.finalize(owner, SPACE.remove, region)
    pointer = library.MemoryPointer(
        library.current_context(),
        binding.CUdeviceptr(region.base + start),
        size=memory.size - start,
        owner=owner,
    )
    return device_array(array.shape, array.strides, array.dtype, gpu_data=pointer)


def _on_host(value) -> np.ndarray | None:
    """The memory of a device array as a NumPy array; None for anything else."""
    if not getattr(value, "__cuda_ndarray__", False):
        return None
    address = int(value.device_ctypes_pointer.value or 0)
    region = SPACE.find(address)
    if region is None:
        return np.empty(value.shape, value.dtype)  # an empty device array has no memory
    return np.ndarray(value.shape, value.dtype, region.data, address - region.base, value.strides)
