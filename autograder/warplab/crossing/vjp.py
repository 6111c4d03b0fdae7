"""The *vjp* crossing: inputs and an upstream gradient in, the result and its gradients out, by autograd.

What can only be seen here, beside the student's code, is the number of bytes that autograd keeps for the way
back.
"""

import copy

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

    It counts the bytes of distinct saved storages.
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

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = entry(*tensors.values())
    if type(y) is not torch.Tensor:
        raise Refused(f"`{names[0]}` must return a tensor, and it returned {described(y)}")
    if y.shape != upstream.shape:
        raise Refused(
            f"`{names[0]}` returned a tensor of shape {tuple(y.shape)}, expected {tuple(upstream.shape)}"
        )
    if not y.requires_grad:
        raise Refused(
            f"what `{names[0]}` returned is cut off from its inputs: autograd cannot go back from it"
        )
    gradients = torch.autograd.grad(y, wanted, upstream, allow_unused=True)
    outputs = {"y": _array("y", y)}
    for name, tensor, gradient in zip(question["wanted"], wanted, gradients, strict=True):
        outputs[f"grad_{name}"] = _array(
            f"grad_{name}", torch.zeros_like(tensor) if gradient is None else gradient
        )
    before = {name: value for name, value in question["inputs"].items() if name != UPSTREAM}
    after = {
        name: tensor.detach().numpy() if type(tensor) is torch.Tensor else tensor
        for name, tensor in tensors.items()
    }
    return {
        "outputs": outputs,
        "modified": modified(before, after),
        "counters": {"saved_bytes": float(sum(saved.values()))},
    }


def _array(name, tensor):
    try:
        return as_array(tensor, str(tensor.dtype).removeprefix("torch."))
    except (NotPlain, TypeError) as problem:
        raise Refused(f"`{name}`: {problem}") from None
