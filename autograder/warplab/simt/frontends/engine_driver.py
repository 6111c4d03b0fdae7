"""A CUDA driver without a GPU: the ``cu...`` calls for contexts, memory and streams, on the engine's memory.

numba-cuda and numba-cuda-mlir have similar driver modules; the driver of each is replaced by one that
inherits these calls.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, NoReturn

import numpy as np
from cuda.bindings import driver as binding  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs

from warplab.hardware.target import Target
from warplab.simt.engine.address_space import Region
from warplab.simt.frontends.managed import reserve
from warplab.simt.frontends.space import SPACE

TOTAL_MEMORY = 8 << 30  # bytes that cuMemGetInfo reports; it is memory of the host

# Device attributes beyond the architecture's limits. The engine models an architecture, not a card with a
# number of multiprocessors: it reports one, so a grid whose size depends on that number is small here.
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
    "TOTAL_CONSTANT_MEMORY": 64 << 10,  # for all compute capabilities (CUDA C++ Programming Guide)
}
# Calls with a constant result. Most have nothing to do: the only device is always current, and launches are
# synchronous, so that every stream is idle and events have nothing to order.
ANSWERS: dict[str, Any] = {
    "cuDeviceGetCount": 1,
    "cuDriverGetVersion": 13000,
    "cuCtxGetDevice": 0,
    "cuDeviceCanAccessPeer": 0,
} | dict.fromkeys(
    "cuInit cuCtxSynchronize cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuStreamDestroy "
    "cuStreamSynchronize cuStreamWaitEvent cuKernelSetCacheConfig cuKernelSetAttribute cuProfilerStart "
    "cuProfilerStop cuEventDestroy cuEventRecord cuEventQuery cuEventSynchronize".split()
)


def _attributes(target: Target) -> dict[str, int]:
    """The values of CU_DEVICE_ATTRIBUTE_... that the engine knows."""
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


class EngineDevice:
    """Stands in for cuda.core's Device, of which the libraries read number, name and compute capability."""

    class _Context:
        handle = binding.CUcontext(1)

    def __init__(self, target: Target):
        self.device_id, self.name, self.uuid = 0, "warplab SIMT engine", "simt-0"
        self.compute_capability = target.capability
        self.context = self._Context()

    def set_current(self):
        """The only device is always current."""


class _StreamHandle(binding.CUstream):
    """A stream whose ``value`` numba can read, which it does when it adds a callback."""

    @property
    def value(self) -> int:
        return int(self)


class DriverCalls:
    """The CUDA driver calls that numba-cuda and numba-cuda-mlir make, on the engine's memory.

    ``api_error``: the library's own exception for failed calls, on which it frees memory and tries again.
    """

    api_error: type[Exception]

    def __init__(self, target: Target):
        self.target, self._attributes = target, _attributes(target)
        self.devices, self.is_initialized, self.initialization_error = {}, False, None
        self._memory: dict[int, Region] = {}
        self._host: dict[int, np.ndarray] = {}
        self._mapped: dict[int, Region] = {}
        self._handles = 100
        self._contexts = threading.local()  # .depth: how often the thread has pushed the only context
        self.ensure_initialized()  # pyright: ignore[reportAttributeAccessIssue] - the library's own

    def __getattr__(self, name):
        if name in ANSWERS:
            return lambda *given: ANSWERS[name]
        if name.endswith("Async"):  # the synchronous call, without the stream
            return lambda *given: getattr(self, name.removesuffix("Async"))(*given[:-1])
        raise NotImplementedError(f"{name} is not available on the SIMT engine; it needs a CUDA GPU")

    def cuCtxGetCurrent(self):
        """The thread's current context; the null handle before the first push and after the last pop."""
        return binding.CUcontext(1 if getattr(self._contexts, "depth", 0) else 0)

    def cuCtxPushCurrent(self, handle):
        self._contexts.depth = getattr(self._contexts, "depth", 0) + 1

    def cuCtxPopCurrent(self):
        popped = self.cuCtxGetCurrent()
        self._contexts.depth = max(0, getattr(self._contexts, "depth", 0) - 1)
        return popped

    def cuDeviceGetAttribute(self, code, device):
        name = code.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        if name not in self._attributes:
            raise AttributeError(
                f"the SIMT engine has no device attribute {name}: it models an architecture, not a card. "
                "warplab.specs.get('h100-sxm') has the data of a card"
            )
        return self._attributes[name]

    def cuMemGetInfo(self):
        return TOTAL_MEMORY - sum(r.size for r in self._memory.values()), TOTAL_MEMORY

    def cuMemAlloc(self, size):
        if size > self.cuMemGetInfo()[0]:
            text = f"out of memory: {size} bytes asked for, the engine has {TOTAL_MEMORY}"
            self._refuse("OUT_OF_MEMORY", text)
        unwritten = np.full(size, 0xFF, np.uint8)  # NaN or -1: like a GPU's, it is not zeroed
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
        if int(pointer) in self._host:  # a second entry would free the buffer of cuMemHostAlloc
            self._refuse("HOST_MEMORY_ALREADY_REGISTERED", "this host memory is pinned already")
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
        if region is None:
            self._refuse("INVALID_VALUE", f"{int(pointer):#x} is not in device memory")
        return binding.CUdeviceptr(region.base), region.size

    def _bytes(self, pointer, size) -> np.ndarray:
        region = SPACE.find(int(pointer))
        start = int(pointer) - region.base if region else 0
        if region is None or start + size > region.size:
            self._refuse("INVALID_VALUE", f"copy of {size} bytes outside device memory")
        return region.data[start : start + size]

    def cuMemcpyHtoD(self, to, source, size):
        ctypes.memmove(self._bytes(to, size).ctypes.data, int(source), size)

    def cuMemcpyDtoH(self, to, source, size):
        ctypes.memmove(int(to), self._bytes(source, size).ctypes.data, size)

    def cuMemcpyDtoD(self, to, source, size):
        self._bytes(to, size)[:] = self._bytes(source, size).copy()

    def cuMemsetD8(self, pointer, value, size):
        self._bytes(pointer, size)[:] = value

    def cuStreamCreate(self, flags):
        self._handles += 1
        return _StreamHandle(self._handles)

    def cuStreamAddCallback(self, handle, callback, data, flags):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(int(callback))(None, 0, data)

    def cuEventCreate(self, flags):
        self._handles += 1
        return binding.CUevent(self._handles)

    def cuEventElapsedTime(self, start, end):
        raise NotImplementedError(
            "the SIMT engine has no event times: they would be this CPU's and say nothing about a GPU. "
            "warplab.profile(kernel[grid, block], *arguments) counts what a GPU would have to do"
        )

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, kernel, threads, dynamic_shared):
        return kernel.blocks_per_sm(int(threads), int(dynamic_shared))

    def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(self, kernel, threads, dynamic_shared, flags):
        return kernel.blocks_per_sm(int(threads), int(dynamic_shared))

    def cuPointerGetAttribute(self, attribute, pointer):
        return pointer

    def _refuse(self, status: str, message: str) -> NoReturn:
        raise self.api_error(getattr(binding.CUresult, f"CUDA_ERROR_{status}"), message)
