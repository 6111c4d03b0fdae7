"""16 points: has no answer when the GPU never wins."""


import numpy as np


def crossover(sizes, cpu, gpu):
    gain = np.log(np.median(cpu, axis=1)) - np.log(np.median(gpu, axis=1))
    losing = np.flatnonzero(gain <= 0)
    if len(losing) == 0:
        return sizes[0]
    last = losing[-1]
    share = gain[last] / (gain[last] - gain[last + 1])
    return sizes[last] * (sizes[last + 1] / sizes[last]) ** share
