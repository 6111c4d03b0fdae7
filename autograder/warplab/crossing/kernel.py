"""The *kernel* crossing: the student's process compiles the kernel to PTX, and the executor runs that.

The student's process is told dtypes and numbers of dimensions, and the shapes that a launch plan needs, but
no values.
"""

import dis
import inspect
import re
from typing import Any

import msgspec
import numpy as np

from warplab.crossing import arrays
from warplab.crossing.explain import Refused, stub_message
from warplab.crossing.orders import Kernel, LaunchStep, MapOf, Order, judges_buffers
from warplab.crossing.plan import checked_plan
from warplab.crossing.values import check_callable, plain_copy, validated
from warplab.hardware.device import device, engine_target
from warplab.hardware.target import Target
from warplab.simt.errors import LaunchError
from warplab.simt.frontends import mlir_hook
from warplab.simt.frontends.cuda_cpp import CudaKernel
from warplab.simt.frontends.numba_hook import is_dispatcher, numba_type, ptx_of
from warplab.simt.frontends.numba_words import does_not_compile
from warplab.simt.frontends.shared_shapes import named

# A stub in C++ is in a comment, so that it compiles.
CPP_STUB = re.compile(r"raise NotImplementedError\(\)\s*\*/")
STORES = re.compile(r"\b(?:st|red|atom|cp)\.")


class CompiledKernel(msgspec.Struct, forbid_unknown_fields=True):
    """The answer of a kernel task. shape: what the student's plan returned, or None."""

    kernel: Kernel
    shape: Any


def question(task, case):
    """Argument names, their types (see type_of()), and the arguments of the student's plan function."""
    outputs = task.result(case.inputs)
    arrays = {name: np.broadcast_to(np.zeros((), dtype), shape) for name, (shape, dtype) in outputs.items()}
    arrays |= dict.fromkeys(task.maps, np.zeros(128, np.uint8))
    described = [list(type_of((case.inputs | arrays)[name])) for name in task.arguments]
    plan = plain_copy(task.plan_arguments(case.inputs)) if task.plan_entry else None
    asked = {"arguments": list(task.arguments), "types": described, "plan": plan}
    return asked | {"arch": target_of(task, case).arch}


def target_of(task, case):
    """The Target to compile for: the same on every machine, except that timed rows use the own device's."""
    return device().target if task.is_timed(case) else engine_target()


def type_of(value, array: type = np.ndarray):
    """(dtype, dimensions, kind) of an argument: ("float32", 2, "array") or ("int64", 0, "number")."""
    if type(value) is array:
        return value.dtype.name, value.ndim, "array"
    return np.asarray(value).dtype.name, 0, "number"


def answer(question, names, entry, plan, call):
    """Compile the kernel and ask for the launch plan. names: (entry, plan entry). Returns plain data."""
    target = Target.of(question["arch"])
    kernel = compiled(entry, names[0], question["types"], target, question["arguments"])
    shape = None
    if question["plan"] is not None:
        if plan is None:
            raise Refused(f"this task also needs your launch plan: pass plan={names[1]}")
        check_callable(plan, names[1])
        shape = list(checked_plan(plan(**question["plan"]), names[1], target.limits))
    return {"kernel": vars(kernel), "shape": shape}


def compiled(entry, name, passed, target, arguments=()):
    """Compile a @cuda.jit dispatcher or a warplab.cuda_kernel to a Kernel. Raises Refused if that fails.

    name: the student's, for messages. passed: the type_of() of each argument. arguments: their names.
    """
    if type(entry) is CudaKernel:
        ptx, symbol = entry.compiled(target.arch)
        if CPP_STUB.search(entry.source) and not STORES.search(ptx):
            raise Refused(
                f"not written yet: `{name}` stores nothing; your code takes the place of its comment"
            )
        ptx = named(ptx, entry.source)  # adds names from the source, which the executor does not have
        return Kernel(entry.name[:80], symbol, (ptx,), "c").checked()
    check_kernel(entry, name)
    expected = len(inspect.signature(entry.py_func).parameters)
    if expected != len(passed):
        told, plural = f": {', '.join(arguments)}" if arguments else "", "" if expected == 1 else "s"
        raise Refused(f"`{name}` takes {expected} argument{plural}, and {len(passed)} are passed{told}")
    code = entry.py_func.__code__
    for instruction in dis.get_instructions(code):
        if instruction.argval == "NotImplementedError" and instruction.positions:
            raise Refused(stub_message(code.co_filename, instruction.positions.lineno or 0))
    try:
        if mlir_hook.is_dispatcher(entry):
            types = tuple(mlir_hook.type_of(*one) for one in passed)
            modules, symbol, abi = *mlir_hook.ptx_of(entry, types, target), "mlir"
        else:
            kernel = entry.compile(tuple(numba_type(*one) for one in passed))
            modules, symbol, abi = ptx_of(kernel, target), kernel.entry_name, "numba"
    except LaunchError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever numba raises means that it does not compile
        raise Refused(does_not_compile(error, entry.py_func)) from None
    return Kernel(entry.py_func.__name__[:80], symbol, modules, abi).checked()


def check_kernel(entry, name):
    """Raise Refused unless `entry` is a launchable @cuda.jit kernel."""
    if not (is_dispatcher(entry) or mlir_hook.is_dispatcher(entry)):
        what = arrays.named(entry)
        raise Refused(f"`{name}` must be a kernel, and it is {what}: put @cuda.jit above `def {name}(...)`")
    if entry.targetoptions.get("device"):
        raise Refused(f"`{name}` is a device function; a kernel has @cuda.jit without device=True")


def finish(task, case, answer, host):
    """The Order for the executor. Raises Refused unless the answer is a compiled kernel with a valid plan."""
    told = validated(answer, CompiledKernel, "the compiled kernel from the student's process")
    target = target_of(task, case)
    shape = told.shape if task.plan_entry else task.plan(case.inputs)
    grid, block, shared = checked_plan(shape, task.plan_entry or task.entry, target.limits)
    outputs, inputs = judges_buffers(task, case)
    arguments = tuple(
        MapOf(*task.maps[name])
        if name in task.maps
        else name
        if name in outputs or name in inputs
        else _number(case.inputs[name])
        for name in task.arguments
    )
    kernels, steps = (told.kernel.checked(),), (LaunchStep(0, grid, block, shared, arguments),)
    names, counts = (tuple(outputs), tuple(inputs)), task.counts_of(case)
    return Order(target.arch, kernels, inputs | outputs, steps, *names, counts, task.most_s, task.mbarriers)


def _number(value) -> tuple:
    return np.asarray(value).dtype.name, plain_copy(value)
