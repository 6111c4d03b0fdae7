"""0 points: w2 moves before the gradient by the hidden layer has read it."""

import math

import numpy as np
from numba import cuda, float32

TILE, PADDED = 16, 17


@cuda.jit
def matmul(a, first, turn_a, b, turn_b, out, inner):
    """out = a[first:] @ b, either of them transposed if asked for."""
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    a_tile = cuda.shared.array((TILE, PADDED), float32)
    b_tile = cuda.shared.array((TILE, PADDED), float32)
    rows, cols = out.shape
    top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
    acc = float32(0)
    for start in range(0, inner, TILE):
        if turn_a:
            here = start + ty < inner and top + tx < rows
            a_tile[tx, ty] = a[first + start + ty, top + tx] if here else float32(0)
        else:
            here = row < rows and start + tx < inner
            a_tile[ty, tx] = a[first + row, start + tx] if here else float32(0)
        if turn_b:
            here = left + ty < cols and start + tx < inner
            b_tile[tx, ty] = b[left + ty, start + tx] if here else float32(0)
        else:
            here = start + ty < inner and col < cols
            b_tile[ty, tx] = b[start + ty, col] if here else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if row < rows and col < cols:
        out[row, col] = acc


@cuda.jit
def add_bias(y, b):
    col, row = cuda.grid(2)
    if row < y.shape[0] and col < y.shape[1]:
        y[row, col] += b[col]


@cuda.jit
def gelu(x, y):
    col, row = cuda.grid(2)
    if row < y.shape[0] and col < y.shape[1]:
        y[row, col] = x[row, col] * float32(0.5) * math.erfc(-x[row, col] * float32(0.70710678))


@cuda.jit
def gelu_backward(x, dy, dx):
    col, row = cuda.grid(2)
    if row < dx.shape[0] and col < dx.shape[1]:
        v = x[row, col]
        below = float32(0.5) * math.erfc(-v * float32(0.70710678))
        dx[row, col] = dy[row, col] * (below + v * math.exp(-v * v / float32(2)) * float32(0.39894228))


@cuda.jit
def cross_entropy(z, labels, first, dz, losses, step):
    part = cuda.shared.array(128, float32)
    row, count = cuda.threadIdx.x, z.shape[0]
    if row < count:
        top = z[row, 0]
        for c in range(1, z.shape[1]):
            top = max(top, z[row, c])
        total = float32(0)
        for c in range(z.shape[1]):
            total += math.exp(z[row, c] - top)
        label = labels[first + row]
        part[row] = math.log(total) + top - z[row, label]
        for c in range(z.shape[1]):
            hit = float32(1) if c == label else float32(0)
            dz[row, c] = (math.exp(z[row, c] - top) / total - hit) / float32(count)
    cuda.syncthreads()
    if row == 0:
        acc = float32(0)
        for r in range(count):
            acc += part[r]
        losses[step] = acc / float32(count)


@cuda.jit
def column_sums(dy, db):
    col = cuda.grid(1)
    if col < db.size:
        acc = float32(0)
        for r in range(dy.shape[0]):
            acc += dy[r, col]
        db[col] = acc


@cuda.jit
def adamw(w, g, m, v, rate, beta1, beta2, eps, decay, whole1, whole2):
    """On an array of one or of two dimensions, element by element."""
    i = cuda.grid(1)
    if i < w.size:
        w, g, m, v = w.reshape(w.size), g.reshape(g.size), m.reshape(m.size), v.reshape(v.size)
        m[i] += (float32(1) - beta1) * (g[i] - m[i])
        v[i] += (float32(1) - beta2) * (g[i] * g[i] - v[i])
        w[i] -= rate * decay * w[i]
        w[i] -= rate * (m[i] / whole1) / (math.sqrt(v[i] / whole2) + eps)


def tiles(shape):
    return (-(-shape[1] // TILE), -(-shape[0] // TILE)), (TILE, TILE)


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    pixels, (hidden, classes), launch = images.shape[1], w2.shape, device.launch
    z1, h, dh, dz1 = (device.empty((batch, hidden), "float32") for _ in range(4))
    z2, dz2 = (device.empty((batch, classes), "float32") for _ in range(2))
    state = [
        (w, device.empty(w.shape, "float32"), *(device.zeros(w.shape, "float32") for _ in "mv"))
        for w in (w1, b1, w2, b2)
    ]
    g1, gb1, g2, gb2 = (own[1] for own in state)
    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        numbers = [
            np.float32(x)
            for x in (rate, beta1, beta2, eps, decay, 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1))
        ]
        launch(matmul, *tiles(z1.shape), images, first, False, w1, False, z1, pixels)
        launch(add_bias, *tiles(z1.shape), z1, b1)
        launch(gelu, *tiles(z1.shape), z1, h)
        launch(matmul, *tiles(z2.shape), h, 0, False, w2, False, z2, hidden)
        launch(add_bias, *tiles(z2.shape), z2, b2)
        launch(cross_entropy, 1, 128, z2, labels, first, dz2, losses, step)
        launch(matmul, *tiles(g2.shape), h, 0, True, dz2, False, g2, batch)
        launch(column_sums, 1, 32, dz2, gb2)
        launch(adamw, -(-w2.size // 128), 128, *state[2], *numbers)
        launch(matmul, *tiles(dh.shape), dz2, 0, False, w2, True, dh, classes)
        launch(gelu_backward, *tiles(dz1.shape), z1, dh, dz1)
        launch(matmul, *tiles(g1.shape), images, first, True, dz1, False, g1, batch)
        launch(column_sums, -(-hidden // 32), 32, dz1, gb1)
        for w, g, m, v in (state[0], state[1], state[3]):
            launch(adamw, -(-w.size // 128), 128, w, g, m, v, *numbers)
