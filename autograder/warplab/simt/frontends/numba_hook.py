"""numba.cuda without a GPU: a CUDA driver of our own under numba's own code. The only file that touches private names.

What is replaced (numba-cuda is pinned; ``tests/simt/test_numba_hook.py`` is the canary):
- ``numba.cuda.cudadrv.driver.driver`` - an object with the ``cu...`` calls that numba makes for contexts, memory and
  streams, here on the engine's address space. Contexts, device arrays, slices and memory managers stay numba's.
- ``...driver.ExperimentalDevice`` - cuda.core's device.
- ``_Kernel.bind``, ``_Kernel.launch`` and ``CUDACodeLibrary.get_cufunc`` - launching goes to the engine instead of cuda.core.
- ``CUDADispatcher.__init__`` - line information is always asked for, so that messages and counters can name source lines;
  ``CUDACodeLibrary.get_ltoir`` and ``DIBuilder._var_type`` are mended where numba's own line information fails.
"""

from __future__ import annotations

import ctypes
import functools
import warnings

import numpy as np
from cuda.bindings import driver as binding
from cuda.core._utils.cuda_utils import CUDAError
from llvmlite import ir
from numba.cuda import codegen as numba_codegen
from numba.cuda import debuginfo as numba_debuginfo
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaPerformanceWarning
from numba.cuda.cudadrv import devices as numba_devices
from numba.cuda.cudadrv import driver as numba_driver
from numba.cuda.memory_management import nrt as numba_nrt

from ..engine.memory import AddressSpace
from ..errors import InvalidLaunch
from .launch import launch_on_engine, program_of, program_of_library
from .loaded import LoadedKernel, clear_exception, raise_exception
from .managed import reserve

SPACE = AddressSpace()
TOTAL_MEMORY = 8 << 30  # what cuMemGetInfo reports: host memory stands in for the card's
# What numba asks beyond the architecture's limits. The engine has no bus and no watchdog, and it stands for an architecture,
# not for a card with some number of multiprocessors: a grid that is sized by them comes out small here.
MORE_ATTRIBUTES = {
    "PCI_DOMAIN_ID": 0,
    "PCI_BUS_ID": 0,
    "PCI_DEVICE_ID": 0,
    "KERNEL_EXEC_TIMEOUT": 0,
    "TCC_DRIVER": 0,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": 2,
    "MULTIPROCESSOR_COUNT": 1,
    "MANAGED_MEMORY": 1,
    "CONCURRENT_MANAGED_ACCESS": 1,
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

    def __new__(cls):
        return object.__new__(cls)

    def __init__(self):
        self.devices, self.is_initialized, self.initialization_error, self.pid = {}, True, None, None
        self._memory: dict[int, object] = {}
        self._host: dict[int, np.ndarray] = {}
        self._mapped: dict[int, object] = {}
        self._handles = 100

    def __getattr__(self, name):
        raise NotImplementedError(f"{name} is not available on the SIMT engine; it needs a CUDA GPU")

    # devices and contexts
    def cuInit(self, flags): ...
    def cuDeviceGetCount(self):
        return 1

    def cuDriverGetVersion(self):
        return 13000

    def cuCtxGetCurrent(self):
        return binding.CUcontext(1)

    def cuCtxGetDevice(self):
        return 0

    def cuCtxPushCurrent(self, handle): ...
    def cuCtxPopCurrent(self):
        return binding.CUcontext(1)

    def cuCtxSynchronize(self): ...
    def cuDevicePrimaryCtxRelease(self, device): ...
    def cuDevicePrimaryCtxReset(self, device): ...

    def cuDeviceGetAttribute(self, code, device):
        from ...device import engine_attribute

        name = code.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        return MORE_ATTRIBUTES[name] if name in MORE_ATTRIBUTES else engine_attribute(name)

    # memory
    def cuMemGetInfo(self):
        return TOTAL_MEMORY - sum(r.size for r in self._memory.values()), TOTAL_MEMORY

    def cuMemAlloc(self, size):
        if size > self.cuMemGetInfo()[0]:
            raise numba_driver.CudaAPIError(
                binding.CUresult.CUDA_ERROR_OUT_OF_MEMORY, f"out of memory: {size} bytes asked for, the engine has {TOTAL_MEMORY}"
            )
        region = SPACE.add(np.full(size, 0xFF, np.uint8), "device array")  # as on a GPU not zeroed: NaN, or -1
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
            raise numba_driver.CudaAPIError(binding.CUresult.CUDA_ERROR_INVALID_VALUE, f"copy of {size} bytes outside device memory")
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
        raise NotImplementedError("the SIMT engine has no event times: they would be this CPU's and say nothing about a GPU")


class RefusedLaunch(InvalidLaunch, CUDAError):
    """What CUDA refuses, also for code that catches CUDA's own error."""

    def __init__(self, refused: InvalidLaunch):
        Exception.__init__(self, f"{refused}\n  CUDA calls it CUDA_ERROR_INVALID_VALUE")
        self.kernel, self.where, self.hint = refused.kernel, refused.where, refused.hint


def _launch(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
    _warn_of_copies(args)
    try:
        if not kernel.debug:
            launch_on_engine(kernel, args, griddim, blockdim, sharedmem, SPACE)
            return
        program = program_of(kernel, SPACE)
        clear_exception(kernel, program)
        launch_on_engine(kernel, args, griddim, blockdim, sharedmem, SPACE)
        raise_exception(kernel, program)
    except InvalidLaunch as refused:
        raise RefusedLaunch(refused) from None


def _warn_of_copies(args) -> None:
    """numba's warning that CUDA would copy a host array there and back, for who asks for it (``install`` turns it off)."""
    if not config.CUDA_WARN_ON_IMPLICIT_COPY or config.DISABLE_PERFORMANCE_WARNINGS:
        return
    for value in args:
        if isinstance(value, np.ndarray) and not numba_driver.is_device_memory(value):
            warnings.warn(NumbaPerformanceWarning("Host array used in CUDA kernel will incur copy overhead to/from device."), stacklevel=4)


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
    """What numba calls a cufunc: the kernel's resources and its module's variables, without loading anything."""
    if library._entry_name is None:
        raise RuntimeError("Missing entry_name - are you trying to get the cufunc for a device function?")
    found = library._cufunc_cache.get(0)
    if found is None:
        name = getattr(library, "_student_name", None) or library._entry_name
        program = program_of_library(library, library._entry_name, name, SPACE)
        found = library._cufunc_cache[0] = LoadedKernel(program, numba_devices.get_context())
    return found


_original: dict[str, object] = {}


def ask_for_line_information() -> None:
    """Compile every kernel with line information; code generation is the same with and without."""
    if "init" in _original:
        return
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
        # NVRTC's modules say 1 (error on a mismatch) and numba's 2 (warn): the linker refuses the mixture, as of float16's functions
        self._llvm_strs = [text.replace('i32 2, !"Debug Info Version"', 'i32 1, !"Debug Info Version"') for text in self.llvm_strs]
        return plain_ltoir(self, cc)

    numba_codegen.CUDACodeLibrary.get_ltoir = get_ltoir
    plain_type = numba_debuginfo.DIBuilder._var_type

    @functools.wraps(plain_type)
    def var_type(self, lltype, size, datamodel=None):
        if isinstance(lltype, ir.ArrayType) and not size:  # a tuple of empty tuples: numba divides by the size of one of them
            lltype, datamodel = ir.LiteralStructType([]), None
        return plain_type(self, lltype, size, datamodel=datamodel)

    numba_debuginfo.DIBuilder._var_type = var_type


def install(capability: tuple[int, int]) -> None:
    """Make ``numba.cuda`` run on the engine, compiling for ``capability``. Idempotent."""
    ask_for_line_information()
    if "driver" in _original:
        return
    _original["driver"] = numba_driver.driver
    _EngineDevice.capability = capability
    driver = EngineDriver()
    numba_driver._logger = numba_driver.make_logger()
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # lessons launch one block on purpose
    config.CUDA_WARN_ON_IMPLICIT_COPY = 0  # and the engine copies nothing
    numba_driver.driver = numba_devices.driver = driver
    numba_driver.ExperimentalDevice = _EngineDevice
    numba_dispatcher._Kernel.bind = _bind
    numba_codegen.CUDACodeLibrary.get_cufunc = _loaded_kernel
    numba_dispatcher._Kernel.launch = _launch
    _count_kernel_allocations()
    _wrap_torch_tensors()


def _count_kernel_allocations() -> None:
    """numba keeps statistics of memory that kernels allocate on the device; here the engine's own malloc and free count."""
    runtime = numba_nrt._Runtime
    for name in ("ensure_allocated", "ensure_initialized", "memsys_enable_stats", "memsys_disable_stats", "_single_thread_launch"):
        setattr(runtime, name, lambda self, *args, **kwargs: None)

    def statistics(self, stream=None):
        got, given = SPACE.allocations, SPACE.releases
        return numba_nrt._nrt_mstats(alloc=got, free=given, mi_alloc=got, mi_free=given)  # one allocation an array

    runtime.get_allocation_stats = statistics


def _wrap_torch_tensors() -> None:
    """Let CPU tensors be kernel arguments: numba types their NumPy view."""
    from .arguments import host_array

    plain = numba_dispatcher.CUDADispatcher.call

    @functools.wraps(plain)
    def call(self, args, launch_config):
        views = tuple(host_array(a) if type(a).__module__.startswith("torch") else a for a in args)
        return plain(self, views, launch_config)

    numba_dispatcher.CUDADispatcher.call = call
