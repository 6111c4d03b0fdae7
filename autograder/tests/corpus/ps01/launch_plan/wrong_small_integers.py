"""10 points: counts threads in 32 bits, which a large image overflows."""

import numpy as np


def launch_plan(width, height, block):
    grid = tuple(-(-size // threads) for size, threads in zip((width, height), block, strict=True))
    threads = np.array(grid, np.int32) * np.array(block, np.int32)
    with np.errstate(over="ignore"):
        idle = threads.prod(dtype=np.int32) - np.array([width, height], np.int32).prod(dtype=np.int32)
    return grid, int(idle)
