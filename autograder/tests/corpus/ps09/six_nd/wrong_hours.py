"""11 points: hours for days."""

def six_nd(layers, width, context, tokens, gpus, peak, share):
    rule = 6 * 12 * layers * width**2 * tokens
    full = rule + 12 * layers * width * context * tokens
    return rule, full, full / (gpus * peak * share) / 3600
