"""numba.cuda without a GPU: a CUDA driver of our own under numba's own code.

The file that touches private names of numba or cuda.core, and their inner modules: what others need of
these is here. Beside it only ``numba_compiling`` does, which makes numba's compiler quicker.

What is replaced (numba-cuda is pinned; ``tests/simt/test_numba_hook.py`` is the canary):
- ``numba.cuda.cudadrv.driver.driver`` - an object with the ``cu...`` calls that numba makes for contexts,
  memory and streams, here on the engine's address space. Contexts, device arrays, slices and memory managers
  stay numba's.
- ``...driver.ExperimentalDevice`` - cuda.core's device.
- ``_Kernel.bind``, ``_Kernel.launch`` and ``CUDACodeLibrary.get_cufunc`` - launching goes to the engine
  instead of cuda.core.
- ``CUDADispatcher.call``, ``as_cuda_array``, ``is_cuda_array`` and, of ``DeviceNDArray``, DLPack's two
  methods - CPU tensors of torch are device arrays here, and the other way round.
- ``cudaimpl._generic_array`` and ``Lower.lower_inst`` - a shared array's PTX variable says what the array is
  called and which shape it has, so that messages can give indices.
- ``CUDADispatcher.__init__`` - line information is always asked for, so that messages and counters can name
  source lines; ``CUDACodeLibrary.get_ltoir``, ``DIBuilder._var_type`` and ``FindDefFirstLine`` are mended
  where numba's own line information fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import inspect
import linecache
import re
import threading
import warnings
import weakref

import numpy as np
from cuda.bindings import driver as binding
from cuda.core._utils.cuda_utils import CUDAError
from llvmlite import ir
from numba import cuda
from numba.cuda import api as numba_api
from numba.cuda import codegen as numba_codegen
from numba.cuda import cudaimpl as numba_cudaimpl
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda import lowering as numba_lowering
from numba.cuda import types
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaDebugInfoWarning, NumbaPerformanceWarning
from numba.cuda.cudadrv import devicearray as numba_devicearray
from numba.cuda.cudadrv import devices as numba_devices
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.cudadrv import nvvm as numba_nvvm
from numba.cuda.memory_management import nrt as numba_nrt
from numba.cuda.misc import firstlinefinder as numba_lines
from numba.cuda.np.numpy_support import from_dtype

from warplab.hardware.target import Target
from warplab.simt.engine.indices import shared_symbol
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch, led_here
from warplab.simt.frontends import numba_compiling, torch_hook
from warplab.simt.frontends.arguments import check_signature, describe, flatten
from warplab.simt.frontends.launch import LaunchContext, run, translated
from warplab.simt.frontends.linking import linked_ptx
from warplab.simt.frontends.loaded import LoadedKernel, clear_exception, raise_exception
from warplab.simt.frontends.managed import reserve
from warplab.simt.frontends.space import SPACE
from warplab.simt.frontends.torch_tensors import (
    OF_ML_DTYPES,
    array_of,
    is_tensor,
    memory_of,
    refuse,
    tensor_of,
)

TOTAL_MEMORY = 8 << 30  # what cuMemGetInfo reports: host memory stands in for the card's
# What numba asks beyond the architecture's limits. The engine has no bus and no watchdog, and it stands for
# an architecture, not for a card with some number of multiprocessors: a grid that is sized by them comes out
# small here.
ATTRIBUTES = {
    "WARP_SIZE": 32,
    "CAN_MAP_HOST_MEMORY": 1,
    "UNIFIED_ADDRESSING": 1,
    "PCI_DOMAIN_ID": 0,
    "PCI_BUS_ID": 0,
    "PCI_DEVICE_ID": 0,
    "KERNEL_EXEC_TIMEOUT": 0,
    "TCC_DRIVER": 0,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2,
    "MULTIPROCESSOR_COUNT": 1,
    "MANAGED_MEMORY": 1,
    "CONCURRENT_MANAGED_ACCESS": 1,
    "COOPERATIVE_LAUNCH": 1,
    "TOTAL_CONSTANT_MEMORY": 64 << 10,  # of all capabilities, says the programming guide's table
}


def is_dispatcher(value) -> bool:
    """True of what ``@cuda.jit`` makes of a function."""
    return type(value) is numba_dispatcher.CUDADispatcher


def is_configured(value) -> bool:
    """True of numba's ``kernel[grid, block]``."""
    return isinstance(value, numba_dispatcher._LaunchConfiguration)


def numba_type(dtype: str, dimensions: int, kind: str):
    """numba's type of a "number" or of a contiguous "array" of so many dimensions, from its NumPy dtype."""
    scalar = from_dtype(np.dtype(dtype))
    return types.Array(scalar, dimensions, "C") if kind == "array" else scalar


def core_stream(stream):
    """cuda.core's stream for one of numba's, or for 0."""
    return numba_driver._to_core_stream(stream)


def compiled_for(dispatcher, args):
    """numba's kernel of a ``@cuda.jit`` function for the types of ``args``.

    Raises InvalidLaunch for arguments that it does not take.
    """
    _check_arguments(dispatcher, args)
    return dispatcher.compile(tuple(dispatcher.typeof_pyval(a) for a in args))


def ptx_of(kernel, target: Target) -> tuple[str, ...]:
    """PTX of a compiled numba kernel and of what it links, the module with its entry first."""
    return _ptx_of_library(kernel._codelibrary, kernel.entry_name, target)


def launch_on_engine(kernel, args, grid, block, dynamic_shared, context: LaunchContext) -> Machine:
    """Launch a compiled numba kernel. Raises as ``run`` does."""
    program = _program_of(kernel, context.target)
    code = getattr(getattr(kernel, "py_func", None), "__code__", None)
    names = code.co_varnames if code else [f"arg{i}" for i in range(len(args))]
    extensions = getattr(kernel, "extensions", ())
    values, regions, after = flatten(names, kernel.argument_types, args, SPACE, extensions)
    machine = run(program, values, regions, grid, block, dynamic_shared, SPACE, context)
    for call in after:
        call()
    return machine


def _program_of(kernel, target: Target) -> Program:
    """The translated program of a compiled numba kernel, kept with it."""
    known = getattr(kernel, "_warplab_program", None)
    if known and known[0] is target:
        return known[1]
    name = getattr(getattr(kernel, "py_func", None), "__name__", None) or kernel.entry_name
    program = translated(ptx_of(kernel, target), kernel.entry_name, name, SPACE)
    for variable, region in program.globals.items():
        if variable.startswith("_cudapy_cmem"):  # cuda.const arrays have values, of which PTX omits zeros
            region.unset = False
    kernel._warplab_program = target, program
    return program


def _ptx_of_library(library, entry: str, target: Target) -> tuple[str, ...]:
    """PTX of a code library and of what it links, the module with ``entry`` first."""
    capability = target.numba_capability
    modules = library.get_asm_strs(cc=capability)  # more than one where the kernel is compiled for debugging
    first = next((m for m in modules if f".entry {entry}(" in m), modules[0])
    linked = (
        linked_ptx(item, capability, _header_folders()) for item in sorted(library._linking_files, key=str)
    )
    return (first, *(m for m in modules if m is not first), *linked)


def _header_folders() -> tuple[str, ...]:
    """numba's own setting for where a linked file's headers are."""
    return tuple(folder for folder in (config.CUDA_NVRTC_EXTRA_SEARCH_PATHS or "").split(":") if folder)


def _attributes(target: Target) -> dict[str, int]:
    """Each CU_DEVICE_ATTRIBUTE that the engine has."""
    limit = target.limits
    return ATTRIBUTES | {
        "MAX_THREADS_PER_BLOCK": limit.max_threads_per_block,
        "MAX_BLOCK_DIM_X": limit.max_block_dim[0],
        "MAX_BLOCK_DIM_Y": limit.max_block_dim[1],
        "MAX_BLOCK_DIM_Z": limit.max_block_dim[2],
        "MAX_GRID_DIM_X": limit.max_grid_dim[0],
        "MAX_GRID_DIM_Y": limit.max_grid_dim[1],
        "MAX_GRID_DIM_Z": limit.max_grid_dim[2],
        "MAX_SHARED_MEMORY_PER_BLOCK": limit.max_static_shared,
        "MAX_THREADS_PER_MULTIPROCESSOR": limit.max_threads_per_sm,
        "MAX_REGISTERS_PER_BLOCK": limit.registers_per_sm,
        "MAX_REGISTERS_PER_MULTIPROCESSOR": limit.registers_per_sm,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": limit.max_shared_per_block,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": limit.shared_per_sm,
        "MAX_BLOCKS_PER_MULTIPROCESSOR": limit.max_blocks_per_sm,
        "COMPUTE_CAPABILITY_MAJOR": target.capability[0],
        "COMPUTE_CAPABILITY_MINOR": target.capability[1],
    }


class _EngineDevice:
    """Stands in for cuda.core's Device: numba reads its number, name and compute capability."""

    class _Context:
        handle = binding.CUcontext(1)

    def __init__(self, number: int = 0):
        self.device_id, self.name, self.uuid = 0, "warplab SIMT engine", "simt-0"
        self.compute_capability = _EngineDevice.capability
        self.context = self._Context()

    capability = (9, 0)

    def set_current(self):
        """There is one device: it is always current."""


class _StreamHandle(binding.CUstream):
    """numba reads ``value`` where it adds a callback."""

    @property
    def value(self) -> int:
        return int(self)


class EngineDriver(numba_driver.Driver):
    """The CUDA driver calls that numba makes, on the engine's memory."""

    def __new__(cls, target: Target):
        return object.__new__(cls)

    def __init__(self, target: Target):
        self.target, self._attributes = target, _attributes(target)
        self.devices, self.is_initialized, self.initialization_error, self.pid = {}, True, None, None
        self._memory: dict[int, object] = {}
        self._host: dict[int, np.ndarray] = {}
        self._mapped: dict[int, object] = {}
        self._handles = 100
        self._contexts = threading.local()  # how often the thread has pushed the one context that there is

    def __getattr__(self, name):
        raise NotImplementedError(f"{name} is not available on the SIMT engine; it needs a CUDA GPU")

    # devices and contexts
    def cuInit(self, flags): ...
    def cuDeviceGetCount(self):
        return 1

    def cuDriverGetVersion(self):
        return 13000

    def cuCtxGetCurrent(self):
        """The thread's current context, the null handle before the first push and after the last pop."""
        return binding.CUcontext(1 if getattr(self._contexts, "depth", 0) else 0)

    def cuCtxGetDevice(self):
        return 0

    def cuCtxPushCurrent(self, handle):
        self._contexts.depth = getattr(self._contexts, "depth", 0) + 1

    def cuCtxPopCurrent(self):
        popped = self.cuCtxGetCurrent()
        self._contexts.depth = max(0, getattr(self._contexts, "depth", 0) - 1)
        return popped

    def cuCtxSynchronize(self): ...
    def cuDevicePrimaryCtxRelease(self, device): ...
    def cuDevicePrimaryCtxReset(self, device): ...

    def cuDeviceGetAttribute(self, code, device):
        name = code.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name not in self._attributes:
            raise AttributeError(
                f"the SIMT engine has no device attribute {name}: it stands for an architecture, not for a "
                "card. warplab.specs.get('h100-sxm') has what is known of one"
            )
        return self._attributes[name]

    # memory
    def cuMemGetInfo(self):
        return TOTAL_MEMORY - sum(r.size for r in self._memory.values()), TOTAL_MEMORY

    def cuMemAlloc(self, size):
        if size > self.cuMemGetInfo()[0]:
            raise numba_driver.CudaAPIError(
                binding.CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                f"out of memory: {size} bytes asked for, the engine has {TOTAL_MEMORY}",
            )
        unwritten = np.full(size, 0xFF, np.uint8)  # as on a GPU not zeroed: NaN, or -1
        region = SPACE.add(unwritten, "device array")
        self._memory[region.base] = region
        return binding.CUdeviceptr(region.base)

    def cuMemFree(self, pointer):
        region = self._memory.pop(int(pointer), None)
        if region is not None:
            SPACE.remove(region)

    def cuMemAllocManaged(self, size, flags):
        region = SPACE.add_at(*reserve(size), "managed array")
        self._memory[region.base] = region
        return binding.CUdeviceptr(region.base)

    def cuMemHostAlloc(self, size, flags):
        buffer = np.zeros(max(size, 1), np.uint8)
        self._host[buffer.ctypes.data] = buffer
        return buffer.ctypes.data

    def cuMemFreeHost(self, pointer):
        self._host.pop(int(pointer), None)
        self.cuMemHostUnregister(pointer)

    def cuMemHostRegister(self, pointer, size, flags):
        if int(pointer) in self._host:  # the buffer is ours: a second entry would drop it
            already = binding.CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
            raise numba_driver.CudaAPIError(already, "this host memory is pinned already")
        self._host[int(pointer)] = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(pointer)))

    def cuMemHostUnregister(self, pointer):
        self._host.pop(int(pointer), None)
        region = self._mapped.pop(int(pointer), None)
        if region is not None:
            SPACE.remove(region)

    def cuMemHostGetDevicePointer(self, pointer, flags):
        if int(pointer) not in self._mapped:
            self._mapped[int(pointer)] = SPACE.add(self._host[int(pointer)], "mapped host array")
        return binding.CUdeviceptr(self._mapped[int(pointer)].base)

    def cuMemGetAddressRange(self, pointer):
        region = SPACE.find(int(pointer))
        return binding.CUdeviceptr(region.base), region.size

    def _bytes(self, pointer, size) -> np.ndarray:
        region = SPACE.find(int(pointer))
        start = int(pointer) - region.base if region else 0
        if region is None or start + size > region.size:
            raise numba_driver.CudaAPIError(
                binding.CUresult.CUDA_ERROR_INVALID_VALUE, f"copy of {size} bytes outside device memory"
            )
        return region.data[start : start + size]

    def cuMemcpyHtoD(self, to, source, size):
        ctypes.memmove(self._bytes(to, size).ctypes.data, int(source), size)

    def cuMemcpyDtoH(self, to, source, size):
        ctypes.memmove(int(to), self._bytes(source, size).ctypes.data, size)

    def cuMemcpyDtoD(self, to, source, size):
        self._bytes(to, size)[:] = self._bytes(source, size).copy()

    def cuMemsetD8(self, pointer, value, size):
        self._bytes(pointer, size)[:] = value

    def cuMemcpyHtoDAsync(self, to, source, size, stream):
        self.cuMemcpyHtoD(to, source, size)

    def cuMemcpyDtoHAsync(self, to, source, size, stream):
        self.cuMemcpyDtoH(to, source, size)

    def cuMemcpyDtoDAsync(self, to, source, size, stream):
        self.cuMemcpyDtoD(to, source, size)

    def cuMemsetD8Async(self, pointer, value, size, stream):
        self.cuMemsetD8(pointer, value, size)

    # streams: the engine runs at once, so every stream is always idle
    def cuStreamCreate(self, flags):
        self._handles += 1
        return _StreamHandle(self._handles)

    def cuStreamDestroy(self, handle): ...
    def cuStreamSynchronize(self, handle): ...
    def cuStreamAddCallback(self, handle, callback, data, flags):
        numba_driver.Stream._stream_callback(None, 0, ctypes.cast(data, ctypes.py_object).value)

    # occupancy and function settings
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, kernel, threads, dynamic_shared):
        return kernel.blocks_per_sm(int(threads), int(dynamic_shared))

    def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(self, kernel, threads, dynamic_shared, flags):
        return kernel.blocks_per_sm(int(threads), int(dynamic_shared))

    def cuKernelSetCacheConfig(self, *settings): ...
    def cuKernelSetAttribute(self, *settings): ...
    def cuProfilerStart(self): ...
    def cuProfilerStop(self): ...
    def cuPointerGetAttribute(self, attribute, pointer):
        return pointer

    def cuDeviceCanAccessPeer(self, device, peer):
        return 0

    # events: they order work, which the engine does anyway; their times would be times of this CPU
    def cuEventCreate(self, flags):
        self._handles += 1
        return binding.CUevent(self._handles)

    def cuEventDestroy(self, event): ...
    def cuEventRecord(self, event, stream): ...
    def cuEventQuery(self, event): ...
    def cuEventSynchronize(self, event): ...
    def cuStreamWaitEvent(self, stream, event, flags): ...

    def cuEventElapsedTime(self, start, end):
        raise NotImplementedError(
            "the SIMT engine has no event times: they would be this CPU's and say nothing about a GPU. "
            "warplab.profile(kernel[grid, block], *arguments) counts what a GPU would have to do"
        )


class RefusedLaunch(InvalidLaunch, CUDAError):
    """What CUDA refuses, also for code that catches CUDA's own error."""

    def __init__(self, refused: InvalidLaunch):
        Exception.__init__(self, f"{refused}\n  CUDA calls it CUDA_ERROR_INVALID_VALUE")
        self.kernel, self.where, self.hint = refused.kernel, refused.where, refused.hint


def _launch(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
    """numba's own call of a kernel comes here: the driver in its place knows what the engine stands for."""
    _warn_of_copies(args)
    context = LaunchContext(numba_driver.driver.target)
    try:
        if not kernel.debug:
            launch_on_engine(kernel, args, griddim, blockdim, sharedmem, context)
            return
        program = _program_of(kernel, context.target)
        clear_exception(kernel, program)
        launch_on_engine(kernel, args, griddim, blockdim, sharedmem, context)
        raise_exception(kernel, program)
    except InvalidLaunch as refused:
        raise RefusedLaunch(refused) from None


def _warn_of_copies(args) -> None:
    """numba's warning that CUDA would copy a host array there and back, for who asks for it.

    ``install`` turns it off.
    """
    if not config.CUDA_WARN_ON_IMPLICIT_COPY or config.DISABLE_PERFORMANCE_WARNINGS:
        return
    for value in args:
        if isinstance(value, np.ndarray) and not numba_driver.is_device_memory(value):
            warnings.warn(
                NumbaPerformanceWarning(
                    "Host array used in CUDA kernel will incur copy overhead to/from device."
                ),
                stacklevel=4,
            )


def _bind(kernel):
    """numba binds a kernel to a context once; here that is when linked code's own set-up functions run."""
    library = kernel._codelibrary
    library._student_name = getattr(kernel.py_func, "__name__", None)
    if library._setup_functions:
        module = library.get_cufunc().module
        if not module.initialized:
            module.initialized = True
            for function in library._setup_functions:
                function(module)


def _loaded_kernel(library):
    """What numba calls a cufunc: the kernel's resources and its module's variables. Nothing is loaded."""
    if library._entry_name is None:
        raise RuntimeError("Missing entry_name - are you trying to get the cufunc for a device function?")
    found = library._cufunc_cache.get(0)
    if found is None:
        name = getattr(library, "_student_name", None) or library._entry_name
        target, entry = numba_driver.driver.target, library._entry_name
        program = translated(_ptx_of_library(library, entry, target), entry, name, SPACE)
        found = library._cufunc_cache[0] = LoadedKernel(program, numba_devices.get_context(), target.limits)
    return found


_original: dict[str, object] = {}


def ask_for_line_information() -> None:
    """Compile every kernel with line information; code generation is the same with and without."""
    if "init" in _original:
        return
    # of functions without a source, as of a lambda, numba says that their lines are unknown: nobody asked
    warnings.filterwarnings("ignore", category=NumbaDebugInfoWarning, append=True)
    numba_compiling.install()
    plain = _original["init"] = numba_dispatcher.CUDADispatcher.__init__

    @functools.wraps(plain)
    def init(self, py_func, targetoptions, *args, **kwargs):
        if not targetoptions.get("debug"):
            targetoptions = {**targetoptions, "lineinfo": True}
        plain(self, py_func, targetoptions, *args, **kwargs)

    numba_dispatcher.CUDADispatcher.__init__ = init
    plain_ltoir = numba_codegen.CUDACodeLibrary.get_ltoir

    @functools.wraps(plain_ltoir)
    def get_ltoir(self, cc=None):
        # NVRTC's modules say 1 (error on a mismatch) and numba's 2 (warn): the linker refuses the mixture, as
        # of float16's functions
        self._llvm_strs = [
            text.replace('i32 2, !"Debug Info Version"', 'i32 1, !"Debug Info Version"')
            for text in self.llvm_strs
        ]
        return plain_ltoir(self, cc)

    numba_codegen.CUDACodeLibrary.get_ltoir = get_ltoir
    plain_type = numba_debuginfo.DIBuilder._var_type

    @functools.wraps(plain_type)
    def var_type(self, lltype, size, datamodel=None):
        if isinstance(lltype, ir.ArrayType) and not size:
            # a tuple of empty tuples: numba divides by the size of one of them
            lltype, datamodel = ir.LiteralStructType([]), None
        return plain_type(self, lltype, size, datamodel=datamodel)

    numba_debuginfo.DIBuilder._var_type = var_type
    plain_visit = numba_lines.FindDefFirstLine.visit_FunctionDef

    @functools.wraps(plain_visit)
    def visit(self, node):
        with contextlib.suppress(IndexError):  # of a docstring alone it wants the statement behind it
            plain_visit(self, node)

    numba_lines.FindDefFirstLine.visit_FunctionDef = visit
    _name_shared_arrays()


def _name_shared_arrays() -> None:
    """Let the PTX variable of a shared array say its name in the source, its shape and its dtype."""
    lowered, place = numba_cudaimpl._generic_array, numba_lowering.Lower.lower_inst
    line: list[str] = [""]  # of the statement that is being lowered; numba compiles under a lock

    @functools.wraps(place)
    def lower_inst(self, inst):
        line[0] = linecache.getline(self.loc.filename, self.loc.line)
        return place(self, inst)

    @functools.wraps(lowered)
    def generic_array(context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs):
        if addrspace == numba_nvvm.ADDRSPACE_SHARED:
            name = re.match(r"\s*(\w+)\s*=[^=]", line[0])
            symbol_name = shared_symbol(symbol_name, name[1] if name else "", shape, str(dtype))
        return lowered(context, builder, shape, dtype, symbol_name, addrspace, *args, **kwargs)

    numba_lowering.Lower.lower_inst = lower_inst
    numba_cudaimpl._generic_array = generic_array


def install(target: Target) -> None:
    """Make ``numba.cuda`` run on the engine, compiling for ``target``. Idempotent."""
    ask_for_line_information()
    if "driver" in _original:
        return
    _original["driver"], _original["launch"] = numba_driver.driver, numba_dispatcher._Kernel.launch
    _EngineDevice.capability = target.capability
    driver = EngineDriver(target)
    numba_driver._logger = numba_driver.make_logger()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # lessons launch one block on purpose
    config.CUDA_WARN_ON_IMPLICIT_COPY = 0  # and the engine copies nothing
    numba_driver.driver = numba_devices.driver = driver
    numba_driver.ExperimentalDevice = _EngineDevice
    numba_dispatcher._Kernel.bind = _bind
    numba_codegen.CUDACodeLibrary.get_cufunc = _loaded_kernel
    numba_dispatcher._Kernel.launch = _launch
    _count_kernel_allocations()
    _take_torch_tensors()
    _share_with_torch()


def _count_kernel_allocations() -> None:
    """numba keeps statistics of memory that kernels allocate: here the engine's own malloc and free count."""
    runtime = numba_nrt._Runtime
    for name in (
        "ensure_allocated",
        "ensure_initialized",
        "memsys_enable_stats",
        "memsys_disable_stats",
        "_single_thread_launch",
    ):
        setattr(runtime, name, lambda self, *args, **kwargs: None)

    def statistics(self, stream=None):
        got, given = SPACE.allocations, SPACE.releases  # one allocation an array
        return numba_nrt._nrt_mstats(alloc=got, free=given, mi_alloc=got, mi_free=given)

    runtime.get_allocation_stats = statistics


def _take_torch_tensors() -> None:
    """Let CPU tensors be kernel arguments, as CUDA tensors are: numba types them through DLPack."""
    plain = numba_dispatcher.CUDADispatcher.call

    @functools.wraps(plain)
    def call(self, args, launch_config):
        _check_arguments(self, args)
        try:
            return plain(self, args, launch_config)
        except Exception:
            _check_lists(self, args)
            raise

    numba_dispatcher.CUDADispatcher.call = call

    def launch(self, *args, **named):
        if named:
            raise InvalidLaunch(
                f"a kernel takes its arguments by their places, and {', '.join(named)} is given by name",
                kernel=self.dispatcher.py_func.__name__,
            )
        return self.dispatcher.call(args, self)

    numba_dispatcher._LaunchConfiguration.__call__ = launch
    normalized = numba_dispatcher.normalize_kernel_dimensions

    @functools.wraps(normalized)
    def normalize_kernel_dimensions(grid, block):
        try:
            return normalized(grid, block)
        except (TypeError, ValueError) as error:  # tests of others want the type and the text: IPython alone
            words = "" if None in (grid, block) else "; -(-n // 256) is n / 256 rounded up, a whole number"
            told = f"{type(error).__name__}: {str(error).strip()}{words}"
            vars(error)["_render_traceback_"] = functools.partial(_shown, error, told)
            raise

    numba_dispatcher.normalize_kernel_dimensions = normalize_kernel_dimensions


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


def _shown(error: Exception, told: str) -> list[str]:
    """The lines that IPython shows of an error: the reader's, and what is told."""
    return [*led_here(error), told]


def _check_arguments(dispatcher, args) -> None:
    """Raises InvalidLaunch for a tensor that numba cannot take, or what does not fit the one signature."""
    _check_tensors(dispatcher, args)
    if dispatcher.specialized and not dispatcher.extensions:
        _check_lists(dispatcher, args)
        [kernel] = dispatcher.overloads.values()
        function = dispatcher.py_func
        names = inspect.signature(function).parameters
        check_signature(function.__name__, names, kernel.argument_types, args, dispatcher.typeof_pyval)


def _check_tensors(dispatcher, args) -> None:
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


def _share_with_torch() -> None:
    """``cuda.as_cuda_array(tensor)``, ``torch.as_tensor(device_array)`` and DLPack, without a copy."""
    plain = numba_api.as_cuda_array

    @functools.wraps(plain)
    def as_cuda_array(obj, sync=True):
        return _device_array_of(obj) if is_tensor(obj) else plain(obj, sync)

    def is_cuda_array(obj):
        """True of a device array, and of a CPU tensor, which stands for one here."""
        return is_tensor(obj) or hasattr(obj, "__cuda_array_interface__")

    for module in (numba_api, cuda):
        module.as_cuda_array, module.is_cuda_array = as_cuda_array, is_cuda_array

    def export(self, **wanted):
        array = _on_host(self)
        return (tensor_of(array) if array.dtype.name in OF_ML_DTYPES else array).__dlpack__(**wanted)

    numba_devicearray.DeviceNDArray.__dlpack__ = export
    numba_devicearray.DeviceNDArray.__dlpack_device__ = lambda self: (1, 0)  # DLPack's number of the CPU
    torch_hook.LAUNCHES.append((numba_dispatcher.CUDADispatcher, "__getitem__"))
    torch_hook.LAUNCHES.append((numba_dispatcher._LaunchConfiguration, "__call__"))
    torch_hook.install(_on_host)


class _Borrowed:
    """Keeps a tensor for as long as a device array on its memory lives."""

    def __init__(self, tensor):
        self.tensor = tensor


def _device_array_of(tensor):
    """The device array on a CPU tensor's own memory."""
    array, (memory, start) = array_of(tensor, "tensor"), memory_of(tensor)
    region = SPACE.add(memory, "").holds(array, describe("tensor", array))
    region.start = start
    owner = _Borrowed(tensor)
    weakref.finalize(owner, SPACE.remove, region)
    pointer = numba_driver.MemoryPointer(
        numba_devices.get_context(),
        binding.CUdeviceptr(region.base + start),
        size=memory.size - start,
        owner=owner,
    )
    return numba_devicearray.DeviceNDArray(array.shape, array.strides, array.dtype, gpu_data=pointer)


def _on_host(value) -> np.ndarray | None:
    """The memory of a device array as a NumPy array; None of anything else."""
    if not getattr(value, "__cuda_ndarray__", False):
        return None
    address = int(value.device_ctypes_pointer.value or 0)
    region = SPACE.find(address)
    if region is None:
        return np.empty(value.shape, value.dtype)  # an empty one has no address
    return np.ndarray(value.shape, value.dtype, region.data, address - region.base, value.strides)
