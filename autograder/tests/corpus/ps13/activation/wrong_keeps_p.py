"""5 points: forward keeps P(x) in an array, which backward fetches, so that two arrays more are moved."""

import math

from numba import cuda, float32


@cuda.jit
def forward(x, y, kept):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        p = float32(0.5) * (float32(1) + math.erf(x[row, col] * float32(0.7071067811865476)))
        kept[row, col] = p
        y[row, col] = x[row, col] * p


@cuda.jit
def backward(x, grad_y, kept, grad_x):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        v = x[row, col]
        density = float32(0.3989422804014327) * math.exp(float32(-0.5) * v * v)
        grad_x[row, col] = grad_y[row, col] * (kept[row, col] + v * density)


def activation(device, x, grad_y, y, grad_x):
    kept = device.empty(x.shape, "float32")
    grid, block = (-(-x.shape[1] // 32), -(-x.shape[0] // 4)), (32, 4)
    device.launch(forward, grid, block, x, y, kept)
    device.launch(backward, grid, block, x, grad_y, kept, grad_x)
