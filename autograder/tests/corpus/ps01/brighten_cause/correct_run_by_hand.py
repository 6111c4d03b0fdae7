"""2 points: the blocks counted, and the product made in bytes by NumPy."""

import numpy as np


def brighten_cause(height, width, value, gain):
    reached = 0
    for _ in range(height // 16):
        reached += 16 * 16 * (width // 16)
    byte = np.array([value], np.int64) * gain
    return height * width - reached, int(byte.astype(np.uint8)[0])
