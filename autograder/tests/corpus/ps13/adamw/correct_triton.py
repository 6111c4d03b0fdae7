"""9 points: Triton, 256 parameters a program."""

import triton
import triton.language as tl


@triton.jit
def update(grads, weights, m, v, n, rate, beta1, beta2, eps, decay, whole1, whole2, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    grad = tl.load(grads + at, mask=inside)
    mean = beta1 * tl.load(m + at, mask=inside) + (1 - beta1) * grad
    square = beta2 * tl.load(v + at, mask=inside) + (1 - beta2) * grad * grad
    weight = tl.load(weights + at, mask=inside)
    move = mean / whole1 / (tl.sqrt(square / whole2) + eps) + decay * weight
    tl.store(m + at, mean, mask=inside)
    tl.store(v + at, square, mask=inside)
    tl.store(weights + at, weight - rate * move, mask=inside)


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    n, whole = weights.size, (1 - beta1**step, 1 - beta2**step)
    update[(triton.cdiv(n, 256),)](
        grads, weights, m, v, n, rate, beta1, beta2, eps, decay, *whole, BLOCK=256
    )
