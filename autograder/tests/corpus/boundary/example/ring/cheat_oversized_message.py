"""0 points: half a gigabyte to the neighbour."""

import numpy as np


def ring(comm, x):
    comm.send((comm.rank + 1) % comm.size, np.zeros(1 << 26))
    return x
