"""10 points: attention without its way back."""

def six_nd(layers, width, context, tokens, gpus, peak, share):
    rule = 6 * 12 * layers * width**2 * tokens
    full = rule + 4 * layers * width * context * tokens
    return rule, full, full / (gpus * peak * share) / 86_400
