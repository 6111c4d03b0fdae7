"""9 points: unscales before it leaves 16 bits: small numbers are rounded."""

import numpy as np


def train_step(master, moment, gradient, scale, good, lr):
    if np.isfinite(gradient).all():
        moment = np.float32(0.9) * moment + (gradient / np.float16(min(scale, 65504))).astype(np.float32)
        master = master - np.float32(lr) * moment
        good += 1
        if good == 4:
            scale, good = 2 * scale, 0
    else:
        scale, good = scale / 2, 0
    return master, moment, master.astype(np.float16), scale, good
