"""10 points: with arrays."""

import numpy as np


def scaling_model(gpus, compute, gradient_bytes, bandwidth, latency):
    n = np.array(gpus, dtype=float)
    t = compute / n + 2 * (n - 1) * (gradient_bytes / n / bandwidth + latency)
    return t, compute / n / t, int(n[t == t.min()].min())
