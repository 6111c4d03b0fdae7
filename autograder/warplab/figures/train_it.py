"""The kernels of a training step, with one kernel an operation and fused, and the figures of chapter 13.

Problem set 13 asks for such kernels, so the chapter counts these and prints only some of them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32

from warplab import plots

INK, PAPER, COLOUR = plots.INK, plots.PAPER, plots.PALETTE
SMALL = {"fontsize": 10.5}
SIDE, PADDED = 16, 17  # of a tile; its rows where columns are read
f32 = np.float32
HALF, ONE, ROOT, BELL = f32(0.5), f32(1), f32(math.sqrt(0.5)), f32(1 / math.sqrt(2 * math.pi))

# -- device functions -----------------------------------------------------------------------------------


@cuda.jit(device=True)
def gelu(z):
    """GELU: z times the standard normal distribution function at z."""
    return HALF * z * (ONE + math.erf(z * ROOT))


@cuda.jit(device=True)
def gelu_slope(z):
    """The derivative of gelu at z."""
    return HALF * (ONE + math.erf(z * ROOT)) + z * BELL * math.exp(-HALF * z * z)


@cuda.jit(device=True)
def tile_product(a, b):
    """One thread: element (row, col) of a @ b, through tiles of 16 x 16 that its block shares."""
    left = cuda.shared.array((SIDE, SIDE), float32)
    right = cuda.shared.array((SIDE, SIDE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k in range(0, a.shape[1], SIDE):
        left[y, x] = a[row, k + x] if row < a.shape[0] and k + x < a.shape[1] else float32(0)
        right[y, x] = b[k + y, col] if k + y < b.shape[0] and col < b.shape[1] else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += left[y, i] * right[i, x]
        cuda.syncthreads()
    return acc


@cuda.jit(device=True)
def tile_product_bt(a, b):
    """As tile_product, of a and b's transpose; b is read along its rows."""
    left = cuda.shared.array((SIDE, SIDE), float32)
    right = cuda.shared.array((SIDE, PADDED), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    first = col - x  # the block's first column: a row of b
    acc = float32(0)
    for k in range(0, a.shape[1], SIDE):
        inside = k + x < a.shape[1]
        left[y, x] = a[row, k + x] if row < a.shape[0] and inside else float32(0)
        right[y, x] = b[first + y, k + x] if first + y < b.shape[0] and inside else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += left[y, i] * right[x, i]
        cuda.syncthreads()
    return acc


@cuda.jit(device=True)
def at_product(a, b, sums):
    """One thread: element (row, col) of a's transpose times b. Row 0 adds up b's columns."""
    left = cuda.shared.array((SIDE, SIDE), float32)
    right = cuda.shared.array((SIDE, SIDE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    first = row - y
    acc, total = float32(0), float32(0)
    for k in range(0, a.shape[0], SIDE):
        inside = k + y < a.shape[0]
        left[y, x] = a[k + y, first + x] if inside and first + x < a.shape[1] else float32(0)
        right[y, x] = b[k + y, col] if inside and col < b.shape[1] else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += left[i, y] * right[i, x]
        if row == 0 and sums.size > 1:
            for i in range(SIDE):
                total += right[i, x]
        cuda.syncthreads()
    if row == 0 and sums.size > 1 and col < sums.size:
        sums[col] = total
    return acc


@cuda.jit(device=True)
def over_warp(value, largest):
    """The largest of a warp's 32 values, or their sum."""
    for step in (16, 8, 4, 2, 1):
        other = cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
        value = max(value, other) if largest else value + other
    return value


# -- one kernel for each operation ----------------------------------------------------------------------


@cuda.jit
def product(a, b, out):
    """One thread: one element of a @ b."""
    col, row = cuda.grid(2)
    acc = tile_product(a, b)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = acc


@cuda.jit
def product_bt(a, b, out):
    """One thread: one element of a @ b's transpose."""
    col, row = cuda.grid(2)
    acc = tile_product_bt(a, b)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = acc


@cuda.jit
def at_times(a, b, none, out):
    """One thread: one element of a's transpose times b."""
    col, row = cuda.grid(2)
    acc = at_product(a, b, none)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = acc


@cuda.jit
def add_bias(z, b, out):
    """One thread: one number."""
    col, row = cuda.grid(2)
    if row < z.shape[0] and col < z.shape[1]:
        out[row, col] = z[row, col] + b[col]


@cuda.jit
def bend(z, h):
    """One thread: one number's GELU."""
    col, row = cuda.grid(2)
    if row < z.shape[0] and col < z.shape[1]:
        h[row, col] = gelu(z[row, col])


@cuda.jit
def bend_back(dh, z, dz):
    """One thread: one gradient, times the slope of GELU where the number was."""
    col, row = cuda.grid(2)
    if row < z.shape[0] and col < z.shape[1]:
        dz[row, col] = dh[row, col] * gelu_slope(z[row, col])


@cuda.jit
def softmax(y, p):
    """One warp: the softmax of a row of at most 32 numbers."""
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    value = y[row, lane] if lane < y.shape[1] else float32(-math.inf)
    value = math.exp(value - over_warp(value, True))
    total = over_warp(value, False)
    if lane < y.shape[1]:
        p[row, lane] = value / total


@cuda.jit
def pick(p, labels, losses):
    """One thread: the loss of one row."""
    row = cuda.grid(1)
    if row < losses.size:
        losses[row] = -math.log(p[row, labels[row]])


@cuda.jit
def minus_wanted(p, labels, dy):
    """One thread: one number of the mean loss's gradient."""
    col, row = cuda.grid(2)
    if row < p.shape[0] and col < p.shape[1]:
        wanted = float32(1) if labels[row] == col else float32(0)
        dy[row, col] = (p[row, col] - wanted) / float32(p.shape[0])


@cuda.jit
def column_sums(a, out):
    """One thread: the sum of one column."""
    col = cuda.grid(1)
    if col < out.size:
        acc = float32(0)
        for row in range(a.shape[0]):
            acc += a[row, col]
        out[col] = acc


@cuda.jit
def shrink(w, factor):
    """One thread: one weight's decay."""
    i = cuda.grid(1)
    if i < w.size:
        w[i] *= factor


@cuda.jit
def average(m, g, keep):
    """One thread: one first moment."""
    i = cuda.grid(1)
    if i < m.size:
        m[i] = keep * m[i] + (ONE - keep) * g[i]


@cuda.jit
def average_square(v, g, keep):
    """One thread: one second moment."""
    i = cuda.grid(1)
    if i < v.size:
        v[i] = keep * v[i] + (ONE - keep) * g[i] * g[i]


@cuda.jit
def root(v, correct, out):
    """One thread: what one step will be divided by."""
    i = cuda.grid(1)
    if i < v.size:
        out[i] = math.sqrt(v[i] / correct) + float32(1e-8)


@cuda.jit
def move(w, m, divisor, rate):
    """One thread: one weight's step."""
    i = cuda.grid(1)
    if i < w.size:
        w[i] -= rate * m[i] / divisor[i]


# -- fused kernels --------------------------------------------------------------------------------------


@cuda.jit
def up(x, w, b, z, h):
    """One thread: one number of z = x @ w + b, and its GELU."""
    col, row = cuda.grid(2)
    acc = tile_product(x, w)
    if row < z.shape[0] and col < z.shape[1]:
        acc += b[col]
        z[row, col] = acc
        h[row, col] = gelu(acc)


@cuda.jit
def down(h, w, b, y):
    """One thread: one number of y = h @ w + b."""
    col, row = cuda.grid(2)
    acc = tile_product(h, w)
    if row < y.shape[0] and col < y.shape[1]:
        y[row, col] = acc + b[col]


@cuda.jit
def cross_entropy(y, labels, losses, dy):
    """One warp: the loss of one row of at most 32 numbers, and its share of the mean's gradient."""
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    value = y[row, lane] if lane < y.shape[1] else float32(-math.inf)
    value -= over_warp(value, True)
    total = over_warp(math.exp(value), False)
    wanted = float32(1) if lane == labels[row] else float32(0)
    if lane < y.shape[1]:
        dy[row, lane] = (math.exp(value) / total - wanted) / float32(y.shape[0])
        if lane == labels[row]:
            losses[row] = math.log(total) - value


@cuda.jit
def back(dy, w, z, dz):
    """One thread: one number of dz, which is dy @ w's transpose times the slope of GELU."""
    col, row = cuda.grid(2)
    acc = tile_product_bt(dy, w)
    if row < dz.shape[0] and col < dz.shape[1]:
        dz[row, col] = acc * gelu_slope(z[row, col])


@cuda.jit
def gradient(x, dz, dw, db):
    """One thread: one number of dw, which is x's transpose times dz; row 0 adds up db."""
    col, row = cuda.grid(2)
    acc = at_product(x, dz, db)
    if row < dw.shape[0] and col < dw.shape[1]:
        dw[row, col] = acc


@cuda.jit
def adamw(w, g, m, v, rate, factor, correct_m, correct_v):
    """One thread: one parameter's step."""
    i = cuda.grid(1)
    if i < w.size:
        m_new = float32(0.9) * m[i] + float32(0.1) * g[i]
        v_new = float32(0.999) * v[i] + float32(0.001) * g[i] * g[i]
        m[i], v[i] = m_new, v_new
        step = (m_new / correct_m) / (math.sqrt(v_new / correct_v) + float32(1e-8))
        w[i] = factor * w[i] - rate * step


# -- a network ------------------------------------------------------------------------------------------


@dataclass
class NamedLaunch:
    """One launch of a step. phase: forward, loss, backward or update. run: the configured kernel."""

    name: str
    phase: str
    run: Any
    args: tuple


def over(rows, columns):
    """Grid and block with a thread for each element of a matrix."""
    return (-(-columns // SIDE), -(-rows // SIDE)), (SIDE, SIDE)


def along(count):
    """Grid and block with a thread for each of ``count`` numbers."""
    return -(-count // 256), 256


class Net:
    """inputs -> hidden, GELU -> outputs, in FP32 on the device; all parameters lie in one array ``w``."""

    def __init__(self, inputs, hidden, outputs, batch=64, seed=0, rate=0.01, decay=0.01):
        self.shapes = (inputs, hidden), (hidden,), (hidden, outputs), (outputs,)
        rng = np.random.default_rng(seed)
        start = [
            rng.uniform(-1, 1, shape) / math.sqrt(fan)
            for shape, fan in zip(self.shapes, (inputs, inputs, hidden, hidden), strict=True)
        ]
        self.start = [array.astype(f32) for array in start]
        flat = np.concatenate([array.ravel() for array in self.start])
        self.size, self.batch, self.rate, self.decay, self.steps = flat.size, batch, rate, decay, 0
        self.w = cuda.to_device(flat)
        self.g, self.m, self.v = (cuda.to_device(np.zeros_like(flat)) for _ in range(3))
        self.spare = cuda.to_device(np.zeros_like(flat))
        self.z0, self.z, self.h, self.dh, self.dz = (self.rows(hidden) for _ in range(5))
        self.y0, self.y, self.p, self.dy = (self.rows(outputs) for _ in range(4))
        self.losses, self.none = cuda.to_device(np.zeros(batch, f32)), cuda.to_device(np.zeros(1, f32))

    def rows(self, width) -> Any:
        """Zeros on the device: a row of `width` for each picture of a batch."""
        return cuda.to_device(np.zeros((self.batch, width), f32))

    def parts(self, flat):
        """W1, b1, W2 and b2 as parts of an array that holds them one after another."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        cut = [flat[end - math.prod(shape) : end] for shape, end in zip(self.shapes, ends, strict=True)]
        return [
            part.reshape(shape) if len(shape) > 1 else part
            for part, shape in zip(cut, self.shapes, strict=True)
        ]

    def pace(self):
        """AdamW's learning rate, decay factor and the two bias corrections of the next step."""
        t = self.steps + 1
        return f32(self.rate), f32(1 - self.rate * self.decay), f32(1 - 0.9**t), f32(1 - 0.999**t)

    def fused(self, x, labels, losses=None):
        """The seven launches of a step."""
        losses = self.losses if losses is None else losses
        w1, b1, w2, b2 = self.parts(self.w)
        dw1, db1, dw2, db2 = self.parts(self.g)
        (i, h), (_, o), n = self.shapes[0], self.shapes[2], self.batch
        return [
            NamedLaunch("W1, GELU", "forward", up[over(n, h)], (x, w1, b1, self.z, self.h)),
            NamedLaunch("h W2 + b2", "forward", down[over(n, o)], (self.h, w2, b2, self.y)),
            NamedLaunch("loss, dy", "loss", cross_entropy[n, 32], (self.y, labels, losses, self.dy)),
            NamedLaunch("dW2, db2", "backward", gradient[over(h, o)], (self.h, self.dy, dw2, db2)),
            NamedLaunch("dh, dz", "backward", back[over(n, h)], (self.dy, w2, self.z, self.dz)),
            NamedLaunch("dW1, db1", "backward", gradient[over(i, h)], (x, self.dz, dw1, db1)),
            NamedLaunch(
                "AdamW", "update", adamw[along(self.size)], (self.w, self.g, self.m, self.v, *self.pace())
            ),
        ]

    def apart(self, x, labels):
        """The same step with a launch for each operation."""
        w1, b1, w2, b2 = self.parts(self.w)
        dw1, db1, dw2, db2 = self.parts(self.g)
        (i, h), (_, o), n = self.shapes[0], self.shapes[2], self.batch
        forward = [
            ("x W1", product[over(n, h)], (x, w1, self.z0)),
            ("+ b1", add_bias[over(n, h)], (self.z0, b1, self.z)),
            ("GELU", bend[over(n, h)], (self.z, self.h)),
            ("h W2", product[over(n, o)], (self.h, w2, self.y0)),
            ("+ b2", add_bias[over(n, o)], (self.y0, b2, self.y)),
        ]
        loss = [
            ("softmax", softmax[n, 32], (self.y, self.p)),
            ("loss", pick[along(n)], (self.p, labels, self.losses)),
            ("dy", minus_wanted[over(n, o)], (self.p, labels, self.dy)),
        ]
        backward = [
            ("dW2", at_times[over(h, o)], (self.h, self.dy, self.none, dw2)),
            ("db2", column_sums[along(o)], (self.dy, db2)),
            ("dh", product_bt[over(n, h)], (self.dy, w2, self.dh)),
            ("GELU back", bend_back[over(n, h)], (self.dh, self.z, self.dz)),
            ("dW1", at_times[over(i, h)], (x, self.dz, self.none, dw1)),
            ("db1", column_sums[along(h)], (self.dz, db1)),
        ]
        return [
            NamedLaunch(name, phase, run, args)
            for phase, some in (("forward", forward), ("loss", loss), ("backward", backward))
            for name, run, args in some
        ] + self.update_apart()

    def update_apart(self):
        """AdamW's five operations on each of the four arrays of parameters."""
        rate, factor, correct_m, correct_v = self.pace()
        rows = []
        arrays = [self.flat_parts(array) for array in (self.w, self.g, self.m, self.v, self.spare)]
        for name, w, g, m, v, spare in zip(("W1", "b1", "W2", "b2"), *arrays, strict=True):
            all_of = along(w.size)
            rows += [
                NamedLaunch(f"{name} decays", "update", shrink[all_of], (w, factor)),
                NamedLaunch(f"{name}: m", "update", average[all_of], (m, g, f32(0.9))),
                NamedLaunch(f"{name}: v", "update", average_square[all_of], (v, g, f32(0.999))),
                NamedLaunch(f"{name}: root", "update", root[all_of], (v, correct_v, spare)),
                NamedLaunch(f"{name} moves", "update", move[all_of], (w, m, spare, f32(rate / correct_m))),
            ]
        return rows

    def flat_parts(self, flat):
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return [flat[end - math.prod(shape) : end] for shape, end in zip(self.shapes, ends, strict=True)]

    def run(self, launches):
        """NamedLaunch a step's kernels, in order."""
        for launch in launches:
            launch.run(*launch.args)
        self.steps += 1

    def learn(self, x, labels, steps):
        """``steps`` fused steps on batches in the order of the data; the mean loss of each."""
        losses = cuda.to_device(np.zeros((steps, self.batch), f32))
        for step in range(steps):
            at = step * self.batch % (len(x) - self.batch + 1)
            end = at + self.batch
            self.run(self.fused(x[at:end], labels[at:end], losses[step]))
        return losses.copy_to_host().astype(float).mean(1)

    def answers(self, x):
        """The outputs for any number of rows, a batch at a time."""
        w1, b1, w2, b2 = self.parts(self.w)
        outputs = []
        for at in range(0, len(x), self.batch):
            rows = np.zeros((self.batch, x.shape[1]), f32)
            some = x[at : at + self.batch]
            rows[: len(some)] = some
            up[over(self.batch, self.shapes[1][0])](cuda.to_device(rows), w1, b1, self.z, self.h)
            down[over(self.batch, self.shapes[3][0])](self.h, w2, b2, self.y)
            outputs.append(self.y.copy_to_host()[: len(some)])
        return np.concatenate(outputs)


# -- training data --------------------------------------------------------------------------------------

# Lewis Carroll, "Jabberwocky", from "Through the Looking-Glass" (1871), in small letters; public domain
POEM = """twas brillig and the slithy toves
did gyre and gimble in the wabe
all mimsy were the borogoves
and the mome raths outgrabe
beware the jabberwock my son
the jaws that bite the claws that catch
beware the jubjub bird and shun
the frumious bandersnatch
he took his vorpal sword in hand
long time the manxome foe he sought
so rested he by the tumtum tree
and stood awhile in thought
and as in uffish thought he stood
the jabberwock with eyes of flame
came whiffling through the tulgey wood
and burbled as it came
one two one two and through and through
the vorpal blade went snicker snack
he left it dead and with its head
he went galumphing back
and hast thou slain the jabberwock
come to my arms my beamish boy
o frabjous day callooh callay
he chortled in his joy
"""
LETTERS = "\n abcdefghijklmnopqrstuvwxyz"


def letters(context):
    """The letters of ``context`` one-hot encoded, for 28 characters."""
    return np.eye(len(LETTERS), dtype=f32)[context].reshape(-1, len(LETTERS) * np.shape(context)[-1])


def lessons(seed, count, back=4):
    """``count`` training examples in random order: (``back`` letters of the poem, the letter after them)."""
    text = np.array([0] * back + [LETTERS.index(letter) for letter in POEM])
    rng = np.random.default_rng(seed)
    places = np.concatenate([rng.permutation(len(POEM)) for _ in range(-(-count // len(POEM)))])[:count]
    return letters(text[places[:, None] + np.arange(back)]), text[places + back].astype(np.int32)


def write(net, count, seed=5, back=4):
    """``count`` letters, each drawn with the probability that the network gives it after the last ones."""
    rng, text = np.random.default_rng(seed), [0] * back
    for _ in range(count):
        y = net.answers(letters(np.array([text[-back:]])))[0].astype(float)
        p = np.exp(y - y.max())
        text.append(int(rng.choice(len(LETTERS), p=p / p.sum())))
    return "".join(LETTERS[letter] for letter in text[back:])


# -- figures --------------------------------------------------------------------------------------------


def moved(profile):
    """(bytes of the distinct sectors that a launch reads, bytes of those that it writes)."""
    return profile.footprint.read + profile.footprint.written


PHASES = {"forward": "blue", "loss": "gold", "backward": "orange", "update": "green"}


def _shades(ax, pictures, columns):
    """Draw pictures of 8 x 8, ``columns`` in a row; returns the (left, top) edge of each."""
    places = [(9.5 * (i % columns), 12.5 * (i // columns)) for i in range(len(pictures))]
    for (left, top), picture in zip(places, pictures, strict=True):
        extent = (left, left + 8, top + 8, top)
        ax.imshow(picture.reshape(8, 8), cmap="gray", vmin=0, vmax=0.95, extent=extent)
    ax.set(xlim=(-0.5, 9.5 * columns - 1), ylim=(places[-1][1] + 12, -0.5), aspect="equal")
    ax.set_axis_off()
    return places


@plots.responsive
def samples(pictures, labels):
    """The first pictures with their labels."""
    columns = 4 if plots.on_phone() else 8
    figure, ax = plots.new(plots.COLUMN, 4.9 if plots.on_phone() else 2.5)
    for (left, top), label in zip(_shades(ax, pictures[:16], columns), labels, strict=False):
        ax.text(left + 4, top + 10, str(label), ha="center", va="center", **SMALL)
    said = " ".join(str(label) for label in labels[:16])
    return plots.show(
        figure,
        alt=f"16 grey pictures of 8 by 8 pixels with a digit each, blurred by noise: {said}.",
        caption="The first 16 pictures, and below each what it shows.",
    )


@plots.responsive
def trace(steps):
    """The launches of steps in a row, each as wide as the bytes that it moves.

    steps: {title: (launches, profiles)}.
    """
    phone = plots.on_phone()  # there each phase has a row of its own, so that its boxes are wider
    rows = sum(len({launch.phase for launch in launches}) if phone else 1 for launches, _ in steps.values())
    figure, ax = plots.new(plots.COLUMN, 0.75 * len(steps) + 1.4 + 0.45 * (rows - len(steps)))
    y, most, said, updates, drawn = 0.0, 0.0, [], [], []
    for title, (launches, profiles) in steps.items():
        top, at, parts = y, 0.0, dict.fromkeys(PHASES, 0.0)
        for number, (launch, profile) in enumerate(zip(launches, profiles, strict=True), 1):
            if phone and at and not parts[launch.phase]:
                y, at = y + 0.7, 0.0
            wide = moved(profile) / 1e3
            place = {"color": COLOUR[PHASES[launch.phase]], "edgecolor": PAPER, "linewidth": 0.8}
            ax.barh(y, wide, left=at, height=0.62, **place)
            drawn.append((at + wide / 2, y, wide, (launch.name, str(number))))
            at += wide
            parts[launch.phase] += wide
            most = max(most, at)
        at = sum(parts.values())
        ax.text(0, top - 0.4, f"{title}: {at:,.0f} KB", va="bottom", **SMALL)
        y += 1.1 if phone else 1.0
        shares = ", ".join(f"{phase} {wide:,.0f} KB" for phase, wide in parts.items())
        said.append(f"{title}, {at:,.0f} KB: {shares}")
        updates.append(f"{100 * parts['update'] / at:.0f} % of the bytes of {title}")
    room = (figure.get_figwidth() - 0.6) / 0.072 / most  # letters for each KB
    for middle, line, wide, texts in drawn:
        fits = [text for text in texts if len(text) + 1 < room * wide]
        if fits:
            word = {"ha": "center", "va": "center", "color": "#ffffff", "fontsize": 10}
            ax.text(middle, line, fits[0], **word)
    ax.set(
        ylim=(y - 0.55, -0.85),
        xlim=(0, most),
        xlabel="KB that each launch must move, from left to right",
    )
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    handles = [ax.barh(0, 0, color=COLOUR[colour]) for colour in PHASES.values()]
    plots.legend(figure, handles, list(PHASES))
    return plots.show(
        figure,
        alt=f"The launches of a training step as boxes in a row, each as wide as its bytes. "
        f"{'; '.join(said)}.",
        caption=f"The update moves {' and '.join(updates)}. Each box is a launch, in order, as "
        "wide as the bytes of the distinct sectors that it touches, not as its time. A box too narrow for "
        "its name has its number, where that fits. Counted.",
    )


@plots.responsive
def losses(ours, reference):
    """The loss of each step beside that of PyTorch in float64, and how far apart they are."""
    figure, (left, right) = plots.new(plots.COLUMN, 2.8, columns=2)
    steps = np.arange(1, len(ours) + 1)
    left.plot(steps, reference, color=INK, linewidth=4, alpha=0.25, label="PyTorch, float64")
    left.plot(steps, ours, color=COLOUR["blue"], linewidth=1.4, label="our kernels, float32")
    left.set(xlabel="step", ylabel="loss", ylim=(0, None))
    apart = np.maximum(np.abs(np.subtract(ours, reference)), 1e-9)
    right.semilogy(steps, apart, color=COLOUR["orange"], linewidth=1.2)
    right.set(xlabel="step", ylabel="difference of the two")
    plots.legend(figure, *left.get_legend_handles_labels())
    return plots.show(
        figure,
        alt=f"Left: two curves that cannot be told apart fall from {ours[0]:.2f} to "
        f"{np.mean(ours[-10:]):.2f}, the mean of the "
        f"last ten steps. Right: their difference grows from {apart[0]:.0e} to at most {apart.max():.0e}.",
        caption="From the same start, on the same pictures, our losses and PyTorch's differ by at most "
        f"{apart.max():.0e}. Live: made when this page was built.",
        evidence=["live"],
    )


@plots.responsive
def mistakes(pictures, labels, answers):
    """The first wrong answers: pictures with their labels and the network's answers."""
    wrong = np.flatnonzero(answers != labels)[:12]
    columns = 4 if plots.on_phone() else 12
    figure, ax = plots.new(plots.COLUMN, 2.9 if plots.on_phone() else 1.25)
    for (left, top), i in zip(_shades(ax, pictures[wrong], columns), wrong, strict=True):
        ax.text(left + 4, top + 10, f"{answers[i]} for {labels[i]}", ha="center", va="center", **SMALL)
    said = "; ".join(f"{answers[i]} for {labels[i]}" for i in wrong)
    return plots.show(
        figure,
        alt=f"Pictures that the network read wrongly: {said}.",
        caption="The first pictures that it got wrong: what it said, and for which digit.",
        evidence=["live"],
    )


@plots.responsive
def block(rows, title):
    """Least times of a step by kind of kernel, apart and fused. rows: {kind: (seconds, seconds)}."""
    figure, ax = plots.new(plots.COLUMN, 0.62 * len(rows) + 1.2)
    most = 1e3 * max(max(pair) for pair in rows.values())
    for y, pair in enumerate(rows.values()):
        for shift, seconds, colour in zip((-0.19, 0.19), pair, ("orange", "blue"), strict=True):
            ax.barh(y + shift, 1e3 * seconds, height=0.36, color=COLOUR[colour], alpha=0.85)
            ax.annotate(
                f"{1e3 * seconds:.2f}", (1e3 * seconds, y + shift), (4, 0), textcoords="offset points",
                va="center", **SMALL,
            )  # fmt: skip
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xlabel="milliseconds at least, for one block", xlim=(0, 1.14 * most), ylim=(len(rows) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    handles = [ax.barh(0, 0, color=COLOUR[colour], alpha=0.85) for colour in ("orange", "blue")]
    plots.legend(figure, handles, ["each operation a kernel", "fused"])
    said = "; ".join(
        f"{kind} {1e3 * apart:.2f} and {1e3 * fused:.2f}" for kind, (apart, fused) in rows.items()
    )
    totals = [1e3 * sum(pair[i] for pair in rows.values()) for i in (0, 1)]
    kind, (before, then) = max(rows.items(), key=lambda row: row[1][0] - row[1][1])
    return plots.show(
        figure,
        alt=f"{title}: milliseconds at least for each kind of kernel, with each operation a kernel and "
        f"fused. {said}. "
        f"Together {totals[0]:.1f} and {totals[1]:.1f}.",
        caption=f"{title}: fused {totals[1]:.1f} ms at least, apart {totals[0]:.1f}. Fusing {kind} saves "
        f"most, {1e3 * (before - then):.1f} ms. Theory, from an H100 SXM's dense BF16 peak and HBM "
        "bandwidth, no measurement.",
        evidence=["theory"],
    )


@plots.responsive
def sizes(rows):
    """The least time of a step of each network, by its parts. rows: {network: {part: seconds}}."""
    figure, ax = plots.new(plots.COLUMN, 0.85 * len(rows) + 1.3)
    colours = dict(zip(next(iter(rows.values())), ("gold", "green", "blue"), strict=True))
    for y, parts in enumerate(rows.values()):
        for shift, (what, seconds) in zip((-0.25, 0, 0.25), parts.items(), strict=True):
            ax.plot(seconds, y + shift, "o", markersize=9, color=COLOUR[colours[what]])
            ax.annotate(
                plots.duration(seconds), (seconds, y + shift), (9, 0),
                textcoords="offset points", va="center",
                fontsize=9.5,
            )  # fmt: skip
    ax.set_xscale("log")
    ax.set(xlim=(1e-8, 30), ylim=(len(rows) - 0.5, -0.5), xlabel="seconds of a step, at least")
    ax.set_yticks(range(len(rows)), [f"{name}\nparameters" for name in rows])
    ax.tick_params(axis="y", length=0)
    handles = [ax.plot([], [], "o", markersize=9, color=COLOUR[colour])[0] for colour in colours.values()]
    ax.grid(axis="x")
    plots.legend(figure, handles, list(colours))
    longest = ", ".join(max(parts, key=parts.get) for parts in rows.values())
    said = "; ".join(
        f"{network}: " + ", ".join(f"{what} {plots.duration(seconds)}" for what, seconds in parts.items())
        for network, parts in rows.items()
    )
    return plots.show(
        figure,
        alt=f"Three networks, and for each the seconds of a step by what takes them, on a logarithmic "
        f"axis. {said}.",
        caption=f"What takes longest, from the smallest network to the largest: {longest}. Launches at a "
        "published 2.5 µs each; the rest is theory from an H100 SXM's peaks.",
        evidence=["theory", "published"],
    )


@plots.responsive
def batches(seconds):
    """The time of a step against the size of its batch. seconds: {pictures: seconds}."""
    figure, ax = plots.new(plots.COLUMN, 2.8)
    many = list(seconds)
    ax.loglog(many, [1e6 * each for each in seconds.values()], "o-", color=COLOUR["blue"])
    slope = 1e6 * min(each / count for count, each in seconds.items())
    ax.loglog(many, [slope * count for count in many], color=INK, linestyle=(0, (5, 3)), linewidth=1.5)
    ax.annotate(
        "in proportion to the work",
        (many[-4], slope * many[-4]),
        (8, -12),
        textcoords="offset points",
        **SMALL,
    )
    ax.set(xlabel="pictures in a step", ylabel="microseconds a step")
    said = ", ".join(f"{count}: {1e6 * each:,.0f}" for count, each in seconds.items())
    return plots.show(
        figure,
        alt=f"Microseconds of a training step by pictures in it: {said}. The dashed line is in "
        f"proportion to the pictures.",
        caption=f"{many[-1] // many[0]:,} times the pictures take {seconds[many[-1]] / seconds[many[0]]:.0f} "
        "times as long. Live: a step of the same network in PyTorch on the machine that built this page.",
        evidence=["live"],
    )
