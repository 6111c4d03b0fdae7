"""The references of problem set 13: the chain rule beside finite differences and torch's autograd."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from warplab.tasks import registry

NAMES = ("linear", "activation", "layer_norm", "cross_entropy", "attention", "embedding")


def attend(i, t):
    q, k, v = (t[name].reshape(-1, i["length"], t["q"].shape[1]) for name in "qkv")
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(t["q"].shape)


def batch(i, name, like):
    return i[name][i["first"] :][: len(i[like])]


TORCH = {  # the forward pass of each, of its inputs and of tensors in float64
    "linear": lambda i, t: batch(i | t, "x", "grad_y") @ t["w"] + t["b"],
    "activation": lambda i, t: functional.gelu(t["x"]),
    "layer_norm": lambda i, t: functional.layer_norm(
        t["x"], t["x"].shape[1:], t["gain"], t["shift"], i["eps"]
    ),
    "cross_entropy": lambda i, t: functional.cross_entropy(
        t["logits"], torch.from_numpy(batch(i, "labels", "logits")).long()
    ),
    "attention": attend,
    "embedding": lambda i, t: t["table"][torch.from_numpy(batch(i, "tokens", "grad_y")).long()],
}


def cases(name, seed=11):
    task = registry.get(f"ps13/{name}")
    return task, task.cases(seed)


@pytest.mark.parametrize("name", NAMES)
def test_the_chain_rule_agrees_with_finite_differences(name):
    task, drawn = cases(name)
    checked = 0
    for case in drawn:
        by_rule = task.backward(case.inputs)
        for gradient, (found, error) in task.checked(case.inputs).items():
            checked += 1
            assert np.all(np.abs(found - by_rule[gradient]) <= error), (case.name, gradient)
            assert np.all(error <= 1e-6 * (1 + np.abs(found))), (case.name, gradient)
    assert checked >= 3


@pytest.mark.parametrize("name", NAMES)
def test_the_references_agree_with_torch(name):
    task, drawn = cases(name)
    for case in drawn:
        inputs = case.inputs
        tensors = {
            one: torch.from_numpy(value.astype(np.float64)).requires_grad_()
            for one, value in inputs.items()
            if isinstance(value, np.ndarray) and value.dtype == np.float32
        }
        y = TORCH[name](inputs, tensors)
        incoming = tensors.get(f"grad_{task.through}")
        grads = torch.autograd.grad(y, [tensors[one] for one in task.differentiable], incoming)
        want = task.forward(inputs)[task.through]
        want = want[inputs["step"]] if name == "cross_entropy" else want
        np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-10, atol=1e-10)
        by_rule = task.backward(inputs)
        for one, grad in zip(task.differentiable, grads, strict=True):
            if case.only and f"grad_{one}" not in case.only:
                continue
            got = grad.numpy()
            got = batch(inputs | {"x": got}, "x", "grad_y") if (name, one) == ("linear", "x") else got
            scale = 1e-10 * np.abs(by_rule[f"grad_{one}"]).max() + 1e-13
            np.testing.assert_allclose(got, by_rule[f"grad_{one}"], rtol=1e-9, atol=scale, err_msg=case.name)


def test_adamw_agrees_with_torch_over_ten_steps():
    task, rng = registry.get("ps13/adamw"), np.random.default_rng(13)
    inputs = task.parameters(rng, "update", 40, 1, 0.3).inputs
    start = {name: inputs[name].astype(np.float64) for name in ("weights", "m", "v")}
    weights = torch.nn.Parameter(torch.from_numpy(start["weights"].copy()))
    numbers = {"lr": inputs["rate"], "betas": (inputs["beta1"], inputs["beta2"])}
    theirs = torch.optim.AdamW([weights], eps=inputs["eps"], weight_decay=inputs["decay"], **numbers)
    state = start
    for step in range(1, 11):
        grads = rng.normal(size=40)
        state = task.reference(inputs | state | {"grads": grads, "step": step})
        weights.grad = torch.from_numpy(grads)
        theirs.step()
        np.testing.assert_allclose(weights.detach().numpy(), state["weights"], rtol=1e-10, atol=1e-12)


def test_the_gradients_of_one_row_by_hand():
    """Two classes with equal logits: log 2, and half of the row's weight from one class to the other."""
    task = registry.get("ps13/cross_entropy")
    inputs = {"logits": np.zeros((1, 2), np.float32), "labels": np.array([1], np.int32), "first": 0}
    inputs |= {"step": 0, "losses": np.zeros(1, np.float32)}
    assert task.forward(inputs)["losses"][0] == pytest.approx(0.693147, abs=1e-6)
    assert task.backward(inputs)["grad_logits"].tolist() == [[0.5, -0.5]]
