"""7 points: a negative number of readers."""

def decode_bound(parameters, number, cache, card):
    weights = parameters * number
    one = card["bandwidth"] / (weights + cache)
    crossing = card["peak"] * weights / (2 * parameters * card["bandwidth"])
    return one, crossing, int((card["memory"] - weights) // cache)
