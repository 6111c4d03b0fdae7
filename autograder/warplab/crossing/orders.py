"""Orders for the executor, as plain data: compiled kernels, buffers, and the steps that use them.

Data from a student's process is validated against the annotations of these classes; `check_steps` checks that
steps name existing kernels and buffers.
"""

import math
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from warplab.crossing.endless import MOST_S
from warplab.crossing.explain import Refused
from warplab.crossing.plan import checked_plan

MAX_PTX_BYTES = 4 << 20
MAX_MODULES = 8
MAX_KERNELS = 32  # enough for a transformer's training step with one kernel for each operation
MAX_STEPS = 4_000  # enough for 100 training steps of 40 launches
MAX_ARGUMENTS = 64
MAX_BUFFERS = 256
MAX_BUFFER_BYTES = 1 << 30
DTYPES = tuple(np.dtype(kind).name for kind in "?bhilBHILefd")
Dtype = Annotated[str, Meta(pattern=rf"\A({'|'.join(DTYPES)})\Z")]


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel.

    modules: PTX texts, the first with the entry point `entry`. name: the student's name for it.
    abi: how arguments become parameters (warplab.simt.abi): "numba", "mlir" or "c"; "triton" is C's ABI for a
    kernel in which several threads may hold the same element (warplab.simt.sanitizer.races).
    """

    name: Annotated[str, Meta(max_length=80)]
    entry: Annotated[str, Meta(max_length=4096)]
    modules: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MAX_MODULES)]
    abi: Annotated[str, Meta(pattern=r"\A(numba|mlir|c|triton)\Z")]

    def checked(self):
        """The same kernel. Raises Refused if its PTX is longer than MAX_PTX_BYTES."""
        size = sum(map(len, self.modules))
        if size > MAX_PTX_BYTES:
            raise Refused(
                f"the kernel `{self.name}` is {size:,} characters of PTX; "
                f"the limit is {MAX_PTX_BYTES:,}: unroll less"
            )
        return self


class Empty(Struct, frozen=True, forbid_unknown_fields=True):
    """A buffer without contents; the executor fills it with poison (values.poisoned).

    Raises Refused for a shape or dtype that no device array can have.
    """

    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self):
        if len(self.shape) > 8 or min(self.shape, default=0) < 0:
            raise Refused(f"a shape has up to 8 whole numbers from 0 on, got {str(list(self.shape))[:80]}")
        if self.dtype not in DTYPES:
            known = ", ".join(DTYPES)
            raise Refused(f"device arrays of {self.dtype[:40]} cannot be allocated; the dtypes are {known}")

    @property
    def nbytes(self):
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


class MapOf(Struct, frozen=True, forbid_unknown_fields=True):
    """A kernel argument: the tensor map of buffer `array`, for TMA copies of boxes (warplab.tensor_map)."""

    array: str
    box: tuple[int, ...]
    swizzle: int = 0


class LaunchStep(Struct, frozen=True, array_like=True, tag="launch", forbid_unknown_fields=True):
    """kernels[kernel][grid, block, shared bytes](*arguments).

    An argument is a buffer's name, a (dtype, number) pair, or the tensor map of a buffer.
    """

    kernel: Annotated[int, Meta(ge=0, lt=MAX_KERNELS)]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    arguments: Annotated[
        tuple[str | tuple[Dtype, bool | int | float] | MapOf, ...], Meta(max_length=MAX_ARGUMENTS)
    ]


class CopyStep(Struct, frozen=True, array_like=True, tag="copy", forbid_unknown_fields=True):
    """Copy all of buffer `source` into buffer `target`, of the same shape and dtype."""

    target: str
    source: str


class FillStep(Struct, frozen=True, array_like=True, tag="fill", forbid_unknown_fields=True):
    """Set every element of buffer `target` to `value`."""

    target: str
    value: int | float


OrderStep = LaunchStep | CopyStep | FillStep


@dataclass(frozen=True)
class Order:
    """One case for the executor.

    buffers: {name: array with its contents, or Empty}. results: names of buffers to return.
    inputs: names of buffers that should not change.
    counts: the counters that the case's row adds up. Registers, spills, occupancy and the costliest line take
    extra time (the assembler a tenth of a second) and are only found if the row needs them.
    mbarriers: whether kernels may use mbarriers, by which threads could pass on data that no counter sees.
    most_s: seconds of computing after which it is stopped.
    """

    arch: str
    kernels: tuple[Kernel, ...]
    buffers: dict
    steps: tuple[OrderStep, ...]
    results: tuple
    inputs: tuple = ()
    counts: tuple = ()
    most_s: float = MOST_S
    mbarriers: bool = False

    @property
    def allocated(self):
        """Bytes that the student's host code allocated; the names of such buffers begin with "#"."""
        return sum(buffer.nbytes for name, buffer in self.buffers.items() if name.startswith("#"))

    @property
    def launch(self):
        """(grid, block) of the launch if there is exactly one, else ()."""
        launches = [step for step in self.steps if type(step) is LaunchStep]
        return (launches[0].grid, launches[0].block) if len(launches) == 1 else ()

    def plain(self):
        """This order as JSON-able data with arrays, for a message."""
        buffers = {
            name: value if type(value) is np.ndarray else msgspec.to_builtins(value)
            for name, value in self.buffers.items()
        }
        return msgspec.to_builtins(replace(self, buffers={})) | {"buffers": buffers}

    @classmethod
    def from_plain(cls, data):
        """The inverse of plain(), for trusted data from the judge."""
        buffers = {
            name: value if type(value) is np.ndarray else msgspec.convert(value, Empty)
            for name, value in data["buffers"].items()
        }
        return msgspec.convert(data | {"buffers": buffers}, cls)


def judges_buffers(task, case):
    """(outputs, inputs), each {name: array or Empty}: the arrays to fill, and those that are only read.

    An output that is also in Case.inputs starts with that value.
    """
    outputs = {
        name: case.inputs[name]
        if name in case.inputs
        else Empty(tuple(map(int, shape)), np.dtype(dtype).name)
        for name, (shape, dtype) in task.result(case.inputs).items()
    }
    passed = [*task.arguments, *(array for array, *_ in task.maps.values())]
    arrays = {name: case.inputs[name] for name in passed if type(case.inputs.get(name)) is np.ndarray}
    return outputs, {name: value for name, value in arrays.items() if name not in outputs}


def check_steps(steps, kernels, buffers, limits):
    """Raise Refused for a step that names an unknown kernel or buffer, or that CUDA would refuse.

    kernels: their number. buffers: {name: array or Empty}. limits: the LaunchLimits of the order's target.
    """
    for step in steps:
        if type(step) is LaunchStep:
            if step.kernel >= kernels:
                raise Refused(f"a launch names kernel {step.kernel}, and {kernels} were recorded")
            checked_plan((step.grid, step.block, step.shared), "launch", limits)
            given = [one.array if type(one) is MapOf else one for one in step.arguments]
            names = [name for name in given if type(name) is str]
        else:
            names = [step.target, step.source] if type(step) is CopyStep else [step.target]
        for name in names:
            if name not in buffers:
                raise Refused(f"a step names the device array {name[:40]!r}, which does not exist")
        if type(step) is CopyStep:
            want, have = (describe(buffers[name]) for name in names)
            if have != want:
                raise Refused(f"device.copy needs two arrays of one shape and dtype, got {have} to {want}")


def describe(buffer):
    """ "float32[3, 4]" for an array or Empty."""
    return f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
