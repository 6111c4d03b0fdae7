"""0 points: messages without end."""

import numpy as np


def ring(comm, x):
    while True:
        comm.send((comm.rank + 1) % comm.size, np.zeros(0))
