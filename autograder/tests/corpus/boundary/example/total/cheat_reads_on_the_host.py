"""0 points: wants the values on the host, where there are none."""

import numpy as np


def total(device, x, out):
    device.fill(out, float(np.asarray(x).sum()))
