"""The runs of the capstone: float64 as PyTorch has it, and bands that right answers keep."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from warplab.models import training_runs
from warplab.models.drawn_digits import drawn_digits
from warplab.models.training_runs import TIMED, WEIGHTS, mlp_run, mlp_scores, mlp_start, torch_mlp
from warplab.tasks import registry, text_run

RUN = registry.get("ps13/train_mlp")
NUMBERS = {name: TIMED[name] for name in TIMED if name not in ("batch", "steps")}


def small_run(seed, **numbers):
    rng = np.random.default_rng(seed)
    images, labels = drawn_digits(rng, 52, 5, 7)
    started = mlp_start(rng, 25, 11, 7)
    return {"images": images, "labels": labels, **started, "batch": 16, "steps": 8} | NUMBERS | numbers


@pytest.mark.parametrize(
    "numbers", [{}, {"eps": 1e-3, "decay": 0.5, "beta1": 0.7}, {"batch": 52, "steps": 2}]
)
def test_the_run_is_pytorchs_in_float64(numbers):
    inputs = small_run(1, **numbers)
    arrays = [torch.from_numpy(inputs[name]) for name in ("images", "labels", *WEIGHTS)]
    arrays = [array.double() if array.is_floating_point() else array for array in arrays]
    hyper = {name: inputs[name] for name in TIMED}
    losses, weights = torch_mlp(*arrays, **hyper)
    ours = mlp_run(inputs)
    np.testing.assert_allclose(ours["losses"], losses.numpy(), rtol=1e-12)
    for name, weight in zip(WEIGHTS, weights, strict=True):
        np.testing.assert_allclose(ours[name], weight.detach().numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_the_step_that_torch_compile_takes_whole_is_the_same(backend):
    """aot_eager runs the graph of the whole step that torch.compile makes kernels of on CUDA."""
    inputs = small_run(1)
    arrays = [torch.from_numpy(inputs[name]) for name in ("images", "labels", *WEIGHTS)]
    arrays = [array.double() if array.is_floating_point() else array for array in arrays]
    step = training_runs.torch_step
    step = step if backend is None else torch.compile(step, backend=backend, fullgraph=True)
    losses, weights = training_runs.torch_mlp_steps(step, *arrays, **{name: inputs[name] for name in TIMED})
    torch.compiler.reset()
    ours = mlp_run(inputs)
    np.testing.assert_allclose(losses.numpy(), ours["losses"], rtol=1e-12)
    for name, weight in zip(WEIGHTS, weights, strict=True):
        np.testing.assert_allclose(weight.numpy(), ours[name], rtol=1e-9, atol=1e-12)


def test_the_first_loss_of_a_network_without_weights_is_the_logarithm_of_the_classes():
    inputs = small_run(2, steps=1) | {name: np.zeros_like(small_run(2)[name]) for name in WEIGHTS}
    assert mlp_run(inputs)["losses"][0] == pytest.approx(np.log(7))


def test_one_step_of_adamw_by_hand():
    """m = 0.1 * 2, v = 0.01 * 4; unbiased 2 and 4: a step of 0.5 * 2 / 2, and a decay of 0.5 * 0.1."""
    weight, moments = np.array([10.0]), (np.zeros(1), np.zeros(1))
    training_runs.adamw([weight], [np.array([2.0])], [moments], 0, 0.5, 0.9, 0.99, 0.0, 0.1)
    assert weight[0] == pytest.approx(10 - 0.5 * 0.1 * 10 - 0.5)
    assert (moments[0][0], moments[1][0]) == (pytest.approx(0.2), pytest.approx(0.04))


def test_batches_come_in_turn_and_leave_out_a_rest():
    """52 pictures are three batches of 16; the last four are never seen."""
    starts = [training_runs.batch_of(step, 16, 52).start for step in range(5)]
    assert starts == [0, 16, 32, 0, 16]


def test_the_whole_run_learns_what_a_fresh_digit_is():
    numbers = TIMED | {"batch": 32, "steps": 64}
    done = mlp_run(RUN.run(np.random.default_rng(3), "learns", 512, 8, 32, 10, numbers).inputs)
    assert done["losses"][0] > 2 and done["losses"][-8:].mean() < 0.3
    images, labels = drawn_digits(np.random.default_rng(99), 300)
    right = mlp_scores(images, *(done[name] for name in WEIGHTS))[2].argmax(axis=1) == labels
    assert right.mean() > 0.85


def test_drawn_digits_are_the_same_for_the_same_seed_and_as_many_of_each():
    first, labels = drawn_digits(np.random.default_rng(5), 200)
    again, _ = drawn_digits(np.random.default_rng(5), 200)
    assert first.tobytes() == again.tobytes() and first.shape == (200, 64)
    assert np.bincount(labels).tolist() == [20] * 10
    assert first.min() == 0 and first.max() == 1 and np.isfinite(first).all()


def tf32(x):
    """Rounded to the ten bits that a Tensor Core keeps of a float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def gradients_in_tf32(images, labels, w1, b1, w2, b2):
    before = tf32(images) @ tf32(w1) + b1
    hidden = training_runs.gelu(before)
    loss, by_scores = training_runs.cross_entropy(tf32(hidden) @ tf32(w2) + b2, labels)
    by_before = tf32(by_scores) @ tf32(w2).T * training_runs.gelu_slope(before)
    products = tf32(images).T @ tf32(by_before), tf32(hidden).T @ tf32(by_scores)
    return loss, (products[0], by_before.sum(0), products[1], by_scores.sum(0))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 12))])
def test_factors_in_tf32_keep_the_bands(seed, monkeypatch):
    for case in RUN.cases(seed):
        want, limits = RUN.expected(case)
        monkeypatch.setattr(training_runs, "mlp_gradients", gradients_in_tf32)
        got = mlp_run(case.inputs)
        monkeypatch.undo()
        for name in case.only or want:
            assert (np.abs(got[name] - want[name]) / limits[name]).max() < 0.8, (case.name, name)


def test_the_transformers_gradients_are_pytorchs():
    rng = np.random.default_rng(4)
    start = {name: w.astype(np.float64) for name, w in text_run.text_start(rng, 7, 5, 6, 9).items()}
    tokens = rng.integers(0, 7, 16)
    w = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    x = w["table"][torch.tensor(tokens[:15])] + w["places"].repeat(3, 1)
    q, k, v = ((x @ w[name]).reshape(3, 1, 5, 6) for name in ("wq", "wk", "wv"))
    y = x + functional.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(15, 6)
    normed = functional.layer_norm(y, (6,), w["gain"], w["shift"], text_run.NORM)
    z = y + functional.gelu(normed @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
    loss = functional.cross_entropy(z @ w["wo"] + w["bo"], torch.tensor(tokens[1:]))
    loss.backward()
    ours, gradients = text_run.text_gradients(tokens[:15], tokens[1:], 5, start)
    assert ours == pytest.approx(loss.item(), rel=1e-12)
    for name in text_run.TEXT_WEIGHTS:
        np.testing.assert_allclose(gradients[name], w[name].grad.numpy(), rtol=1e-9, atol=1e-12)


def test_the_rhyme_is_learnt_and_what_is_written_begins_as_asked():
    case = next(case for case in registry.get("ps13/train_text").cases(0) if case.item == "learns")
    done = text_run.text_run(case.inputs | {"steps": 60, "sequences": 4})
    assert done["losses"][0] > 3 and done["losses"][-5:].mean() < 2.5
    text = text_run.write(done, "twinkle", 30, np.random.default_rng(0))
    assert text.startswith("twinkle") and len(text) == 37 and set(text) <= set(text_run.LETTERS)
