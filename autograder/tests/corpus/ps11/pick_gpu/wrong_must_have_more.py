"""10 points: asks for more than what must fit."""

def pick_gpu(cards, need, stage):
    scarce = "bandwidth" if stage == "inference" else "bf16"
    fitting = [n for n in range(len(cards)) if cards[n]["memory"] > need]
    return max(fitting, key=lambda n: (cards[n][scarce] / cards[n]["price"], -cards[n]["price"]), default=-1)
