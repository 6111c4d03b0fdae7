"""30 points: one honest warning."""

import sys
import warnings

warnings.warn("deprecated", stacklevel=1)
print("a note", file=sys.stderr)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
