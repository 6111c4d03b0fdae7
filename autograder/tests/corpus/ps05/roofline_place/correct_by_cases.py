"""8 points: decides by times instead of intensities."""


def roofline_place(flops, moved, seconds, peak, bandwidths):
    binds, floor = len(moved), flops / peak
    for level, (n_bytes, bandwidth) in enumerate(zip(moved, bandwidths, strict=True)):
        if n_bytes / bandwidth >= floor:
            binds, floor = level, n_bytes / bandwidth
    return [flops / n_bytes for n_bytes in moved], flops / floor, binds, floor / seconds
