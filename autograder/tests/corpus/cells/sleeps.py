"""15 points, timeout: sleeps for a day."""

import time


def launch_plan(width, height, block):
    time.sleep(86_400)
