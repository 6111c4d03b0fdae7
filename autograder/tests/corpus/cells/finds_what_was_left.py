"""30 points: looks for what another submission left."""

import os

for path in ("left-behind", "/tmp/left-behind", "/dev/shm/left-behind", "/dev/shm/left_behind"):
    if os.path.exists(path):
        raise ValueError(path)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
