"""15 points, timeout: stops its own process."""

import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
