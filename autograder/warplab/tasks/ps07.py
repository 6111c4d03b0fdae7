"""Problem set 7, low precision: integers with a scale, bit patterns, a scaled loss, and products on Tensor
Cores and in INT8.
"""

import functools
import math
import re

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import KernelTask, Task, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many

UNIT = 2.0**-24  # unit roundoff of float32
HALF, TINY = 2.0**-11, 2.0**-25  # of float16: unit roundoff, and half of the smallest subnormal
TILE, WARP_TILE = 16, 32  # of wmma_matmul: what an instruction multiplies, and the side of a warp's part of C
BLOCK = 16  # of int8_matmul


@task("ps07/quantize_int8", points=15)
class QuantizeInt8(Task):
    """w[row] is about scale[row] * q[row], with scale = max |w[row]| / 127 (1 for a row of zeros) and q
    rounded half to even.

    bound[row] = max |w[row] - scale[row] q[row]| * reach: the most by which w[row] @ x can be off for an x
    with sum |x| <= reach, reached by an x with all of it where the weight is worst.
    """

    entry = "quantize_int8"
    arguments = ("w", "reach")
    returns = {"q": "int8", "scale": "float32", "bound": "numbers"}
    items = (
        Item("rows", 2, title="A scale for each row"),
        Item("ties", 1, title="Half to even"),
        Item("zeros", 4, title="A row of zeros, and of numbers that are nearly zero"),
        Item("bound", 8, title="The most by which an output can be off"),
    )
    domain = {
        "rows": Whole(upto=65),
        "n": Whole(),
        "w": Values("float32", PLAIN, "zeros", "negative", "equal", "ties", "large"),
        "asked": Choice("codes", "bound"),
    }
    corners = 10

    @staticmethod
    def weights(rng, item, w, only=("q", "scale")):
        rows, cols = w.shape
        inputs = {"w": w.astype(np.float32), "reach": float(rng.uniform(1, 100))}
        return Case(f"{item}, {rows} x {cols}", inputs, item, only)

    def fits(self, place):
        return place["rows"] * place["n"] <= 5000

    def at(self, rng, place):
        w = self.domain["w"].draw(rng, place["w"], (place["rows"], place["n"]))
        if place["asked"] == "bound":
            return self.weights(rng, "bound", w, ("bound",))
        return self.weights(rng, "rows" if w.any(axis=1).all() else "zeros", w)

    def make_cases(self, rng):
        weights = functools.partial(self.weights, rng)

        def normal(rows, cols):
            return rng.normal(0, 1, (int(rows), int(cols))) * 10.0 ** rng.uniform(-4, 3, (int(rows), 1))

        halves = rng.integers(-126, 126, (6, 40)) + 0.5
        halves[:, 7] = 127 * rng.choice([-1, 1], 6)
        zeros = normal(4, 9)
        zeros[rng.permutation(4)[:2]] = 0
        return [
            weights("rows", normal(1, 1)),
            weights("rows", normal(rng.integers(3, 20), rng.integers(30, 200))),
            weights("ties", halves * 2.0 ** rng.integers(-12, 4, (6, 1))),
            weights("zeros", zeros),
            weights("zeros", np.zeros((3, 5))),
            weights("zeros", normal(3, 8) * np.array([[1e-20], [0.0], [1e-12]])),
            weights("bound", normal(5, 30), ("bound",)),
            weights("bound", normal(7, 4), ("bound",)),
        ]

    @staticmethod
    def quotient(inputs):
        """(w / scale, scale), in float64."""
        w = inputs["w"].astype(np.float64)
        largest = np.abs(w).max(axis=1, keepdims=True)
        scale = np.where(largest == 0, 1.0, largest / 127)
        return w / scale, scale

    def reference(self, inputs):
        quotient, scale = self.quotient(inputs)
        return {
            "q": np.rint(quotient).astype(np.int64),
            "scale": scale[:, 0],
            "bound": (np.abs(quotient - np.rint(quotient)) * scale).max(axis=1) * inputs["reach"],
        }

    def tolerance(self, inputs, expected):
        """In float32, w / scale may round to the other neighbour if it lies within a few roundings of a half;
        not on the half itself, where the scale is a float32 and the quotient exact. The remainder of a weight
        is a difference of two numbers of up to 127 scales.
        """
        quotient, scale = self.quotient(inputs)
        off = np.abs(np.abs(quotient - np.trunc(quotient)) - 0.5)
        exact = (off == 0) & (scale == scale.astype(np.float32))
        near = (off < 4 * UNIT * 127) & ~exact
        return {
            "q": near.astype(np.float64),
            "scale": 2 * UNIT * expected["scale"],
            "bound": 8 * 127 * UNIT * scale[:, 0] * inputs["reach"],
        }


@task("ps07/encode_float", points=20)
class EncodeFloat(Task):
    """The bit patterns of numbers in a format with a sign, `exponent_bits`, `fraction_bits` and the bias
    2^(exponent_bits - 1) - 1.

    Rounded once, to nearest, ties to even, with subnormals. With `infinities` the largest exponent is
    reserved as in IEEE 754, and overflow gives infinity; without (E4M3 of the FP8 paper and of the OCP) only
    the pattern of all ones is NaN, and overflow, infinity included, saturates at the largest number (as in
    PyTorch 2.12 and later). NaN: sign 0, all other bits 1.
    """

    entry = "encode_float"
    arguments = ("x", "exponent_bits", "fraction_bits", "infinities")
    returns = {"code": "integers"}
    formats = {"FP16": (5, 10, True), "BF16": (8, 7, True), "E5M2": (5, 2, True), "E4M3": (4, 3, False)}
    items = (
        Item("normal", 4, title="Numbers of ordinary size, and zero"),
        Item("ties", 4, title="Ties go to even, and may carry into the next power"),
        Item("subnormal", 4, title="Subnormals"),
        Item("overflow", 3, title="Too large: infinity"),
        Item("saturation", 3, title="A format without infinities"),
        Item("once", 2, title="Rounded once, not twice"),
    )
    domain = {
        "exponent_bits": Whole(2, 8),
        "fraction_bits": Whole(1, 10),
        "infinities": Choice(True, False, said=True),
        "x": Values("float64", "ordinary", "halves", "subnormal", "around the largest"),
    }
    corners = 14

    @staticmethod
    def numbers(rng, item, bits, x, name=""):
        exponent, fraction, infinities = bits
        name = name or f"{exponent} exponent and {fraction} fraction bits"
        inputs = {"exponent_bits": exponent, "fraction_bits": fraction, "infinities": infinities}
        smallest = 2 - 2 ** (exponent - 1)  # the power of the smallest normal number
        inputs["x"] = np.asarray(x(smallest, fraction), np.float64) * rng.choice([-1, 1])
        return Case(f"{item}, {name}", inputs, item)

    def at(self, rng, place):
        exponent, fraction, infinities = (
            place[name] for name in ("exponent_bits", "fraction_bits", "infinities")
        )
        most = (
            2.0 ** (2 ** (exponent - 1) - (0 if infinities else -1))
            * (2 - 2.0 ** (-fraction if infinities else 1 - fraction))
            / 2
        )
        row, x = {
            "ordinary": ("normal", functools.partial(_ordinary, rng)),
            "halves": ("ties", functools.partial(_halves, rng)),
            "subnormal": ("subnormal", functools.partial(_small, rng)),
            "around the largest": ("overflow" if infinities else "saturation", _around(most)),
        }[place["x"]]
        return self.numbers(rng, row, (exponent, fraction, infinities), x)

    def make_cases(self, rng):
        def numbers(item, name, x):
            drawn = int(rng.choice([3, 6, 7])), int(rng.integers(2, 10)), bool(rng.integers(2))
            bits = name if isinstance(name, tuple) else self.formats.get(name) or drawn
            return self.numbers(rng, item, bits, x, name if name in self.formats else "")

        few = int(rng.integers(2, 10))
        forms = (*self.formats, None, (2, few, True), (3, 1, False))  # with the smallest fields allowed
        ordinary = functools.partial(_ordinary, rng)
        return [
            *(numbers("normal", form, ordinary) for form in forms),
            *(numbers("ties", form, functools.partial(_halves, rng)) for form in forms),
            *(numbers("subnormal", form, functools.partial(_small, rng)) for form in forms),
            numbers("overflow", "FP16", _around(65504.0, -np.nan)),
            numbers("overflow", "E5M2", _around(57344.0)),
            numbers("overflow", "BF16", _around((2 - 2.0**-7) * 2.0**127)),
            numbers("overflow", (6, few, True), _around((2 - 2.0**-few) * 2.0**31)),
            numbers("saturation", "E4M3", _around(448.0)),
            numbers("saturation", (5, few, False), _around((2 - 2.0 ** (1 - few)) * 2.0**16)),
            numbers("saturation", "E4M3", lambda smallest, fraction: rng.uniform(256, 448, 20)),
            *(
                numbers("once", name, functools.partial(_just_off_a_half, rng))
                for name in ("BF16", "E4M3", "E5M2")
            ),
        ]

    def wrong_result(self, case, outcome):
        """The message names the number whose code is wrong, since its place in the array says little."""
        wrong = super().wrong_result(case, outcome)
        first = re.search(r"first at \[(\d+)\]", wrong or "")
        if not first:
            return wrong
        x = float(case.inputs["x"][int(first[1])])
        return f"{wrong}, for x = {'-' * (math.isnan(x) and math.copysign(1, x) < 0)}{x!r}"

    def reference(self, inputs):
        x, fraction = inputs["x"], inputs["fraction_bits"]
        bias, ones = 2 ** (inputs["exponent_bits"] - 1) - 1, 2 ** (inputs["exponent_bits"] + fraction) - 1
        codes = []
        for value in x.tolist():
            if np.isnan(value):
                codes.append(ones)
                continue
            last = (
                ones + 1 - 2**fraction if inputs["infinities"] else ones - 1
            )  # infinity, or the largest number
            if np.isinf(value):
                code = last
            else:
                power = max(int(np.frexp(value)[1]) - 1, 1 - bias) if value else 1 - bias
                steps = round(float(np.ldexp(abs(value), fraction - power)))  # exact, then half to even
                code = min(steps + (power + bias - 1) * 2**fraction, last)
            codes.append(code + (ones + 1) * int(np.signbit(value)))
        return {"code": np.array(codes)}


def _ordinary(rng, smallest, fraction):
    size = rng.uniform(1, 1.7, 30) * 2.0 ** rng.integers(smallest, 2 - smallest, 30)
    return np.concatenate([size * rng.choice([-1, 1], 30), [0.0, -0.0, 1.0, 2.0**smallest]])


def _halves(rng, smallest, fraction):
    steps = np.concatenate(
        [
            np.arange(2) + 2**fraction,
            rng.integers(2**fraction, 2 ** (fraction + 1), 20),
            [2 ** (fraction + 1) - 1],
        ]
    )
    return (steps + 0.5) * 2.0 ** (rng.integers(smallest, 1 - smallest, len(steps)) - fraction)


def _small(rng, smallest, fraction):
    steps = np.concatenate(
        [
            rng.uniform(0, 2**fraction, 20),
            [0.4, 0.5, 0.501, 1.5, 2.5],
            2**fraction - np.array([0.3, 0.5, 1, 0]),
        ]
    )
    return steps * 2.0 ** (smallest - fraction)


def _around(largest, second_nan=np.nan):
    """From the largest number to beyond the midpoint to the next one, which would round up."""

    def x(smallest, fraction):
        step = 2.0 ** (np.floor(np.log2(largest)) - fraction)
        return [
            largest,
            largest + 0.49 * step,
            largest + 0.5 * step,
            largest + step,
            1e30 * largest,
            np.inf,
            -np.inf,
            -largest - step,
            np.nan,
            second_nan,
            1.0,
        ]

    return x


def _just_off_a_half(rng, smallest, fraction):
    steps = np.arange(2**fraction, 2**fraction + 6)
    return (
        (steps + 0.5)
        * (1 + np.where(steps % 2, -1, 1) * 2.0**-40)
        * 2.0 ** (rng.integers(smallest // 2, 1) - fraction)
    )


@task("ps07/loss_scaling", points=15)
class LossScaling(Task):
    """Gradients of share * mean((tanh(x @ w1) @ w2 - y)^2), computed in float16 from a loss that is
    multiplied by a scale.

    As long as a gradient has an inf or NaN the scale is halved; then both are divided by it in float32.
    Returns them and the scale.
    """

    entry = "loss_scaling"
    arguments = ("w1", "w2", "x", "y", "share", "scale")
    returns = {"grad1": "float32", "grad2": "float32", "scale": "numbers"}
    items = (
        Item("right", 1, title="Gradients that need no help"),
        Item("small", 2, title="Gradients too small for float16"),
        Item("overflow", 12, title="A scale that is too large"),
    )
    domain = {
        "batch": Whole(upto=33),
        "width": Whole(upto=33),
        "hidden": Whole(upto=33),
        "outputs": Whole(upto=9),
        "scale": Choice("needs no help", "is needed", "is too large"),
    }
    corners = 8

    @staticmethod
    def network(rng, item, largest_scale, scale, w1=0.5, x=1.0, only=(), sizes=None):
        """`share` is chosen so that with a scale of 2^largest_scale the largest number of the backward pass
        is 45,000, and twice that scale gives inf. w1, x: their magnitudes. With a large x the largest number
        is in the first gradient; with a large w1, where tanh saturates, in the second.
        """
        drawn = rng.integers(10, 30), rng.integers(3, 12), rng.integers(4, 16), 2
        batch, width, hidden, outputs = (int(size) for size in sizes or drawn)
        inputs = {
            "w1": (rng.normal(0, w1 / np.sqrt(width), (width, hidden))).astype(np.float16),
            "w2": rng.normal(0, 1, (hidden, outputs)).astype(np.float16),
            "x": (x * rng.normal(0, 1, (batch, width))).astype(np.float16),
            "y": rng.normal(3, 0.3, (batch, outputs)).astype(np.float32),
            "share": 1.0,
            "scale": float(2.0**scale),
        }
        inputs["share"] = float(
            45_000 / 2.0**largest_scale / max(np.abs(part).max() for part in LossScaling.way_back(inputs))
        )
        return Case(
            f"{item}, batch of {batch}, {width} to {hidden} to {outputs}, scale 2^{scale}", inputs, item, only
        )

    def make_cases(self, rng):
        network = functools.partial(self.network, rng)
        largest = int(rng.integers(12, 20))
        return [
            network("right", 16, 0),
            network("right", 14, int(rng.integers(2, 6))),
            network("small", int(rng.integers(46, 50)), 42),
            network("small", int(rng.integers(40, 45)), 34, w1=0.06, x=8.0),
            network(
                "overflow",
                largest,
                largest + int(rng.integers(18, 24)),
                w1=8.0,
                only=("grad2", "scale"),
            ),  # the first consists of rounding errors
            network("overflow", int(rng.integers(12, 20)), 21, w1=0.01, x=64.0),
        ]

    def at(self, rng, place):
        sizes = [place[name] for name in ("batch", "width", "hidden", "outputs")]
        item, largest, scale = {
            "needs no help": ("right", 16, 0),
            "is needed": ("small", int(rng.integers(40, 45)), 34),
            "is too large": ("overflow", int(rng.integers(12, 20)), 21),
        }[place["scale"]]
        return self.network(rng, item, largest, scale, sizes=sizes)

    @staticmethod
    def way_back(inputs):
        """(by the output, by the sums, by their tanh, w1's gradient, w2's), all float64."""
        w1, w2, x, y = (inputs[name].astype(np.float64) for name in ("w1", "w2", "x", "y"))
        h = np.tanh(x @ w1)
        out = 2 * inputs["share"] / y.size * (h @ w2 - y)
        back = out @ w2.T
        through = back * (1 - h**2)
        return out, back, through, x.T @ through, h.T @ out

    def reference(self, inputs):
        *_, grad1, grad2 = way = self.way_back(inputs)
        scale, largest = inputs["scale"], max(np.abs(part).max() for part in way)
        while largest * scale >= 65_520:  # from here on float16 is infinite
            scale /= 2
        return {"grad1": grad1, "grad2": grad2, "scale": np.array(scale)}

    def tolerance(self, inputs, expected):
        """Every intermediate array is rounded to float16, with a relative error of HALF or, if subnormal, an
        error of TINY / scale, in addition to the errors of its factors. A product is summed in float32 and
        rounded once; a factor of four allows sums in parts.
        """
        w1, w2, x, _ = (np.abs(inputs[name].astype(np.float64)) for name in ("w1", "w2", "x", "y"))
        out, back, through, _, _ = (np.abs(part) for part in self.way_back(inputs))
        lost = TINY / float(expected["scale"])

        def product(a, b):
            return 4 * HALF * (a @ b) + lost

        hidden = np.tanh(x @ w1)
        error_h = product(x, w1) + 2 * HALF
        error_out = (
            2 * inputs["share"] / out.size * (product(hidden, w2) + error_h @ w2) + 2 * HALF * out + lost
        )
        error_back = product(out, w2.T) + error_out @ w2.T + lost
        error_through = error_back + back * (2 * error_h + 4 * HALF) + lost
        return {
            "grad1": product(x.T, through) + x.T @ error_through + lost,
            "grad2": product(hidden.T, out) + error_h.T @ out + hidden.T @ error_out + lost,
        }


@task("ps07/wmma_matmul", points=25)
class WmmaMatmul(KernelTask):
    """C = A @ B with float16 factors and float32 sums, one warp per 32 x 32 of C; lda and ldb are the row
    strides of A and B.
    """

    entry = "wmma_matmul"
    arguments = ("A", "B", "C", "m", "n", "k", "lda", "ldb")
    yardstick = ("torch.matmul", "A", "B")
    items = (
        Item("square", 2, title="Squares of 32 and 64"),
        Item("rectangular", 1, title="Any multiples of 32"),
        Item("window", 2, title="Matrices inside larger ones"),
        Item("edge", 4, title="Odd multiples of 16"),
        Item("tensor", 1, "structure", "The products are made by Tensor Cores"),
        Item("reuse", 12, "structure", "Every tile that is loaded is used twice"),
        Item("time", 3, "time", "Time, against the library's (CUDA only)"),
    )
    domain = {
        "m": Whole(16, multiple=16, upto=96),
        "n": Whole(16, multiple=16, upto=96),
        "k": Whole(16, multiple=16, upto=96),
        "beside A": Choice(0, 1, 3),
        "beside B": Choice(0, 1, 2),
    }

    @staticmethod
    def matrices(rng, item, m, n, k, beside=(0, 0)):
        """A case with sizes in tiles; `beside`: the tiles in the rows of A and B beyond their columns."""
        lda, ldb = (TILE * int(size) for size in (k + beside[0], n + beside[1]))
        m, n, k = (TILE * int(size) for size in (m, n, k))
        inputs = {"m": m, "n": n, "k": k, "lda": lda, "ldb": ldb}
        inputs["A"] = rng.normal(size=(m, lda)).astype(np.float16)
        inputs["B"] = rng.normal(size=(k, ldb)).astype(np.float16)
        window = f", rows {lda} and {ldb} apart" if any(beside) else ""
        return Case(f"{item}, {m} x {k} times {k} x {n}{window}", inputs, item)

    def make_cases(self, rng):
        return [
            self.matrices(rng, "square", 2, 2, 2),
            self.matrices(rng, "square", 4, 4, 4),
            self.matrices(rng, "rectangular", 4, 2, 1),
            self.matrices(rng, "rectangular", *rng.permutation([2, 4, 6])),
            self.matrices(rng, "window", 2, 4, 3, rng.permutation([1, 3])),
            self.matrices(rng, "edge", 1, 1, 1),
            self.matrices(rng, "edge", 3, 2, rng.integers(3, 6)),  # k is never n: the strides differ
            self.matrices(rng, "edge", 2, 5, rng.integers(2, 5)),
            self.matrices(rng, "tensor", 4, 4, 4),
            self.matrices(rng, "reuse", 4, 6, 4),
        ]

    def at(self, rng, place):
        m, n, k = (place[name] // TILE for name in "mnk")
        edge = m % 2 or n % 2  # in a row of their own, so that errors with strides do not matter there
        beside = (0, 0) if edge else (place["beside A"], place["beside B"])
        item = "edge" if edge else "window" if any(beside) else "rectangular"
        return self.matrices(rng, item, m, n, k, beside)

    def make_timed(self, rng):
        """2,048 cubed: 17 GFLOP, 32 MiB."""
        return [self.matrices(rng, "time", 128, 128, 128)]

    def result(self, inputs):
        return {"C": ((inputs["m"], inputs["n"]), "float32")}

    def plan(self, inputs):
        return (-(-inputs["n"] // WARP_TILE), -(-inputs["m"] // WARP_TILE)), 32

    def factors(self, inputs):
        return inputs["A"][:, : inputs["k"]].astype(np.float64), inputs["B"][:, : inputs["n"]].astype(
            np.float64
        )

    def reference(self, inputs):
        a, b = self.factors(inputs)
        return {"C": a @ b}

    def tolerance(self, inputs, expected):
        """Products of float16 are exact in float32; the sum has k terms.

        The error of a sum in float16 is thousands of times larger.
        """
        a, b = self.factors(inputs)
        return {"C": sum_tolerance(inputs["k"], np.abs(a) @ np.abs(b))}

    def unshared(self, inputs, counters, launch=()):
        """Besides the balance of the warps: each product is computed once, and each sum stored once. The
        sizes of these rows are multiples of 32, where no tiles overlap.
        """
        m, n, k = (inputs[name] for name in "mnk")
        made, stored = (counters.get(name, 0.0) for name in ("flops", "global_write.sectors"))
        if made > 2.5 * m * n * k:
            return f"{number(made)} FLOP where the product takes {number(2 * m * n * k)}: no tile twice"
        if stored > 1.25 * m * n / 8:
            return (
                f"{number(stored)} sectors stored where C has {number(m * n / 8)}: each number once, and "
                "neighbours by neighbouring lanes"
            )
        return super().unshared(inputs, counters, launch)

    def bounds(self, inputs):
        """Counts per product of tiles.

        Warp instructions: 9 to 14 with 2 x 2 tiles, 16 to 22 with one tile at a time; scalar multiply-adds
        take 128 alone, and 280 with loads and conversions in the best kernel that we wrote. Sectors: four
        products need two tiles of A and two of B, 16 sectors each; loading both tiles for every product takes
        twice as many.

        Time: a warp does 16 FLOP per byte that it loads, where a library's tiles per block and warp do
        several times as many, and it does not prefetch: full points up to 15 times the library's time.
        Without Tensor Cores an H100 SXM has a fifteenth of the FLOP/s, of which a scalar kernel reaches a
        part: no points from 60 times on. Provisional: not yet recorded on a GPU.
        """
        products = inputs["m"] * inputs["n"] * inputs["k"] / TILE**3
        sectors = products * TILE
        return {
            "tensor": Bound("warp_instructions", 40 * products, 110 * products, "instructions of warps"),
            "reuse": Bound("global_read.sectors", 1.05 * sectors, 1.75 * sectors, "sectors read"),
            "time": Bound("time.ratio_low", 15.0, 60.0, "times the library's time"),
        }


@task("ps07/int8_matmul", points=20)
class Int8Matmul(KernelTask):
    """Y = X @ W.T, exactly, for int8 matrices with rows of `words` 32-bit words of four numbers each; blocks
    of 16 x 16 threads.
    """

    entry = "int8_matmul"
    arguments = ("X", "W", "Y", "m", "n", "words")
    yardstick = ("torch.nn.functional.linear", "X in FP32", "W in FP32")
    items = (
        # Chapter 7's own kernel has these right, and dp4a: pasted, it may earn a quarter (test_pasted.py).
        Item("exact", 1, title="Multiples of 16, to the last bit"),
        Item("ragged", 1, title="Any number of rows and words"),
        Item("words", 7, "structure", "A quarter of the loads, and no queue at the tables"),
        Item("dp4a", 2, "structure", "Four products an instruction"),
        Item("sectors", 7, "structure", "Each word is fetched once a block"),
        Item("time", 2, "time", "Time, against the library's in FP32 (CUDA only)"),
    )
    domain = {
        "m": Whole(upto=65),
        "n": Whole(upto=65),
        "words": Whole(upto=129),
        "numbers": Choice(PLAIN, "all of them -128", "-128 and 127"),
    }

    @staticmethod
    def matrices(rng, item, m, n, words, numbers=(-128, 128)):
        m, n, words = int(m), int(n), int(words)
        inputs = {
            name: rng.integers(*numbers, (rows, 4 * words), np.int8) for name, rows in (("X", m), ("W", n))
        }
        return Case(
            f"{item}, {m} and {so_many(n, 'row')} of {so_many(words, 'word')}",
            inputs | {"m": m, "n": n, "words": words},
            item,
        )

    def make_cases(self, rng):
        return [
            self.matrices(rng, "exact", 48, 32, 16),  # more than one tile down and across
            self.matrices(rng, "exact", 16, 16, 512, (-128, -120)),  # sums beyond 2^24
            self.matrices(rng, "ragged", 1, 1, 1),
            self.matrices(rng, "ragged", 17, 2 * rng.integers(4, 20) + 1, 2 * rng.integers(9, 20) + 1),
            self.matrices(rng, "ragged", 2 * rng.integers(4, 20) + 1, 5, 16),
            # In the counted cases half of the last tile is outside on each side.
            self.matrices(rng, "words", 56, 56, 56),
            self.matrices(rng, "dp4a", 56, 40, 56),
            self.matrices(rng, "sectors", 40, 56, 40),
        ]

    def fits(self, place):
        return place["m"] * place["n"] * place["words"] <= 60_000

    def at(self, rng, place):
        case = self.matrices(rng, "ragged", place["m"], place["n"], place["words"])
        for name in "XW":
            if place["numbers"] != PLAIN:
                most = -128 if place["numbers"].startswith("all") else 127
                case.inputs[name][:] = rng.choice([-128, most], case.inputs[name].shape)
        return case

    def make_timed(self, rng):
        """2,048 cubed, with 24 MiB for the student's kernel; the yardstick has the same values in FP32."""
        case = self.matrices(rng, "time", 2048, 2048, 512)
        case.inputs.update({f"{name} in FP32": case.inputs[name].astype(np.float32) for name in ("X", "W")})
        return [case]

    def result(self, inputs):
        return {"Y": ((inputs["m"], inputs["n"]), "int32")}

    def plan(self, inputs):
        return (-(-inputs["n"] // BLOCK), -(-inputs["m"] // BLOCK)), (BLOCK, BLOCK)

    def reference(self, inputs):
        sums = (
            inputs["X"].astype(np.float64) @ inputs["W"].astype(np.float64).T
        )  # below 2^53: exact, and much faster than in integers
        return {"Y": sums.astype(np.int64)}

    def bounds(self, inputs):
        """Counts per 32 products of words, the zeros that pad the tables included.

        Wavefronts: two loads of one wavefront each, and two global loads per 16 words, which count three
        times: 2.4, and 2.75 if half of the threads load. 8 or more with loads of bytes, 9 with tables 16
        words wide. Warp instructions: 5 to 6, 11 if the loop is not unrolled, 28 if words are unpacked. A
        kernel without tables has no padding: no points from its 6 wavefronts on and, with loads of bytes, its
        21 instructions per word of a warp that has a row. Sectors: the words of 16 + 16 rows per block;
        tables of 16 bytes per row use half of each sector; kernels without tables read 9 to 36 times as many.

        Time: the yardstick is the same product in FP32, by the library on CUDA cores (its INT8 product runs
        on Tensor Cores, which this kernel does not use). Two shared-memory reads per four multiply-adds allow
        half of the FP32 peak: a ratio of 2, and full points up to 6. Provisional: not yet recorded on a GPU.
        """
        m, n, words = (inputs[name] for name in ("m", "n", "words"))
        down, across = -(-m // BLOCK), -(-n // BLOCK)
        steps = 8 * down * across * BLOCK * -(-words // BLOCK)
        without_zeros = -(-m // 2) * across * words
        sectors = words / 8 * (m * across + n * down)
        return {
            "words": Bound(
                f"{3 * 'global_read.requests + '}shared_read.wavefronts",
                2.8 * steps,
                5 * without_zeros,
                "wavefronts at the tables, and three for each request to memory",
            ),
            "dp4a": Bound("warp_instructions", 12 * steps, 18 * without_zeros, "instructions of warps"),
            "sectors": Bound("global_read.sectors", 1.1 * sectors, 1.9 * sectors, "sectors read"),
            "time": Bound("time.ratio_low", 6.0, 20.0, "times the time of the library's FP32"),
        }
