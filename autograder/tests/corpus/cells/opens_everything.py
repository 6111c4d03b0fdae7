"""30 points: takes all descriptors and starts a thousand threads."""

import threading

kept = []
try:
    while True:
        kept.append(open("/dev/null"))
except OSError:
    pass
for one in kept:
    one.close()
try:
    for _ in range(1000):
        threading.Thread(target=threading.Event().wait, args=(86_400,), daemon=True).start()
except RuntimeError:
    pass


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
