"""0 points: the cheapest card that fits."""


def pick_gpu(cards, need, stage):
    fitting = [n for n in range(len(cards)) if cards[n]["memory"] >= need]
    return max(fitting, key=lambda n: -cards[n]["price"], default=-1)
