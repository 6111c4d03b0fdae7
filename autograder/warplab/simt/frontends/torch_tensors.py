"""torch tensors as arrays of the engine, without a copy: a CPU tensor stands for one on the GPU.

So it may be a view with any strides, as on CUDA, while a host array must be contiguous there. NumPy has no
bfloat16 and no 8-bit floats; ml_dtypes has them, bit for bit.
"""

from __future__ import annotations

import sys

import numpy as np

from warplab.simt.errors import InvalidLaunch

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
