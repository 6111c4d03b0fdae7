"""The training run of the capstone in float64: the network's losses and weights, step by step.

It is written in NumPy, so that each line can be compared with the kernel that does it; a test compares it
with PyTorch's run in float64, by its autograd and its AdamW.
"""

import functools
import math

import numpy as np

WEIGHTS = ("w1", "b1", "w2", "b2")


def batch_of(step, batch, pictures):
    """The rows of the pictures for step number `step`; a last incomplete batch is left out."""
    first = step % (pictures // batch) * batch
    return slice(first, first + batch)


def mlp_start(rng, pixels, hidden, classes):
    """Initial weights, float32: w1 [pixels, hidden], b1, w2 [hidden, classes], b2."""
    return {
        "w1": (rng.normal(size=(pixels, hidden)) * np.sqrt(2 / pixels)).astype(np.float32),
        "b1": (0.1 * rng.normal(size=hidden)).astype(np.float32),
        "w2": (rng.normal(size=(hidden, classes)) * np.sqrt(1 / hidden)).astype(np.float32),
        "b2": (0.1 * rng.normal(size=classes)).astype(np.float32),
    }


def below(x):
    """P(x), the normal distribution function, which is the factor of x in GELU; accurate in float64."""
    return np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2)) / 2


def density(x):
    """p(x), the normal density."""
    with np.errstate(over="ignore"):
        return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu(x):
    """x P(x), GELU in its exact form."""
    return x * below(x)


def gelu_slope(x):
    """The derivative of gelu: P(x) + x p(x)."""
    return below(x) + x * density(x)


def mlp_scores(images, w1, b1, w2, b2):
    """(before, hidden, scores) of a batch: images @ w1 + b1, gelu of that, and hidden @ w2 + b2."""
    before = images @ w1 + b1
    hidden = gelu(before)
    return before, hidden, hidden @ w2 + b2


def cross_entropy(scores, labels):
    """(mean loss, gradient with respect to the scores) of a softmax over each row of the scores."""
    rows = np.arange(len(labels))
    shifted = scores - scores.max(axis=1, keepdims=True)
    chances = np.exp(shifted)
    total = chances.sum(axis=1, keepdims=True)
    loss = (np.log(total[:, 0]) - shifted[rows, labels]).mean()
    gradient = chances / total
    gradient[rows, labels] -= 1
    return loss, gradient / len(labels)


def mlp_gradients(images, labels, w1, b1, w2, b2):
    """(loss, gradients with respect to w1, b1, w2, b2) of one batch."""
    before, hidden, scores = mlp_scores(images, w1, b1, w2, b2)
    loss, by_scores = cross_entropy(scores, labels)
    by_before = by_scores @ w2.T * gelu_slope(before)
    return loss, (images.T @ by_before, by_before.sum(0), hidden.T @ by_scores, by_scores.sum(0))


def adamw(weights, gradients, moments, step, rate, beta1, beta2, eps, decay):
    """One step of AdamW, in place, on arrays or tensors; step counts from 0.

    moments: a list of (m, v), zeros before step 0.
    """
    for w, g, (m, v) in zip(weights, gradients, moments, strict=True):
        m += (1 - beta1) * (g - m)
        v += (1 - beta2) * (g * g - v)
        unbiased_m, unbiased_v = m / (1 - beta1 ** (step + 1)), v / (1 - beta2 ** (step + 1))
        w -= rate * decay * w
        w -= rate * unbiased_m / (unbiased_v**0.5 + eps)


def mlp_run(inputs):
    """{"losses": one for each step, and the weights after the last}, all float64.

    inputs: images, labels, the four weights, batch, steps, rate, beta1, beta2, eps, decay.
    """
    images, labels = inputs["images"].astype(np.float64), inputs["labels"]
    weights = [inputs[name].astype(np.float64) for name in WEIGHTS]
    moments = [(np.zeros_like(w), np.zeros_like(w)) for w in weights]
    hyper = [inputs[name] for name in ("rate", "beta1", "beta2", "eps", "decay")]
    losses = np.empty(inputs["steps"])
    for step in range(inputs["steps"]):
        rows = batch_of(step, inputs["batch"], len(images))
        losses[step], gradients = mlp_gradients(images[rows], labels[rows], *weights)
        adamw(weights, gradients, moments, step, *hyper)
    return {"losses": losses, **dict(zip(WEIGHTS, weights, strict=True))}


TIMED = {"batch": 128, "steps": 128, "rate": 2e-2, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "decay": 0.1}
"""The hyperparameters of a run that is timed beside torch's."""


def torch_mlp(images, labels, *weights, batch, steps, rate, beta1, beta2, eps, decay):
    """(losses, the four weights) of mlp_run by PyTorch, its autograd and its AdamW, on its tensors."""
    import torch
    from torch.nn import functional

    weights = [weight.clone().requires_grad_() for weight in weights]
    w1, b1, w2, b2 = weights
    labels = labels.long()
    optimiser = torch.optim.AdamW(weights, rate, (beta1, beta2), eps, decay)
    losses = []
    for step in range(steps):
        rows = batch_of(step, batch, len(images))
        scores = functional.gelu(images[rows] @ w1 + b1) @ w2 + b2
        loss = functional.cross_entropy(scores, labels[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses), weights


def torch_step(images, labels, weights, moments, step, *hyper):
    """One training step on PyTorch's tensors, in place, written for torch.compile; returns the loss.

    step: a tensor, so that its value does not lead to a new compilation.
    """
    import torch
    from torch.nn import functional

    def loss_of(w1, b1, w2, b2):
        return functional.cross_entropy(functional.gelu(images @ w1 + b1) @ w2 + b2, labels)

    gradients, loss = torch.func.grad_and_value(loss_of, (0, 1, 2, 3))(*weights)
    adamw(weights, gradients, moments, step, *hyper)
    return loss


def torch_mlp_steps(one_step, images, labels, *weights, batch, steps, **hyper):
    """(losses, the four weights) of mlp_run by `one_step`, which is torch_step or its compiled version."""
    import torch

    weights = [weight.clone() for weight in weights]
    moments = [(torch.zeros_like(w), torch.zeros_like(w)) for w in weights]
    numbers, labels, losses = torch.arange(steps, dtype=images.dtype).to(images.device), labels.long(), []
    for step in range(steps):
        rows = batch_of(step, batch, len(images))
        losses.append(one_step(images[rows], labels[rows], weights, moments, numbers[step], *hyper.values()))
    return torch.stack(losses), weights


@functools.cache
def compiled_step():
    """torch_step compiled by torch.compile, at the first call."""
    import torch

    return torch.compile(torch_step, fullgraph=True)


def torch_mlp_compiled(images, labels, *weights):
    """mlp_run by the compiled step, with the hyperparameters of TIMED."""
    return torch_mlp_steps(compiled_step(), images, labels, *weights, **TIMED)


def torch_mlp_timed(images, labels, *weights):
    """torch_mlp() with the hyperparameters of TIMED, with which a timed row is compared."""
    return torch_mlp(images, labels, *weights, **TIMED)
