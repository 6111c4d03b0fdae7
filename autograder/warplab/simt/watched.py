"""One launch on the engine under observers, whichever language the kernel is written in."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numba import cuda

from warplab.hardware.device import device, engine_target
from warplab.hardware.target import Target
from warplab.simt.frontends import mlir_hook, triton_hook
from warplab.simt.frontends.cuda_cpp import ConfiguredKernel
from warplab.simt.frontends.launch import LaunchContext
from warplab.simt.frontends.numba_hook import compiled_for, is_configured, launch_on_engine
from warplab.simt.frontends.tensor_map import TensorMap
from warplab.simt.frontends.torch_hook import is_tensor

MAX_THREADS = 1 << 26  # 67 million threads: minutes on one core


class ProfileError(TypeError):
    """profile() was given something other than a configured kernel, or a launch that is too large."""


def watched(
    launcher, args, constants: dict, arch: str | None, observers: tuple, sample_blocks: int | None = None
):
    """(machine, target) of ``launcher(*args)``, run once on the engine under ``observers``.

    Arguments and errors are those of ``profile``.
    """
    if not is_launcher(launcher):
        raise ProfileError(
            "profile(), report() and step() take a configured kernel, such as kernel[grid, block], "
            f"and got {type(launcher).__name__}"
        )
    if sample_blocks is not None and sample_blocks < 1:
        raise ProfileError(
            f"sample_blocks={sample_blocks} runs no block; give the number of blocks to run, such as 64"
        )
    with on_host((*args, *constants.values())) as there:
        args, values = there[: len(args)], there[len(args) :]
        constants = dict(zip(constants, values, strict=True))
        return _watched(launcher, args, constants, arch, observers, sample_blocks)


def _watched(launcher, args, constants, arch, observers, sample_blocks):
    if triton_hook.is_triton_launch(launcher):
        return _watched_triton(launcher, args, constants, arch, observers, sample_blocks)
    if constants:
        raise ProfileError(
            f"{next(iter(constants))}=...: numba and CUDA C++ take a kernel's arguments by place, not by name"
        )
    if mlir_hook.is_configured(launcher) and not hasattr(launcher, "griddim"):
        raise ProfileError(
            "kernels of numba-cuda-mlir are counted where the engine runs them: WARPLAB_DEVICE=simt"
        )
    target = Target.of(arch) if arch else engine_target()
    sample = _sample(math.prod(launcher.griddim), math.prod(launcher.blockdim), sample_blocks)
    context = LaunchContext(target, observers, sample)
    if sample:
        args = tuple(_copied(a) for a in args)
    if isinstance(launcher, ConfiguredKernel):
        return launcher.run_on_engine(args, context), target
    if mlir_hook.is_configured(launcher):
        return mlir_hook.launch_on_engine(launcher, args, context), target
    return _run_numba(launcher, args, context), target


def _sample(blocks: int, threads: int, sample_blocks: int | None) -> int | None:
    """How many of the ``blocks`` run, None for all. Raises ProfileError above MAX_THREADS threads."""
    sample = sample_blocks if sample_blocks is not None and sample_blocks < blocks else None
    running = (sample or blocks) * threads
    if running > MAX_THREADS:
        raise ProfileError(
            f"{running:,} threads are too many to count here; the cap is {MAX_THREADS:,}: "
            "profile a smaller problem of the same shape, "
            f"or, by profile() alone, a sample: sample_blocks={min(1024, MAX_THREADS // threads)}"
        )
    return sample


def _watched_triton(launcher, args, constants, arch, observers, sample_blocks):
    """``watched`` for Triton's kernel[grid]: Triton chooses the grid and the block while it launches."""
    target = triton_hook.target()
    if arch not in (None, target.arch):
        raise ProfileError(triton_hook.not_compiled_for(arch))

    def context_of(grid, block) -> LaunchContext:
        sample = _sample(math.prod(grid), math.prod(block), sample_blocks)
        return LaunchContext(target, observers, sample)

    ran = triton_hook.launch_on_engine(launcher, args, constants, context_of)
    if not ran:
        raise ProfileError("the grid is empty: nothing ran, so there is nothing to count")
    return ran[-1], target


def is_launcher(value) -> bool:
    """True for ``kernel[grid, block]`` of numba and ``cuda_kernel``, and for Triton's ``kernel[grid]``."""
    ours = is_configured(value) or mlir_hook.is_configured(value) or isinstance(value, ConfiguredKernel)
    return ours or triton_hook.is_triton_launch(value)


def _run_numba(launcher, args, context: LaunchContext):
    """Compile for these arguments and run on the engine, even where there is a GPU."""
    args = tuple(np.asarray(a) if isinstance(a, np.ndarray) else a for a in args)
    kernel = compiled_for(launcher.dispatcher, args)
    return launch_on_engine(kernel, args, launcher.griddim, launcher.blockdim, launcher.sharedmem, context)


@contextlib.contextmanager
def on_host(args: tuple) -> Iterator[tuple]:
    """``args`` with arrays and tensors on a GPU replaced by copies on the host, which the engine can reach.

    After a launch without an error, copies that the kernel changed are written back. The others are not: two
    arguments may share memory, and an unchanged copy would overwrite what the kernel wrote through the other.
    """
    copies: dict[int, tuple] = {}  # by the argument's id: the argument, its copy, the copy before the launch

    def here(value) -> Any:
        if type(value) is tuple:
            return tuple(map(here, value))
        if isinstance(value, TensorMap):
            return replace(value, array=here(value.array))
        if id(value) in copies:
            return copies[id(value)][1]
        if is_tensor(value) and value.device.type == "cuda":
            copy = value.cpu()
            copies[id(value)] = value, copy, copy.clone()
        elif hasattr(value, "copy_to_host"):
            copy = value.copy_to_host()
            copies[id(value)] = value, copy, copy.copy()
        else:
            return value
        return copy

    yield here(args) if device().kind == "cuda" else args
    for value, copy, before in copies.values():
        if is_tensor(value):
            if not copy.equal(before):
                value.copy_(copy)
        elif copy.tobytes() != before.tobytes():
            value.copy_to_device(copy)


def _copied(value):
    """A copy of a kernel's argument for a sampled launch to write to; numbers as they are."""
    if isinstance(value, TensorMap):
        return replace(value, array=_copied(value.array))
    if isinstance(value, tuple):
        return tuple(_copied(v) for v in value)
    if hasattr(value, "copy_to_host"):
        copy = mlir_hook.library_of(value, cuda).device_array_like(value)
        copy.copy_to_device(value)
        return copy
    if is_tensor(value):
        return value.clone()
    return value.copy(order="K") if isinstance(value, np.ndarray) else value
