"""15 points: NumPy whole numbers are whole numbers."""

import numpy as np


def launch_plan(width, height, block):
    grid = -(-np.array([width, height]) // np.array(block))
    return grid, np.prod(grid * np.array(block)) - width * height
