"""16 points: stops at the first size that wins."""

import math

import numpy as np


def crossover(sizes, cpu, gpu):
    gain = np.log(np.median(cpu, axis=1)) - np.log(np.median(gpu, axis=1))
    losing = np.flatnonzero(gain <= 0)
    if len(losing) == 0:
        return sizes[0]
    wins = np.flatnonzero(gain > 0)
    last = wins[0] - 1 if len(wins) else len(sizes) - 1
    if last == len(sizes) - 1:
        return math.inf
    share = gain[last] / (gain[last] - gain[last + 1])
    return sizes[last] * (sizes[last + 1] / sizes[last]) ** share
