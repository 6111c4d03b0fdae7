"""15 points, crashed: recurses without end below Python's own limit."""

import sys

sys.setrecursionlimit(10**9)
deep = []
for _ in range(10**6):
    deep = [deep]


def launch_plan(width, height, block):
    return repr(deep)
