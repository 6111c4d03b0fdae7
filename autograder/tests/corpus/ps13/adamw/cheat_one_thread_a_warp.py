"""6 points: one warp goes through all parameters."""

import math

from numba import cuda, float32


@cuda.jit
def update(weights, grads, m, v, rate, beta1, beta2, eps, decay, one, two):
    for i in range(cuda.threadIdx.x, weights.size, 32):
        g = grads[i]
        m[i] = float32(beta1) * m[i] + float32(1 - beta1) * g
        v[i] = float32(beta2) * v[i] + float32(1 - beta2) * g * g
        down = math.sqrt(v[i] / float32(two)) + float32(eps)
        weights[i] -= float32(rate) * (m[i] / float32(one) / down + float32(decay) * weights[i])


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    one, two = 1 - beta1**step, 1 - beta2**step
    device.launch(update, 1, 32, weights, grads, m, v, rate, beta1, beta2, eps, decay, one, two)
