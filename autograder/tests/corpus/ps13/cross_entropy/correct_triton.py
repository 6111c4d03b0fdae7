"""10 points: Triton, a program for each row, which reads its logits once."""

import triton
import triton.language as tl


@triton.jit
def rows(logits, labels, losses, grads, first, step, batch, classes, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < classes
    logit = tl.load(logits + row * classes + at, mask=inside, other=-float("inf"))
    above = logit - tl.max(logit, axis=0)
    power = tl.exp(above)
    total = tl.sum(power, axis=0)
    hit = at == tl.load(labels + first + row)
    tl.store(grads + row * classes + at, (power / total - tl.where(hit, 1.0, 0.0)) / batch, mask=inside)
    loss = tl.log(total) - tl.sum(tl.where(hit, above, 0.0), axis=0)
    tl.atomic_add(losses + step, loss / batch)


def cross_entropy(device, logits, labels, first, step, losses, grad_logits):
    batch, classes = logits.shape
    block = triton.next_power_of_2(classes)
    rows[(batch,)](logits, labels, losses, grad_logits, first, step, batch, classes, BLOCK=block, num_warps=1)
