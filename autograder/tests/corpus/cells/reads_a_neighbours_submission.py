"""30 points: would copy another student's answer."""

from pathlib import Path

for path in ("@ROOT@/submitted/bystander/ps01_tiny.ipynb", "../bystander/ps01_tiny.ipynb", "@ROOT@/submitted/zed/ps01_tiny.ipynb"):
    try:
        text = Path(path).read_bytes()
    except OSError:
        continue
    raise ValueError(text.decode(errors="replace")[:1500])


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
