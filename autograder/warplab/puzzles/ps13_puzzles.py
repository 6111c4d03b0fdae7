"""The puzzles at the start of problem set 13: products, loss, AdamW and attention of a training step."""

import numpy as np

from warplab.puzzles.blank import Puzzle, asks, reference
from warplab.tasks import registry


@asks("ps13/products")
def products():
    batch, inputs, outputs = 2, 3, 5
    given = {
        "x": np.ones((batch, inputs), np.float32),
        "first": 0,
        "w": np.ones((inputs, outputs), np.float32),
        "b": np.zeros(outputs, np.float32),
        "grad_y": np.ones((batch, outputs), np.float32),
    }
    found = reference("ps13/linear", **given)
    # all factors are 1, so a product's elements sum to its number of multiply-adds
    forward, by_batch, by_weights = (round(np.sum(found[name])) for name in ("y", "grad_x", "grad_w"))
    return Puzzle(
        (by_batch + by_weights) / forward,
        "grad_y @ w.T and x.T @ grad_y: each pairs every row of the batch with every weight once more. So a "
        "training step costs three times what it costs to answer.",
        {
            1: "One for the batch, and one for the weights.",
            3: "Three with the one forward. How many of them come backward?",
        },
        "Write down the shapes of the two gradients, and of the factors that each is a product of.",
    )


@asks("ps13/nothing")
def nothing():
    given = {
        "logits": np.zeros((1, 10), np.float32),
        "labels": np.zeros(1, np.int32),
        "first": 0,
        "step": 0,
        "losses": np.zeros(1, np.float32),
    }
    loss = reference("ps13/cross_entropy", **given)["losses"][0]
    return Puzzle(
        loss,
        f"log 10 is {loss:.2f}, whichever digit it was. A loss curve that begins far above has weights that "
        "are too large to begin with, and one that begins far below has seen the answers.",
        {
            0.1: "That is the probability of the right digit. The loss is minus its logarithm.",
            1: "The logarithm to the base 10. Natural logarithms are asked for.",
            -2.3: "The logarithm of a tenth is negative; the loss is minus that.",
        },
        "Minus the natural logarithm of the probability that the right digit gets.",
        within=4e-3,
    )


@asks("ps13/first_step")
def first_step():
    given = {name: np.zeros(1, np.float32) for name in ("weights", "m", "v")}
    given |= {"grads": np.full(1, 0.001, np.float32), "step": 1, "rate": 0.1, "decay": 0.0}
    given |= {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    moved = abs(reference("ps13/adamw", **given)["weights"][0])
    return Puzzle(
        moved,
        "Corrected for their start at zero, the moments are the gradient and its square, so the step is the "
        "rate times g / |g|. How large the gradient is has gone out of it.",
        {
            0.0001: "Plain gradient descent: rate times gradient. Adam divides by the size of the gradient.",
            0.001: "That is the gradient itself.",
            0.316: "Without bias correction: 0.1 g / sqrt(0.001 g^2), times the rate.",
        },
        "After one step m / (1 - beta1) is g, and v / (1 - beta2) is g^2. What is g over the root of g^2?",
        within=1e-2,
    )


@asks("ps13/causal")
def causal():
    rows = 4
    given = {"length": rows} | {name: np.zeros((rows, 1), np.float32) for name in "qkv"}
    seen = int(np.count_nonzero(registry.get("ps13/attention").weights(given)))
    return Puzzle(
        seen,
        f"1 + 2 + 3 + 4 of {rows * rows}. With many tokens it is half of the square, and a kernel that works "
        "the other half out and throws it away does twice the work.",
        {
            rows * rows: "Without the mask. A token does not see those after it.",
            rows * rows // 2: "Half of the square leaves the diagonal in two: each token sees itself, too.",
            rows * (rows - 1) // 2: "Those below the diagonal; and each token attends to itself.",
        },
        "The first token sees one, the second two.",
    )
