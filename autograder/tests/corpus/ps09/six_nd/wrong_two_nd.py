"""0 points: forward only."""

def six_nd(layers, width, context, tokens, gpus, peak, share):
    rule = 2 * 12 * layers * width**2 * tokens
    full = rule + 12 * layers * width * context * tokens
    return rule, full, full / (gpus * peak * share) / 86_400
