"""16 points: walks down from the largest size, and lets np.interp draw the line."""

import math

import numpy as np


def crossover(sizes, cpu, gpu):
    gain = np.log(np.median(cpu, axis=1) / np.median(gpu, axis=1))
    if gain[-1] <= 0:
        return math.inf
    n = len(sizes) - 1
    while n and gain[n - 1] > 0:
        n -= 1
    if n == 0:
        return float(sizes[0])
    return float(np.exp(np.interp(0.0, gain[n - 1 : n + 1], np.log(sizes[n - 1 : n + 1]))))
