"""torch on the engine: CPU tensors as arguments of kernels, without a copy, and better errors of torch.

On the engine a CPU tensor is what a CUDA tensor is on a GPU. So it may be a view with any strides, while a
host array must be contiguous. NumPy has no bfloat16 and no 8-bit floats; ml_dtypes has them, bit for bit.

This is the only file that replaces parts of torch, when torch is imported:
- ``torch.cuda._lazy_init``, which everything that needs CUDA calls first: its error also says what to write.
- other functions that only CUDA has (``ONLY_CUDA``: streams, events, pinned memory ...): their errors say
  that the line is to be left out.
- launches of kernels inside torch.compile, which are excluded from compilation (``torch._dynamo.disable``).
- ``torch.as_tensor``, which makes a CPU tensor of a device array of the engine, on the same memory, as with a
  GPU it makes a CUDA tensor.
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
LAUNCHES: list[tuple[type, str]] = []  # (class, method) of methods that launch or configure a kernel
LEAVE_OUT = (
    "this computer has no CUDA\nwarplab: on the SIMT engine a launch has ended when the next line runs, and "
    "its memory is this computer's. Leave the line out, or put it under `if torch.cuda.is_available():`."
)
ONLY_CUDA = (  # functions that need CUDA, whose own errors are mostly about torch's internals
    "cuda.synchronize cuda.set_device cuda.current_stream cuda.default_stream cuda.Event.__new__ "
    "cuda.Stream.__new__ cuda.CUDAGraph.__new__ cuda.device.__enter__ cuda.memory_summary "
    "cuda.reset_peak_memory_stats cuda.mem_get_info cuda.nvtx.range_push cuda.nvtx.range_pop "
    "Tensor.pin_memory"
)


#: types of torch that NumPy does not have; ml_dtypes has them, under the same names
OF_ML_DTYPES = (
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
_ALIGNED = 256  # bytes: the alignment of CUDA's allocations, and so of a tensor's storage


def is_tensor(value) -> bool:
    """Whether a value is a torch tensor, without importing torch."""
    return isinstance(value, getattr(sys.modules.get("torch"), "Tensor", ()))


def array_of(tensor, name: str) -> np.ndarray:
    """A NumPy array on a CPU tensor's memory, with the tensor's strides.

    Raises InvalidLaunch for a tensor that kernels do not take (``refuse``), or whose type is in neither NumPy
    nor ml_dtypes.
    """
    refuse(tensor, name)
    name_of_type = str(tensor.dtype).removeprefix("torch.")
    try:
        if name_of_type not in OF_ML_DTYPES:
            return tensor.numpy()
        import ml_dtypes  # imported late: a machine that only measures may not have it

        torch, own = sys.modules["torch"], np.dtype(getattr(ml_dtypes, name_of_type))
        bits = torch.uint8 if own.itemsize == 1 else torch.int16
        return tensor.view(bits).numpy().view(own)
    except (TypeError, RuntimeError) as error:
        raise InvalidLaunch(f"argument '{name}': torch gives no array of this tensor: {error}") from None


def refuse(tensor, name: str, kind: str = "cpu") -> None:
    """Raise InvalidLaunch for a tensor that kernels do not take: it requires a gradient (which numba refuses
    too), is on another kind of device than ``kind``, or its memory does not hold its values.
    """
    refuse_other_numbers(tensor, name)
    if tensor.requires_grad:
        raise InvalidLaunch(
            f"argument '{name}' is a tensor that requires a gradient, and autograd does not record kernels",
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
    """Raise InvalidLaunch for a tensor whose memory does not hold its values: conjugated, negated, sparse or
    quantized.
    """
    if tensor.layout is not sys.modules["torch"].strided or tensor.is_quantized:
        parts = "int_repr()" if tensor.is_quantized else "values(), and indices() or crow_indices() beside it"
        what = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
        raise InvalidLaunch(
            f"argument '{name}' is a tensor that is {what}, and a kernel takes only dense numbers in memory",
            hint=f"its parts as arguments: tensor.{parts}",
        )
    if tensor.is_conj() or tensor.is_neg():
        call = "resolve_conj()" if tensor.is_conj() else "resolve_neg()"
        does = "conjugates" if tensor.is_conj() else "negates"
        raise InvalidLaunch(
            f"argument '{name}' is a view that torch {does} when it reads it: its memory has other numbers",
            hint=f"tensor.{call}, a copy with the right numbers",
        )


def memory_of(tensor) -> tuple[np.ndarray, int]:
    """(bytes of a CPU tensor's storage, not copied, the offset of the tensor in them).

    The bytes begin at a multiple of 256 bytes of the storage and end with the tensor, so that a view has the
    same alignment as on a GPU.
    """
    torch = sys.modules["torch"]
    storage = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).numpy()
    first = tensor.storage_offset() * tensor.itemsize
    steps = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    end = first + (steps + 1) * tensor.itemsize if tensor.numel() else first
    start = first % _ALIGNED
    return storage[first - start : end], start


def tensor_of(array: np.ndarray):
    """A CPU tensor on an array's memory."""
    import torch

    if array.dtype.name not in OF_ML_DTYPES:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(np.uint8 if array.itemsize == 1 else np.int16))
    return bits.view(getattr(torch, array.dtype.name))


def install(on_host) -> None:
    """Prepare torch, now or when it is imported. ``on_host(value)`` returns a device array's memory as a
    NumPy array, and None for anything else.
    """
    when_imported("torch", lambda torch: _prepare(torch, on_host))
    when_imported("torch._dynamo", _leave_out)


def _leave_out(dynamo) -> None:
    """Exclude launches from torch.compile, which would trace the engine's NumPy code."""
    for owner, name in LAUNCHES:
        setattr(owner, name, dynamo.disable(getattr(owner, name), reason="a kernel is launched"))


def when_imported(name: str, prepare: Callable[[Any], None]) -> None:
    """Call ``prepare(module)`` for the module ``name``: now, or when it is imported."""
    if name in sys.modules:
        prepare(sys.modules[name])
    else:
        sys.meta_path.insert(0, _WhenImported(name, prepare))


class _WhenImported(MetaPathFinder):
    """An import hook that finds a module as usual, and prepares it when it has been imported."""

    def __init__(self, name, prepare):
        self.name, self.prepare = name, prepare

    def find_spec(self, fullname, path=None, target=None):
        """The usual spec of the awaited module, whose loader also prepares it; None for other modules."""
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

    with torch.device("cpu"):  # makes torch build its list of functions that make tensors, with the original
        torch.empty(0)
    torch.cuda._lazy_init, torch.as_tensor = lazy_init, of_device_arrays_too
    for path in ONLY_CUDA.split():
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, torch)
        setattr(owner, name, _told(getattr(owner, name), torch, "torch." + path.removesuffix(".__new__")))


def _told(function, torch, name):
    """The function, whose errors say what to do if there is no GPU."""

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
