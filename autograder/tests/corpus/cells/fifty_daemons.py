"""30 points: fifty children in process groups of their own that ignore signals and outlive their parent."""

import os
import signal
import time

for number in range(50):
    if os.fork() == 0:
        os.setpgid(0, 0)
        if os.fork() == 0:
            for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(one, signal.SIG_IGN)
            time.sleep(86_400)
        os._exit(0)


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
