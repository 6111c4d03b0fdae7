"""30 points: prints fifty megabytes on both streams."""

import os
import sys

for _ in range(50):
    sys.stdout.write("x" * 2**20)
    sys.stderr.write("y" * 2**20)
    os.write(1, b"z" * 2**20)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
