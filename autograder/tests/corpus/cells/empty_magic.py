"""30 points: IPython's own syntax, as notebooks have it."""

%matplotlib inline
!echo hello


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
