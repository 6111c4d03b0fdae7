"""15 points: sorts the cards that fit."""


def pick_gpu(cards, need, stage):
    scarce = {"inference": "bandwidth", "training": "bf16"}[stage]
    order = sorted(
        range(len(cards)), key=lambda n: (-cards[n][scarce] / cards[n]["price"], cards[n]["price"])
    )
    return next((n for n in order if cards[n]["memory"] >= need), -1)
