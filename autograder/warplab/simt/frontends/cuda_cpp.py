"""CUDA C++ kernels from a string: ``k = cuda_kernel(source, "name")``, then ``k[grid, block](...)`` as in numba, on both devices."""

from __future__ import annotations

import struct

import numpy as np

from ..engine.memory import as_bytes
from ..engine.program import Program
from ..errors import InvalidLaunch
from ..ptx.parser import parse
from ..toolchain.nvrtc import compile_ptx
from .arguments import describe, host_array
from .launch import run

_programs: dict[tuple[str, str], Program] = {}


class CudaKernel:
    """A CUDA C++ kernel; ``kernel[grid, block, stream, shared_bytes](*args)`` launches it.

    Arrays are passed as pointers (host arrays are copied there and back on CUDA), numbers as the parameter's own type.
    """

    def __init__(self, source: str, name: str):
        from ...device import arch

        self.source, self.name = source, name
        compile_ptx(source, name, arch())  # a mistake shows here, not at the first launch

    def __getitem__(self, configuration):
        grid, block, *rest = configuration
        return Launcher(self, grid, block, rest[0] if rest else 0, rest[1] if len(rest) > 1 else 0)

    def program(self, arch: str) -> Program:
        """The translated program for an architecture."""
        from .numba_hook import SPACE

        ptx, entry = compile_ptx(self.source, self.name, arch)
        key = (ptx, entry)
        if key not in _programs:
            _programs[key] = Program(ptx, entry, self.name, SPACE)
        return _programs[key]


class Launcher:
    """A kernel with its launch configuration; calling it launches."""

    def __init__(self, kernel: CudaKernel, grid, block, stream, sharedmem: int):
        self.kernel, self.griddim, self.blockdim, self.stream, self.sharedmem = kernel, _dims(grid), _dims(block), stream, sharedmem

    def __call__(self, *args) -> None:
        from ...device import arch, device

        if device().kind == "cuda":
            _launch_on_cuda(self, args)
        else:
            self.run_on_engine(args, arch())

    def run_on_engine(self, args, arch: str):
        """Run on the SIMT engine and return the machine (profile() reads its program)."""
        from .numba_hook import SPACE

        program = self.kernel.program(arch)
        values, regions = _parameters(program, args, SPACE)
        return run(program, values, regions, self.griddim, self.blockdim, self.sharedmem, SPACE)


def cuda_kernel(source: str, name: str) -> CudaKernel:
    """Compile CUDA C++ through NVRTC and return the kernel ``name``.

    Raises CompileError with the compiler's messages and the source's line numbers.
    """
    return CudaKernel(source, name)


def _dims(dims) -> tuple[int, ...]:
    return (int(dims),) if isinstance(dims, int | np.integer) else tuple(int(d) for d in dims)


NUMBER = {"f32": "f", "f64": "d", "u8": "B", "s8": "b", "u16": "H", "s16": "h", "u32": "I", "s32": "i", "u64": "Q", "s64": "q"}
NUMPY_OF = {kind: np.dtype(code) for kind, code in NUMBER.items()}


def _parameters(program: Program, args, space):
    """Parameter bytes by the types that the PTX declares, and the regions of host arrays."""
    declared = program.function.params
    if len(declared) != len(args):
        raise InvalidLaunch(f"the kernel takes {len(declared)} arguments and got {len(args)}", kernel=program.name)
    values, regions = [], []
    for number, (param, value) in enumerate(zip(declared, args, strict=True), 1):
        name = f"number {number}"
        array = host_array(value)
        if array is not None:
            if not array.flags.c_contiguous:
                raise InvalidLaunch(
                    f"{describe(name, array)} is not contiguous in C order", kernel=program.name, hint="np.ascontiguousarray(array)"
                )
            region = space.add(as_bytes(array), describe(name, array), max(array.itemsize, 1), writable=array.flags.writeable)
            regions.append(region)
            values.append(struct.pack("<Q", region.base))
        elif getattr(value, "__cuda_ndarray__", False):
            values.append(struct.pack("<Q", int(value.device_ctypes_pointer.value or 0)))
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            if param.type not in NUMBER or param.size > 8:
                raise InvalidLaunch(
                    f"argument {name} is a number, and the kernel wants {param.size} bytes ({param.type})", kernel=program.name
                )
            values.append(number_as(param.type, value, name, program.name))
        elif isinstance(value, np.void):  # a struct by value: one element of a structured array, its dtype made with align=True
            if value.nbytes != param.size:
                raise InvalidLaunch(f"argument {name} has {value.nbytes} bytes, and the kernel wants {param.size}", kernel=program.name)
            values.append(value.tobytes())
        else:
            raise InvalidLaunch(f"argument {name} is a {type(value).__name__}; pass arrays, numbers and structs", kernel=program.name)
    return values, regions


def number_as(kind: str, value, name: str, kernel: str) -> bytes:
    """A number as the bytes of PTX type ``kind``. Raises InvalidLaunch where it does not fit."""
    if kind[0] == "f":
        return struct.pack("<" + NUMBER[kind], float(value))
    if float(value) != int(value):
        raise InvalidLaunch(f"argument {name} is {value}, and the kernel wants a whole number", kernel=kernel)
    size = int(kind[1:])
    if not -(1 << (size - 1)) <= int(value) < 1 << size:
        raise InvalidLaunch(f"argument {name} is {value}, which does not fit {size} bits", kernel=kernel)
    return (int(value) & ((1 << size) - 1)).to_bytes(size // 8, "little")


_loaded: dict[tuple[str, str], object] = {}


def _launch_on_cuda(launcher: Launcher, args) -> None:
    from cuda.core import LaunchConfig, ObjectCode, launch
    from numba import cuda
    from numba.cuda.cudadrv.driver import _to_core_stream

    from ...device import device

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
            passed.append(np.frombuffer(number_as(param.type, value, param.name, launcher.kernel.name), NUMPY_OF[param.type])[0])
    together = "%envreg2" in ptx  # cooperative_groups' grid barrier: all blocks must run at once
    config = LaunchConfig(grid=launcher.griddim, block=launcher.blockdim, shmem_size=launcher.sharedmem, is_cooperative=together)
    launch(_to_core_stream(launcher.stream), config, _loaded[ptx, entry], *passed)
    for there, array in copies:
        there.copy_to_host(array)
