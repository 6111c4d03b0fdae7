"""0 points: the fastest card, whatever it costs."""

def pick_gpu(cards, need, stage):
    scarce = "bandwidth" if stage == "inference" else "bf16"
    fitting = [n for n in range(len(cards)) if cards[n]["memory"] >= need]
    return max(fitting, key=lambda n: (cards[n][scarce], -cards[n]["price"]), default=-1)
