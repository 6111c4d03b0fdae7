"""7 points: every thread walks through all keys and values in memory."""

import math

from numba import cuda, float32


@cuda.jit
def flash_attention(q, k, v, out):
    acc = cuda.local.array(16, float32)
    i = cuda.grid(1)
    if i >= q.shape[0]:
        return
    for d in range(16):
        acc[d] = 0
    top, total = float32(-math.inf), float32(0)
    for j in range(q.shape[0]):
        score = float32(0)
        for d in range(16):
            score += q[i, d] * k[j, d]
        score *= float32(0.25)
        new = max(top, score)
        old, weight = math.exp(top - new), math.exp(score - new)
        total = total * old + weight
        for d in range(16):
            acc[d] = acc[d] * old + weight * v[j, d]
        top = new
    for d in range(16):
        out[i, d] = acc[d] / total
