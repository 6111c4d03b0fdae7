"""CUDA C++ kernels from a string, on both devices.

``k = cuda_kernel(source, "name")``, then ``k[grid, block](...)`` as in numba.
"""

# pyright: reportAttributeAccessIssue=false
# cuda.core makes its names when they are asked for.

from __future__ import annotations

import numpy as np
from cuda.core import LaunchConfig, ObjectCode, launch
from numba import cuda

from warplab.hardware.device import device, engine_target
from warplab.simt.abi import NUMBERS, c_number, word
from warplab.simt.engine.address_space import as_bytes
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.arguments import describe, host_array
from warplab.simt.frontends.launch import LaunchContext, run, translated
from warplab.simt.frontends.numba_hook import core_stream
from warplab.simt.frontends.space import SPACE
from warplab.simt.ptx.parser import meets_grid_wide, parse
from warplab.simt.toolchain.nvrtc import compile_ptx


class CudaKernel:
    """A CUDA C++ kernel; ``kernel[grid, block, stream, shared_bytes](*args)`` launches it.

    Arrays are passed as pointers, numbers as the parameter's own type. On CUDA, host arrays are copied there
    and back.
    """

    def __init__(self, source: str, name: str):
        self.source, self.name = source, name
        compile_ptx(source, name, engine_target().arch)  # a mistake shows here, not at the first launch

    def __getitem__(self, configuration):
        grid, block, *rest = configuration
        return ConfiguredKernel(self, grid, block, rest[0] if rest else 0, rest[1] if len(rest) > 1 else 0)

    def program(self, arch: str) -> Program:
        """The translated program for an architecture."""
        ptx, entry = compile_ptx(self.source, self.name, arch)
        return translated((ptx,), entry, self.name, SPACE)


class ConfiguredKernel:
    """A kernel with its launch configuration; calling it launches."""

    def __init__(self, kernel: CudaKernel, grid, block, stream, sharedmem: int):
        self.kernel = kernel
        self.griddim, self.blockdim = _dims(grid), _dims(block)
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args) -> None:
        if device().kind == "cuda":
            _launch_on_cuda(self, args)
        else:
            self.run_on_engine(args, LaunchContext(engine_target()))

    def run_on_engine(self, args, context: LaunchContext) -> Machine:
        """Run on the SIMT engine and return the machine (profile() reads its program)."""
        program = self.kernel.program(context.target.arch)
        values, regions = _parameters(program, args, SPACE)
        return run(program, values, regions, self.griddim, self.blockdim, self.sharedmem, SPACE, context)


def cuda_kernel(source: str, name: str) -> CudaKernel:
    """Compile CUDA C++ through NVRTC and return the kernel ``name``.

    Raises CompileError with the compiler's messages and the source's line numbers.
    """
    return CudaKernel(source, name)


def _dims(dims) -> tuple[int, ...]:
    return (int(dims),) if isinstance(dims, int | np.integer) else tuple(int(d) for d in dims)


def _parameters(program: Program, args, space):
    """Parameter bytes by the types that the PTX declares, and the regions of host arrays."""
    declared = program.function.params
    if len(declared) != len(args):
        raise InvalidLaunch(
            f"the kernel takes {len(declared)} arguments and got {len(args)}", kernel=program.name
        )
    values, regions = [], []
    for number, (param, value) in enumerate(zip(declared, args, strict=True), 1):
        name = f"number {number}"
        array = host_array(value)
        if array is not None:
            if not array.flags.c_contiguous:
                raise InvalidLaunch(
                    f"{describe(name, array)} is not contiguous in C order",
                    kernel=program.name,
                    hint="np.ascontiguousarray(array)",
                )
            region = space.add(
                as_bytes(array), describe(name, array), max(array.itemsize, 1), writable=array.flags.writeable
            )
            regions.append(region)
            values.append(word(region.base))
        elif getattr(value, "__cuda_ndarray__", False):
            values.append(word(value.device_ctypes_pointer.value or 0))
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            if param.type not in NUMBERS or param.size > 8:
                raise InvalidLaunch(
                    f"argument {name} is a number, and the kernel wants {param.size} bytes ({param.type})",
                    kernel=program.name,
                )
            values.append(c_number(param.type, value, name, program.name).tobytes())
        elif isinstance(value, np.void):
            # a struct by value: one element of a structured array, its dtype made with align=True
            if value.nbytes != param.size:
                raise InvalidLaunch(
                    f"argument {name} has {value.nbytes} bytes, and the kernel wants {param.size}",
                    kernel=program.name,
                )
            values.append(value.tobytes())
        else:
            raise InvalidLaunch(
                f"argument {name} is a {type(value).__name__}; pass arrays, numbers and structs",
                kernel=program.name,
            )
    return values, regions


_loaded: dict[tuple[str, str], object] = {}


def _launch_on_cuda(launcher: ConfiguredKernel, args) -> None:
    cuda.current_context()
    ptx, entry = compile_ptx(launcher.kernel.source, launcher.kernel.name, device().arch)
    if (ptx, entry) not in _loaded:
        _loaded[ptx, entry] = ObjectCode.from_ptx(ptx.encode()).get_kernel(entry)
    declared = parse(ptx).functions[entry].params
    passed, copies = [], []
    for param, value in zip(declared, args, strict=True):
        array = host_array(value)
        if array is not None:
            there = cuda.to_device(array)
            copies.append((there, array))
            passed.append(int(there.device_ctypes_pointer.value or 0))
        elif getattr(value, "__cuda_array_interface__", None) is not None:
            passed.append(int(value.__cuda_array_interface__["data"][0]))
        else:
            passed.append(c_number(param.type, value, param.name, launcher.kernel.name))
    config = LaunchConfig(
        grid=launcher.griddim,
        block=launcher.blockdim,
        shmem_size=launcher.sharedmem,
        is_cooperative=meets_grid_wide(ptx),  # then all blocks must run at once
    )
    launch(core_stream(launcher.stream), config, _loaded[ptx, entry], *passed)
    for there, array in copies:
        there.copy_to_host(array)
