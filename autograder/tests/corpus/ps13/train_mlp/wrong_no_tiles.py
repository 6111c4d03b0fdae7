"""16 points: six launches a step, and products that fetch every number from global memory."""

import math

import numpy as np
from numba import cuda, float32


@cuda.jit
def layer(x, first, w, b, before, after, bends):
    col, row = cuda.grid(2)
    if row < before.shape[0] and col < before.shape[1]:
        acc = b[col]
        for k in range(w.shape[0]):
            acc += x[first + row, k] * w[k, col]
        before[row, col] = acc
        if bends:
            after[row, col] = acc * float32(0.5) * math.erfc(-acc * float32(0.70710678))


@cuda.jit
def scores(z, labels, first, losses, step):
    """The gradient takes the place of the logits."""
    row, count = cuda.threadIdx.x, z.shape[0]
    if row < count:
        top = z[row, 0]
        for c in range(1, z.shape[1]):
            top = max(top, z[row, c])
        total = float32(0)
        for c in range(z.shape[1]):
            total += math.exp(z[row, c] - top)
        label = labels[first + row]
        cuda.atomic.add(losses, step, (math.log(total) + top - z[row, label]) / float32(count))
        for c in range(z.shape[1]):
            hit = float32(1) if c == label else float32(0)
            z[row, c] = (math.exp(z[row, c] - top) / total - hit) / float32(count)


@cuda.jit
def back(dz, w, before, by_before):
    col, row = cuda.grid(2)
    if row < before.shape[0] and col < before.shape[1]:
        acc = float32(0)
        for c in range(dz.shape[1]):
            acc += dz[row, c] * w[col, c]
        v = before[row, col]
        below = float32(0.5) * math.erfc(-v * float32(0.70710678))
        by_before[row, col] = acc * (below + v * math.exp(-v * v / float32(2)) * float32(0.39894228))


@cuda.jit
def learn(x, first, by, w, m, v, b, m_b, v_b, rate, beta1, beta2, eps, decay, whole1, whole2):
    """The last row of threads is the bias's."""
    col, row = cuda.grid(2)
    if col < w.shape[1] and row <= w.shape[0]:
        g = float32(0)
        for k in range(by.shape[0]):
            g += by[k, col] * (x[first + k, row] if row < w.shape[0] else float32(1))
        if row < w.shape[0]:
            m[row, col] = beta1 * m[row, col] + (1 - beta1) * g
            v[row, col] = beta2 * v[row, col] + (1 - beta2) * g * g
            move = m[row, col] / whole1 / (math.sqrt(v[row, col] / whole2) + eps) + decay * w[row, col]
            w[row, col] -= rate * move
        else:
            m_b[col] = beta1 * m_b[col] + (1 - beta1) * g
            v_b[col] = beta2 * v_b[col] + (1 - beta2) * g * g
            b[col] -= rate * (m_b[col] / whole1 / (math.sqrt(v_b[col] / whole2) + eps) + decay * b[col])


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    def over(rows, cols):
        return (-(-cols // 32), -(-rows // 4)), (32, 4)

    before, after, by_before = (device.empty((batch, b1.size), "float32") for _ in range(3))
    z = device.empty((batch, b2.size), "float32")
    one, two = (
        [a for w in pair for a in (w, device.zeros(w.shape, "float32"), device.zeros(w.shape, "float32"))]
        for pair in ((w1, b1), (w2, b2))
    )
    device.fill(losses, 0)
    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        whole = 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        numbers = [np.float32(x) for x in (rate, beta1, beta2, eps, decay, *whole)]
        device.launch(layer, *over(*before.shape), images, first, w1, b1, before, after, True)
        device.launch(layer, *over(*z.shape), after, 0, w2, b2, z, z, False)
        device.launch(scores, 1, 128, z, labels, first, losses, step)
        device.launch(back, *over(*before.shape), z, w2, before, by_before)
        device.launch(learn, *over(w1.shape[0] + 1, w1.shape[1]), images, first, by_before, *one, *numbers)
        device.launch(learn, *over(w2.shape[0] + 1, w2.shape[1]), after, 0, z, *two, *numbers)
