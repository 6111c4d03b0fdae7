"""6 points: forgets the cache of the reader."""

def decode_bound(parameters, number, cache, card):
    weights = parameters * number
    one = card["bandwidth"] / weights
    crossing = card["peak"] * weights / (2 * parameters * card["bandwidth"])
    return one, crossing, max(0, int((card["memory"] - weights) // cache))
