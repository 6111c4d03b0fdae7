"""15 points, timeout: an endless loop that no signal but the last interrupts."""

import signal

for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def launch_plan(width, height, block):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
