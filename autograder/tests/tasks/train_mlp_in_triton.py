"""ps13/train_mlp in Triton: four launches a step. What a run drawn in the notebook is tried with."""

import triton
import triton.language as tl


@triton.jit
def first_layer(x, first, w, b, before, batch, pixels, hidden, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    acc = tl.zeros((ROWS, COLS), tl.float32) + tl.load(b + cols, mask=cols < hidden, other=0.0)
    for start in range(0, pixels, 16):
        across, down = start + tl.arange(0, 16)[None, :], start + tl.arange(0, 16)[:, None]
        seen = tl.load(
            x + (first + rows) * pixels + across, mask=(rows < batch) & (across < pixels), other=0.0
        )
        weight = tl.load(w + down * hidden + cols, mask=(down < pixels) & (cols < hidden), other=0.0)
        acc = tl.dot(seen, weight, acc, input_precision="ieee")
    tl.store(before + rows * hidden + cols, acc, mask=(rows < batch) & (cols < hidden))


@triton.jit
def there_and_back(
    before, labels, first, w, b, active, by_logits, by_before, losses, step, batch, hidden, classes,
    HIDDEN: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    picture, i, c = tl.program_id(0), tl.arange(0, HIDDEN), tl.arange(0, CLASSES)
    x = tl.load(before + picture * hidden + i, mask=i < hidden, other=0.0)
    share = 0.5 * (1 + tl.erf(x * 0.7071067811865476))
    slope = share + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    tl.store(active + picture * hidden + i, x * share, mask=i < hidden)
    inside = (i[:, None] < hidden) & (c[None, :] < classes)
    weight = tl.load(w + i[:, None] * classes + c[None, :], mask=inside, other=0.0)
    logits = tl.sum((x * share)[:, None] * weight, axis=0)
    logits += tl.load(b + c, mask=c < classes, other=float("-inf"))
    top = tl.max(logits, axis=0)
    powers = tl.exp(logits - top)
    total, right = tl.sum(powers, axis=0), c == tl.load(labels + first + picture)
    loss = tl.log(total) + top - tl.sum(tl.where(right, logits, 0.0), axis=0)
    tl.atomic_add(losses + step, loss / batch)
    by = (powers / total - right) / batch
    tl.store(by_logits + picture * classes + c, by, mask=c < classes)
    tl.store(by_before + picture * hidden + i, tl.sum(weight * by[None, :], axis=1) * slope, mask=i < hidden)


@triton.jit
def moved(w, m, v, at, inside, grad, rate, beta1, beta2, eps, decay, whole1, whole2):
    mean = beta1 * tl.load(m + at, mask=inside, other=0.0) + (1 - beta1) * grad
    square = beta2 * tl.load(v + at, mask=inside, other=0.0) + (1 - beta2) * grad * grad
    old = tl.load(w + at, mask=inside, other=0.0)
    step = mean / whole1 / (tl.sqrt_rn(square / whole2) + eps) + decay * old
    tl.store(m + at, mean, mask=inside)
    tl.store(v + at, square, mask=inside)
    tl.store(w + at, old - rate * step, mask=inside)


@triton.jit
def learn(
    x, first, grad, w, m_w, v_w, b, m_b, v_b, batch, inputs, outputs,
    rate, beta1, beta2, eps, decay, whole1, whole2, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    of_weight, of_bias = tl.zeros((ROWS, COLS), tl.float32), tl.zeros((1, COLS), tl.float32)
    for start in range(0, batch, 16):
        across, down = start + tl.arange(0, 16)[None, :], start + tl.arange(0, 16)[:, None]
        seen = tl.load(
            x + (first + across) * inputs + rows, mask=(rows < inputs) & (across < batch), other=0.0
        )
        by = tl.load(grad + down * outputs + cols, mask=(down < batch) & (cols < outputs), other=0.0)
        of_weight = tl.dot(seen, by, of_weight, input_precision="ieee")
        of_bias += tl.sum(by, axis=0, keep_dims=True)
    inside = (rows < inputs) & (cols < outputs)
    moved(
        w, m_w, v_w, rows * outputs + cols, inside, of_weight, rate, beta1, beta2, eps, decay, whole1, whole2
    )
    if tl.program_id(0) == 0:
        moved(b, m_b, v_b, cols, cols < outputs, of_bias, rate, beta1, beta2, eps, decay, whole1, whole2)


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    pixels, hidden, classes = images.shape[1], b1.size, b2.size
    before, active, by_before = (device.empty((batch, hidden), "float32") for _ in range(3))
    by_logits = device.empty((batch, classes), "float32")
    state = [
        (w, device.zeros(w.shape, "float32"), device.zeros(w.shape, "float32")) for w in (w1, b1, w2, b2)
    ]
    device.fill(losses, 0)
    tiles, powers = {"ROWS": 16, "COLS": 16}, {"HIDDEN": triton.next_power_of_2(hidden), "CLASSES": 16}

    def blocks(rows, cols):
        return triton.cdiv(rows, 16), triton.cdiv(cols, 16)

    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        numbers = rate, beta1, beta2, eps, decay, 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        first_layer[blocks(batch, hidden)](images, first, w1, b1, before, batch, pixels, hidden, **tiles)
        there_and_back[(batch,)](
            before, labels, first, w2, b2, active, by_logits, by_before, losses, step, batch, hidden, classes,
            **powers, num_warps=1,
        )  # fmt: skip
        sizes = batch, pixels, hidden
        learn[blocks(pixels, hidden)](
            images, first, by_before, *state[0], *state[1], *sizes, *numbers, **tiles
        )
        sizes = batch, hidden, classes
        learn[blocks(hidden, classes)](active, 0, by_logits, *state[2], *state[3], *sizes, *numbers, **tiles)
