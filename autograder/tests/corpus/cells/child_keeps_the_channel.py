"""15 points, crashed: a child inherits the channel, the parent leaves."""

import os
import time

if os.fork() == 0:
    os.setpgid(0, 0)
    time.sleep(86_400)
os._exit(0)
