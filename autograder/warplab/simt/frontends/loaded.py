"""Stands in for numba's loaded kernels and modules: resources, variables, exceptions of debug kernels."""

from __future__ import annotations

import os
import struct
from collections import namedtuple
from functools import cached_property

from cuda.bindings.driver import CUdeviceptr
from numba import cuda

from warplab.hardware.target import LaunchLimits
from warplab.simt.errors import InvalidLaunch
from warplab.simt.toolchain.ptxas import assemble, blocks_per_sm

Attributes = namedtuple(
    "Attributes", "num_regs const_size_bytes local_size_bytes shared_size_bytes max_threads_per_block"
)
FunctionAttributes = namedtuple("FunctionAttributes", "regs shared local const maxthreads")


class LoadedModule:
    """Stands in for numba's module; finds variables of the program by name."""

    def __init__(self, program, context):
        self.program, self.context, self.initialized = program, context, False

    def get_global_symbol(self, name: str):
        """(pointer, size in bytes) of a module variable. Raises InvalidLaunch if there is none so named."""
        region = self.program.globals.get(name)
        if region is None:
            raise InvalidLaunch(f"the module has no variable {name!r}", kernel=self.program.name)
        pointer = cuda.MemoryPointer(self.context, CUdeviceptr(region.base), region.size)
        return pointer, region.size


class LoadedKernel:
    """Stands in for numba's function object; ptxas is asked for its resources at their first use."""

    def __init__(self, program, context, limits: LaunchLimits):
        self.program, self.limits = program, limits
        self.name, self.module = program.entry, LoadedModule(program, context)
        self.handle = self.kernel = self

    @cached_property
    def attributes(self) -> Attributes:
        """Registers a thread; bytes of constant, local and static shared memory; most threads of a block."""
        report, limit = assemble(self.program.ptx, self.program.entry), self.limits
        threads = min(limit.max_threads_per_block, self.program.max_threads or limit.max_threads_per_block)
        if report.registers:
            per_warp = -(-report.registers * 32 // limit.register_unit) * limit.register_unit
            threads = min(threads, limit.registers_per_sm // 4 // per_warp * 4 * 32)
        constant = sum(v.size for v in self.program.module.variables if v.space == "const")
        return Attributes(report.registers, constant, report.stack_bytes, report.shared_bytes, threads)

    @property
    def attrs(self) -> FunctionAttributes:
        """``attributes`` under the names of numba's function object."""
        a = self.attributes
        return FunctionAttributes(
            regs=a.num_regs,
            shared=a.shared_size_bytes,
            local=a.local_size_bytes,
            const=a.const_size_bytes,
            maxthreads=a.max_threads_per_block,
        )

    def set_shared_memory_carveout(self, carveout):
        if not -1 <= int(carveout) <= 100:
            raise ValueError("Carveout must be between -1 and 100")

    def cache_config(self, **preferences):
        """The engine has no caches to configure."""

    def blocks_per_sm(self, threads: int, dynamic_shared: int) -> int:
        """Blocks of ``threads`` threads that fit an SM of the architecture."""
        a = self.attributes
        fits = blocks_per_sm(a.num_regs, a.shared_size_bytes + dynamic_shared, threads, self.limits)
        return min(fits.values())


def clear_exception(kernel, program) -> None:
    """Clear the error code before the launch of a kernel with ``debug=True``."""
    region = program.globals.get(f"{kernel.entry_name}__errcode__")
    if region is not None:
        region.data[:] = 0


def raise_exception(kernel, program) -> None:
    """After such a launch, raise a thread's exception, with its place and thread, worded as by numba."""
    region = program.globals.get(f"{kernel.entry_name}__errcode__")
    if region is None or not region.data.any():
        return

    def value(name: str) -> int:
        return struct.unpack("<i", program.globals[f"{kernel.entry_name}__{name}__"].data[:4].tobytes())[0]

    error, arguments, place = kernel.call_helper.get_exception(value("errcode"))
    thread, block = [value(f"tid{axis}") for axis in "zyx"], [value(f"ctaid{axis}") for axis in "zyx"]
    where = (
        ""
        if place is None
        else f"In function {place[0]!r}, file {os.path.abspath(place[1])}, line {place[2]}, "
    )
    prefix = f"{where}tid={thread} ctaid={block}"
    raise error(*((f"{prefix}: {arguments[0]}", *arguments[1:]) if arguments else (prefix,)))
