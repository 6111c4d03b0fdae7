"""30 points: writes numpy.py, torch.py and numba.py beside itself."""

for name in ("numpy", "torch", "numba", "warplab", "json", "struct"):
    open(f"{name}.py", "w").write("raise SystemExit('mine')\n")


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
