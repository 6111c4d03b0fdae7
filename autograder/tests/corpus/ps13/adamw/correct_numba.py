"""9 points: numba, in a grid-stride loop."""

import math

from numba import cuda, float32


@cuda.jit
def update(weights, grads, m, v, numbers, rate, beta1, beta2, eps, decay, one, two):
    first, second = float32(beta1), float32(beta2)
    for i in range(cuda.grid(1), numbers, cuda.gridsize(1)):
        g = grads[i]
        one_m = first * m[i] + (float32(1) - first) * g
        one_v = second * v[i] + (float32(1) - second) * g * g
        m[i], v[i] = one_m, one_v
        down = math.sqrt(one_v / float32(two)) + float32(eps)
        weights[i] -= float32(rate) * (one_m / float32(one) / down + float32(decay) * weights[i])


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    n = weights.size
    one, two = 1 - beta1**step, 1 - beta2**step
    device.launch(update, min(32, -(-n // 64)), 64, weights, grads, m, v, n, rate, beta1, beta2, eps, decay, one, two)
