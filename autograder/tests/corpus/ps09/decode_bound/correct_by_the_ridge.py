"""10 points: the crossing from the ridge of the card, FLOP a byte."""

import math


def decode_bound(parameters, number, cache, card):
    weights = parameters * number
    seconds = weights / card["bandwidth"] + cache / card["bandwidth"]
    ridge = card["peak"] / card["bandwidth"]
    fit = math.floor((card["memory"] - weights) / cache) if card["memory"] > weights else 0
    return 1 / seconds, ridge * number / 2, fit
