"""The puzzles that open problem set 11: choosing and paying."""

import json
import math

import numpy as np

from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps11/second")
def second():
    card = {"bandwidth": 2e12, "bf16": 300e12, "price": 2.0}
    served = {"card": card, "parameters": 7e9, "number": 2, "cache": 0, "share": 0.5}
    one, two = (reference("ps11/cost_per_token", batch=batch, **served)["dollars"] for batch in (1, 2))
    return Puzzle(
        two / one,
        f"{one:.2f} dollars a million tokens become {two:.2f}. One reading of the weights serves two, and "
        "the arithmetic had time to spare. It goes on like this until the arithmetic, or the caches, "
        "take as long as the weights.",
        {
            1: "Two requests, twice the work? The weights are read once for both.",
            2: "The step takes hardly longer, and makes two tokens.",
        },
        "How long does a step take with two requests, and how many tokens does it make?",
    )


@asks("ps11/longer")
def longer():
    def interval(between):
        return reference("ps11/spot_interval", save=0.01, between=between, restart=0.1, price=1.0)["interval"]

    return Puzzle(
        interval(32) / interval(8),
        f"From {60 * interval(8):.0f} minutes to {60 * interval(32):.0f}: with the square root. Twice as "
        "seldom saved, and when it happens twice as much is lost, four times as seldom. The optimum is "
        "where both costs are equal.",
        {
            4: "Then each interruption would cost four times as much work. The root holds the two costs "
            "even.",
            1: "If it happens more seldom, one may save more seldom.",
            16: "The root of 4, not its square.",
        },
        "Look at the formula: what does four times `between` do under a root?",
    )


@asks("ps11/text")
def text():
    rng = np.random.default_rng(11)
    numbers = rng.integers(0, 2**63, 5000, dtype=np.uint64).view(np.float64)
    numbers = [float(one) for one in numbers if math.isfinite(one)]
    same = all(json.loads(json.dumps(one)) == one for one in numbers)
    return Puzzle(
        "yes" if same else "no",
        f"{len(numbers):,} random doubles have just made the trip, and every one came back to the last "
        "bit. Python writes the shortest text that reads back as the same number, so a save in JSON "
        "forgets nothing.",
        {
            "no": "`0.1` is not a tenth, that is true. But its text need not be a tenth either: it only "
            "has to lead back to the same bits."
        },
        'The answer is "yes" or "no".',
    )


@asks("ps11/three")
def three():
    day = {"least": 3, "most": 100, "target": 10, "window": 1}
    calm, crowded = (reference("ps11/autoscale", loads=[load], **day)["replicas"][0] for load in (31, 34))
    return Puzzle(
        calm,
        "31 / 3 is 3 % above the target, and within 10 % nothing is done; at a load of 34 there would be "
        f"{crowded}. Without that tolerance the number would flutter with every visitor.",
        {
            math.ceil(
                3 * 31 / 3 / 10
            ): "That is the formula, right but for the tolerance: how far is 31 / 3 from 10?",
            31: "31 is the load. Three replicas share it.",
        },
        "The load of each replica is 31 / 3. How far is that from the target?",
    )
