"""30 points: threads that neither end nor let the interpreter end."""

import threading


def spin():
    while True:
        pass


for _ in range(2):
    threading.Thread(target=spin).start()


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
