"""30 points: reads the memory of every process that it sees."""

import ctypes
import glob
import os

libc = ctypes.CDLL(None, use_errno=True)
for path in glob.glob("/proc/[0-9]*"):
    pid = int(path.rsplit("/", 1)[1])
    if pid in (os.getpid(),):
        continue
    try:
        open(f"{path}/mem", "rb").read(1)
    except OSError:
        pass
    if libc.ptrace(16, pid, 0, 0) == 0:
        raise ValueError(f"attached to {pid}")


def launch_plan(width, height, block):
    grid = (-(-width // block[0]), -(-height // block[1]))
    return grid, grid[0] * block[0] * grid[1] * block[1] - width * height
