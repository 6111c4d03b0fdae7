"""4 points: returns the first timed size from which the GPU wins."""

import math

import numpy as np


def crossover(sizes, cpu, gpu):
    gain = np.log(np.median(cpu, axis=1)) - np.log(np.median(gpu, axis=1))
    losing = np.flatnonzero(gain <= 0)
    if len(losing) == 0:
        return sizes[0]
    last = losing[-1]
    if last == len(sizes) - 1:
        return math.inf
    return sizes[last + 1]
