"""0 points: a child process inherits the channel and floods it."""

import os
import time

if os.fork() == 0:
    while True:
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b"{}\n" * 1000)
            except OSError:
                continue


def launch_plan(width, height, block):
    time.sleep(1)
    return (1, 1), 0
