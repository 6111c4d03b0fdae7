"""10 points: numba, a block of 64 threads for each row, one thread for each other row of its sequence."""

import math

from numba import cuda, float32


@cuda.jit
def forward(q, k, v, length, out, kept):
    scores = cuda.shared.array(64, float32)
    row, t, width = cuda.blockIdx.x, cuda.threadIdx.x, q.shape[1]
    start = row - row % length
    if start + t <= row:
        score = float32(0)
        for d in range(width):
            score += q[row, d] * k[start + t, d]
        scores[t] = score / math.sqrt(float32(width))
    cuda.syncthreads()
    most, total = scores[0], float32(0)
    for i in range(row - start + 1):
        most = max(most, scores[i])
    for i in range(row - start + 1):
        total += math.exp(scores[i] - most)
    if t < width:
        acc = float32(0)
        for i in range(row - start + 1):
            acc += math.exp(scores[i] - most) / total * v[start + i, t]
        out[row, t] = acc
    if t == 0:
        kept[row] = most + math.log(total)


@cuda.jit
def backward(q, k, v, grad_out, length, out, kept, grad_q, grad_k, grad_v):
    before = cuda.shared.array(64, float32)
    after = cuda.shared.array(64, float32)
    weights = cuda.shared.array(64, float32)
    row, t, width = cuda.blockIdx.x, cuda.threadIdx.x, q.shape[1]
    start = row - row % length
    root = math.sqrt(float32(width))
    if t < length:
        low, high = (start + t, row) if start + t <= row else (row, start + t)
        # one pair of this row's: it looks at those before it, and those after it look at it
        score, by_p, inner = float32(0), float32(0), float32(0)
        for d in range(width):
            score += q[high, d] * k[low, d]
            by_p += grad_out[high, d] * v[low, d]
            inner += grad_out[high, d] * out[high, d]
        p = math.exp(score / root - kept[high])
        before[t] = p * (by_p - inner) / root if start + t <= row else float32(0)
        after[t] = p * (by_p - inner) / root if start + t >= row else float32(0)
        weights[t] = p if start + t >= row else float32(0)
    cuda.syncthreads()
    if t < width:
        by_q, by_k, by_v = float32(0), float32(0), float32(0)
        for i in range(length):
            by_q += before[i] * k[start + i, t]
            by_k += after[i] * q[start + i, t]
            by_v += weights[i] * grad_out[start + i, t]
        grad_q[row, t] = by_q
        grad_k[row, t] = by_k
        grad_v[row, t] = by_v


def attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v):
    rows = q.shape[0]
    kept = device.empty(rows, "float32")
    device.launch(forward, rows, 64, q, k, v, length, out, kept)
    device.launch(backward, rows, 64, q, k, v, grad_out, length, out, kept, grad_q, grad_k, grad_v)
