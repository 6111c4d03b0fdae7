"""0 points: leaves the program instead of returning."""

import sys


def launch_plan(width, height, block):
    sys.exit(0)
