"""10 points: lets noise make the share negative."""

import math

import numpy as np


def amdahl_fit(workers, seconds):
    b, a = np.polyfit(1 / np.array(workers), np.median(seconds, axis=1), 1)
    share = a / (a + b)
    return share, 1 / share if share else math.inf
