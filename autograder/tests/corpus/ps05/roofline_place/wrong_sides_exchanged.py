"""6 points: left and right of the ridge exchanged."""

def roofline_place(flops, bytes_moved, seconds, peak, bandwidth):
    intensity = flops / bytes_moved
    attainable = min(peak, intensity * bandwidth)
    short = int(intensity < peak / bandwidth)
    return intensity, attainable, short, flops / seconds / attainable
