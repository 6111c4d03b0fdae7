"""4 points: rounds up in float32, which does not hold every whole number beyond 2^24."""

import numpy as np


def launch_plan(width, height, block):
    grid = tuple(
        int(np.ceil(np.float32(size) / np.float32(threads)))
        for size, threads in zip((width, height), block, strict=True)
    )
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
