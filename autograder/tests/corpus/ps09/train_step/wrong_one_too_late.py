"""17 points: doubles the scale after the fifth good step."""

import numpy as np


def train_step(master, moment, gradient, scale, good, lr):
    if np.isfinite(gradient).all():
        moment = np.float32(0.9) * moment + gradient.astype(np.float32) / np.float32(scale)
        master = master - np.float32(lr) * moment
        good += 1
        if good > 4:
            scale, good = 2 * scale, 0
    else:
        scale, good = scale / 2, 0
    return master, moment, master.astype(np.float16), scale, good
