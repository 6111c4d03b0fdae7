"""0 points: trains in NumPy, of arrays whose values are not on the host."""

import numpy as np


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    x, w = np.asarray(images), np.asarray(w1)
    losses[:] = (x @ w + np.asarray(b1)).mean()
