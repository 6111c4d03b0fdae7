"""The puzzles that open problem set 9: training and inference."""

import numpy as np

from warplab.hardware import specs
from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps09/steps")
def steps():
    weight, step, count = np.float16(1), np.float16(0.0002), 1000
    for _ in range(count):
        weight -= step
    return Puzzle(
        float(weight),
        f"It never moves. Below 1 the numbers of float16 are {2.0**-11:.5f} apart, {float(step):.4f} is "
        "less than half of that, and every step is rounded away. Learning would simply stop: so a master "
        "copy in float32 keeps count.",
        {
            1
            - 0.0002 * count: "So it is on paper. In float16 each step is rounded before the next one comes.",
            0.9998: "That would be one step, and float16 has no such number.",
        },
        "Is there a float16 between 1 and 0.9998? The nearest below 1 is "
        + f"{float(np.nextafter(weight, 0)):.5f}.",
        within=1e-6,
    )


@asks("ps09/flop")
def flop():
    run = {"layers": 1, "width": 64, "context": 1, "tokens": 1, "gpus": 1, "peak": 1.0, "share": 1.0}
    each = reference("ps09/six_nd", **run)["rule"] / (12 * 64**2)
    return Puzzle(
        each / 2,
        f"Forward a weight makes 2 FLOP, on the way back {each - 2:g}: there it is multiplied twice, once "
        f"for the gradient of its input and once for its own. {each:g} in all, whatever the model looks "
        "like.",
        {
            2: "That is right if back costs as much as forward. But back there are two products for each "
            "weight.",
            1: "An answer goes forward only. What does training do besides?",
            each: "So many FLOP it is for each weight. Forward alone takes 2 of them.",
        },
        "Back, the layer owes two gradients, one of its input and one of its weights: two products for "
        "each forward one.",
    )


def desk():
    gpu = specs.get("h100-sxm")
    numbers = {"bandwidth": "memory_bandwidth", "peak": "peak_bf16", "memory": "memory_capacity"}
    card = {name: gpu[key].si for name, key in numbers.items()}
    bound = reference("ps09/decode_bound", parameters=7e9, number=2, cache=1, card=card)
    return card, bound


@asks("ps09/reader")
def reader():
    card, bound = desk()
    compute = card["peak"] / (2 * 7e9)
    return Puzzle(
        bound["one"],
        f"Every token reads all 14 GB, and {card['bandwidth'] / 1e12:.2f} TB/s do that {bound['one']:.0f} "
        f"times a second. The arithmetic alone would allow {compute:,.0f}: it is busy "
        f"{bound['one'] / compute:.1%} of the time.",
        {
            compute: "That is what the Tensor Cores could do. How fast do the weights arrive?",
            card["bandwidth"] / 7e9: "A weight has two bytes here.",
        },
        f"Weights: 14 GB for every token. Bandwidth: {card['bandwidth'] / 1e12:.2f} TB/s.",
        within=0.03,
    )


@asks("ps09/company")
def company():
    card, bound = desk()
    return Puzzle(
        bound["crossing"],
        f"{bound['crossing']:.0f} requests cost hardly more time than one, because the weights, once read, "
        "serve them all. That is the whole economy of serving. (Caches are left out here; in task 4 they "
        "take their room.)",
        {
            card["peak"] / card["bandwidth"] / 2: "A weight is two bytes and two FLOP: the two cancel.",
            1: "With one request the arithmetic waits nearly all the time.",
            card["memory"] // 14e9: "That is how often the weights fit into its memory.",
        },
        f"A token takes 2 FLOP a weight, of {card['peak'] / 1e12:.0f} TFLOP/s; reading a weight takes 2 "
        f"bytes, of {card['bandwidth'] / 1e12:.2f} TB/s.",
        within=0.03,
    )


@asks("ps09/half")
def half():
    kept, places, dense = 2 * 16, 2 * 2, 4 * 16
    return Puzzle(
        (kept + places) / dense,
        f"Two values of 16 bits and two places of 2 bits: {kept + places} of {dense} bits. Half of the "
        "arithmetic, a little more than half of the bytes: somebody has to write down where the numbers "
        "stood.",
        {
            0.5: "That is the values alone. How would a reader know which two of the four they were?",
            kept + places: "So many bits it is. As a share of the four numbers?",
        },
        f"Four numbers are {dense} bits. Two stay, and for each a place from 0 to 3.",
        within=0.01,
    )
