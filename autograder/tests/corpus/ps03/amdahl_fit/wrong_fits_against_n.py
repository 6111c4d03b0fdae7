"""0 points: a straight line in n instead of 1/n."""

import math

import numpy as np


def amdahl_fit(workers, seconds):
    b, a = np.polyfit(np.array(workers), np.median(seconds, axis=1), 1)
    share = min(max(a / (a + b), 0.0), 1.0)
    return share, 1 / share if share else math.inf
