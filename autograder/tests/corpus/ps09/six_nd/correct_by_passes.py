"""15 points: forward once, backward twice."""


def six_nd(layers, width, context, tokens, gpus, peak, share):
    weights = layers * 12 * width**2
    pairs = layers * 2 * context * width
    forward, seen = 2 * weights * tokens, 2 * pairs * tokens
    full = 3 * (forward + seen)
    return 3 * forward, full, full / gpus / peak / share / 24 / 3600
