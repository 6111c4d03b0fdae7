"""Times one call on a GPU by CUDA events, under the same conditions every time. Needs a GPU."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from cuda.bindings import driver, nvml  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs

from warplab.timing.samples import flush_bytes

WARM_UP_S, WARM_UP_CALLS = 1.0, 10
COPY_BYTES = 512 << 20
SM_CLOCK = nvml.ClockType(1)  # NVML_CLOCK_SM, whose name in Python changed with cuda-bindings 13.5


class CudaError(RuntimeError):
    """A CUDA driver call failed; the message is the driver's name for it."""


def checked(result) -> Any:
    """The results of a driver call without its status: a value, a tuple of several, or None.

    Raises CudaError if the call failed.
    """
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CudaError(status.name)
    return values[0] if len(values) == 1 else tuple(values) or None


@functools.cache
def cuda_timer() -> CudaTimer:
    """The timer of this process: it keeps a buffer twice as large as the L2 cache."""
    return CudaTimer()


class CudaTimer:
    """Times calls by events, on an idle device whose L2 cache has been overwritten."""

    def __init__(self):
        checked(driver.cuInit(0))
        device = checked(driver.cuDeviceGet(0))
        self.context = checked(driver.cuDevicePrimaryCtxRetain(device))
        checked(driver.cuCtxSetCurrent(self.context))
        cache = checked(
            driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device)
        )
        self.size = flush_bytes(cache)
        self.scratch = checked(driver.cuMemAlloc(self.size))
        self.begin, self.end = (checked(driver.cuEventCreate(0)) for _ in range(2))
        nvml.init_v2()
        self.nvml = nvml.device_get_handle_by_index_v2(0)

    def warm_up(self, call: Callable[[], object]) -> None:
        """Call repeatedly, at least 10 times and for 1 s."""
        calls, start = 0, time.perf_counter()
        while calls < WARM_UP_CALLS or time.perf_counter() - start < WARM_UP_S:
            call()
            checked(driver.cuCtxSynchronize())
            calls += 1

    def sample(self, call: Callable[[], object]) -> tuple[float, float]:
        """(seconds of one call, SM clock in MHz). Work on any stream counts, as it waits for the device."""
        checked(driver.cuCtxResetPersistingL2Cache())
        checked(driver.cuMemsetD8(self.scratch, 0, self.size))
        checked(driver.cuCtxSynchronize())
        checked(driver.cuEventRecord(self.begin, 0))
        call()
        checked(driver.cuCtxSynchronize())
        checked(driver.cuEventRecord(self.end, 0))
        checked(driver.cuEventSynchronize(self.end))
        return checked(driver.cuEventElapsedTime(self.begin, self.end)) / 1e3, self.clock()

    def overhead(self) -> float:
        """Seconds of an empty sample: the least of 20."""
        return min(self.sample(lambda: None)[0] for _ in range(20))

    def clock(self) -> float:
        """The SM clock in MHz; 0 if NVML does not give it."""
        try:
            return float(nvml.device_get_clock_info(self.nvml, SM_CLOCK))
        except nvml.NvmlError:
            return 0.0

    def bandwidth(self) -> float:
        """Bytes a second to and from memory: the best of 10 copies of 512 MiB, reads and writes counted."""
        source, target = (checked(driver.cuMemAlloc(COPY_BYTES)) for _ in range(2))
        try:
            best = min(
                self.sample(lambda: checked(driver.cuMemcpyDtoDAsync(target, source, COPY_BYTES, 0)))[0]
                for _ in range(10)
            )
        finally:
            checked(driver.cuMemFree(source))
            checked(driver.cuMemFree(target))
        return 2 * COPY_BYTES / best
