"""15 points: row by row and number by number, with Python's own round."""

import numpy as np


def quantize_int8(w, reach):
    q, scales, bounds = np.empty(w.shape, np.int8), np.empty(len(w), np.float32), []
    for row, weights in enumerate(w.astype(np.float64)):
        scale = max(abs(weights)) / 127 or 1.0
        q[row] = [round(weight / scale) for weight in weights.tolist()]
        scales[row] = scale
        bounds.append(reach * max(abs(weights - scale * q[row])))
    return q, scales, bounds
