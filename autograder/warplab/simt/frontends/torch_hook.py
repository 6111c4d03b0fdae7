"""torch at the engine's door: CPU tensors as arrays without a copy, and torch told of the engine.

A CPU tensor stands for one on the GPU. So it may be a view with any strides, as on CUDA, while a host array
must be contiguous there. NumPy has no bfloat16 and no 8-bit floats; ml_dtypes has them, bit for bit.

The only file that replaces anything of torch's, as soon as torch has been imported:
- ``torch.cuda._lazy_init``, which everything that wants CUDA calls first: its error also says what to write.
- what else only CUDA has (``ONLY_CUDA``): streams, events, pinned memory ... say that the line is to be left
  out.
- what torch.compile does with a launch: nothing (``torch._dynamo.disable``).
- ``torch.as_tensor`` makes a CPU tensor of a device array of the engine, on the same memory. On CUDA it makes
  a CUDA tensor of a device array.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from typing import Any

import numpy as np

from warplab.simt.errors import InvalidLaunch

INSTEAD = (
    "warplab: this computer has no CUDA. Write device=warplab.torch_device, which is 'cuda' where there is a "
    "GPU and 'cpu' here, where kernels run on the SIMT engine."
)
LAUNCHES: list[tuple[type, str]] = []  # methods that launch a kernel or make ready for it
LEAVE_OUT = (
    "this computer has no CUDA\nwarplab: on the SIMT engine a launch has ended when the next line runs, and "
    "its memory is this computer's. Leave the line out, or put it behind `if torch.cuda.is_available():`."
)
ONLY_CUDA = (  # where torch asks for CUDA, mostly in words of its own insides
    "cuda.synchronize cuda.set_device cuda.current_stream cuda.default_stream cuda.Event.__new__ "
    "cuda.Stream.__new__ cuda.CUDAGraph.__new__ cuda.device.__enter__ cuda.memory_summary "
    "cuda.reset_peak_memory_stats cuda.mem_get_info cuda.nvtx.range_push cuda.nvtx.range_pop "
    "Tensor.pin_memory"
)


#: torch's names of the types that NumPy has not; ml_dtypes has them under the same.
OF_ML_DTYPES = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
_ALIGNED = 256  # bytes; where CUDA's allocations begin, and so a tensor's storage


def is_tensor(value) -> bool:
    """True of a torch tensor; torch is not imported for the answer."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def array_of(tensor, name: str) -> np.ndarray:
    """The NumPy array of a CPU tensor's own memory, with its strides in bytes.

    Raises InvalidLaunch for a tensor that no kernel takes (``refuse``), or of a type that is in neither NumPy
    nor ml_dtypes.
    """
    refuse(tensor, name)
    name_of_type = str(tensor.dtype).removeprefix("torch.")
    try:
        if name_of_type not in OF_ML_DTYPES:
            return tensor.numpy()
        import ml_dtypes  # here: a machine that only measures may not have it

        torch, own = sys.modules["torch"], np.dtype(getattr(ml_dtypes, name_of_type))
        bits = torch.uint8 if own.itemsize == 1 else torch.int16
        return tensor.view(bits).numpy().view(own)
    except (TypeError, RuntimeError) as error:
        raise InvalidLaunch(f"argument '{name}': torch gives no array of this tensor: {error}") from None


def refuse(tensor, name: str, kind: str = "cpu") -> None:
    """Raises InvalidLaunch for a tensor that requires a gradient (as numba does), lies on another device,
    or is a view whose memory does not hold its numbers.

    kind: the device whose tensors the kernel takes; the SIMT engine takes the CPU's.
    """
    refuse_other_numbers(tensor, name)
    if tensor.requires_grad:
        raise InvalidLaunch(
            f"argument '{name}' is a tensor that requires a gradient, and autograd does not see what a "
            "kernel does",
            hint="pass tensor.detach(), inside a torch.autograd.Function or torch.library.custom_op with a "
            "backward of its own",
        )
    if tensor.device.type != kind:
        reads = (
            "the SIMT engine reads this computer's memory" if kind == "cpu" else "the kernel runs on the GPU"
        )
        raise InvalidLaunch(
            f"argument '{name}' is a tensor on {tensor.device}, and {reads}",
            hint=f"tensor.to('{kind}'), or make it with device=warplab.torch_device",
        )


def refuse_other_numbers(tensor, name: str) -> None:
    """Raises InvalidLaunch for a tensor whose memory does not hold its numbers: conjugated, negated, sparse
    or expanded ones.
    """
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_quantized:
        parts = "int_repr()" if tensor.is_quantized else "values(), and indices() or crow_indices() beside it"
        what = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
        raise InvalidLaunch(
            f"argument '{name}' is a tensor that is {what}, and a kernel takes plain numbers in memory",
            hint=f"its parts as arguments: tensor.{parts}",
        )
    if tensor.is_conj() or tensor.is_neg():
        call = "resolve_conj()" if tensor.is_conj() else "resolve_neg()"
        does = "conjugates" if tensor.is_conj() else "negates"
        raise InvalidLaunch(
            f"argument '{name}' is a view that torch {does} when it reads it: its memory has other numbers",
            hint=f"tensor.{call}, a copy with the numbers",
        )


def memory_of(tensor) -> tuple[np.ndarray, int]:
    """The bytes of a CPU tensor's storage that hold it, shared, and at which of them it begins.

    They begin at a multiple of 256 bytes of the storage, as CUDA's allocations do, so that a view is aligned
    here as it is there; they end with the view.
    """
    torch = sys.modules["torch"]
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    first = tensor.storage_offset() * tensor.itemsize
    steps = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    end = first + (steps + 1) * tensor.itemsize if tensor.numel() else first
    start = first % _ALIGNED
    return storage[first - start : end], start


def tensor_of(array: np.ndarray):
    """The CPU tensor of an array's own memory."""
    import torch

    if array.dtype.name not in OF_ML_DTYPES:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(np.uint8 if array.itemsize == 1 else np.int16))
    return bits.view(getattr(torch, array.dtype.name))


def install(on_host) -> None:
    """Prepare torch, now or when it is imported. on_host(value): a device array's memory as a NumPy array.

    It gives None of anything else.
    """
    when_imported("torch", lambda torch: _prepare(torch, on_host))
    when_imported("torch._dynamo", _leave_out)


def _leave_out(dynamo) -> None:
    """torch.compile goes around a launch: it would take the engine's own NumPy for the reader's."""
    for owner, name in LAUNCHES:
        setattr(owner, name, dynamo.disable(getattr(owner, name), reason="a kernel is launched"))


def when_imported(name: str, prepare: Callable[[Any], None]) -> None:
    """Call prepare(module) of the module of that name: now, or when it is imported."""
    if name in sys.modules:
        prepare(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenImported(name, prepare))


class _WhenImported(MetaPathFinder):
    """Lets a module be found as ever, and prepares it once it has been imported."""

    def __init__(self, name, prepare):
        self.name, self.prepare = name, prepare

    def find_spec(self, fullname, path=None, target=None):
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self.name else None
        if spec is not None and spec.loader is not None:
            plain = spec.loader.exec_module

            def exec_module(module):
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                plain(module)
                self.prepare(module)

            spec.loader.exec_module = exec_module
        return spec


def _prepare(torch, on_host) -> None:
    start, as_tensor = torch.cuda._lazy_init, torch.as_tensor
    if hasattr(start, "__wrapped__"):
        return

    @functools.wraps(start)
    def lazy_init():
        try:
            return start()
        except (AssertionError, RuntimeError) as error:
            error.args = (f"{error}\n{INSTEAD}",)
            raise

    @functools.wraps(as_tensor)
    def of_device_arrays_too(data, *args, **kwargs):
        array = on_host(data)
        return as_tensor(data if array is None else tensor_of(array), *args, **kwargs)

    with torch.device("cpu"):  # torch makes its list of what makes tensors, which is to hold the original
        torch.empty(0)
    torch.cuda._lazy_init, torch.as_tensor = lazy_init, of_device_arrays_too
    for path in ONLY_CUDA.split():
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, torch)
        setattr(owner, name, _told(getattr(owner, name), torch, "torch." + path.removesuffix(".__new__")))


def _told(function, torch, name):
    """The function, whose error says what to do where there is no CUDA."""

    @functools.wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (AssertionError, RuntimeError, AttributeError, KeyError) as error:
            if torch.cuda.is_available():
                raise
            kind = AssertionError if isinstance(error, AssertionError) else RuntimeError
            raise kind(f"{name.removesuffix('.__enter__')}: {LEAVE_OUT}") from None

    return told
