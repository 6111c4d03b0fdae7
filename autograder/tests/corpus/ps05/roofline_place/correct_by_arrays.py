"""8 points: all levels at once, as arrays."""

import numpy as np


def roofline_place(flops, moved, seconds, peak, bandwidths):
    intensities = flops / np.asarray(moved)
    roofs = intensities * np.asarray(bandwidths)
    attainable = min(peak, float(roofs.min()))
    binds = int(roofs.argmin()) if roofs.min() <= peak else len(moved)
    return intensities, attainable, binds, flops / seconds / attainable
