"""15 points: allocates thirty gigabytes."""

block = bytearray(30 * 10**9)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
