"""30 points: threads that do not let the interpreter end."""

import threading


for _ in range(20):
    threading.Thread(target=threading.Event().wait).start()


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
