"""The puzzles that open problem set 6: does it fit."""

import math

from warplab.hardware import specs
from warplab.models import vram
from warplab.puzzles.blank import Puzzle, asks


@asks("ps06/plain")
def plain():
    single, mixed = ({"precision": p, "optimizer": "adam"} for p in ("fp32", "mixed"))

    def state(recipe):
        from warplab.tasks.ps06 import state_of

        return state_of(1, recipe)

    return Puzzle(
        state(single),
        f"Weight 4, gradient 4, two moments 8. And with mixed precision: 2 + 2 + 4 + 8 = {state(mixed)}. "
        "Shorter numbers save nothing here, since the FP32 copy takes what they spare. They save "
        "activations, and time.",
        {
            4: "That is the weight alone.",
            8: "Weight and gradient. Adam keeps two more numbers for each parameter.",
            12: "Something is missing: weight, gradient, and Adam's two moments.",
            20: "In FP32 throughout there is no second copy of the weights.",
        },
        "Weight, gradient, and Adam's two moments, four bytes each.",
    )


@asks("ps06/cards")
def cards():
    card = int(specs.get("rtx-4090")["memory_capacity"].si)
    state = sum(vram.training_bytes(7e9, "mixed, Adam").values())
    return Puzzle(
        math.ceil(state / card),
        f"{state / 1e9:.0f} GB of weights, gradients and optimiser, before the first activation. The "
        f"16-bit weights alone are {7e9 * 2 / 1e9:.0f} GB: such a card can serve what it cannot train.",
        {
            1: f"The weights alone would fit, {7e9 * 2 / 1e9:.0f} GB. Training keeps more for every "
            "parameter.",
            math.ceil(7e9 * 4 / card): "That is enough for weights and gradients. And the optimiser?",
        },
        "Count the bytes that are kept for each parameter, then times 7 billion.",
    )


@asks("ps06/again")
def again():
    forward, backward = 1, 2
    factor = (2 * forward + backward) / (forward + backward)
    return Puzzle(
        factor,
        f"{2 * forward + backward} parts instead of {forward + backward}: a third more arithmetic, and of "
        "all activations only the layers' inputs stay. Memory is bought with time, at a known price.",
        {
            2: "Only the forward half is done twice. The way back is as long as before.",
            1.5: "That would be right if the way back cost as much as the way there.",
            1: "The layers do run once more.",
        },
        "Before: forward 1, backward 2. Now forward runs twice.",
        within=0.02,
    )


@asks("ps06/segments")
def segments():
    layers = 100
    kept = {every: layers / every + every for every in range(1, layers + 1) if layers % every == 0}
    best = min(kept, key=lambda every: kept[every])
    return Puzzle(
        best,
        f"{layers // best} inputs and {best} results at a time: {kept[best]:g} instead of {layers}. It is "
        "the square root, so a network four times as deep needs only twice the room.",
        {1: f"Then all {layers} inputs are kept, and one layer is made again at a time: {kept[1]:g}."},
        lambda every: (
            f"{layers} / {every:g} + {every:g} = {layers / every + every:g}. There is less."
            if every > 0
            else "At least every layer's: 1."
        ),
    )
