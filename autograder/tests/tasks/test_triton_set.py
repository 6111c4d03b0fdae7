"""The references of ps12 against torch in float64, and what its host code may be without a judge."""

import importlib.util

import numpy as np
import pytest
from corpus_files import solution_of

from warplab.tasks import registry, scoring

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("seed", [1, 2])
def test_layer_norm_and_its_way_back_are_those_of_torch(seed):
    for case in registry.get("ps12/layer_norm").cases(seed):
        x, gamma, beta = (torch.tensor(case.inputs[name]).double() for name in ("x", "gamma", "beta"))
        y = torch.nn.functional.layer_norm(x, x.shape[1:], gamma, beta, case.inputs["eps"])
        want = registry.get("ps12/layer_norm").reference(case.inputs)["y"]
        np.testing.assert_allclose(want, y.numpy(), rtol=1e-9, atol=1e-9)
    task = registry.get("ps12/layer_norm_backward")
    for case in task.cases(seed):
        x, gamma = (torch.tensor(case.inputs[name]).double().requires_grad_() for name in ("x", "gamma"))
        beta = torch.zeros_like(gamma, requires_grad=True)
        y = torch.nn.functional.layer_norm(x, x.shape[1:], gamma, beta, 1e-3)
        y.backward(torch.tensor(case.inputs["dy"]).double())
        for name, grad in (("dx", x.grad), ("dgamma", gamma.grad), ("dbeta", beta.grad)):
            want = task.reference(case.inputs)[name]  # with mean and rstd as float32 has them
            torch_rounds = 4e-14 * np.abs(case.inputs["x"]).max()  # of far rows, in its own float64
            atol = 1e-5 * np.abs(want).max() + 1e-9 + torch_rounds
            np.testing.assert_allclose(want, grad.numpy(), rtol=1e-4, atol=atol)


@pytest.mark.parametrize("name", registry.names("ps12"))
def test_where_triton_is_not_installed_no_task_of_the_set_costs_a_point(name, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda one, *of: one != "triton" and found(one, *of) or None
    )
    task = registry.get(name)
    report = scoring.judge(task, task.cases(1), [])
    assert {line.state for line in report.lines} == {"ungraded"}
    assert (report.max, report.ungraded) == (0, sum(item.points for item in task.items))


def test_softmax_is_that_of_torch_where_a_word_may_come():
    for case in registry.get("ps12/fused_softmax").cases(1):
        x = torch.tensor(case.inputs["x"][:, : case.inputs["columns"]]).double()
        want = registry.get("ps12/fused_softmax").reference(case.inputs)["out"]
        none = (x == -torch.inf).all(1).numpy()
        assert np.array_equal(want[none], np.zeros_like(want[none])) and none.any() == (
            case.item == "special"
        )
        np.testing.assert_allclose(want[~none], torch.softmax(x, 1).numpy()[~none], rtol=1e-12)


def test_the_same_host_function_runs_on_tensors():
    pytest.importorskip("triton")
    layer_norm, _ = solution_of("ps12/layer_norm")
    x, gamma, beta = torch.randn(5, 77), torch.rand(77), torch.rand(77)
    y, mean, rstd = torch.empty_like(x), torch.empty(5), torch.empty(5)
    layer_norm(x, gamma, beta, 1e-5, y, mean, rstd)
    torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (77,), gamma, beta))
    torch.testing.assert_close(mean, x.mean(1))
