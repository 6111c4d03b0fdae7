"""30 points: replaces another student's notebook."""

for path in ("@ROOT@/submitted/bystander/ps01_tiny.ipynb", "../bystander/ps01_tiny.ipynb", "@ROOT@/submitted/zed/ps01_tiny.ipynb"):
    try:
        open(path, "w").write("{}")
    except OSError:
        pass


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
