"""15 points: allocates until there is no more, in arrays that are written to."""

import numpy as np

kept = []


def launch_plan(width, height, block):
    while True:
        kept.append(np.ones(1 << 27))
