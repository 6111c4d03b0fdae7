"""19 points: right three times, then garbage."""

calls = []


def launch_plan(width, height, block):
    calls.append(width)
    grid = (-(-width // block[0]), -(-height // block[1]))
    right = grid, grid[0] * block[0] * grid[1] * block[1] - width * height
    return right if len(calls) <= 3 else ((7, 7), 7)
