"""The executor's half of a timed row: an Order's one launch, again and again, on CUDA. Needs a GPU.

The module is loaded afresh for every sample, so that nothing a kernel keeps on the device outlives its launch; inputs are
restored and outputs poisoned before each, and the outputs of each go back to the judge.
"""

import functools
import itertools
import time

import numpy as np

from warplab.crossing.errors import Refused
from warplab.crossing.orders import Empty, Result
from warplab.crossing.values import poisoned
from warplab.samples import below_floor, paired



class KernelSampler:
    """Times the one launch of several Orders that differ only in the values of their inputs."""

    def __init__(self, orders, timer):
        from cuda.core import Linker, LinkerOptions, ObjectCode

        from warplab.simt.ptx.parser import parse

        self.orders, self.timer = orders, timer
        (kernel,) = orders[0].kernels
        self.declared = [param.type for param in parse(kernel.modules[0]).functions[kernel.entry].params]
        parts = [ObjectCode.from_ptx(text.encode()) for text in kernel.modules]
        self.code = Linker(*parts, options=LinkerOptions(arch=orders[0].arch)).link("cubin").code
        self.sets = [_Buffers(order) for order in orders]

    def warm_up(self):
        """Compile, load and launch for a second at least."""
        self.timer.warm_up(self._prepared(0))

    def sample(self, number):
        """(seconds, clock in MHz, {output: array}) of one launch on input set `number`."""
        call = self._prepared(number)
        seconds, clock = self.timer.sample(call)
        return seconds, clock, self.sets[number].outputs()

    def _prepared(self, number):
        """Restore the buffers, load the module, and return the launch as a call without arguments."""
        from cuda.core import Device, LaunchConfig, ObjectCode, launch

        order, buffers = self.orders[number], self.sets[number]
        (step,), (kernel,) = order.steps, order.kernels
        buffers.restore()
        found = ObjectCode.from_cubin(self.code).get_kernel(kernel.entry)
        device = Device()
        device.set_current()
        together = any("%envreg2" in text for text in kernel.modules)
        config = LaunchConfig(grid=step.grid, block=step.block, shmem_size=step.shared, is_cooperative=together)
        if kernel.abi == "c":
            values = [buffers.c_value(argument, kind) for argument, kind in zip(step.arguments, self.declared, strict=True)]
        else:
            values = [value for argument in step.arguments for value in buffers.numba_values(argument)]
        return lambda: launch(device.default_stream, config, found, *values)


class _Buffers:
    """One input set on the device: pristine contents on the host, and where each buffer lives."""

    def __init__(self, order):
        from cuda.bindings import driver

        from warplab.cuda_timer import checked

        self.order = order
        self.host = {
            name: poisoned(buffer.shape, buffer.dtype) if type(buffer) is Empty else np.ascontiguousarray(buffer)
            for name, buffer in order.buffers.items()
        }
        self.pointers = {name: checked(driver.cuMemAlloc(max(array.nbytes, 1))) for name, array in self.host.items()}

    def restore(self):
        from cuda.bindings import driver

        from warplab.cuda_timer import checked

        for name, array in self.host.items():
            checked(driver.cuMemcpyHtoD(self.pointers[name], array.ctypes.data, array.nbytes))

    def outputs(self):
        from cuda.bindings import driver

        from warplab.cuda_timer import checked

        found = {name: np.empty_like(self.host[name]) for name in self.order.results}
        for name, array in found.items():
            checked(driver.cuMemcpyDtoH(array.ctypes.data, self.pointers[name], array.nbytes))
        return found

    def numba_values(self, argument):
        """Kernel parameters of one argument as cuda.core takes them: a Python int is 64 bits, a NumPy scalar its own size."""
        if type(argument) is not str:
            dtype, value = argument
            return [np.dtype(dtype).type(value)]
        array = self.host[argument]
        return [0, 0, array.size, array.itemsize, int(self.pointers[argument]), *array.shape, *array.strides]

    def c_value(self, argument, kind):
        """A pointer, or a number as the PTX type `kind` that the kernel declares."""
        from warplab.simt.frontends.cuda_cpp import NUMPY_OF, number_as

        if type(argument) is str:
            return int(self.pointers[argument])
        return np.frombuffer(number_as(kind, argument[1], "a number", "the kernel"), NUMPY_OF[kind])[0]


class YardstickSampler:
    """Times a function of PyTorch, such as ("torch.matmul", "a", "b"), on the arrays of each input set."""

    def __init__(self, yardstick, inputs, timer):
        import torch

        self.timer = timer
        name, *arguments = yardstick
        function = functools.reduce(getattr, name.split(".")[1:], torch)
        held = [[torch.from_numpy(one[name]).to("cuda") for name in arguments] for one in inputs]
        self.calls = [functools.partial(function, *tensors) for tensors in held]

    def warm_up(self):
        self.timer.warm_up(self.calls[0])

    def sample(self, number):
        """(seconds, clock in MHz, {})."""
        return *self.timer.sample(self.calls[number]), {}


def measure(task, cases, student, yardstick, bandwidth, elapsed):
    """Counters of a timed row: the student's kernel and the yardstick in pairs, over all input sets in turn.

    cases: one for each set. student, yardstick: set number -> (seconds, clock, outputs). bandwidth: bytes a second, measured.
    Every output of the student's is checked: Refused with the reason when one is wrong, or when a time is below the floor of
    reading the inputs once.
    """
    from warplab.task import Outcome

    turn = {"a": itertools.cycle(range(len(cases))), "b": itertools.cycle(range(len(cases)))}
    known = {}

    def sample_a():
        number = next(turn["a"])
        seconds, clock, outputs = student(number)
        data = {name: array.tobytes() for name, array in outputs.items()}
        if known.get(number) != data:
            wrong = task.wrong_result(cases[number], Outcome(cases[number].name, outputs))
            if wrong:
                raise Refused(f"while it was timed: {wrong}")
            known[number] = data
        read = task.must_read(cases[number].inputs)
        if below_floor(seconds, read, bandwidth):
            raise Refused(f"{seconds * 1e6:.1f} us are too few to read {read:,} bytes at this device's {bandwidth / 1e12:.2f} TB/s")
        return seconds, clock

    def sample_b():
        return yardstick(next(turn["b"]))[:2]

    return paired(sample_a, sample_b, elapsed).counters()


def measure_here(task, case, order):
    """A timed row in this process: a Result. The same samples and checks as over the boundary, on one input set."""
    from warplab.cuda_timer import cuda_timer

    timer = cuda_timer()
    student, yardstick = KernelSampler([order], timer), YardstickSampler(task.yardstick, [case.inputs], timer)
    student.warm_up()
    yardstick.warm_up()
    start = time.perf_counter()
    counters = measure(task, [case], student.sample, yardstick.sample, timer.bandwidth(), lambda: time.perf_counter() - start)
    return Result(student.sample(0)[2], counters)
