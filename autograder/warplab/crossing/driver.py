"""The *driver* crossing: the student's host code allocates arrays and launches kernels, without seeing data.

Every call is recorded, and the executor replays the recording. As the host code has only handles without
values, it cannot compute the result itself.
"""

import math
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from warplab.crossing.arrays import named
from warplab.crossing.explain import Refused
from warplab.crossing.kernel import compiled, target_of, type_of
from warplab.crossing.orders import (
    MAX_BUFFER_BYTES,
    MAX_BUFFERS,
    MAX_KERNELS,
    MAX_STEPS,
    Empty,
    Kernel,
    Order,
    OrderStep,
    check_steps,
    judges_buffers,
)
from warplab.crossing.plan import checked_plan
from warplab.crossing.values import check_callable, plain_copy, validated
from warplab.hardware.target import Target
from warplab.simt.frontends.triton_hook import is_triton_kernel, recorded

DEVICE = "device"  # name of the argument that gets the Recorder


class Recording(msgspec.Struct, forbid_unknown_fields=True):
    """The answer of a driver task. buffers: those that the host code allocated, with names "#0", "#1", ..."""

    kernels: Annotated[tuple[Kernel, ...], Meta(max_length=MAX_KERNELS)]
    buffers: Annotated[dict[Annotated[str, Meta(pattern="^#")], Empty], Meta(max_length=MAX_BUFFERS)]
    steps: Annotated[tuple[OrderStep, ...], Meta(max_length=MAX_STEPS)]


class Handle:
    """A device array as the host code sees it: len(array), size, shape, ndim and dtype, but no values."""

    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), np.dtype(dtype)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    def __len__(self):
        return self.shape[0]

    def stride(self, axis=None):
        """The stride in elements, of one axis or of all, as a tensor's method."""
        strides = tuple(math.prod(self.shape[after:]) for after in range(1, self.ndim + 1))
        return strides if axis is None else strides[axis]

    def data_ptr(self):
        """An address for Triton, which only uses its alignment; CUDA's allocations are as aligned as 0."""
        return 0

    def __repr__(self):
        shape = ", ".join(map(str, self.shape))
        return f"<device array {self.name}, {self.dtype}[{shape}], its values are on the device>"

    def __array__(self, *_, **__):
        raise Refused("a device array has no values on the host: launch a kernel that reads it")

    def __getitem__(self, _):
        raise Refused(
            "a device array cannot be indexed on the host: "
            "pass the whole array to a kernel, and an offset if it needs one"
        )

    __setitem__ = __iter__ = __getitem__


PASSED = (Handle, bool, int, float)  # types that may be passed to a kernel, besides NumPy's numbers


class Recorder:
    """The `device` of a driver task's host code, which records all calls. target: to compile kernels for."""

    def __init__(self, target):
        self.target = target
        self.kernels, self.buffers, self.steps = [], {}, []
        self._known = {}
        self._bytes = 0

    def empty(self, shape, dtype):
        """A new device array. Its contents are undefined, as on a GPU."""
        sizes = [int(size) for size in (shape if type(shape) in (tuple, list) else (shape,))]
        buffer = Empty(tuple(sizes), np.dtype(dtype).name)
        self._bytes += buffer.nbytes
        if self._bytes > MAX_BUFFER_BYTES or len(self.buffers) >= MAX_BUFFERS:
            raise Refused(
                f"device.empty was called {len(self.buffers) + 1} times for {self._bytes:,} bytes together; "
                f"the limit is {MAX_BUFFERS} arrays and {MAX_BUFFER_BYTES >> 20} MiB: is one made in every "
                "round of a loop, or by a function that calls itself?"
            )
        name = f"#{len(self.buffers)}"
        self.buffers[name] = msgspec.to_builtins(buffer)
        return Handle(name, sizes, dtype)

    def zeros(self, shape, dtype):
        """A new device array full of zeros."""
        handle = self.empty(shape, dtype)
        self.fill(handle, 0)
        return handle

    def fill(self, handle, value):
        """Set every element of a device array."""
        name, value = _name(handle), handle.dtype.type(value)  # NumPy raises for a value that does not fit
        self._record("fill", name, float(value) if handle.dtype.kind == "f" else int(value))

    def copy(self, target, source):
        """Copy a whole device array into another of the same shape and dtype."""
        self._record("copy", _name(target), _name(source))

    def launch(self, kernel, grid, block, *arguments, shared=0):
        """Launch a @cuda.jit kernel or a warplab.cuda_kernel on device arrays and numbers.

        A kernel of Triton's is launched in Triton's own way, kernel[grid](...), and recorded as well.
        """
        grid, block, shared = checked_plan((grid, block, shared), "device.launch", self.target.limits)
        if is_triton_kernel(kernel):
            raise Refused("launch a Triton kernel as `kernel[grid](x, BLOCK=1024)`, not by device.launch")
        packed, types = _packed(arguments, "device.launch")
        own = getattr(getattr(kernel, "py_func", None), "__name__", "the kernel")
        name = getattr(kernel, "name", None) or own
        number = self._number((id(kernel), types), kernel, lambda: compiled(kernel, name, types, self.target))
        self._record("launch", number, grid, block, shared, packed)

    def launch_of_triton(self, name, symbol, ptx, grid, block, shared, arguments):
        """Record a launch that Triton has compiled; simt.frontends.triton_hook.NotedLaunches calls this."""
        grid, block, shared = checked_plan((grid, block, shared), name, self.target.limits)
        packed, _ = _packed(arguments, f"`{name}`")
        kernel = Kernel(name[:80], symbol, (ptx,), "triton")
        number = self._number((symbol, ptx), None, kernel.checked)
        self._record("launch", number, grid, block, shared, packed)

    def _number(self, key, kernel, make):
        """The number of the kernel with this key; a new one is compiled by make()."""
        if key not in self._known:
            if len(self.kernels) >= MAX_KERNELS:
                raise Refused(f"more than {MAX_KERNELS} kernels were compiled: does a loop make new ones?")
            done = make()
            # holding the kernel keeps its id from being used again
            self._known[key] = (len(self.kernels), kernel)
            self.kernels.append(vars(done))
        return self._known[key][0]

    def _record(self, *step):
        if len(self.steps) >= MAX_STEPS:
            raise Refused(f"more than {MAX_STEPS:,} launches, copies and fills: does a loop never end?")
        self.steps.append(list(step))


def _packed(arguments, who):
    """(arguments as a LaunchStep has them, types as kernel.compiled() takes them). who: for the error."""
    for place, one in enumerate(arguments, 1):
        if type(one) not in PASSED and not isinstance(one, np.number | np.bool_):
            what = f"{who} passes device arrays and numbers to a kernel, nothing else"
            raise Refused(f"{what}: argument number {place} is of type {type(one).__name__}")
    types = tuple(type_of(value, Handle) for value in arguments)
    packed = [
        _name(value) if kind == "array" else [dtype, plain_copy(value)]
        for value, (dtype, _, kind) in zip(arguments, types, strict=True)
    ]
    return packed, types


def _name(handle):
    if type(handle) is not Handle:
        raise Refused(f"expected a device array (an argument, or from device.empty), got {named(handle)}")
    return handle.name


def question(task, case):
    """Shapes and dtypes of arrays, values of numbers, and the architecture to compile for."""
    outputs, inputs = judges_buffers(task, case)
    handles = {
        name: {"shape": list(buffer.shape), "dtype": np.dtype(buffer.dtype).name}
        for name, buffer in (outputs | inputs).items()
    }
    numbers = [name for name in task.arguments if name not in handles and name != DEVICE]
    told = {"arguments": list(task.arguments), "handles": handles, "arch": target_of(task, case).arch}
    return told | {"numbers": {name: plain_copy(case.inputs.get(name)) for name in numbers}}


def answer(question, names, entry, plan, call):
    """Run the host code with a Recorder as its device; returns a Recording as plain data."""
    check_callable(entry, names[0])
    recorder = Recorder(Target.of(question["arch"]))
    held = {name: Handle(name, **what) for name, what in question["handles"].items()}
    values = {DEVICE: recorder} | held | question["numbers"]
    with recorded(recorder.target, recorder.launch_of_triton):
        entry(*(values[name] for name in question["arguments"]))
    return {"kernels": recorder.kernels, "buffers": recorder.buffers, "steps": recorder.steps}


def finish(task, case, answer, host):
    """The Order that replays the recording. Raises Refused for an invalid recording."""
    told = validated(answer, Recording, "the recording of device calls from the student's process")
    if (total := sum(buffer.nbytes for buffer in told.buffers.values())) > MAX_BUFFER_BYTES:
        raise Refused(f"the recording allocates {total:,} bytes, the limit is {MAX_BUFFER_BYTES >> 20} MiB")
    target = target_of(task, case)
    outputs, inputs = judges_buffers(task, case)
    buffers = inputs | outputs | told.buffers
    check_steps(told.steps, len(told.kernels), buffers, target.limits)
    counts = task.counts_of(case)
    kernels = tuple(kernel.checked() for kernel in told.kernels)
    names = tuple(outputs), tuple(inputs)
    return Order(target.arch, kernels, buffers, told.steps, *names, counts, task.most_s)
