"""Which device kernels run on: a CUDA GPU if this machine has one, else the SIMT engine. Detected without starting CUDA."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
from dataclasses import dataclass

from . import specs

DEFAULT_ARCH = "sm_90"


@dataclass(frozen=True)
class Limits:
    """What a launch may ask for, from the compute capability's table (CUDA C++ Programming Guide). Sizes in bytes."""

    max_threads_per_block: int
    max_block_dim: tuple[int, int, int]
    max_grid_dim: tuple[int, int, int]
    max_static_shared: int
    max_shared_per_block: int
    max_threads_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    shared_per_sm: int
    register_unit: int
    shared_unit: int
    reserved_shared: int


@dataclass(frozen=True)
class Device:
    """Where kernels run: ``kind`` is "cuda" or "simt", ``arch`` the architecture that they are compiled for."""

    name: str
    kind: str
    arch: str
    limits: Limits

    def __str__(self) -> str:
        if self.kind == "cuda":
            return f"{self.name} ({self.arch})"
        return f"the SIMT engine: no CUDA GPU here, so kernels compiled for {self.arch} run on this CPU, checked and counted, not timed"


class DeviceError(RuntimeError):
    """WARPLAB_DEVICE or WARPLAB_ARCH asks for something that is not there."""


def arch() -> str:
    """The architecture that the engine compiles and counts for: WARPLAB_ARCH or sm_90.

    Raises DeviceError for one that is not in the registry.
    """
    name = os.environ.get("WARPLAB_ARCH", DEFAULT_ARCH)
    try:
        specs.for_arch(name)
    except specs.SpecError as error:
        raise DeviceError(f"WARPLAB_ARCH={name}: {error}") from None
    return name


def capability(name: str) -> tuple[int, int]:
    """Compute capability of an architecture name: (9, 0) for "sm_90"."""
    number = int(name.removeprefix("sm_").rstrip("af"))
    return divmod(number, 10)


@functools.cache
def limits(name: str | None = None) -> Limits:
    """Launch and occupancy limits of an architecture (default: the one in use), from ``chapters/specs/arch``."""
    spec = specs.for_arch(name or arch())

    def integer(fact: str) -> int:
        entry = spec[fact]
        return int(entry.value * {"KiB": 1024, "MiB": 1024**2}.get(entry.unit, 1))

    shared, per_block = integer("shared_memory_per_sm"), integer("max_shared_memory_per_block")
    capable = capability(name or arch())
    xy, z = integer("max_block_xy"), integer("max_block_z")
    return Limits(
        max_threads_per_block=integer("max_threads_per_block"),
        max_block_dim=(xy, xy, z),
        max_grid_dim=(integer("max_grid_x"), integer("max_grid_yz"), integer("max_grid_yz")),
        max_static_shared=integer("static_shared_memory_per_block"),
        max_shared_per_block=per_block,
        max_threads_per_sm=integer("max_threads_per_sm"),
        max_warps_per_sm=integer("max_warps_per_sm"),
        max_blocks_per_sm=integer("max_blocks_per_sm"),
        registers_per_sm=integer("registers_per_sm"),
        shared_per_sm=shared,
        register_unit=integer("register_allocation_unit"),
        shared_unit=integer("shared_memory_allocation_unit"),
        reserved_shared=1024 if capable >= (8, 0) else 0,  # CUDA keeps 1 KiB of shared memory a block from 8.0 on
    )


def engine_attribute(name: str) -> int:
    """A CU_DEVICE_ATTRIBUTE of the engine, by the architecture's limits. Raises AttributeError for one it has not."""
    limit = limits()
    values = {
        "MAX_THREADS_PER_BLOCK": limit.max_threads_per_block,
        "WARP_SIZE": 32,
        "MAX_BLOCK_DIM_X": limit.max_block_dim[0],
        "MAX_BLOCK_DIM_Y": limit.max_block_dim[1],
        "MAX_BLOCK_DIM_Z": limit.max_block_dim[2],
        "MAX_GRID_DIM_X": limit.max_grid_dim[0],
        "MAX_GRID_DIM_Y": limit.max_grid_dim[1],
        "MAX_GRID_DIM_Z": limit.max_grid_dim[2],
        "MAX_SHARED_MEMORY_PER_BLOCK": limit.max_static_shared,
        "MAX_THREADS_PER_MULTIPROCESSOR": limit.max_threads_per_sm,
        "MAX_REGISTERS_PER_BLOCK": limit.registers_per_sm,
        "CAN_MAP_HOST_MEMORY": 1,
        "UNIFIED_ADDRESSING": 1,
    }
    if name not in values:
        raise AttributeError(f"the SIMT engine has no device attribute {name}")
    return values[name]


def _cuda_present() -> bool:
    """Whether an NVIDIA GPU and its driver library are there; looks at files only, so a later fork is safe."""
    if not (glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg")):  # dxg: WSL2
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1")


@functools.cache
def device() -> Device:
    """The device of this process. ``WARPLAB_DEVICE=simt|cuda`` forces one.

    Raises DeviceError when cuda is forced and there is none, or the value is neither.
    """
    wanted = os.environ.get("WARPLAB_DEVICE", "")
    if wanted not in ("", "simt", "cuda"):
        raise DeviceError(f"WARPLAB_DEVICE={wanted}: must be simt or cuda")
    present = wanted != "simt" and _cuda_present()
    if wanted == "cuda" and not present:
        raise DeviceError(
            "WARPLAB_DEVICE=cuda, but this machine has no NVIDIA GPU with a driver (no /dev/nvidia0 or libcuda.so.1); unset it to use the SIMT engine"
        )
    if not present:
        name = arch()
        return Device("warplab SIMT engine", "simt", name, limits(name))
    found = _cuda_name_and_arch()
    return Device(*found, limits(found[2]))


def _cuda_name_and_arch() -> tuple[str, str, str]:
    """Name and architecture of GPU 0 through NVML, which does not create a CUDA context."""
    from cuda.bindings import nvml

    nvml.init_v2()
    try:
        handle = nvml.device_get_handle_by_index_v2(0)
        major, minor = nvml.device_get_cuda_compute_capability(handle)
        return nvml.device_get_name(handle), "cuda", f"sm_{major}{minor}"
    finally:
        nvml.shutdown()
