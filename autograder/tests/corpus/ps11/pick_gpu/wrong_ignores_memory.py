"""10 points: forgets that the model must fit."""

def pick_gpu(cards, need, stage):
    scarce = "bandwidth" if stage == "inference" else "bf16"
    fitting = range(len(cards))
    return max(fitting, key=lambda n: (cards[n][scarce] / cards[n]["price"], -cards[n]["price"]), default=-1)
