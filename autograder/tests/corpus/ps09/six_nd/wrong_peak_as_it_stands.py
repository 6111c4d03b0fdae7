"""11 points: takes the peak for what is reached."""

def six_nd(layers, width, context, tokens, gpus, peak, share):
    rule = 6 * 12 * layers * width**2 * tokens
    full = rule + 12 * layers * width * context * tokens
    return rule, full, full / (gpus * peak) / 86_400
