"""0 points: tries to compute the answer on the host, where there are no values."""

import numpy as np


def scan(device, x, out):
    out[:] = np.cumsum(x)
