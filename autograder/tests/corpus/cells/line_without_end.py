"""15 points, crashed: writes to the channel without ever ending a line."""

import os
import stat


def launch_plan(width, height, block):
    while True:
        for descriptor in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    os.write(descriptor, b"[" * 65_536)
            except BlockingIOError:
                pass
            except OSError:
                continue
