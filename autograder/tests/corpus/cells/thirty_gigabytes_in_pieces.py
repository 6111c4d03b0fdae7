"""15 points: allocates until there is no more."""

import numpy as np

kept = []


def launch_plan(width, height, block):
    while True:
        kept.append(np.empty(1 << 27))
