"""8 points: right, and the weights of every sequence and their gradients stand in memory as squares."""

import math

from numba import cuda, float32


@cuda.jit
def weights(q, k, length, p):
    row = cuda.grid(1)
    if row < q.shape[0]:
        start, root = row // length * length, math.sqrt(float32(q.shape[1]))
        most = float32(-math.inf)
        for other in range(start, row + 1):
            score = float32(0)
            for d in range(q.shape[1]):
                score += q[row, d] * k[other, d]
            p[row, other - start] = score / root
            most = max(most, score / root)
        total = float32(0)
        for other in range(row + 1 - start):
            p[row, other] = math.exp(p[row, other] - most)
            total += p[row, other]
        for other in range(length):
            p[row, other] = p[row, other] / total if other <= row - start else float32(0)


@cuda.jit
def apply(p, v, length, out):
    d, row = cuda.grid(2)
    if row < out.shape[0] and d < out.shape[1]:
        start, acc = row // length * length, float32(0)
        for other in range(length):
            acc += p[row, other] * v[start + other, d]
        out[row, d] = acc


@cuda.jit
def apply_turned(p, grad, length, out):
    d, row = cuda.grid(2)
    if row < out.shape[0] and d < out.shape[1]:
        start, acc = row // length * length, float32(0)
        for other in range(start, start + length):
            acc += p[other, row - start] * grad[other, d]
        out[row, d] = acc


@cuda.jit
def by_scores(p, v, grad_out, length, by_score):
    row = cuda.grid(1)
    if row < v.shape[0]:
        start, root, inner = row // length * length, math.sqrt(float32(v.shape[1])), float32(0)
        for other in range(length):
            by_p = float32(0)
            for d in range(v.shape[1]):
                by_p += grad_out[row, d] * v[start + other, d]
            by_score[row, other] = by_p
            inner += p[row, other] * by_p
        for other in range(length):
            by_score[row, other] = p[row, other] * (by_score[row, other] - inner) / root


def attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v):
    rows, width = q.shape
    p, by_score = device.empty((rows, length), "float32"), device.empty((rows, length), "float32")
    flat, wide = -(-rows // 32), (-(-width // 16), -(-rows // 8))
    device.launch(weights, flat, 32, q, k, length, p)
    device.launch(apply, wide, (16, 8), p, v, length, out)
    device.launch(apply_turned, wide, (16, 8), p, grad_out, length, grad_v)
    device.launch(by_scores, flat, 32, p, v, grad_out, length, by_score)
    device.launch(apply, wide, (16, 8), by_score, k, length, grad_q)
    device.launch(apply_turned, wide, (16, 8), by_score, q, length, grad_k)
