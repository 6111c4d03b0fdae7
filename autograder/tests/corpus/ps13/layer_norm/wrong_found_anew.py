"""9 points: three fetches forward, and mean and scale are found anew in backward, twice."""

import math

from numba import cuda, float32


@cuda.jit(device=True)
def everywhere(value):
    for k in range(5):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1 << k)
    return value


@cuda.jit(device=True)
def mean_and_scale(x, row, lane, eps):
    width = x.shape[1]
    mean, squares = float32(0), float32(0)
    for col in range(lane, width, 32):
        mean += x[row, col]
    mean = everywhere(mean) / float32(width)
    for col in range(lane, width, 32):
        squares += (x[row, col] - mean) * (x[row, col] - mean)
    return mean, float32(1) / math.sqrt(everywhere(squares) / float32(width) + float32(eps))


@cuda.jit
def forward(x, gain, shift, eps, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    mean, scale = mean_and_scale(x, row, lane, eps)
    for col in range(lane, x.shape[1], 32):
        y[row, col] = (x[row, col] - mean) * scale * gain[col] + shift[col]


@cuda.jit
def backward(x, gain, grad_y, eps, grad_x):
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    mean, scale = mean_and_scale(x, row, lane, eps)
    one, two = float32(0), float32(0)
    for col in range(lane, width, 32):
        g = grad_y[row, col] * gain[col]
        one += g
        two += g * (x[row, col] - mean) * scale
    one, two = everywhere(one) / float32(width), everywhere(two) / float32(width)
    for col in range(lane, width, 32):
        hat = (x[row, col] - mean) * scale
        grad_x[row, col] = scale * (grad_y[row, col] * gain[col] - one - hat * two)


@cuda.jit
def parameters(x, grad_y, eps, grad_gain, grad_shift):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    mean, scale = mean_and_scale(x, row, lane, eps)
    for col in range(lane, x.shape[1], 32):
        cuda.atomic.add(grad_shift, col, grad_y[row, col])
        cuda.atomic.add(grad_gain, col, grad_y[row, col] * (x[row, col] - mean) * scale)


def layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift):
    rows = x.shape[0]
    device.fill(grad_gain, 0)
    device.fill(grad_shift, 0)
    device.launch(forward, rows, 32, x, gain, shift, eps, y)
    device.launch(backward, rows, 32, x, gain, grad_y, eps, grad_x)
    device.launch(parameters, rows, 32, x, grad_y, eps, grad_gain, grad_shift)
