"""The *vjp* crossing: inputs and an upstream gradient in, the result and its gradients out, by autograd.

What can only be seen here, beside the student's code, is what is kept for the way back: by autograd, or by
the student in an attribute or a variable of their own.
"""

import contextlib
import copy
import gc
import tracemalloc

import numpy as np

from warplab.crossing.arrays import NotPlain, as_array
from warplab.crossing.explain import Refused
from warplab.crossing.values import check_callable, described, given, modified

UPSTREAM = "grad_out"


def question(task, case):
    """The inputs that the task's arguments name, those to be differentiated by, and the upstream gradient."""
    upstream = given(task, case) | {UPSTREAM: case.inputs[UPSTREAM].copy()}
    return {"inputs": upstream, "wanted": list(task.differentiable)}


def answer(question, names, entry, plan, call):
    """y = entry(*inputs as tensors), then the gradients of sum(y * grad_out).

    It counts "saved_bytes", of distinct storages that autograd saved or that were made on the way and live
    on, NumPy's among them; "made_bytes", those of them that are not the inputs'; "functions", the
    torch.autograd.Functions of the student's on the way back; and "operations", autograd's own on the way
    back that keep a tensor for it.
    """
    import torch

    check_callable(entry, names[0])
    held = copy.deepcopy(question["inputs"])
    upstream = torch.from_numpy(held.pop(UPSTREAM))
    tensors = {
        name: torch.from_numpy(value) if hasattr(value, "dtype") else value for name, value in held.items()
    }
    wanted = [tensors[name].requires_grad_() for name in question["wanted"]]
    saved = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    tracemalloc.start()
    try:
        with living(torch) as made, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = entry(*tensors.values())
        saved |= arrays_still_there()
    finally:
        tracemalloc.stop()
    _check_result(torch, names[0], y, upstream.shape)
    ours = {one.untyped_storage().data_ptr() for one in tensors.values() if type(one) is torch.Tensor}
    saved |= still_there(made, {y.untyped_storage().data_ptr(), *ours, *saved})
    functions, operations = steps_behind(torch, y)
    gradients = torch.autograd.grad(y, wanted, upstream, allow_unused=True)
    outputs = {"y": _array("y", y)}
    for name, tensor, gradient in zip(question["wanted"], wanted, gradients, strict=True):
        gradient = torch.zeros_like(tensor) if gradient is None else gradient
        outputs[f"grad_{name}"] = _array(f"grad_{name}", gradient)
    before = {name: value for name, value in question["inputs"].items() if name != UPSTREAM}
    after = {
        name: one.detach().numpy() if type(one) is torch.Tensor else one for name, one in tensors.items()
    }
    made_bytes = sum(size for place, size in saved.items() if place not in ours)
    counters = {"saved_bytes": sum(saved.values()), "made_bytes": made_bytes}
    counters |= {"functions": functions, "operations": operations}
    return {
        "outputs": outputs,
        "modified": modified(before, after),
        "counters": {name: float(count) for name, count in counters.items()},
    }


def _check_result(torch, name, y, shape) -> None:
    """Raises Refused unless autograd can go back from ``y``, a tensor of this shape."""
    if type(y) is not torch.Tensor:
        raise Refused(f"`{name}` must return a tensor, and it returned {described(y)}")
    if y.shape != shape:
        raise Refused(f"`{name}` returned a tensor of shape {tuple(y.shape)}, expected {tuple(shape)}")
    if not y.requires_grad:
        raise Refused(f"what `{name}` returned is cut off from its inputs: autograd cannot go back from it")


@contextlib.contextmanager
def living(torch):
    """Inside, each storage that an operation makes is noted: {address: (weak reference, bytes)}."""
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.overrides import TorchFunctionMode  # a TorchDispatchMode imports 900 modules

    made = {}

    class SeesTensors(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else (result,):
                if type(tensor) is torch.Tensor:
                    storage = tensor.untyped_storage()
                    made[storage.data_ptr()] = StorageWeakRef(storage), storage.nbytes()
            return result

    with SeesTensors():
        yield made


def arrays_still_there():
    """{place: bytes} of NumPy's memory that was taken since tracemalloc began and is still held."""
    only = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    traces = tracemalloc.take_snapshot().filter_traces([only]).traces
    return {("NumPy", place): trace.size for place, trace in enumerate(traces)}


def still_there(made, besides):
    """{address: bytes} of those storages that somebody still holds; `besides`: addresses that are known."""

    def held():
        return {
            place: size
            for place, (storage, size) in made.items()
            if place not in besides and not storage.expired()
        }

    if held():
        gc.collect(1)  # a circle of references is not what anybody keeps; what is old was there before
    return held()


def steps_behind(torch, y):
    """How many torch.autograd.Functions lie between a result and its inputs, and how many operations that
    autograd differentiates itself, with a tensor that it keeps: not a sum or a view, which need none.
    """
    seen, ahead = set(), [y.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            ahead += [following for following, _ in node.next_functions]
    functions = {node for node in seen if isinstance(node, torch.autograd.function.BackwardCFunction)}
    return len(functions), sum(keeps_a_tensor(torch, node) for node in seen - functions)


def keeps_a_tensor(torch, node):
    """Whether one of autograd's own operations keeps a tensor for the way back."""
    kept = (getattr(node, name) for name in dir(node) if name.startswith("_saved_"))
    return any(isinstance(value, torch.Tensor) for value in kept)


def _array(name, tensor):
    try:
        return as_array(tensor, str(tensor.dtype).removeprefix("torch."))
    except (NotPlain, TypeError) as problem:
        raise Refused(f"`{name}`: {problem}") from None
