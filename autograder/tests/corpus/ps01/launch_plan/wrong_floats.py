"""0 points: np.ceil returns floats, and a launch takes whole numbers."""

import numpy as np


def launch_plan(width, height, block):
    x, y = np.ceil(width / block[0]), np.ceil(height / block[1])
    return (x, y), x * y * block[0] * block[1] - width * height
