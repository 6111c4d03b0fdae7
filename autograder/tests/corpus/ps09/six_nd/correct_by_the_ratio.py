"""15 points: attention as a share of the rule, context / (6 width)."""


def six_nd(layers, width, context, tokens, gpus, peak, share):
    rule = 72.0 * layers * width * width * tokens
    full = rule * (1 + context / (6 * width))
    seconds = full / gpus / peak / share
    return rule, full, seconds / 60 / 60 / 24
