"""Triton without a GPU: a driver of our own, through Triton's extension point for drivers.

The only file that uses Triton (which is pinned). Kernels are written, compiled and launched as usual, by:
- ``TritonDriver``, given to ``triton.runtime.driver.set_active``: it names the target of Triton's own
  compiler, and launches on the engine.
- ``knobs.runtime.add_stages_inspection_hook``, Triton's hook into its compiler's stages: it replaces the last
  stage, which would assemble, by one that returns the PTX.
- ``kernel[grid]`` is a plain lambda in Triton; ``is_triton_launch`` recognises it by its qualified name.

On a machine with a GPU none of this is installed; only ``profile`` uses the driver, while it counts.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warplab.hardware.device import target_in
from warplab.hardware.target import Target
from warplab.simt.engine.address_space import Region
from warplab.simt.engine.machine import Machine
from warplab.simt.errors import InvalidLaunch
from warplab.simt.frontends.launch import LaunchContext, run, translated
from warplab.simt.frontends.space import SPACE
from warplab.simt.frontends.torch_hook import refuse_other_numbers, when_imported
from warplab.simt.toolchain.ptxas import assemble

NO_TIMES = (
    "the SIMT engine has no times: what this CPU takes says nothing about a GPU; count with "
    "warplab.profile(kernel[grid], ...) instead, or run on a CUDA GPU"
)

#: (grid, block) -> the context of a launch, while ``launch_on_engine`` runs.
ContextOf = Callable[[tuple[int, ...], tuple[int, ...]], LaunchContext]
_counting: ContextVar[ContextOf | None] = ContextVar("_counting", default=None)
_ran: ContextVar[list[Machine] | None] = ContextVar("_ran", default=None)

#: The benchmark by which ``triton.autotune`` compares candidates. ``warplab/__init__.py`` sets it to
#: ``timing.tuning.by_bound``, which is in a higher layer.
benchmark: Callable[..., list[float]] | None = None


@dataclass(frozen=True)
class NotedLaunches:
    """A mode in which launches are not run but passed to ``note(name, symbol, PTX, grid, block, shared bytes,
    arguments)``, compiled for ``capability``, such as 80.
    """

    capability: int
    note: Callable[..., None]


_recording: ContextVar[NotedLaunches | None] = ContextVar("_recording", default=None)


class NoTimes(RuntimeError):
    """A benchmark of Triton asked for times, which the engine does not have."""


def target() -> Target:
    """The target of Triton's compiler: WARPLAB_TRITON_ARCH or sm_80, for which the book counts. For sm_90
    Triton uses TMA and wgmma.
    """
    return target_in("WARPLAB_TRITON_ARCH", "sm_80")


def not_compiled_for(arch: str) -> str:
    """The message that Triton's kernels are not compiled for another architecture."""
    return (
        f"Triton's kernels are compiled for {target().arch} here, and not for {arch}: "
        f"set the environment variable WARPLAB_TRITON_ARCH={arch} to change that"
    )


def install_when_imported() -> None:
    """Make Triton run on the engine, now or when it is imported."""
    when_imported("triton", lambda triton: _install_for_good())


def install() -> None:
    """Make the engine Triton's active driver."""
    from triton import knobs
    from triton.runtime import driver

    driver.set_active(_driver())
    knobs.runtime.add_stages_inspection_hook = _ends_with_ptx  # pyright: ignore[reportAttributeAccessIssue] - asked with none too
    # Triton's cache on disk is keyed by a kernel's text, so its PTX would name the file that had the text
    # first, maybe a notebook cell that no longer exists. Compiling a kernel takes 30 to 110 ms.
    knobs.compilation.always_compile = True


def _install_for_good() -> None:
    """``install``, and add a CPU backend to Triton, which torch.compile asks for with
    ``torch._inductor.config.cpu_backend = "triton"``.
    """
    from triton.backends import Backend, backends

    class ForCPU:
        """Triton's compiler for NVIDIA's GPUs, which compiles for the engine, as a backend for the CPU."""

        @staticmethod
        def supports_target(target):
            return target.backend == "cpu"

        def __new__(cls, target):
            return backends["nvidia"].compiler(_driver().get_current_target())

    install()
    backends["cpu"] = Backend(ForCPU, type(_driver()))  # pyright: ignore[reportArgumentType] - asked for no more


def is_triton_launch(value) -> bool:
    """Whether a value is Triton's ``kernel[grid]``."""
    if "triton" not in sys.modules:
        return False
    from triton.runtime.jit import KernelInterface

    made_by = KernelInterface.__getitem__.__qualname__
    return getattr(value, "__qualname__", "").startswith(f"{made_by}.<locals>.")


def is_triton_kernel(value) -> bool:
    """Whether a value is a kernel by ``@triton.jit``, with or without ``[grid]``, autotuned or not."""
    if "triton" not in sys.modules:
        return False
    from triton.runtime.jit import KernelInterface

    return isinstance(value, KernelInterface) or is_triton_launch(value)


def ptx_of(kernel, args, constants: dict) -> tuple[str, str]:
    """(PTX, name of its entry) that Triton makes of a kernel for these arguments. Nothing runs.

    For an autotuned kernel, the first configuration is taken.
    """
    if is_triton_launch(kernel):
        kernel = inspect.getclosurevars(kernel).nonlocals["self"]
    with _active():
        compiled = kernel.warmup(*args, grid=(1,), **constants)
    if isinstance(compiled, list):
        compiled = compiled[0]
    return compiled.asm["ptx"], compiled.metadata.name


def launch_on_engine(launcher, args, options: dict, context_of: ContextOf) -> list[Machine]:
    """Call Triton's ``kernel[grid]``, or a function that does so, on the engine, even with a GPU or inside
    ``recorded``. Returns the machines that ran, in order; an empty grid gives none.

    ``context_of`` returns the context of a launch, for the grid and block that Triton has chosen.
    """
    ran: list[Machine] = []
    tokens = _counting.set(context_of), _ran.set(ran), _recording.set(None)
    try:
        with _active():
            launcher(*args, **options)
    finally:
        _counting.reset(tokens[0])
        _ran.reset(tokens[1])
        _recording.reset(tokens[2])
    return ran


def is_recording() -> bool:
    """Whether launches are passed to a ``note`` function instead of being run (``recorded``)."""
    return _recording.get() is not None


@contextmanager
def recorded(target: Target, note: Callable[..., None]) -> Iterator[None]:
    """Inside this context, launches of Triton's kernels are passed to ``note`` (see NotedLaunches), not run.

    They are compiled for ``target`` if it is older than the engine's Triton target, else for that, as later
    GPUs run its code. ``note`` gets the arguments as they were passed, and 0 for parameters that Triton adds.
    """
    if "triton" not in sys.modules:
        yield
        return
    major, minor = target.capability
    token = _recording.set(NotedLaunches(min(10 * major + minor, _capability()), note))
    try:
        with _active():
            yield
    finally:
        _recording.reset(token)


@contextmanager
def _active() -> Iterator[None]:
    """Inside this context, the engine is Triton's driver; afterwards the previous driver is restored."""
    from triton import knobs
    from triton.runtime import driver

    if driver.active is _driver():
        yield
        return
    before = driver.active
    with knobs.runtime.scope(), knobs.compilation.scope():
        install()
        try:
            yield
        finally:
            driver.set_active(before)


def _ends_with_ptx(backend=None, stages=None, options=None, language=None, capability=None):
    """Triton's hook into its stages. Called without arguments, it returns its part of Triton's cache key."""
    if stages is None:
        key = "warplab: PTX is the last stage"
        return key, hashlib.sha256(key.encode()).hexdigest()
    if "cubin" in stages and capability == _compiled_for():  # not for an explicit other target
        stages["cubin"] = lambda ptx, metadata: ptx.encode()
    return None


def _capability() -> int:
    """The target's compute capability as a number: 80 for sm_80."""
    major, minor = target().capability
    return 10 * major + minor


def _compiled_for() -> int:
    """The capability that Triton compiles for at present."""
    recording = _recording.get()
    return recording.capability if recording else _capability()


@functools.cache
def _driver():
    """The only TritonDriver of the process. Its class is defined here because Triton is imported late."""
    from triton.backends import DriverBase, backends
    from triton.backends.compiler import GPUTarget

    class TritonDriver(DriverBase):
        """Triton's driver interface for the engine."""

        utils, launcher_cls = _Utilities(), _Launcher

        @classmethod
        def is_active(cls):
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return backends["nvidia"].driver.map_python_to_cpp_type(self, ty)

        def get_current_target(self):
            return GPUTarget("cuda", _compiled_for(), 32)

        def get_active_torch_device(self):
            import torch

            return torch.device("cpu")

        def get_current_device(self):
            """A number that no GPU has; Triton caches compiled kernels by it."""
            return -_compiled_for() - (0 if _recording.get() else 1000)

        def set_current_device(self, device): ...
        def get_current_stream(self, device=None):
            return 0

        def get_device_capability(self, device=None):
            return target().capability

        def get_benchmarker(self):
            return benchmark

        def get_device_interface(self):  # do_bench calls this first
            raise NoTimes(f"triton.testing.do_bench: {NO_TIMES}")

        def get_empty_cache_for_benchmark(self):
            raise NoTimes(NO_TIMES)

    return TritonDriver()


class _Utilities:
    """Triton's ``driver.active.utils``: loads kernels and gives properties of the device."""

    def get_device_properties(self, device=None) -> dict[str, int]:
        """Limits of the architecture; as in ``engine_driver``, there is one multiprocessor."""
        limit = target().limits
        return {
            "max_shared_mem": limit.max_shared_per_block,
            "max_num_regs": limit.registers_per_sm,
            "multiprocessor_count": 1,
            "warpSize": 32,
        }

    def load_binary(self, name: str, kernel: bytes, shared: int, device):
        """(module, function, registers, spilled bytes, most threads): a loaded kernel in Triton's terms.

        Module and function are the Program, or the PTX if launches are recorded.
        """
        if _recording.get():
            ptx = kernel.decode()
            return ptx, ptx, 0, 0, target().limits.max_threads_per_block
        program = translated((kernel.decode(),), name, name, SPACE)
        report = assemble(program.ptx, name)
        threads = program.max_threads or target().limits.max_threads_per_block
        return program, program, report.registers, report.spill_bytes, threads


class _Launcher:
    """Triton's launcher: made once for each compiled kernel, called for each launch."""

    def __init__(self, src, metadata):
        self.name, self.metadata = src.fn.__name__ if hasattr(src, "fn") else src.name, metadata
        self.names, self.signature = list(src.signature), list(src.signature.values())

    def __call__(self, x, y, z, stream, program, packed, launch_metadata, enter_hook, exit_hook, *args):
        from triton.runtime._allocation import _allocator

        if min(x, y, z) <= 0:  # as Triton's own launcher does
            return
        blocks, m = x * y * z, self.metadata
        has_descriptor = any(str(ty).startswith("tensordesc") for ty in self.signature)
        if has_descriptor and _compiled_for() >= 90:
            raise InvalidLaunch(
                "Triton passes a tensor descriptor as a tensor map from sm_90 on, which is not made here",
                kernel=self.name,
                hint="the environment variable WARPLAB_TRITON_ARCH=sm_80, or pointers",
            )
        recording, passed = _recording.get(), zip(map(str, self.names), self.signature, args, strict=True)
        flat = [one for name, ty, value in passed for one in _flat(name, ty, value)]
        if recording:
            if m.global_scratch_size or has_descriptor:
                raise InvalidLaunch(
                    "tensor descriptors and Triton's scratch memory are not supported here",
                    kernel=self.name,
                    hint="pointers: tl.load(x + offsets, mask=...)",
                )
            arguments = [0 if value is None else value for _, _, value in flat] + [0, 0]
            if _ran.get() is None:  # else autotuning tries a candidate, which is not a launch of the program
                recording.note(self.name, m.name, program, (x, y, z), 32 * m.num_warps, m.shared, arguments)
            return
        parameters = _Parameters(program.name)
        for one in flat:
            parameters.add(*one)
        for size, align in (
            (m.global_scratch_size, m.global_scratch_align),
            (m.profile_scratch_size, m.profile_scratch_align),
        ):
            parameters.add("scratch", "*i8", _allocator.get()(blocks * size, align, stream) if size else None)
        grid, block = (x, y, z), (32 * m.num_warps, 1, 1)
        context_of, ran = _counting.get(), _ran.get()
        context = context_of(grid, block) if context_of else LaunchContext(target())
        context = replace(context, replicas=True)
        if context.sample is not None:
            parameters.on_copies()
        if enter_hook is not None:
            enter_hook(launch_metadata)
        machine = run(program, parameters.values, parameters.regions, grid, block, m.shared, SPACE, context)
        if ran is not None:
            ran.append(machine)
        if exit_hook is not None:
            exit_hook(launch_metadata)


class _Parameters:
    """The parameters of one launch: their ``values`` as bytes, and the ``regions`` mapped for tensors.

    As on a GPU, a kernel can access a tensor's whole storage, so views of one storage share a region.
    """

    def __init__(self, kernel: str):
        self.kernel, self.values = kernel, []
        self.storages: dict[int, Region] = {}

    @property
    def regions(self) -> list[Region]:
        return list(self.storages.values())

    def on_copies(self) -> None:
        """Replace the tensors' memory by copies, which the launch may write to."""
        for region in self.regions:
            region.data = region.data.copy()
            region.views.clear()

    def add(self, name: str, ty, value) -> None:
        """Append a parameter; ``ty`` is Triton's type, such as "i32" or "*fp32"."""
        if ty.startswith("*"):
            self.values.append(np.uint64(self._address(name, value)).tobytes())
        else:
            self.values.append(scalar(ty, value))

    def _address(self, name: str, value) -> int:
        """The engine's address of a tensor's first element; 0 for None; an address as it is."""
        if value is None or isinstance(value, int):
            return value or 0
        if not hasattr(
            value, "untyped_storage"
        ):  # a Handle of crossing.driver: zeros stand in for its values
            if id(value) not in self.storages:
                data = np.zeros(value.size * value.dtype.itemsize, np.uint8)
                self.storages[id(value)] = SPACE.add(data, f"argument '{name}'", value.dtype.itemsize)
            return self.storages[id(value)].base
        at = value.data_ptr()
        while hasattr(value, "base"):  # triton.reinterpret's wrapper: another dtype on a tensor
            value = value.base
        refuse_other_numbers(value, name)
        if value.device.type != "cpu":
            raise InvalidLaunch(
                f"argument '{name}' is a tensor on {value.device}, and the engine runs on the CPU",
                kernel=self.kernel,
                hint="tensor.cpu(), or make tensors with device=warplab.torch_device",
            )
        storage = value.untyped_storage()
        start = storage.data_ptr()
        if start not in self.storages:
            self.storages[start] = _map(name, value)
        if at % 16 == 0 and (at - start) % 16:
            raise InvalidLaunch(
                f"argument '{name}' is aligned to 16 bytes, but its storage is not; Triton compiles for that "
                "alignment, which the engine's addresses do not keep",
                kernel=self.kernel,
                hint="tensor.clone(), whose memory torch aligns",
            )
        return self.storages[start].base + at - start


def _flat(name: str, ty, value) -> list[tuple[str, str, Any]]:
    """(name, type, value) of each parameter of an argument: several for a tuple, none for a constant."""
    if ty == "constexpr":
        return []
    if isinstance(ty, tuple):
        parts = enumerate(zip(value, ty, strict=True))
        return [one for number, (part, of) in parts for one in _flat(f"{name}[{number}]", of, part)]
    if ty.startswith("tensordesc"):
        return [(name, of, part) for of, part in _of_descriptor(value)]
    return [(name, ty, value)]


def _of_descriptor(descriptor) -> list[tuple[str, Any]]:
    """(type, value) of each parameter of a tensor descriptor in code without TMA.

    Shape and strides are there twice, as Triton's compiler and its launcher both add them.
    """
    shape, strides = descriptor.shape, descriptor.strides
    return [
        ("*i8", descriptor.base),
        *(("i64", size) for size in (*shape, *strides)),
        *(("i1", flag) for flag in (descriptor.padding == "nan", descriptor.round_f32_to_tf32)),
        *(("i32", size) for size in shape),
        *(("i64", size) for size in strides),
    ]


def _map(name: str, tensor) -> Region:
    """Map the memory of a tensor's storage."""
    import torch

    storage = tensor.untyped_storage()
    data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy()
    dtype, shape = str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
    label = f"argument '{name}' ({dtype}[{', '.join(map(str, shape))}])"
    region = SPACE.add(data, label, tensor.element_size())
    if tensor.is_contiguous() and tensor.nbytes == storage.nbytes():
        region.shape = shape
    return region


def scalar(ty: str, value) -> bytes:
    """The bytes of a number in Triton's type ``ty``; integers wrap, floats are rounded to the type."""
    if ty[0] in "iu":
        size = max(1, int(ty[1:]) // 8)
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return np.asarray(float(value)).astype(_float(ty)).tobytes()


def _float(ty: str) -> np.dtype:
    if ty == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"fp16": "f2", "fp32": "f4", "f32": "f4", "fp64": "f8"}[ty])
