"""What the executor is told to do, as plain data: compiled kernels, buffers, and the steps that use them.

Whatever comes from a student's process passes through `from_plain` here, the one place that checks it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from warplab.crossing.explain import Refused
from warplab.crossing.plan import checked_plan
from warplab.hardware.target import Target

MAX_PTX_BYTES = 4 << 20
MAX_MODULES = 8
MAX_KERNELS = 16
MAX_STEPS = 1_000
MAX_ARGUMENTS = 64
MAX_BUFFERS = 256
MAX_BUFFER_BYTES = 1 << 30
DTYPES = tuple(np.dtype(kind).name for kind in "?bhilBHILefd")
ABIS = ("numba", "c")


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel.

    modules: PTX texts, the first with the entry point `entry`. name: what the student calls it.
    abi: how arguments become parameters (warplab.simt.abi): "numba" or "c".
    """

    name: str
    entry: str
    modules: tuple
    abi: str

    @classmethod
    def from_plain(cls, data):
        """Raises Refused for anything but four fields of the right types, within the size limits."""
        if type(data) is not dict or set(data) != {"name", "entry", "modules", "abi"}:
            raise Refused("a compiled kernel has a name, an entry, modules and an abi, and nothing else")
        name, entry, modules, abi = data["name"], data["entry"], data["modules"], data["abi"]
        if not all(type(text) is str and len(text) <= 4096 for text in (name, entry, abi)) or abi not in ABIS:
            raise Refused("a compiled kernel's name, entry or abi is not what the compiler gives")
        if (
            type(modules) not in (list, tuple)
            or not 1 <= len(modules) <= MAX_MODULES
            or any(type(text) is not str for text in modules)
        ):
            raise Refused(f"a compiled kernel has one to {MAX_MODULES} modules of PTX text")
        size = sum(len(text) for text in modules)
        if size > MAX_PTX_BYTES:
            raise Refused(
                f"the kernel `{name[:80]}` is {size:,} characters of PTX; "
                f"the limit is {MAX_PTX_BYTES:,}: unroll less"
            )
        return cls(name[:80], entry, tuple(modules), abi)


@dataclass(frozen=True)
class Empty:
    """A buffer without contents: the executor fills it with what is surely wrong, NaN or scrambled bytes."""

    shape: tuple
    dtype: str

    @classmethod
    def from_plain(cls, data):
        """`data` is {"shape": [...], "dtype": name}. Raises Refused for what no device array has."""
        if type(data) is not dict or set(data) != {"shape", "dtype"}:
            raise Refused("an allocation has a shape and a dtype")
        shape, dtype = data["shape"], data["dtype"]
        if (
            type(shape) not in (list, tuple)
            or len(shape) > 8
            or any(type(size) is not int or size < 0 for size in shape)
        ):
            raise Refused(f"a shape is a list of up to 8 whole numbers, got {str(shape)[:80]}")
        if type(dtype) is not str or dtype not in DTYPES:
            raise Refused(
                f"device arrays of {str(dtype)[:40]} cannot be allocated; the dtypes are {', '.join(DTYPES)}"
            )
        return cls(tuple(shape), dtype)

    @property
    def nbytes(self):
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class LaunchStep:
    """kernels[kernel][grid, block, shared bytes](*arguments).

    An argument is a buffer's name or a (dtype, number) pair.
    """

    kind: ClassVar[str] = "launch"

    kernel: int
    grid: tuple
    block: tuple
    shared: int
    arguments: tuple


@dataclass(frozen=True)
class CopyStep:
    """All of buffer `source` into buffer `target`, of the same shape and dtype."""

    kind: ClassVar[str] = "copy"

    target: str
    source: str


@dataclass(frozen=True)
class FillStep:
    """Every element of `target` becomes `value`."""

    kind: ClassVar[str] = "fill"

    target: str
    value: float


@dataclass(frozen=True)
class Order:
    """One case for the executor.

    buffers: name -> array (its contents) or Empty. results: buffers to give back.
    inputs: buffers that should not change.
    counts: the counters that the case's row adds up. What takes time of its own is done only for these:
    registers, spills and occupancy, a tenth of a second of the assembler's, and which line costs most.
    """

    arch: str
    kernels: tuple
    buffers: dict
    steps: tuple
    results: tuple
    inputs: tuple = ()
    counts: tuple = ()

    @property
    def allocated(self):
        """Bytes that the student's host code allocated: such buffers have a name that begins with "#"."""
        return sum(buffer.nbytes for name, buffer in self.buffers.items() if name.startswith("#"))

    @property
    def launch(self):
        """(grid, block) of the one launch; () where there are several, or none."""
        launches = [step for step in self.steps if type(step) is LaunchStep]
        return (launches[0].grid, launches[0].block) if len(launches) == 1 else ()

    def plain(self):
        """JSON-able data and arrays, for a message."""
        buffers = {
            name: vars(value) if type(value) is Empty else value for name, value in self.buffers.items()
        }
        return vars(self) | {
            "kernels": [vars(kernel) for kernel in self.kernels],
            "buffers": buffers,
            "steps": [plain_step(step) for step in self.steps],
        }

    @classmethod
    def from_plain(cls, data):
        """The inverse of plain()."""
        buffers = {
            name: value if type(value) is np.ndarray else Empty.from_plain(value)
            for name, value in data["buffers"].items()
        }
        kernels = tuple(Kernel.from_plain(kernel) for kernel in data["kernels"])
        limits = Target.of(data["arch"]).limits
        steps = steps_from_plain(data["steps"], len(kernels), buffers, limits)
        return cls(
            data["arch"],
            kernels,
            buffers,
            steps,
            tuple(data["results"]),
            tuple(data["inputs"]),
            tuple(data["counts"]),
        )


def judges_buffers(task, case):
    """(outputs, inputs) by name: the arrays that a kernel or driver must fill, and those that it only reads.

    An output that is in Case.inputs, too, starts with that value.
    """
    outputs = {
        name: case.inputs[name]
        if name in case.inputs
        else Empty(tuple(map(int, shape)), np.dtype(dtype).name)
        for name, (shape, dtype) in task.result(case.inputs).items()
    }
    arrays = {name: case.inputs[name] for name in task.arguments if type(case.inputs.get(name)) is np.ndarray}
    return outputs, {name: value for name, value in arrays.items() if name not in outputs}


def plain_step(step):
    """A step as a JSON list that begins with its kind."""
    return [step.kind, *vars(step).values()]


def steps_from_plain(data, kernels, buffers, limits):
    """Steps from lists as plain_step() makes them; `kernels` is their number, `buffers` what may be named.

    limits: the LaunchLimits of the order's target.
    Raises Refused for more than 1,000 steps and for whatever does not exist or does not fit.
    """
    if type(data) not in (list, tuple):
        raise Refused("a recording is a list of steps")
    if len(data) > MAX_STEPS:
        raise Refused(f"{len(data):,} launches, copies and fills were recorded; the limit is {MAX_STEPS:,}")
    return tuple(_step(item, kernels, buffers, limits) for item in data)


def _step(item, kernels, buffers, limits):
    kind, *rest = item if type(item) in (list, tuple) and item and type(item[0]) is str else (None,)
    if kind == "launch" and len(rest) == 5:
        return _launch(rest, kernels, buffers, limits)
    if kind == "copy" and len(rest) == 2:
        target, source = (_known(name, buffers) for name in rest)
        have, want = (describe(buffers[name]) for name in (source, target))
        if have != want:
            raise Refused(f"a copy needs two arrays of one shape and dtype, got {have} to {want}")
        return CopyStep(target, source)
    if kind == "fill" and len(rest) == 2 and type(rest[1]) in (int, float):
        return FillStep(_known(rest[0], buffers), rest[1])
    raise Refused(f"a recorded step is a launch, a copy or a fill, got {str(item)[:80]}")


def _launch(item, kernels, buffers, limits):
    kernel, grid, block, shared, arguments = item
    if type(kernel) is not int or not 0 <= kernel < kernels:
        raise Refused(f"a launch names kernel {str(kernel)[:20]} of {kernels}")
    if type(arguments) not in (list, tuple) or len(arguments) > MAX_ARGUMENTS:
        raise Refused(f"a launch has a list of up to {MAX_ARGUMENTS} arguments")
    grid, block, shared = checked_plan((grid, block, shared), "launch", limits)
    return LaunchStep(kernel, grid, block, shared, tuple(_argument(value, buffers) for value in arguments))


def _argument(value, buffers):
    if type(value) is str:
        return _known(value, buffers)
    pair = type(value) in (list, tuple) and len(value) == 2 and type(value[0]) is str
    if pair and value[0] in DTYPES and type(value[1]) in (bool, int, float):
        return tuple(value)
    raise Refused(f"a kernel's argument is a device array or a number, got {str(value)[:80]}")


def _known(name, buffers):
    if type(name) is not str or name not in buffers:
        raise Refused(f"there is no device array {str(name)[:40]!r}")
    return name


def describe(buffer):
    """ "float32[3, 4]", of an array or Empty."""
    return f"{buffer.dtype}[{', '.join(map(str, buffer.shape))}]"
