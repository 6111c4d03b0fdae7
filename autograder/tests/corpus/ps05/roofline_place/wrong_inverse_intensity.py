"""0 points: bytes for each FLOP."""

def roofline_place(flops, bytes_moved, seconds, peak, bandwidth):
    intensity = bytes_moved / flops
    attainable = min(peak, intensity * bandwidth)
    short = int(intensity >= peak / bandwidth)
    return intensity, attainable, short, flops / seconds / attainable
