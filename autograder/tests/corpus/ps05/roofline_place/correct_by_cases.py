"""15 points: decides by times instead of intensities."""

def roofline_place(flops, bytes_moved, seconds, peak, bandwidth):
    moving, computing = bytes_moved / bandwidth, flops / peak
    floor = max(moving, computing)
    return flops / bytes_moved, flops / floor, 1 if computing >= moving else 0, floor / seconds
