"""6 points: numba, a row and a column for each thread."""

import math

from numba import cuda, float32


@cuda.jit(device=True)
def below(v):
    return float32(0.5) * (float32(1) + math.erf(v * float32(0.7071067811865476)))


@cuda.jit
def gelu(x, y):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        y[row, col] = x[row, col] * below(x[row, col])


@cuda.jit
def slope(x, grad_y, grad_x):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        v = x[row, col]
        density = float32(0.3989422804014327) * math.exp(float32(-0.5) * v * v)
        grad_x[row, col] = grad_y[row, col] * (below(v) + v * density)


def activation(device, x, grad_y, y, grad_x):
    grid, block = (-(-x.shape[1] // 32), -(-x.shape[0] // 4)), (32, 4)
    device.launch(gelu, grid, block, x, y)
    device.launch(slope, grid, block, x, grad_y, grad_x)
