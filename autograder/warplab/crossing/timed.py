"""The executor's part of a timed row: runs an Order's launches repeatedly on CUDA. Needs a GPU.

Before every sample modules are loaded anew, so that a kernel cannot keep results on the device, inputs are
restored and outputs poisoned. The outputs of every sample go back to the judge.
"""

# pyright: reportAttributeAccessIssue=false
# (the modules of cuda are compiled and have no stubs)

import functools
import importlib
import itertools
import time

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, ObjectCode, launch

from warplab.crossing.explain import Refused
from warplab.crossing.orders import CopyStep, FillStep
from warplab.crossing.outcome import Outcome
from warplab.crossing.values import filled
from warplab.simt.abi import c_number, memref, numba_array, numba_number
from warplab.simt.ptx.parser import parse, uses_grid_barrier
from warplab.timing.cuda_timer import checked, cuda_timer
from warplab.timing.samples import Unsteady, below_floor, paired


class KernelSampler:
    """Times all steps of several Orders, of a kernel or a driver, that differ only in their inputs."""

    def __init__(self, orders, timer):
        self.orders, self.timer = orders, timer
        self.kernels = [_Kernel(kernel, orders[0].arch) for kernel in orders[0].kernels]
        self.sets = [_Buffers(order) for order in orders]

    def warm_up(self):
        """Compile, load, and launch for at least a second."""
        self.timer.warm_up(self._prepared(0))

    def sample(self, number) -> tuple[float, float, dict]:
        """(seconds, clock in MHz, {output: array}) of all steps on input set `number`."""
        call = self._prepared(number)
        seconds, clock = self.timer.sample(call)
        return seconds, clock, self.sets[number].outputs()

    def _prepared(self, number):
        """Restore the buffers, load the modules, and return the steps as one call without arguments."""
        device, buffers = Device(), self.sets[number]
        device.set_current()
        buffers.restore()
        loaded, stream = [kernel.loaded() for kernel in self.kernels], device.default_stream
        calls = [self._call(step, buffers, loaded, stream) for step in self.orders[number].steps]

        def run():
            for call in calls:
                call()

        return run

    def _call(self, step, buffers, loaded, stream):
        if type(step) is CopyStep:
            return functools.partial(buffers.copy, step.target, step.source)
        if type(step) is FillStep:
            return functools.partial(buffers.fill, step.target, step.value)
        kernel = self.kernels[step.kernel]
        config, values = kernel.config(step), kernel.values(step, buffers)
        return functools.partial(launch, stream, config, loaded[step.kernel], *values)


def link_arch(arch, modules):
    """The architecture to link PTX modules for: `arch`, or its specific variant such as "sm_90a".

    numba compiles for the variant on such a device, and the linker refuses those modules for the plain one.
    """
    made_for = {arch + kind for kind in "af" for text in modules if f".target {arch}{kind}" in text}
    return min(made_for, default=arch)


class _Kernel:
    """A kernel of an Order, linked for this device."""

    def __init__(self, kernel, arch):
        self.kernel = kernel
        self.declared = [param.type for param in parse(kernel.modules[0]).functions[kernel.entry].params]
        self.together = any(uses_grid_barrier(text) for text in kernel.modules)
        parts = [ObjectCode.from_ptx(text.encode()) for text in kernel.modules]
        options = LinkerOptions(arch=link_arch(arch, kernel.modules))
        self.code = Linker(*parts, options=options).link("cubin").code

    def loaded(self):
        """The kernel in a newly loaded module, whose variables have their initial values."""
        return ObjectCode.from_cubin(self.code).get_kernel(self.kernel.entry)

    def config(self, step):
        return LaunchConfig(
            grid=step.grid, block=step.block, shmem_size=step.shared, is_cooperative=self.together
        )

    def values(self, step, buffers):
        """The launch's parameters in the form that cuda.core takes."""
        described = {"numba": numba_array, "mlir": memref}.get(self.kernel.abi)
        if described is None:
            return [buffers.c_value(*pair) for pair in zip(step.arguments, self.declared, strict=True)]
        return [value for argument in step.arguments for value in buffers.numba_values(argument, described)]


class _Buffers:
    """One input set on the device: initial contents on the host, and the device pointer of each buffer."""

    def __init__(self, order):
        self.order = order
        self.host = {name: filled(buffer, copy=None) for name, buffer in order.buffers.items()}
        self.pointers = {
            name: checked(driver.cuMemAlloc(max(array.nbytes, 1))) for name, array in self.host.items()
        }

    def restore(self):
        for name, array in self.host.items():
            checked(driver.cuMemcpyHtoD(self.pointers[name], array.ctypes.data, array.nbytes))

    def copy(self, target, source):
        to, of, nbytes = self.pointers[target], self.pointers[source], self.host[source].nbytes
        checked(driver.cuMemcpyDtoDAsync(to, of, nbytes, 0))

    def fill(self, target, value):
        """Set every element to the bytes of `value` in the buffer's dtype, as NumPy converts it."""
        array = self.host[target]
        pattern, pointer = np.array(value, array.dtype).tobytes(), int(self.pointers[target])
        if not array.size:
            return
        if len(set(pattern)) == 1:
            checked(driver.cuMemsetD8Async(pointer, pattern[0], array.nbytes, 0))
        elif len(pattern) == 2:
            checked(driver.cuMemsetD16Async(pointer, int.from_bytes(pattern, "little"), array.size, 0))
        else:  # words of 4 bytes, every len(pattern) bytes
            for first in range(0, len(pattern), 4):
                word = int.from_bytes(pattern[first : first + 4], "little")
                checked(driver.cuMemsetD2D32Async(pointer + first, len(pattern), word, 1, array.size, 0))

    def outputs(self):
        found = {name: np.empty_like(self.host[name]) for name in self.order.results}
        for name, array in found.items():
            checked(driver.cuMemcpyDtoH(array.ctypes.data, self.pointers[name], array.nbytes))
        return found

    def numba_values(self, argument, described):
        """One argument's parameters for cuda.core: an int is 64 bits, a NumPy scalar its own size."""
        if type(argument) is not str:
            return [numba_number(*argument)]
        return described(int(self.pointers[argument]), self.host[argument])

    def c_value(self, argument, kind):
        """A pointer, or a number as the PTX type `kind` that the kernel declares."""
        if type(argument) is str:
            return int(self.pointers[argument])
        return c_number(kind, argument[1], "a number", "the kernel")


class YardstickSampler:
    """Times a library function on each input set, whose arrays it gets as CUDA tensors.

    yardstick: its full name and arguments, such as ("torch.matmul", "a", "b").
    """

    def __init__(self, yardstick, inputs, timer):
        import torch

        self.timer = timer
        name, *arguments = yardstick
        module, _, own = name.rpartition(".")
        function = getattr(importlib.import_module(module), own)
        held = [[torch.from_numpy(one[name]).to("cuda") for name in arguments] for one in inputs]
        self.calls = [functools.partial(function, *tensors) for tensors in held]

    def warm_up(self):
        self.timer.warm_up(self.calls[0])

    def sample(self, number) -> tuple[float, float, dict]:
        """(seconds, clock in MHz, {}) for input set `number`; a yardstick may have fewer sets."""
        return *self.timer.sample(self.calls[number % len(self.calls)]), {}


def measure(task, cases, student, yardstick, bandwidth, elapsed):
    """Counters of a timed row, from samples of the student's kernel and the yardstick in pairs.

    cases: one for each input set; samples cycle through them. student, yardstick: functions from a set's
    number to (seconds, clock, outputs). bandwidth: measured, in bytes a second. elapsed: seconds since the
    start.
    Raises Refused if an output of the student's is wrong, or if a time is too short to read the inputs once.
    """
    of_student, of_yardstick, known = itertools.cycle(range(len(cases))), itertools.count(), {}

    def sample_a():
        number = next(of_student)
        seconds, clock, outputs = student(number)
        data = {name: array.tobytes() for name, array in outputs.items()}
        if known.get(number) != data:
            wrong = task.wrong_result(cases[number], Outcome(cases[number].name, outputs))
            if wrong:
                raise Refused(f"while it was timed: {wrong}")
            known[number] = data
        read = task.must_read(cases[number].inputs)
        if below_floor(seconds, read, bandwidth):
            raise Refused(
                f"a run of {seconds * 1e6:.1f} us is too short to read {read:,} bytes "
                f"at this device's {bandwidth / 1e12:.2f} TB/s: the kernel must read all of its input"
            )
        return seconds, clock

    return paired(sample_a, lambda: yardstick(next(of_yardstick) % len(cases))[:2], elapsed).counters()


def measure_here(task, case, order):
    """The Outcome of a timed row in this process, sampled and checked as by the grader, on one input set."""
    timer = cuda_timer()
    student = KernelSampler([order], timer)
    of = task.yardstick_of(case)
    yardstick = YardstickSampler(of, task.yardstick_sets(of, [case.inputs]), timer)
    student.warm_up()
    yardstick.warm_up()
    start, bandwidth = time.perf_counter(), timer.bandwidth()

    def elapsed():
        return time.perf_counter() - start

    try:
        counters = measure(task, [case], student.sample, yardstick.sample, bandwidth, elapsed)
    except Unsteady:
        return Outcome()  # the device's fault, so the row stays ungraded
    return Outcome("", student.sample(0)[2], counters)
