"""19 points: Triton throughout, five launches a step, each weight moved by the program that adds up its gradient."""

import triton
import triton.language as tl


@triton.jit
def first_layer(x, w, b, before, begins, batch, pixels, hidden, T: tl.constexpr):
    row = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    column = tl.program_id(1) * 2 * T + tl.arange(0, 2 * T)[None, :]
    across, down = tl.arange(0, T)[None, :], tl.arange(0, T)[:, None]
    total = tl.zeros((T, 2 * T), tl.float32)
    for at in range(0, pixels, T):
        of_x = (row < batch) & (at + across < pixels)
        of_w = (at + down < pixels) & (column < hidden)
        one = tl.load(x + (begins + row) * pixels + at + across, mask=of_x, other=0.0)
        two = tl.load(w + (at + down) * hidden + column, mask=of_w, other=0.0)
        total = tl.dot(one, two, total, input_precision="ieee")
    total += tl.load(b + column, mask=column < hidden, other=0.0)
    tl.store(before + row * hidden + column, total, mask=(row < batch) & (column < hidden))


@triton.jit
def picture(
    before,
    labels,
    w,
    b,
    active,
    by_logits,
    by_before,
    each,
    begins,
    batch,
    hidden,
    classes,
    H: tl.constexpr,
    C: tl.constexpr,
):
    """One picture, from its hidden layer to its loss and back."""
    row, j, c = tl.program_id(0), tl.arange(0, H), tl.arange(0, C)
    value = tl.load(before + row * hidden + j, mask=j < hidden, other=0.0)
    share = 0.5 + 0.5 * tl.erf(value * 0.7071067811865476)
    slope = share + value * 0.3989422804014327 * tl.exp(-0.5 * value * value)
    tl.store(active + row * hidden + j, value * share, mask=j < hidden)
    inside = (j[:, None] < hidden) & (c[None, :] < classes)
    weight = tl.load(w + j[:, None] * classes + c[None, :], mask=inside, other=0.0)
    logit = tl.sum((value * share)[:, None] * weight, axis=0)
    logit += tl.load(b + c, mask=c < classes, other=0.0)
    logit = tl.where(c < classes, logit, -float("inf"))
    above = logit - tl.max(logit, axis=0)
    power = tl.exp(above)
    total = tl.sum(power, axis=0)
    hit = c == tl.load(labels + begins + row)
    tl.store(each + row, tl.log(total) - tl.sum(tl.where(hit, above, 0.0), axis=0))
    by_logit = (power / total - tl.where(hit, 1.0, 0.0)) / batch
    tl.store(by_logits + row * classes + c, by_logit, mask=c < classes)
    back = tl.sum(weight * by_logit[None, :], axis=1) * slope
    tl.store(by_before + row * hidden + j, back, mask=j < hidden)


@triton.jit
def moved(weight, m, v, at, inside, grad, rate, beta1, beta2, eps, decay, whole1, whole2):
    """AdamW for a block of weights."""
    mean = beta1 * tl.load(m + at, mask=inside, other=0.0) + (1 - beta1) * grad
    square = beta2 * tl.load(v + at, mask=inside, other=0.0) + (1 - beta2) * grad * grad
    old = tl.load(weight + at, mask=inside, other=0.0)
    tl.store(m + at, mean, mask=inside)
    tl.store(v + at, square, mask=inside)
    step = mean / whole1 / (tl.sqrt(square / whole2) + eps) + decay * old
    tl.store(weight + at, old - rate * step, mask=inside)


@triton.jit
def learn(
    x,
    grad,
    w,
    m_w,
    v_w,
    b,
    m_b,
    v_b,
    begins,
    batch,
    inputs,
    outputs,
    rate,
    beta1,
    beta2,
    eps,
    decay,
    whole1,
    whole2,
    T: tl.constexpr,
):
    """A tile of weights, and by the uppermost tiles the biases."""
    down, across = tl.program_id(0) * T + tl.arange(0, T), tl.program_id(1) * 2 * T + tl.arange(0, 2 * T)
    rows = tl.arange(0, T)
    of_weights, of_biases = tl.zeros((T, 2 * T), tl.float32), tl.zeros((2 * T,), tl.float32)
    for at in range(0, batch, T):
        row = at + rows
        of_x = (down[:, None] < inputs) & (row[None, :] < batch)
        of_grad = (row[:, None] < batch) & (across[None, :] < outputs)
        one = tl.load(x + (begins + row[None, :]) * inputs + down[:, None], mask=of_x, other=0.0)
        two = tl.load(grad + row[:, None] * outputs + across[None, :], mask=of_grad, other=0.0)
        of_weights = tl.dot(one, two, of_weights, input_precision="ieee")
        of_biases += tl.sum(two, axis=0)
    numbers = rate, beta1, beta2, eps, decay, whole1, whole2
    inside = (down[:, None] < inputs) & (across[None, :] < outputs)
    moved(w, m_w, v_w, down[:, None] * outputs + across[None, :], inside, of_weights, *numbers)
    if tl.program_id(0) == 0:
        moved(b, m_b, v_b, across, across < outputs, of_biases, *numbers)


@triton.jit
def mean(each, losses, step, batch, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(losses + step, tl.sum(tl.load(each + i, mask=i < batch, other=0.0), axis=0) / batch)


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    (pixels, hidden), classes = w1.shape, b2.size
    before, active, by_before = (device.empty((batch, hidden), "float32") for _ in range(3))
    by_logits, each = device.empty((batch, classes), "float32"), device.empty(batch, "float32")
    state = [(w, *(device.zeros(w.shape, "float32") for _ in "mv")) for w in (w1, b1, w2, b2)]
    one, two = (*state[0], *state[1]), (*state[2], *state[3])
    blocks = {"H": triton.next_power_of_2(hidden), "C": triton.next_power_of_2(classes), "num_warps": 2}

    def tiles(rows, columns):
        return triton.cdiv(rows, 16), triton.cdiv(columns, 32)

    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        numbers = rate, beta1, beta2, eps, decay, 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        first_layer[tiles(batch, hidden)](images, w1, b1, before, first, batch, pixels, hidden, T=16, num_stages=1)
        picture[(batch,)](
            before, labels, w2, b2, active, by_logits, by_before, each, first, batch, hidden, classes, **blocks
        )
        learn[tiles(pixels, hidden)](images, by_before, *one, first, batch, pixels, hidden, *numbers, T=16, num_stages=1)
        learn[tiles(hidden, classes)](active, by_logits, *two, 0, batch, hidden, classes, *numbers, T=16, num_stages=1)
        mean[(1,)](each, losses, step, batch, BLOCK=triton.next_power_of_2(batch), num_warps=1)
