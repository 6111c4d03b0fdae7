"""numba-cuda-mlir without a GPU: its own compiler down to PTX, the engine in place of its native launcher.

The only file that uses names of ``numba_cuda_mlir``, numba-cuda's successor: an extra (``warplab[mlir]``),
pinned. It takes effect when the library is imported. It replaces:
- the driver, as for numba-cuda (``engine_driver``).
- the native launcher: a kernel's compiled code and its flattened arguments go to the engine. The library's
  code that copies NumPy arrays, selects an overload and flattens arguments stays.
- linking: PTX stays PTX, and the assembler does not run.
- parts of compiling: line information is always made, and a shared array's name, shape and type become part
  of the name of its PTX variable.
"""

from __future__ import annotations

import contextvars
import enum
import functools
import inspect
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from warplab.hardware.target import Target
from warplab.simt.abi import integer, memref, word
from warplab.simt.engine.indices import shared_symbol
from warplab.simt.engine.machine import Machine
from warplab.simt.engine.program import Program
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends import numba_hook, torch_hook
from warplab.simt.frontends.arguments import on_device, record
from warplab.simt.frontends.engine_driver import DriverCalls, EngineDevice
from warplab.simt.frontends.launch import LaunchContext, run, translated
from warplab.simt.frontends.loaded import LoadedKernel
from warplab.simt.frontends.numba_hook import RefusedLaunch, replacing
from warplab.simt.frontends.numba_words import does_not_compile
from warplab.simt.frontends.space import SPACE

LIBRARY = "numba_cuda_mlir"
BETWEEN = b"\0"  # separates the PTX modules of a kernel, which the library handles as one cubin
ERROR = "__numba_cuda_mlir_error_code"  # a variable of each module, which a debug kernel sets
ERRORS = {  # with the native launcher's messages
    1: (AssertionError, "Kernel assertion failed"),
    2: (IndexError, "Index out of bounds in kernel"),
    3: (ValueError, "Invalid value in kernel"),
    5: (ZeroDivisionError, "Division by zero in kernel"),
}

_watching: contextvars.ContextVar = contextvars.ContextVar("watching", default=None)


def install_when_imported(target: Target) -> None:
    """Make ``numba_cuda_mlir.cuda`` run on the engine, compiling for ``target``, once it is imported."""
    torch_hook.when_imported(f"{LIBRARY}.lowering.cuda", _name_shared_arrays)
    torch_hook.when_imported(f"{LIBRARY}.cuda", lambda library: _install(library, target))


def _loaded(name: str):
    return sys.modules.get(f"{LIBRARY}.{name}")


def _part(name: str):
    return import_module(f"{LIBRARY}.{name}")


def _driver_module():
    return import_module(f"{LIBRARY}.numba_cuda.cudadrv.driver")


def is_dispatcher(value) -> bool:
    """Whether a value is the result of numba-cuda-mlir's ``@cuda.jit``."""
    descriptor = _loaded("descriptor")
    return descriptor is not None and isinstance(value, descriptor.MLIRDispatcher)


def is_configured(value) -> bool:
    """Whether a value is ``kernel[grid, block]`` of numba-cuda-mlir."""
    descriptor = _loaded("descriptor")
    return descriptor is not None and isinstance(value, descriptor._ArgMarshaller)


def library_of(array, other):
    """``numba_cuda_mlir.cuda`` if ``array`` is one of its device arrays, else ``other``."""
    return _part("cuda") if type(array).__module__.startswith(f"{LIBRARY}.") else other


def launch_on_engine(launcher, args, context: LaunchContext) -> Machine:
    """Launch ``kernel[grid, block]`` under the observers of ``context``. Raises as ``run`` does."""
    found: list[Any] = [context]
    token = _watching.set(found)
    try:
        _for_target(launcher, context.target)(*args)
    finally:
        _watching.reset(token)
    return found[1]


def ptx_of(dispatcher, args, target: Target) -> tuple[tuple[str, ...], str]:
    """(PTX modules, entry) of a dispatcher for ``args``, which are values or types; the entry is in the first
    module. Without ``args``: of the last compilation.
    """
    args = args or list(dispatcher.overloads)[-1]
    found = _dispatcher_for(dispatcher, target).compile_for(*args).metadata
    modules = (
        _modules(found["cubin"]) if found["cubin"].isascii() else (found["ptx"],)
    )  # on a GPU machine code
    return modules, found["func_name"]


def type_of(dtype: str, dimensions: int, kind: str):
    """The library's type for a "number" or a contiguous "array" (``kind``) of a dtype."""
    types = _part("cuda").types
    scalar = types.boolean if dtype == "bool" else getattr(types, dtype)
    return types.Array(scalar, dimensions, "C") if kind == "array" else scalar


def _for_target(launcher, target: Target):
    """The launcher itself if it compiles for ``target``, else one of the same kernel that does."""
    dispatcher = _dispatcher_for(launcher.dispatcher, target)
    if dispatcher is launcher.dispatcher:
        return launcher
    return dispatcher[launcher.griddim, launcher.blockdim, None, launcher.sharedmem]


def _dispatcher_for(dispatcher, target: Target):
    if target is vars(_driver_module().driver).get("target"):
        return dispatcher
    others = vars(dispatcher).setdefault("warplab_others", {})
    if target.arch not in others:
        options = {**dispatcher.targetoptions, "chip": target.arch}
        others[target.arch] = type(dispatcher)(dispatcher.py_func, targetoptions=options)
    return others[target.arch]


def _modules(code: bytes) -> tuple[str, ...]:
    return tuple(module.decode().rstrip("\0") for module in code.split(BETWEEN))


class EngineKernels:
    """Replaces the launcher's ``KernelDispatcher``: holds the programs of one ``@cuda.jit`` function."""

    def __init__(self, compile, constants, context, debug=False, literal_arg_flags=()):
        self.compile, self.debug = compile, debug
        self.function = compile.__self__.py_func
        self.names = list(inspect.signature(self.function).parameters)
        self.programs: dict[tuple[bytes, str], Program] = {}

    def program_for(self, leaves) -> Program:
        """The program for these flattened arguments, compiled at the first call."""
        try:
            code, entry, *_ = self.compile(leaves)
        except Exception as error:
            vars(error).update(warplab_place=("numba", 0), warplab_kernel=self.function)
            numba_hook.show(error, does_not_compile)
            raise
        if (code, entry) not in self.programs:
            self.programs[code, entry] = _program(code, entry, self.function.__name__)
        return self.programs[code, entry]


def _program(code: bytes, entry: str, name: str) -> Program:
    program = translated(_modules(code), entry, name, SPACE)
    for variable, region in program.globals.items():
        if variable.startswith("constant_array"):  # always has values, but PTX omits an initialiser of zeros
            region.unset = False
    return program


@dataclass
class EngineLauncher:
    """Replaces the launcher's ``LaunchConfiguration``: one configured kernel."""

    kernels: EngineKernels
    griddim: Any
    blockdim: Any
    stream: Any = None
    sharedmem: Any = None
    cluster: Any = None

    def __call__(self, *leaves) -> None:
        if self.cluster:
            raise InvalidLaunch("the engine does not run kernels of numba-cuda-mlir in thread block clusters")
        program = self.kernels.program_for(leaves)
        values, regions, after = [], [], []
        for name, leaf in zip(self._names(len(leaves)), leaves, strict=True):
            _leaf(name, leaf, program, values, regions, after)
        shared, watching = int(self.sharedmem or 0), _watching.get()
        context = watching[0] if watching else LaunchContext(_driver_module().driver.target)
        error = program.globals.get(ERROR) if self.kernels.debug else None
        if error is not None:
            error.data[:] = 0
        try:
            machine = run(program, values, regions, self.griddim, self.blockdim, shared, SPACE, context)
        except InvalidLaunch as refused:
            raise RefusedLaunch(refused) from None
        if watching:
            watching.append(machine)
        if error is not None and error.data.any():
            kind, text = ERRORS.get(
                int(error.data.view(np.int32)[0]), (RuntimeError, "Runtime error in kernel")
            )
            raise kind(text)
        for call in after:
            call()

    def _names(self, count: int) -> list[str]:
        """A name for each flattened argument: that of its parameter, with an index for parts of a tuple."""
        names = self.kernels.names
        if len(names) == count:
            return names
        passed = getattr(_part("descriptor")._compile_arg_types, "values", ())
        found = [one for name, value in zip(names, passed) for one in _leaf_names(name, value)]
        return found if len(found) == count else [f"argument {number}" for number in range(1, count + 1)]


def _leaf_names(name: str, value) -> list[str]:
    if not isinstance(value, tuple | list):
        return [name]
    return [one for number, part in enumerate(value) for one in _leaf_names(f"{name}[{number}]", part)]


def _leaf(name: str, value, program: Program, out: list[bytes], regions: list, after: list) -> None:
    """Append the parameters of one flattened argument, as the native launcher makes them."""
    if isinstance(value, np.void) or type(value).__name__ == "DeviceRecord":
        record(name, value, SPACE, out, regions, after)
    elif hasattr(value, "__cuda_array_interface__"):
        array, pointer, _ = on_device(name, value, SPACE)
        out += map(word, memref(pointer, array))
    else:
        out.append(_number(name, value, program.function.params[len(out)].size))


def _number(name: str, value, size: int) -> bytes:
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.view(np.int64)
    if isinstance(value, complex | np.complexfloating):
        return np.dtype(f"c{size}").type(value).tobytes()
    if isinstance(value, float | np.floating):
        return np.dtype(f"f{size}").type(value).tobytes()
    value = getattr(value, "value", value)
    if not isinstance(value, int | np.integer | np.bool_):
        raise InvalidLaunch(
            f"argument '{name}' is a {type(value).__name__}, which a kernel does not take",
            hint="pass arrays, numbers, records, enum members and tuples of them",
        )
    return integer(int(value), 8 * size)


@functools.cache
def _install(library, target: Target) -> None:
    descriptor: Any = _part("descriptor")
    module: Any = _driver_module()
    config = library.config
    config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_WARN_ON_IMPLICIT_COPY = 0

    class Driver(DriverCalls, type(module.driver)):
        api_error = module.CudaAPIError

    vars(module.driver).clear()
    module.driver.__class__ = Driver
    module.driver.__init__(target)
    module.ExperimentalDevice = lambda number=0: EngineDevice(target)
    descriptor._cext.KernelDispatcher, descriptor.LaunchConfiguration = EngineKernels, EngineLauncher
    _stay_with_ptx(_part("linker").Linker, _part("compiler").CodeLibrary)
    _name_what_is_compiled(descriptor)
    _prepare_launches(descriptor)
    numba_hook.share_with_torch(library, library.DeviceNDArray)


def _stay_with_ptx(linker, code_library) -> None:
    @replacing(linker, "complete")
    def complete(plain, self):
        self._materialize_pending_cu()
        kinds = {code.code_type for code in self._object_codes}
        if binary := kinds - {"ptx", "ltoir"}:
            raise InvalidLaunch(
                f"cannot link a {binary.pop()}: it holds machine code",
                hint="link CUDA C++ (.cu) or PTX, or run on a CUDA GPU",
            )
        modules = [self.get_linked_ptx()] if "ltoir" in kinds else [c.code for c in self._object_codes][::-1]
        return _Code(BETWEEN.join(bytes(one).rstrip(b"\0") for one in modules))

    @replacing(code_library, "get_cufunc")
    def get_cufunc(plain, self):
        program = _program(self._cubin, self._func_name, self._func_name)
        library = _part("cuda")
        return LoadedKernel(program, library.current_context(), _driver_module().driver.target.limits)

    @replacing(code_library, "get_kernel_attributes")
    def get_kernel_attributes(plain, self):
        found = self.get_cufunc().attributes
        return {
            "regs_per_thread": found.num_regs,
            "shared_mem_per_block": found.shared_size_bytes,
            "const_mem_size": found.const_size_bytes,
            "local_mem_per_thread": found.local_size_bytes,
            "max_threads_per_block": found.max_threads_per_block,
        }


@dataclass
class _Code:
    code: bytes


def _name_what_is_compiled(descriptor) -> None:
    @replacing(descriptor.MLIRDispatcher, "__init__")
    def init(plain, self, py_func, targetoptions=None):
        options = dict(targetoptions or {})
        if not options.get("debug"):
            options["lineinfo"] = True
        plain(self, py_func, options)


def _name_shared_arrays(lowering) -> None:
    @replacing(lowering, "cuda_static_shared_memory")
    def static_shared_memory(plain, lower, target, static_shape, dtype, alignas):
        lowering.shmem_id = number = _Symbol(lowering.shmem_id)
        kind = str(lower.get_numba_type(target.name).dtype)
        number.symbol = shared_symbol(str(int(number)), target.name.partition(".")[0], static_shape, kind)
        return plain(lower, target, static_shape, dtype, alignas)


class _Symbol(int):
    """The number from which the library makes a shared array's name; formatted, it includes the array's own
    name, shape and type.
    """

    symbol = ""

    def __format__(self, spec) -> str:
        return self.symbol


def _prepare_launches(descriptor) -> None:
    marshaller = descriptor._ArgMarshaller
    for name in ("griddim", "blockdim", "sharedmem"):
        setattr(marshaller, name, property(lambda self, name=name: getattr(self._launcher, name)))
    marshaller.dispatcher = property(lambda self: self._dispatcher)

    @replacing(marshaller, "__call__")
    def launch(plain, self, *args):
        as_array = _part("cuda").as_cuda_array
        try:
            return plain(self, *(as_array(a) if torch_hook.is_tensor(a) else a for a in args))
        except Exception:
            _check_count(self.dispatcher.py_func, args)
            raise
        finally:
            self._callbacks.clear()  # those of a failed launch would run after the next one

    @replacing(descriptor.MLIRDispatcher, "__getitem__")
    def configured(plain, self, configuration):
        if not isinstance(configuration, tuple) or len(configuration) < 2:  # else an empty AssertionError
            raise ValueError("must specify at least the griddim and blockdim")
        return plain(self, configuration)

    numba_hook.check_first(descriptor.MLIRDispatcher, marshaller, numba_hook.check_tensors)


def _check_count(function, args) -> None:
    try:
        inspect.signature(function).bind(*args)
    except TypeError as error:
        raise InvalidLaunch(f"the arguments do not fit: {error}", kernel=function.__name__) from None
