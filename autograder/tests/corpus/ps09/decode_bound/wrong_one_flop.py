"""7 points: one FLOP a weight."""

def decode_bound(parameters, number, cache, card):
    weights = parameters * number
    one = card["bandwidth"] / (weights + cache)
    crossing = card["peak"] * weights / (parameters * card["bandwidth"])
    return one, crossing, max(0, int((card["memory"] - weights) // cache))
