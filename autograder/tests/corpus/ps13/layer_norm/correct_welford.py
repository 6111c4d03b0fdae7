"""12 points: numba, mean and squares in one pass by Welford's rule, merged over the warp."""

import math

from numba import cuda, float32


@cuda.jit(device=True)
def everywhere(value):
    for k in range(5):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1 << k)
    return value


@cuda.jit
def forward(x, gain, shift, eps, y, means, scales):
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    count, mean, squares = float32(0), float32(0), float32(0)
    for col in range(lane, width, 32):
        count += float32(1)
        away = x[row, col] - mean
        mean += away / count
        squares += away * (x[row, col] - mean)
    for k in range(5):
        other = cuda.shfl_xor_sync(0xFFFFFFFF, count, 1 << k)
        away = cuda.shfl_xor_sync(0xFFFFFFFF, mean, 1 << k) - mean
        more = cuda.shfl_xor_sync(0xFFFFFFFF, squares, 1 << k)
        total = count + other
        if total > float32(0):
            squares += more + away * away * count * other / total
            mean += away * other / total
        count = total
    # the lanes' sums differ in their last bits: all take lane 0's
    mean = cuda.shfl_sync(0xFFFFFFFF, mean, 0)
    squares = cuda.shfl_sync(0xFFFFFFFF, squares, 0)
    scale = float32(1) / math.sqrt(squares / float32(width) + float32(eps))
    for col in range(lane, width, 32):
        y[row, col] = (x[row, col] - mean) * scale * gain[col] + shift[col]
    if lane == 0:
        means[row] = mean
        scales[row] = scale


@cuda.jit
def backward(x, gain, grad_y, means, scales, grad_x):
    held = cuda.shared.array((2, 1024), float32)
    row, lane, width = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    one, two = float32(0), float32(0)
    for col in range(lane, width, 32):
        held[0, col] = grad_y[row, col] * gain[col]
        held[1, col] = (x[row, col] - means[row]) * scales[row]
        one += held[0, col]
        two += held[0, col] * held[1, col]
    one, two = everywhere(one) / float32(width), everywhere(two) / float32(width)
    for col in range(lane, width, 32):
        grad_x[row, col] = scales[row] * (held[0, col] - one - held[1, col] * two)


@cuda.jit
def parameters(x, grad_y, means, scales, grad_gain, grad_shift):
    col = cuda.grid(1)
    if col < x.shape[1]:
        one, two = float32(0), float32(0)
        for row in range(x.shape[0]):
            one += grad_y[row, col]
            two += grad_y[row, col] * (x[row, col] - means[row]) * scales[row]
        grad_shift[col] = one
        grad_gain[col] = two


def layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift):
    rows = x.shape[0]
    means, scales = device.empty(rows, "float32"), device.empty(rows, "float32")
    device.launch(forward, rows, 32, x, gain, shift, eps, y, means, scales)
    device.launch(backward, rows, 32, x, gain, grad_y, means, scales, grad_x)
    device.launch(parameters, -(-x.shape[1] // 32), 32, x, grad_y, means, scales, grad_gain, grad_shift)
