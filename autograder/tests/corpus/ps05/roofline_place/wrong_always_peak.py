"""7 points: the peak for a roof, everywhere."""

def roofline_place(flops, bytes_moved, seconds, peak, bandwidth):
    intensity = flops / bytes_moved
    attainable = peak
    short = int(intensity >= peak / bandwidth)
    return intensity, attainable, short, flops / seconds / attainable
