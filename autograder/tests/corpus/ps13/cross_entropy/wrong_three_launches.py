"""7 points: softmax is written, and read again for the loss and for the gradient."""

import math

from numba import cuda, float32


@cuda.jit
def softmax(logits, out, kept):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    most = logits[row, 0]
    for c in range(lane, logits.shape[1], 32):
        most = max(most, logits[row, c])
    for k in range(5):
        most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, 1 << k))
    total = float32(0)
    for c in range(lane, logits.shape[1], 32):
        total += math.exp(logits[row, c] - most)
    for k in range(5):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, 1 << k)
    for c in range(lane, logits.shape[1], 32):
        out[row, c] = math.exp(logits[row, c] - most) / total
    if lane == 0:
        kept[row] = math.log(total) + most


@cuda.jit
def loss(logits, kept, labels, first, step, losses):
    row = cuda.grid(1)
    if row < logits.shape[0]:
        one = kept[row] - logits[row, labels[first + row]]
        cuda.atomic.add(losses, step, one / float32(logits.shape[0]))


@cuda.jit
def gradient(out, labels, first, grad_logits):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    for c in range(lane, out.shape[1], 32):
        hit = float32(1) if c == labels[first + row] else float32(0)
        grad_logits[row, c] = (out[row, c] - hit) / float32(out.shape[0])


def cross_entropy(device, logits, labels, first, step, losses, grad_logits):
    rows = logits.shape[0]
    out, kept = device.empty(logits.shape, "float32"), device.empty(rows, "float32")
    device.launch(softmax, rows, 32, logits, out, kept)
    device.launch(loss, -(-rows // 32), 32, logits, kept, labels, first, step, losses)
    device.launch(gradient, rows, 32, out, labels, first, grad_logits)
