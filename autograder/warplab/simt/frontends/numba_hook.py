"""numba.cuda without a GPU: a CUDA driver of our own under numba's own code.

The one file that uses private names of numba-cuda and of cuda.core: what others need of these is here. Each
name and its reason stand in ``tests/simt/private_names.yml``, which a test holds to this file (numba-cuda is
pinned). What is replaced:
- the driver, by ``engine_driver``. Contexts, device arrays, slices and memory managers stay numba's.
- loading and launching a kernel: the engine does both, instead of cuda.core.
- ``as_cuda_array``, ``is_cuda_array`` and, of device arrays, DLPack: CPU tensors of torch are device arrays.
- in compiling: line information is always asked for, so that messages and counters can name source lines, and
  mended where numba's own fails; a shared array's PTX variable says its name and shape; garbage collection
  waits, which is a third of a first launch.
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

from warplab.hardware.target import Target
from warplab.simt.engine.indices import shared_symbol
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch, led_here
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

MANY_OBJECTS = 200_000  # that some fifty compilations leave behind
SHARED = 3  # NVVM's number of the address space


def is_dispatcher(value) -> bool:
    """True of what ``@cuda.jit`` makes of a function."""
    return type(value) is numba_dispatcher.CUDADispatcher


def is_configured(value) -> bool:
    """True of numba's ``kernel[grid, block]``."""
    return isinstance(value, numba_dispatcher._LaunchConfiguration)


def numba_type(dtype: str, dimensions: int, kind: str):
    """numba's type of a "number" or of a contiguous "array" of so many dimensions, from its NumPy dtype."""
    scalar = types.bfloat16 if dtype == "bfloat16" else from_dtype(np.dtype(dtype))
    return types.Array(scalar, dimensions, "C") if kind == "array" else scalar


@functools.cache
def _nothing():
    return cuda.jit(lambda: None)


def core_stream(stream):
    """cuda.core's stream for one of numba's, or for 0: as numba makes it for a launch."""
    return _nothing()[1, 1, stream].stream


def compiled_for(dispatcher, args):
    """numba's kernel of a ``@cuda.jit`` function for the types of ``args``.

    Raises InvalidLaunch for arguments that it does not take.
    """
    _check_arguments(dispatcher, args)
    return dispatcher.compile(tuple(dispatcher.typeof_pyval(a) for a in args))


def ptx_of(kernel, target: Target) -> tuple[str, ...]:
    """PTX of a compiled numba kernel and of what it links, the module with its entry first."""
    return _ptx_of_library(kernel.library, target)


def launch_on_engine(kernel, args, grid, block, dynamic_shared, context: LaunchContext) -> Machine:
    """Launch a compiled numba kernel. Raises as ``run`` does."""
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)  # none of a kernel from numba's cache
    names = code.co_varnames if code else [f"arg{i}" for i in range(len(args))]
    extensions = getattr(kernel, "extensions", ())
    values, regions, after = flatten(names, kernel.argument_types, args, SPACE, extensions)
    program = _program_of(kernel.library, context.target)
    machine = run(program, values, regions, grid, block, dynamic_shared, SPACE, context)
    for call in after:
        call()
    return machine


def _program_of(library, target: Target) -> Program:
    """The translated program of a kernel's code library, kept with it."""
    known = getattr(library, "warplab_program", None)
    if known is None or known[0] is not target:
        modules = _ptx_of_library(library, target)
        entry = re.search(r"\.entry\s+([\w$]+)", modules[0])
        if entry is None:  # numba's own words
            raise RuntimeError("Missing entry_name - are you trying to get the cufunc for a device function?")
        program = translated(modules, entry[1], library.name.rpartition(".")[2], SPACE)
        for variable, region in program.globals.items():
            if variable.startswith("_cudapy_cmem"):  # cuda.const arrays have values, of which PTX omits zeros
                region.unset = False
        known = library.warplab_program = target, program
    return known[1]


def _ptx_of_library(library, target: Target) -> tuple[str, ...]:
    """PTX of a code library and of what it links, the module with the entry first."""
    capability = target.numba_capability
    modules = library.get_asm_strs(cc=capability)  # more than one where the kernel is compiled for debugging
    first = next((m for m in modules if ".entry " in m), modules[0])
    folders = tuple(filter(None, (config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or "").split(":")))
    linked = (linked_ptx(item, capability, folders) for item in sorted(library._linking_files, key=str))
    return (first, *(m for m in modules if m is not first), *linked)


_NumbasDriver: Any = type(numba_driver.driver)


class EngineDriver(DriverCalls, _NumbasDriver):
    """In the place of numba-cuda's driver."""

    api_error = numba_driver.CudaAPIError


class RefusedLaunch(InvalidLaunch, CUDAError):
    """What CUDA refuses, also for code that catches CUDA's own error."""

    def __init__(self, refused: InvalidLaunch):
        Exception.__init__(self, f"{refused}\n  CUDA calls it CUDA_ERROR_INVALID_VALUE")
        self.kernel, self.where, self.hint = refused.kernel, refused.where, refused.hint


def _launch(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
    """numba's own call of a kernel comes here: the driver in its place knows what the engine stands for."""
    if config.CUDA_WARN_ON_IMPLICIT_COPY and any(map(_would_be_copied, args)):
        # for who asks: nothing is copied here
        warning = "Host array used in CUDA kernel will incur copy overhead to/from device."
        warnings.warn(
            numba_errors.NumbaPerformanceWarning(warning), stacklevel=4
        )  # for who asks: nothing is copied here
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
    """numba binds a kernel to a context once; here that is when linked code's own set-up functions run."""
    setups = [getattr(item, "setup_callback", None) for item in kernel.library._linking_files]
    if any(setups) and not (module := kernel.library.get_cufunc().module).initialized:
        module.initialized = True
        for setup in filter(None, setups):
            setup(module)


def _loaded_kernel(library):
    """What numba calls a cufunc: the kernel's resources and its module's variables. Nothing is loaded."""
    if not hasattr(library, "warplab_kernel"):
        target = numba_driver.driver.target
        program = _program_of(library, target)
        library.warplab_kernel = LoadedKernel(program, cuda.current_context(), target.limits)
    return library.warplab_kernel


def in_place_of(owner, name: str):
    """Decorator: the function stands in the place of ``owner.name`` and is given that one first."""

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
    # of functions without a source, as of a lambda, numba says that their lines are unknown: nobody asked
    warnings.filterwarnings("ignore", "Could not find source for function", append=True)

    @in_place_of(numba_dispatcher.CUDADispatcher, "__init__")
    def init(plain, self, py_func, targetoptions, *args, **kwargs):
        stub = len(py_func.__code__.co_code) <= 6  # of a docstring alone numba wants the line behind it
        if not targetoptions.get("debug") and not stub:
            targetoptions = {**targetoptions, "lineinfo": True}
        plain(self, py_func, targetoptions, *args, **kwargs)

    @in_place_of(numba_nvvm, "compile_ir")
    def compile_ir(plain, llvmir, **options):
        # NVRTC's modules say 1 (error on a mismatch) and numba's 2 (warn): the linker refuses the mixture, as
        # of float16's functions
        if "gen-lto" in options:
            llvmir = [
                re.sub('i32 2, !"Debug Info Version"', 'i32 1, !"Debug Info Version"', s) for s in llvmir
            ]
        return plain(llvmir, **options)

    @in_place_of(numba_debuginfo.CUDADIBuilder, "_var_type")
    def var_type(plain, self, lltype, size, datamodel=None):
        # for lines alone the types of variables are not looked at: one serves for all. numba cannot describe
        # each: of a tuple of empty tuples it divides by the size of one
        if self.emission_kind == "DebugDirectivesOnly":
            byte = {"name": "byte", "size": 8, "encoding": ir.DIToken("DW_ATE_unsigned_char")}
            return self.module.add_debug_info("DIBasicType", byte)
        return plain(self, lltype, size, datamodel=datamodel)

    @in_place_of(numba_cudaimpl, "_generic_array")
    def generic_array(plain, context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs):
        if addrspace == SHARED:
            name = re.match(r"\s*(\w+)\s*=[^=]", _line_of(builder.debug_metadata))
            symbol_name = shared_symbol(symbol_name, name[1] if name else "", shape, str(dtype))
        return plain(context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs)

    _watch_compilations()


def _line_of(place) -> str:
    """The source line of what is compiled, from LLVM's debug information; empty where there is none."""
    if place is None:
        return ""
    location = dict(place.operands)
    file = dict(dict(location["scope"].operands)["file"].operands)
    names = os.path.join(file["directory"], file["filename"]), file["filename"]
    return next(filter(None, (linecache.getline(name, location["line"]) for name in names)), "")


def _watch_compilations() -> None:
    """While a kernel is compiled collect no garbage, and note the place for an error that does not say it.

    A compilation makes so many objects that several full collections run, and nearly all of them are freed by
    their reference counts. What is left joins the oldest generation, which is collected when much has come.
    IPython asks an error for the lines to show.
    """
    running, left, found_enabled, lock = 0, 0, False, threading.Lock()
    place = "", 0  # of the last line whose types were inferred; of the one made to code numba knows it

    @in_place_of(numba_errors.WarningsFixer, "catch_warnings")
    def at(plain, self, filename=None, lineno=None):
        nonlocal place
        if filename and "numba" not in filename:
            place = filename, lineno
            numba_errors.loc_info.clear()
        return plain(self, filename, lineno)

    @contextlib.contextmanager
    def no_collection():
        nonlocal running, left, found_enabled
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
                    left += gc.get_count()[0]
                    if left > MANY_OBJECTS:
                        left = 0
                        gc.collect()
                    elif not gc.get_freeze_count():  # of somebody who froze some, those stay frozen
                        gc.freeze()
                        gc.unfreeze()
                    gc.enable()

    @in_place_of(numba_dispatcher._Kernel, "__init__")
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


def show(error: Exception, described: Callable[[Exception], str]) -> None:
    """Let IPython show the reader's lines that led to an error, and a description, in place of all frames."""

    def shown() -> list[str]:
        return [*led_here(error), f"{type(error).__name__}: {described(error)}"]

    if not hasattr(error, "_render_traceback_"):
        vars(error)["_render_traceback_"] = shown


NUMBAS_LAUNCH = numba_dispatcher._Kernel.launch  # of which the bench takes the time


@functools.cache
def install(target: Target) -> None:
    """Make ``numba.cuda`` run on the engine, compiling for ``target``."""
    ask_for_line_information()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # lessons launch one block on purpose
    config.CUDA_WARN_ON_IMPLICIT_COPY = 0  # and the engine copies nothing
    driver = numba_driver.driver
    vars(driver).clear()
    driver.__class__ = EngineDriver
    driver.__init__(target)
    numba_driver.ExperimentalDevice = lambda number=0: EngineDevice(target)
    numba_dispatcher._Kernel.bind, numba_dispatcher._Kernel.launch = _bind, _launch
    numba_codegen.CUDACodeLibrary.get_cufunc = _loaded_kernel
    refuse_in_words(numba_dispatcher.CUDADispatcher, numba_dispatcher._LaunchConfiguration, _check_arguments)
    share_with_torch(cuda, DeviceNDArray)
    torch_hook.install(_on_host)


def refuse_in_words(dispatcher, configured_kernel, check) -> None:
    """Check what a kernel is configured and called with before the library does.

    dispatcher, configured_kernel: the library's classes. check(dispatcher, args) raises InvalidLaunch.
    """
    torch_hook.LAUNCHES += (dispatcher, "__getitem__"), (configured_kernel, "__call__")

    @in_place_of(dispatcher, "__getitem__")
    def configured(plain, self, configuration):
        try:
            return plain(self, configuration)
        except (TypeError, ValueError) as error:  # tests of others want the type and the text: IPython alone
            none = isinstance(configuration, tuple) and None in configuration
            words = "" if none else "; -(-n // 256) is n / 256 rounded up, a whole number"
            show(error, lambda error: f"{str(error).strip()}{words}")
            raise

    @in_place_of(configured_kernel, "__call__")
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
    """Raises InvalidLaunch for a list among the arguments: what compiles for it no launch would take."""
    for name, value in zip(inspect.signature(dispatcher.py_func).parameters, args, strict=False):
        if isinstance(value, list | set | dict):
            raise InvalidLaunch(
                f"argument '{name}' is a {type(value).__name__}, and a kernel takes arrays, numbers and "
                "tuples of them",
                kernel=dispatcher.py_func.__name__,
                hint="np.array(values, dtype=np.float32)",
            ) from None


def _check_arguments(dispatcher, args) -> None:
    """Raises InvalidLaunch for a tensor that numba cannot take, or what does not fit the one signature."""
    check_tensors(dispatcher, args)
    if dispatcher.specialized and not dispatcher.extensions:
        _check_lists(dispatcher, args)
        [kernel] = dispatcher.overloads.values()
        function = dispatcher.py_func
        names = inspect.signature(function).parameters
        check_signature(function.__name__, names, kernel.argument_types, args, dispatcher.typeof_pyval)


def check_tensors(dispatcher, args) -> None:
    for number, value in enumerate(args):
        if not is_tensor(value):
            continue
        names = list(inspect.signature(dispatcher.py_func).parameters)
        name = names[number] if number < len(names) else str(number + 1)
        refuse(value, name)
        kind = str(value.dtype).removeprefix("torch.")
        if kind in OF_ML_DTYPES and kind != "bfloat16":
            raise InvalidLaunch(
                f"argument '{name}' is a tensor of {kind}, of which numba has no arrays",
                kernel=dispatcher.py_func.__name__,
                hint=f"{name}.view(torch.uint8), its bits; or CUDA C++, whose <cuda_fp8.h> has the type",
            )


def share_with_torch(library, device_array) -> None:
    """``cuda.as_cuda_array(tensor)``, ``torch.as_tensor(device_array)`` and DLPack, without a copy.

    library, device_array: ``numba.cuda`` or its successor, and its class of device arrays.
    """

    @in_place_of(library, "as_cuda_array")
    def as_cuda_array(plain, obj, sync=True):
        return device_array_of(obj, library, device_array) if is_tensor(obj) else plain(obj, sync)

    @in_place_of(library, "is_cuda_array")
    def is_cuda_array(plain, obj):
        return is_tensor(obj) or plain(obj)

    def export(self, **wanted):
        array = _on_host(self)
        assert array is not None
        return (tensor_of(array) if array.dtype.name in OF_ML_DTYPES else array).__dlpack__(**wanted)

    device_array.__dlpack__ = export
    device_array.__dlpack_device__ = lambda self: (1, 0)  # DLPack's number of the CPU


class _Borrowed:
    """Keeps a tensor for as long as a device array on its memory lives."""

    def __init__(self, tensor):
        self.tensor = tensor


def device_array_of(tensor, library, device_array):
    """The device array on a CPU tensor's own memory."""
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
    """The memory of a device array as a NumPy array; None of anything else."""
    if not getattr(value, "__cuda_ndarray__", False):
        return None
    address = int(value.device_ctypes_pointer.value or 0)
    region = SPACE.find(address)
    if region is None:
        return np.empty(value.shape, value.dtype)  # an empty one has no address
    return np.ndarray(value.shape, value.dtype, region.data, address - region.base, value.strides)
