"""8 points: uses the first and the last number of workers only."""

import math

import numpy as np


def amdahl_fit(workers, seconds):
    t = np.median(seconds, axis=1)
    speedup, n = t[0] / t[-1], workers[-1]
    share = min(max((1 / speedup - 1 / n) / (1 - 1 / n), 0.0), 1.0)
    return share, 1 / share if share else math.inf
