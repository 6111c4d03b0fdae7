"""The *vjp* crossing: a torch.autograd.Function, whose forward runs in one process and backward in another.

Backward knows only what forward has saved in ctx, which passes through the judge and is counted there.
"""

import contextlib

import msgspec
import numpy as np

from warplab.crossing.arrays import NotPlain, as_array, named
from warplab.crossing.explain import Refused
from warplab.crossing.outcome import Outcome
from warplab.crossing.values import given, modified, plain_copy, result_of, validated

UPSTREAM = "grad_out"
SAVED = {"to_save": ""}  # {attribute that save_for_backward sets: our name for it}
TOLD = "needs_input_grad non_differentiable materialize_grads dirty_tensors".split()  # set for autograd


class Forward(msgspec.Struct, forbid_unknown_fields=True):
    """The answer of the first half.

    kept: [(name of an attribute of ctx, or "" for saved tensors; its value from _packed())].
    """

    outputs: dict[str, np.ndarray]
    kept: list[tuple[str, dict]]
    modified: list[str]


def question(task, case):
    """The inputs that the task's arguments name, without the upstream gradient."""
    return {"inputs": given(task, case), "wanted": list(task.differentiable)}


def second(task, case, answer):
    """The question of the second half (backward), for a process that has not seen the first."""
    told = validated(answer, Forward, "the result of forward")
    shapes = {name: list(np.shape(case.inputs[name])) for name in task.arguments}
    upstream = case.inputs[UPSTREAM].copy()
    return {"kept": [list(one) for one in told.kept], "shapes": shapes, UPSTREAM: upstream}


def answer(question, names, entry, plan, call):
    """One half: {"outputs": y, "kept", "modified"} of forward, or {"outputs": gradients} of backward."""
    import torch

    if not (isinstance(entry, type) and issubclass(entry, torch.autograd.Function)):
        need = f"write `class {names[0]}(torch.autograd.Function)`"
        raise Refused(f"`{names[0]}` must be a torch.autograd.Function, and it is {named(entry)}: {need}")
    with torch.no_grad():  # as autograd calls forward and backward
        half = _backward if "kept" in question else _forward
        return half(torch, entry, question)


def _forward(torch, entry, question):
    inputs = {
        one: torch.from_numpy(value.copy()) if type(value) is np.ndarray else value
        for one, value in question["inputs"].items()
    }
    for one in question["wanted"]:
        inputs[one].requires_grad_()
    ctx, given_to_it = torch.autograd.function.FunctionCtx(), list(inputs.values())
    ctx.needs_input_grad = (True,) * len(inputs)
    if entry.setup_context is not torch.autograd.Function.setup_context:
        y = entry.forward(*given_to_it)
        entry.setup_context(ctx, tuple(given_to_it), y)
    else:
        y = entry.forward(ctx, *given_to_it)
    after = {
        one: value.detach().numpy() if type(value) is torch.Tensor else value for one, value in inputs.items()
    }
    own = {SAVED.get(one, one): value for one, value in vars(ctx).items() if one not in TOLD}
    kept = [[one, _packed(torch, one, value, given_to_it)] for one, value in own.items()]
    changed = modified(question["inputs"], after)
    return {"outputs": {"y": _array(torch, "y", y)}, "kept": kept, "modified": changed}


def _backward(torch, entry, question):
    ctx = torch.autograd.function.FunctionCtx()
    ctx.needs_input_grad, ctx.saved_tensors = (True,) * len(question["shapes"]), ()
    vars(ctx).update({one or "saved_tensors": _unpacked(torch, value) for one, value in question["kept"]})
    gradients = entry.backward(ctx, torch.from_numpy(question[UPSTREAM].copy()))
    gradients = gradients if type(gradients) in (tuple, list) else (gradients,)
    if len(gradients) != len(question["shapes"]):
        expected = f"(expected {len(question['shapes'])}, got {len(gradients)})"
        raise RuntimeError(
            f"function {entry.__name__}Backward returned an incorrect number of gradients {expected}"
        )
    outputs = {}
    for (one, shape), gradient in zip(question["shapes"].items(), gradients, strict=True):
        if gradient is None:
            gradient = torch.zeros(shape)
        with contextlib.suppress(RuntimeError, AttributeError):
            gradient = gradient.sum_to_size(shape)  # as autograd does, where the shapes allow it
        outputs[f"grad_{one}"] = _array(torch, f"grad_{one}", gradient)
    return {"outputs": outputs}


def _packed(torch, name, value, inputs=()):
    """The value of an attribute of ctx as plain data, which _unpacked() reverses; also in lists and tuples.

    inputs: of forward; a tensor that is one of them is marked.
    """
    if type(value) is torch.Tensor or type(value) is torch.nn.Parameter:
        return {"tensor": _array(torch, f"ctx.{name}", value), "input": any(value is one for one in inputs)}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(torch, name, inner, inputs) for inner in value]}
    try:
        return {"plain": plain_copy(value)}
    except TypeError as problem:
        raise Refused(f"`ctx.{name}` cannot be kept for backward: {problem}") from None


def _unpacked(torch, packed):
    (kind, value), *more = packed.items()
    if kind == "tensor":
        leaf = more == [("input", True)] and value.dtype.kind == "f"
        return torch.from_numpy(value.copy()).requires_grad_(leaf)
    if kind == "plain":
        return value
    return (list if kind == "list" else tuple)(_unpacked(torch, inner) for inner in value)


def _array(torch, name, tensor):
    if type(tensor) is not torch.Tensor:
        raise Refused(f"`{name}` must be a tensor, and it is {named(tensor)}")
    try:
        return as_array(tensor, str(tensor.dtype).removeprefix("torch."))
    except (NotPlain, TypeError) as problem:
        raise Refused(f"`{name}`: {problem}") from None


def finish(task, case, answers, host):
    """The Outcome of both halves. answers: [of forward, of backward].

    Counters: "saved_bytes", the size of all distinct values that forward kept; "made_bytes", of those that
    are not inputs of forward.
    """
    first, last = answers
    told = validated(first, Forward, "the result of forward")
    gradients = result_of(last).outputs
    outputs = result_of({"outputs": told.outputs}).outputs
    outputs |= {name: array for name, array in gradients.items() if name not in outputs}
    kept = {_form(leaf): _size(leaf) for leaf in _leaves([list(one) for one in told.kept])}
    given_to_it = {_form(case.inputs[name]) for name in task.arguments}
    made = sum(size for form, size in kept.items() if form not in given_to_it)
    counters = {"saved_bytes": float(sum(kept.values())), "made_bytes": float(made)}
    changed = tuple(name for name in told.modified if name in case.inputs)
    return Outcome("", outputs, counters, changed)


def _leaves(data):
    """All arrays, numbers and strings in plain data from _packed()."""
    if type(data) is list:
        return [leaf for value in data for leaf in _leaves(value)]
    if type(data) is not dict:
        return [data]
    texts = [name for name in data if name not in ("tensor", "input", "list", "tuple", "plain")]
    return [*texts, *_leaves([value for value in data.values() if type(value) is not bool])]


def _size(leaf):
    return leaf.nbytes if type(leaf) is np.ndarray else len(str(leaf))


def _form(leaf):
    """A hashable key that is the same for two equal leaves."""
    if type(leaf) is not np.ndarray:
        return type(leaf), leaf
    return leaf.dtype.str, leaf.shape, leaf.tobytes()
