"""The *kernel* crossing: a kernel is compiled beside the student's code and runs in the executor, from its PTX.

The student's process is told dtypes and numbers of dimensions, and the shapes that a launch plan needs; no value.
"""

import inspect

import numpy as np

from warplab.crossing.errors import Refused
from warplab.crossing.orders import Kernel, Launch, Order, judges_buffers
from warplab.crossing.plan import checked_plan
from warplab.crossing.values import check_callable, plain_copy


def question(task, case):
    """Argument names and types, [dtype, dimensions] each, and the arguments of the student's plan function."""
    outputs = task.result(case.inputs)
    types = [_type(case.inputs[name]) if name not in outputs else _type(np.empty(0, outputs[name][1]), outputs[name][0]) for name in task.arguments]
    plan = plain_copy(task.plan_arguments(case.inputs)) if task.plan_entry else None
    return {"arguments": list(task.arguments), "types": types, "plan": plan, "arch": _arch(task, case)}


def _arch(task, case):
    """What is compiled for: the same on every machine, but for a timed row, which runs on this machine's own device."""
    from warplab.device import arch, device

    return device().arch if task.is_timed(case) else arch()


def _type(value, shape=None):
    """["float32", 2] of a matrix, ["int64", 0] of a Python int: what numba and a C++ compiler make of it."""
    if type(value) is np.ndarray:
        return [value.dtype.name, len(value.shape if shape is None else shape), "array"]
    return [np.asarray(value).dtype.name, 0, "number"]


def answer(question, names, entry, plan, call):
    """Compile the kernel and ask for the launch plan. names: (entry, plan entry). Returns plain data."""
    kernel = compiled(entry, names[0], question["types"], question["arch"], question["arguments"])
    shape = None
    if question["plan"] is not None:
        if plan is None:
            raise Refused(f"this task also needs your launch plan: pass plan={names[1]}")
        check_callable(plan, names[1])
        shape = list(checked_plan(plan(**question["plan"]), names[1]))
    return {"kernel": vars(kernel), "shape": shape}


def compiled(entry, name, types, arch, arguments=()):
    """The Kernel of a @cuda.jit dispatcher or a warplab.cuda_kernel for arguments of these types."""
    from warplab.device import capability
    from warplab.simt.frontends.cuda_cpp import CudaKernel
    from warplab.simt.frontends.launch import ptx_of
    from warplab.simt.toolchain.nvrtc import compile_ptx

    if type(entry) is CudaKernel:
        ptx, symbol = compile_ptx(entry.source, entry.name, arch)
        return Kernel.from_plain({"name": entry.name, "entry": symbol, "modules": [ptx], "abi": "c"})
    check_kernel(entry, name)
    expected = len(inspect.signature(entry.py_func).parameters)
    if expected != len(types):
        told = f": {', '.join(arguments)}" if arguments else ""
        raise Refused(f"`{name}` takes {expected} arguments, and {len(types)} are passed{told}")
    kernel = entry.compile(tuple(_numba_type(*one) for one in types))
    major, minor = capability(arch)
    modules = ptx_of(kernel, (major, minor, "a" if (major, minor) >= (9, 0) else ""))
    return Kernel.from_plain({"name": entry.py_func.__name__, "entry": kernel.entry_name, "modules": list(modules), "abi": "numba"})


def _numba_type(dtype, dimensions, kind):
    from numba.cuda import types
    from numba.cuda.np.numpy_support import from_dtype

    scalar = from_dtype(np.dtype(dtype))
    return types.Array(scalar, dimensions, "C") if kind == "array" else scalar


def check_kernel(entry, name):
    """Raise Refused unless `entry` is a launchable @cuda.jit kernel."""
    from numba.cuda.dispatcher import CUDADispatcher

    if type(entry) is not CUDADispatcher:
        what = "None" if entry is None else f"a {type(entry).__name__}"
        raise Refused(f"`{name}` must be a kernel, and it is {what}: put @cuda.jit above `def {name}(...)`")
    if entry.targetoptions.get("device"):
        raise Refused(f"`{name}` is a device function; a kernel has @cuda.jit without device=True")


def finish(task, case, answer, host):
    """The Order for the executor. Raises Refused where the answer is not what compiled() and a plan give."""
    if type(answer) is not dict or set(answer) != {"kernel", "shape"}:
        raise Refused("what came back is not a compiled kernel")
    kernel = Kernel.from_plain(answer["kernel"])
    shape = answer["shape"] if task.plan_entry else task.plan(case.inputs)
    grid, block, shared = checked_plan(shape, task.plan_entry or task.entry)
    outputs, inputs = judges_buffers(task, case)
    arguments = tuple(name if name in outputs or name in inputs else _number(case.inputs[name]) for name in task.arguments)
    return Order(
        _arch(task, case),
        (kernel,),
        inputs | outputs,
        (Launch(0, grid, block, shared, arguments),),
        tuple(outputs),
        tuple(inputs),
        task.counts_of(case),
    )


def _number(value):
    return np.asarray(value).dtype.name, plain_copy(value)
