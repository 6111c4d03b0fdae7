"""8 points: divides by the measured time of one worker, not by that of the fitted line."""

import math

import numpy as np


def amdahl_fit(workers, seconds):
    t = np.median(seconds, axis=1)
    b, a = np.polyfit(1 / np.array(workers), t, 1)
    share = min(max(a / t[0], 0.0), 1.0)
    return share, 1 / share if share else math.inf
