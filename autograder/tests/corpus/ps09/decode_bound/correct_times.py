"""10 points: compares seconds."""


def decode_bound(parameters, number, cache, card):
    weights = number * parameters
    reading = weights / card["bandwidth"]
    computing = 2 * parameters / card["peak"]
    room = card["memory"] - weights
    return (
        1 / (reading + cache / card["bandwidth"]),
        reading / computing,
        int(room // cache) if room > 0 else 0,
    )
