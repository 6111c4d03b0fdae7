"""CUDA C++ kernels from a string or a file, on a GPU or on the engine.

``k = cuda_kernel(source, "name")``, then ``k[grid, block](...)`` as in numba. The source may be a whole `.cu`
file: its host code is left out.
"""

# pyright: reportAttributeAccessIssue=false
# cuda.core defines its names dynamically.

from __future__ import annotations

import ctypes
import functools
import inspect
import operator
import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from cuda.bindings import driver
from cuda.core import LaunchConfig, ObjectCode, launch
from numba import cuda

from warplab.hardware.device import device, engine_target
from warplab.simt.abi import NUMBERS
from warplab.simt.engine.address_space import Region
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends import torch_hook
from warplab.simt.frontends.arguments import host_array, mapped
from warplab.simt.frontends.c_arguments import parameters
from warplab.simt.frontends.launch import Cluster, LaunchContext, run, translated
from warplab.simt.frontends.numba_hook import core_stream
from warplab.simt.frontends.shared_shapes import shaped
from warplab.simt.frontends.space import SPACE
from warplab.simt.frontends.symbols import Symbol, mangled, parameter_types, probe, probed
from warplab.simt.frontends.tensor_map import on_cuda
from warplab.simt.frontends.torch_hook import is_tensor, refuse
from warplab.simt.ptx.parser import parse, uses_grid_barrier
from warplab.simt.toolchain.nvrtc import CompileError, compile_ptx, prepare, text_of

# (source, path, architecture) -> the variables that all kernels of this source share
_variables: dict[tuple[str, str, str], dict[tuple, Region]] = {}


class CudaKernel:
    """A CUDA C++ kernel; ``kernel[grid, block, stream, shared_bytes, cluster](*args)`` launches it.

    ``cluster``: the blocks of a cluster along each axis, if the kernel has no ``__cluster_dims__``. More than
    8 blocks need ``kernel.non_portable_cluster_size_allowed = True``, as in CUDA.

    Arrays are passed as pointers, numbers in the parameter's own type, structs as NumPy records, ctypes
    structures or dataclasses. With a GPU, host arrays are copied there and back.
    """

    non_portable_cluster_size_allowed = False

    def __init__(self, source: str, name: str, path: str = ""):
        self.source, self.name, self.path = source, name, path
        self.prepared = prepare(source, name, path)
        self._programs: dict[str, Program] = {}
        arch = engine_target().arch
        try:
            self.compiled(arch)  # so that errors are raised here, not at the first launch
        except CompileError:
            alone = prepare(source, name, path, alone=True)
            known = {kernel.rpartition("::")[2] for kernel, _ in alone.kernels}
            if alone.text == self.prepared.text or known.isdisjoint(re.findall(r"\w+", name)):
                raise
            self.prepared = alone  # other kernels of the file may need another architecture or toolkit
            self.compiled(arch)

    def __getitem__(self, configuration):
        return ConfiguredKernel(self, configuration)

    def compiled(self, arch: str) -> tuple[str, str]:
        """(PTX, entry) for an architecture."""
        return compile_ptx(self.prepared, self.name, arch, self.path)

    def program(self, arch: str) -> Program:
        """The translated program for an architecture."""
        if arch not in self._programs:
            ptx, entry = self.compiled(arch)
            variables = _variables.setdefault((self.source, self.path, arch), {})
            program = self._programs[arch] = translated((ptx,), entry, self.name, SPACE, variables)
            program.shared_arrays = shaped(program.shared_arrays, self.source)
            for name in self.prepared.initialised:  # PTX has no initialiser for explicit zeros
                region = program.globals.get(mangled(name, program.module) or "")
                if region is not None:
                    region.unset = False
        return self._programs[arch]

    def symbol(self, name: str) -> Symbol:
        """The ``__constant__`` or ``__device__`` variable ``name``, with methods ``get()`` and ``set()``.

        All kernels of one source share its variables, which last as long as the process. On a GPU, each
        template instance has its own, and so has each kernel of a file in which another does not compile.
        Raises InvalidLaunch if the source has no such variable.
        """
        arch = (device() if device().kind == "cuda" else engine_target()).arch
        ptx, _ = self.compiled(arch)
        module = parse(ptx)
        found = mangled(name, module)
        if found is None:
            known = ", ".join(v.name for v in module.variables if v.space in ("global", "const"))
            raise InvalidLaunch(
                f"the source has no variable {name!r}; it has {known or 'none'}", kernel=self.name
            )
        asking = replace(self.prepared, text=self.prepared.text + probe(name))
        dtype, shape = probed(compile_ptx(asking, self.name, arch, self.path)[0])
        if device().kind == "cuda":
            return Symbol(name, dtype, shape, *_symbol_on_cuda(ptx, found))
        region = self.program(arch).globals[found]

        def write(data: bytes) -> None:
            region.data[:] = np.frombuffer(data, np.uint8)
            region.unset = False

        return Symbol(name, dtype, shape, region.data.tobytes, write)


class Compiled(Protocol):
    """A kernel with C's calling convention, from CUDA C++ or from PTX."""

    name: str
    non_portable_cluster_size_allowed: bool

    def compiled(self, arch: str) -> tuple[str, str]: ...
    def program(self, arch: str) -> Program: ...


class ConfiguredKernel:
    """A kernel with its launch configuration; calling it launches."""

    def __init__(self, kernel: Compiled, configuration):
        self.kernel, given = kernel, _several(configuration)
        if not 2 <= len(given) <= 5:
            text = f"the launch configuration has {len(given)} part{'s' * (len(given) != 1)}"
            hint = "kernel[grid, block, stream, shared_bytes, cluster], the last three if need be"
            raise InvalidLaunch(text, kernel=kernel.name, hint=hint)
        grid, block, self.stream, self.sharedmem, cluster = (*given, *(0, 0, None)[len(given) - 2 :])
        self.griddim, self.blockdim = self._dims("grid", grid), self._dims("block", block)
        size = () if cluster is None else self._dims("cluster", cluster)
        self.cluster = Cluster(size, bool(kernel.non_portable_cluster_size_allowed))

    def _dims(self, what: str, dims) -> tuple[int, ...]:
        try:
            sizes = tuple(map(operator.index, _several(dims)))
        except TypeError:
            sizes = ()
        if not 1 <= len(sizes) <= 3:
            text = f"the {what} is {dims!r}, and not a whole number or up to three of them (x, y, z)"
            hint = "a quotient that is a whole number: // in place of /"
            raise InvalidLaunch(text, kernel=self.kernel.name, hint=hint)
        return sizes

    def __call__(self, *args) -> None:
        if device().kind == "cuda":
            _launch_on_cuda(self, args)
        else:
            self.run_on_engine(args, LaunchContext(engine_target()))

    def run_on_engine(self, args, context: LaunchContext) -> Machine:
        """Run on the SIMT engine and return the machine, which profile() reads."""
        program = self.kernel.program(context.target.arch)
        regions: list[Region] = []

        def place(name: str, value) -> int:
            region, address = mapped(name, value, SPACE)
            regions.append(region)
            return address

        types = parameter_types(program.entry)
        values = parameters(program.function.params, args, place, program.name, types)
        sizes = self.griddim, self.blockdim, self.sharedmem
        return run(program, values, regions, *sizes, SPACE, context, self.cluster)


torch_hook.LAUNCHES.append((ConfiguredKernel, "__call__"))


def cuda_kernel(source: str | os.PathLike[str], name: str) -> CudaKernel:
    """Compile CUDA C++ by NVRTC and return the kernel ``name``.

    ``source``: CUDA C++, or the path of a `.cu` file; its host code (``main``, launches, iostream) is left
    out. ``name``: the kernel's name in C++, with namespaces and template arguments, as in
    ``"tools::scale<float, 16>"``.
    Raises CompileError with the compiler's first message and the source's own line number. Then a global
    variable of the caller with an earlier kernel of this name is deleted, so that it is not run instead.
    """
    try:
        return _cuda_kernel(source, name)
    except CompileError:
        theirs = inspect.stack(0)[1].frame.f_globals
        for bound in [
            key for key, value in theirs.items() if type(value) is CudaKernel and value.name == name
        ]:
            del theirs[bound]
        raise


def _cuda_kernel(source: str | os.PathLike[str], name: str) -> CudaKernel:
    if isinstance(source, str) and (not source.strip() or any(mark in source for mark in "\n{;")):
        return CudaKernel(source, name)
    path = Path(source).expanduser().absolute()
    if not path.is_file():
        raise CompileError(f"there is no file {path}", kernel=name)
    return CudaKernel(text_of(path), name, str(path))


def _several(given) -> tuple:
    return tuple(given) if isinstance(given, Iterable) else (given,)


_loaded: dict[str, ObjectCode] = {}
_FILE = re.compile(r"^\s*\.file\b.*$", re.M)


def _on_cuda(ptx: str) -> ObjectCode:
    """PTX loaded on the GPU, once a process. PTX texts that differ only in the file's name are one module, so
    that kernels of one source share its variables.
    """
    cuda.current_context()
    module = _FILE.sub("", ptx)
    if module not in _loaded:
        _loaded[module] = ObjectCode.from_ptx(ptx.encode())
    return _loaded[module]


def _done(result):
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise InvalidLaunch(f"CUDA says {status.name}")
    return values


def _symbol_on_cuda(ptx: str, name: str):
    """(read(), write(data)) for a variable of a loaded module."""
    library = driver.CUlibrary(int(_on_cuda(ptx).handle))
    pointer, size = _done(driver.cuLibraryGetGlobal(library, name.encode()))

    def read() -> bytes:
        data = bytearray(size)
        _done(driver.cuMemcpyDtoH((ctypes.c_char * size).from_buffer(data), pointer, size))
        return bytes(data)

    def write(data: bytes) -> None:
        _done(driver.cuMemcpyHtoD(pointer, data, size))

    return read, write


@functools.cache  # parsing takes a hundred times as long as a launch
def _kernel_on_cuda(ptx: str, entry: str):
    """(kernel on the GPU, its declared parameters, whether all its blocks must run at once)."""
    return _on_cuda(ptx).get_kernel(entry), parse(ptx).functions[entry].params, uses_grid_barrier(ptx)


def _attributes(cluster: tuple[int, ...], together: bool):
    """The attributes of a launch on a GPU: cooperative if ``together``, and the cluster's dimensions."""
    if together:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        yield attribute
    if cluster:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dims = attribute.value.clusterDim
        dims.x, dims.y, dims.z = (*cluster, 1, 1)[:3]
        yield attribute


def _launch_on_cuda(launcher: ConfiguredKernel, args) -> None:
    ptx, entry = launcher.kernel.compiled(device().arch)
    kernel, declared, together = _kernel_on_cuda(ptx, entry)
    copies = []

    def place(name: str, value) -> int:
        if is_tensor(value) and value.device.type != "cpu":
            refuse(value, name, "cuda")
            return value.data_ptr()
        array = host_array(value, name)
        there = next((copy for copy, same in copies if same is value), None)
        if there is None:  # an array that several arguments use, also in tensor maps, is copied once
            there = cuda.to_device(array)
            copies.append((there, value))
        return int(there.device_ctypes_pointer.value or 0)

    values = parameters(declared, args, place, launcher.kernel.name, parameter_types(entry), on_cuda)
    if launcher.cluster == Cluster() and all(param.type in NUMBERS for param in declared):
        config = LaunchConfig(
            grid=launcher.griddim,
            block=launcher.blockdim,
            shmem_size=launcher.sharedmem,
            is_cooperative=together,
        )
        passed = [np.frombuffer(value, NUMBERS[p.type])[0] for p, value in zip(declared, values, strict=True)]
        launch(core_stream(launcher.stream), config, kernel, *passed)
    else:  # cuda.core passes no structs, and takes the grid's size in clusters
        kept = [ctypes.create_string_buffer(value, max(len(value), 1)) for value in values]
        pointers = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(one) for one in kept))
        config, function = driver.CUlaunchConfig(), driver.CUfunction(int(kernel.handle))
        config.gridDimX, config.gridDimY, config.gridDimZ = (*launcher.griddim, 1, 1)[:3]
        config.blockDimX, config.blockDimY, config.blockDimZ = (*launcher.blockdim, 1, 1)[:3]
        config.sharedMemBytes = launcher.sharedmem
        config.hStream = driver.CUstream(int(core_stream(launcher.stream).handle))
        config.attrs = list(_attributes(launcher.cluster.size, together))
        config.numAttrs = len(config.attrs)
        if launcher.cluster.non_portable:
            allowed = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            (here,) = _done(driver.cuCtxGetDevice())
            _done(driver.cuKernelSetAttribute(allowed, 1, driver.CUkernel(int(kernel.handle)), here))
        _done(driver.cuLaunchKernelEx(config, function, ctypes.addressof(pointers), 0))
    for there, value in copies:
        there.copy_to_host(host_array(value))
