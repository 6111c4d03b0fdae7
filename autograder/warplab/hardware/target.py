"""Targets: architectures that kernels are compiled and counted for, with their launch limits."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from warplab.hardware import specs

BYTES = {"KiB": 1024, "MiB": 1024**2}


@dataclass(frozen=True)
class LaunchLimits:
    """The limits of a compute capability (CUDA C++ Programming Guide); sizes of memory in bytes."""

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
class Target:
    """What kernels are compiled for: ``arch`` ("sm_90"), its ``capability`` (9, 0) and its ``limits``.

    ``gpu``: the name of this machine's GPU, else of the architecture's generation.
    """

    arch: str
    capability: tuple[int, int]
    limits: LaunchLimits
    gpu: str

    @staticmethod
    @functools.cache
    def of(arch: str, gpu: str = "") -> Target:
        """The target of an architecture such as "sm_90". Raises SpecError if it is not in the registry."""
        spec = specs.for_arch(arch)
        number = int(arch.removeprefix("sm_").rstrip("af"))
        return Target(arch, divmod(number, 10), _limits(spec), gpu or spec.short)


def _limits(spec: specs.Spec) -> LaunchLimits:
    def whole(name: str) -> int:
        fact = spec[name]
        return int(fact.value * BYTES.get(fact.unit, 1))

    xy, z = whole("max_block_xy"), whole("max_block_z")
    return LaunchLimits(
        max_threads_per_block=whole("max_threads_per_block"),
        max_block_dim=(xy, xy, z),
        max_grid_dim=(whole("max_grid_x"), whole("max_grid_yz"), whole("max_grid_yz")),
        max_static_shared=whole("static_shared_memory_per_block"),
        max_shared_per_block=whole("max_shared_memory_per_block"),
        max_threads_per_sm=whole("max_threads_per_sm"),
        max_warps_per_sm=whole("max_warps_per_sm"),
        max_blocks_per_sm=whole("max_blocks_per_sm"),
        registers_per_sm=whole("registers_per_sm"),
        shared_per_sm=whole("shared_memory_per_sm"),
        register_unit=whole("register_allocation_unit"),
        shared_unit=whole("shared_memory_allocation_unit"),
        reserved_shared=whole("reserved_shared_memory_per_block"),
    )
