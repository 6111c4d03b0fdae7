"""0 points: an allocation that comes with contents."""

import numpy as np


def total(device, x, out):
    device.buffers["#0"] = np.zeros(1, np.float32)
    device.steps.append(["copy", "out", "#0"])
