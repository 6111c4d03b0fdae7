"""Problem set 12, one kernel in three languages: kernels in Triton, compared with numba and CUDA C++."""

import functools

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import COPY, DriverTask, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many

UNIT = 2.0**-24  # unit roundoff of float32
WIDEST = 4  # float32 numbers in the widest access of a thread: 16 bytes
LANES = 32
COLUMNS = Whole(1, 4096, says=("columns from 1 to 4,096",), upto=1024)  # forward, make_cases adds 4,096
PROGRAMS = 32  # programs of layer_norm_backward whose sums fit into `partial`


def once(*shapes):
    """Sectors of contiguous float32 arrays of these shapes, each read or written once."""
    return sum(4 * int(np.prod(shape)) for shape in shapes) / 32


class TritonTask(DriverTask):
    """Host code without a `device` argument: it can launch only Triton kernels on its arrays."""

    needs = "triton"
    SHARE = 1 / 40  # exceeded if one program does all the work: it has at most 32 warps


@task("ps12/vector_add", points=10)
class VectorAdd(TritonTask):
    """out = x + y."""

    entry = "vector_add"
    arguments = ("x", "y", "out")
    items = (
        Item("whole", 3, title="Lengths that are whole blocks"),
        Item("any", 3, title="Any length"),
        Item("wide", 4, "structure", "A thread asks for four numbers at once"),
    )

    domain = {
        "n": Whole(upto=2050),
        "x": Values("float32", PLAIN, "signed zeros", "negative", "subnormal", "large"),
    }

    def at(self, rng, place):
        x, y = (self.domain["x"].draw(rng, place["x"], place["n"]) for _ in range(2))
        return Case(f"any, {so_many(place['n'], 'number')}", {"x": x, "y": y}, "any")

    def make_cases(self, rng):
        def vectors(item, count):
            x, y = (rng.normal(size=int(count)).astype(np.float32) for _ in range(2))
            return Case(f"{item}, {so_many(count, 'number')}", {"x": x, "y": y}, item)

        return [
            vectors("whole", 4096),
            vectors("any", 1),
            vectors("any", 2 * rng.integers(500, 4000) + 1),
            vectors("any", 65_537),  # a whole number of blocks, and one number more
            vectors("wide", 65_536),
        ]

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}

    def reference(self, inputs):
        return {"out": (inputs["x"] + inputs["y"]).astype(np.float64)}

    def bounds(self, inputs):
        """A request has at most 32 lanes of 16 bytes; one number per lane takes four times the requests."""
        fewest = 3 * inputs["x"].size / (LANES * WIDEST)
        return {"wide": Bound("global_memory.requests", 1.05 * fewest, 3.8 * fewest, "requests", fewest)}


@task("ps12/fused_softmax", points=20)
class FusedSoftmax(TritonTask):
    """Softmax of the first `columns` numbers of each row of x, whose rows may be longer, all in float32.

    A row of only minus infinities gives zeros; a row with a NaN or plus infinity gives NaN.
    """

    entry = "fused_softmax"
    arguments = ("x", "columns", "out")
    yardstick = COPY
    items = (
        Item("rows", 4, title="Rows of any length up to 4,096"),
        Item("apart", 3, title="Rows that lie further apart than they are long"),
        Item("large", 3, title="Numbers far from zero"),
        Item("special", 4, title="Infinities and NaN"),
        Item("once", 4, "structure", "Each number is read once and written once"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )

    domain = {
        "rows": Whole(upto=9),
        "columns": COLUMNS,
        "gap": Whole(0, says=("at least columns",), upto=33),
        "x": Values("float32", PLAIN, "equal", "zeros", "large", "below -1e9", "largest"),
    }

    def fits(self, place):
        return place["rows"] * place["columns"] <= 4200

    def at(self, rng, place):
        rows, columns, gap, kind = place.values()
        far = kind in ("large", "below -1e9", "largest")
        case = self.matrix(rng, "large" if far else "apart" if gap else "rows", rows, columns, gap)
        case.inputs["x"][:, :columns] = self.domain["x"].draw(rng, kind, (rows, columns))
        return case

    @staticmethod
    def matrix(rng, item, rows, columns, gap=0, size=1.0, centre=0.0):
        """A case with larger numbers between the rows than in them, so that reading past a row shows."""
        x = rng.normal(centre, size, (rows, int(columns))).astype(np.float32)
        between = rng.uniform(50, 99, (rows, int(gap))).astype(np.float32) + np.float32(centre)
        inputs = {"x": np.hstack([x, between]), "columns": int(columns)}
        label = f"{item}, {so_many(rows, 'row')} of {columns}{f', {columns + gap} apart' * bool(gap)}"
        return Case(label, inputs, item)

    def make_cases(self, rng):
        special = self.matrix(rng, "special", 7, rng.integers(5, 40), rng.integers(1, 9))
        x = special.inputs["x"]
        x[0, 1::2] = x[1, :] = x[2, 1:] = -np.inf
        x[3, 2], x[4, 3], x[5, 1] = np.inf, np.nan, np.nan
        x[5, 2:] = x[6] = -np.inf
        x[6, 3] = np.nan  # among minus infinities: a maximum that ignores NaN is minus infinity
        low = self.matrix(rng, "large", 2, rng.integers(65, 120), 5, 40.0, -900.0)
        low.inputs["x"][1] = -3.3e38  # below the finite numbers that masks use for minus infinity
        return [
            self.matrix(rng, "rows", 3, 1),
            self.matrix(rng, "rows", 5, 2 * rng.integers(100, 400) + 1),
            self.matrix(rng, "rows", 2, 4096),
            self.matrix(rng, "apart", 4, rng.integers(33, 300), rng.integers(1, 90)),
            self.matrix(rng, "large", 2, rng.integers(65, 120), 5, 40.0, 900.0),
            low,
            special,
            self.matrix(rng, "once", 64, 1024),
        ]

    def make_timed(self, rng):
        """One case: 32 MiB read and 32 MiB written."""
        return [self.matrix(rng, "time", 8192, 1024)]

    def result(self, inputs):
        return {"out": ((len(inputs["x"]), inputs["columns"]), "float32")}

    @staticmethod
    def powers(inputs):
        """(exp(x - max), x - max) of the first `columns` numbers of each row, in float64."""
        x = inputs["x"][:, : inputs["columns"]].astype(np.float64)
        largest = x.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            below = x - np.where(largest == -np.inf, 0.0, largest)
        return np.exp(below), below

    def reference(self, inputs):
        power, _ = self.powers(inputs)
        total = power.sum(axis=1, keepdims=True)
        return {"out": power / np.where(total == 0, 1.0, total)}

    def tolerance(self, inputs, expected):
        """exp turns the rounding of x - max into a relative error of |x - max| u, at most 104 u: exp of less
        than -104 is 0 in float32. exp itself, the sum and the division add a few u.
        """
        _, below = self.powers(inputs)
        reach = min(float(np.abs(below, where=np.isfinite(below), out=np.zeros_like(below)).max()), 104.0)
        limit = expected["out"] * UNIT * (4 * reach + 2 * inputs["columns"] ** 0.5 + 32) + 1e-37
        return {"out": np.where(np.isnan(limit), 0.0, limit)}

    def bounds(self, inputs):
        """Sectors: each number is read once and written once; a second read adds half as many.

        Time: a program holds its row in registers, so HBM moves as many bytes as a copy, and the two
        reductions of a row overlap with other rows' loads. Provisional: not yet recorded on a GPU.
        """
        fewest = 2 * once(self.result(inputs)["out"][0])
        return {
            "once": Bound("global_memory.sectors", 1.1 * fewest, 1.45 * fewest, "sectors", fewest),
            "time": Bound("time.ratio_low", 2.0, 6.0, "times the time of a copy"),
        }


class Normalised(TritonTask):
    """The base of layer_norm and layer_norm_backward: their random inputs."""

    @staticmethod
    def matrices(rng, rows, columns, size=1.0, centre=0.0):
        """{"x", "gamma", "beta"}, float32; each row of x is centred on +centre or -centre."""
        rows, columns = int(rows), int(columns)
        x = rng.normal(0, size, (rows, columns)) + centre * rng.choice([-1, 1], (rows, 1))
        gamma, beta = rng.uniform(0.5, 2, columns), rng.normal(0, 1, columns)
        named = {"x": x, "gamma": gamma * rng.choice([-1, 1], columns), "beta": beta}
        return {name: value.astype(np.float32) for name, value in named.items()}


@task("ps12/layer_norm", points=10)
class LayerNorm(Normalised):
    """y = (x - mean) rstd gamma + beta by rows; rstd = 1 / sqrt(var + eps), var = mean((x - mean)^2)."""

    entry = "layer_norm"
    arguments = ("x", "gamma", "beta", "eps", "y", "mean", "rstd")
    items = (
        Item("rows", 3, title="Rows of any length up to 4,096"),
        Item("far", 2, title="Rows whose numbers lie far from zero and close together"),
        Item("eps", 2, title="Rows that hardly vary, and short rows"),
        Item("once", 3, "structure", "x is read once"),
    )
    domain = {
        "rows": Whole(upto=9),
        "columns": COLUMNS,
        "x": Values("float32", PLAIN, "rising", "equal", "zeros"),
    }

    def fits(self, place):
        return place["rows"] * place["columns"] <= 4200

    def at(self, rng, place):
        count, columns, kind = place.values()
        varied = kind in (PLAIN, "rising") and columns > 127
        case = self.rows(rng, "rows" if varied else "eps", count, columns)
        case.inputs["x"][:] = self.domain["x"].draw(rng, kind, (count, columns))
        return case

    def rows(self, rng, item, count, columns, size=1.0, centre=0.0, eps=1e-5):
        inputs = self.matrices(rng, count, columns, size, centre) | {"eps": float(eps)}
        return Case(f"{item}, {so_many(count, 'row')} of {columns}", inputs, item)

    def make_cases(self, rng):
        rows = functools.partial(self.rows, rng)
        return [
            rows("rows", 4, 128),
            rows("rows", 3, 2 * rng.integers(150, 600) + 1),
            rows("rows", 1, 4096),
            rows("far", 3, rng.integers(200, 300), 1.0, 3000.0),
            rows("eps", 3, rng.integers(17, 60), 0.01, eps=rng.uniform(1e-4, 1e-3)),
            rows("eps", 2, 1, eps=rng.uniform(1e-6, 1e-4)),
            rows("once", 64, 1024),
        ]

    def result(self, inputs):
        count = (len(inputs["x"]),)
        return {"y": (inputs["x"].shape, "float32"), "mean": (count, "float32"), "rstd": (count, "float32")}

    def reference(self, inputs):
        x = inputs["x"].astype(np.float64)
        mean = x.mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + inputs["eps"])
        y = (x - mean) * rstd * inputs["gamma"] + inputs["beta"]
        return {"y": y, "mean": mean[:, 0], "rstd": rstd[:, 0]}

    def tolerance(self, inputs, expected):
        """The mean is off by d, the bound for a sum of n numbers. That adds d^2 to the variance, whose sum of
        n squares has a relative error of 2 (n + 4) u. rstd takes over half of both; the limit allows the
        whole. y is also off by d rstd |gamma|.
        """
        x = np.abs(inputs["x"].astype(np.float64))
        n, rstd = x.shape[1], expected["rstd"]
        d = sum_tolerance(n + 1, x.mean(axis=1))
        share = (n + 8) * 2 * UNIT + (d + UNIT * x.max(axis=1)) ** 2 * rstd**2
        gamma, beta = np.abs(inputs["gamma"]), np.abs(inputs["beta"])
        scaled = np.abs(expected["y"] - inputs["beta"])
        off = scaled * (share[:, None] + 8 * UNIT) + ((d + 2 * UNIT * x.max(axis=1)) * rstd)[:, None] * gamma
        return {"y": off + 4 * UNIT * beta, "mean": d, "rstd": rstd * share}

    def bounds(self, inputs):
        """For each row, x, gamma and beta are read and y is written: four times the sectors of x. A second
        read of x makes it five times.
        """
        fewest = once(inputs["x"].shape)
        return {"once": Bound("global_memory.sectors", 4.3 * fewest, 5.0 * fewest, "sectors", 2 * fewest)}


@task("ps12/layer_norm_backward", points=15)
class LayerNormBackward(Normalised):
    """The gradients of layer_norm. With h = (x - mean) rstd and w = dy gamma:
    dx = (w - h mean(h w) - mean(w)) rstd, dgamma = sum of dy h over rows, dbeta = sum of dy over rows.
    """

    entry = "layer_norm_backward"
    arguments = ("x", "gamma", "mean", "rstd", "dy", "partial", "dx", "dgamma", "dbeta")
    yardstick = COPY
    SHARE = 1 / 12  # larger than for one launch: two launches, and programs of one warp
    items = (
        Item("dx", 4, title="The gradient by x"),
        Item("parameters", 4, title="The gradients by gamma and beta"),
        Item("once", 5, "structure", "x and dy are read once"),
        Item("time", 2, "time", "Time, beside a copy of as many bytes (CUDA only)"),
    )

    domain = {
        "rows": Whole(upto=70),
        "columns": COLUMNS,
        "x": Values("float32", PLAIN, "equal", "negative", "large"),
        "asked": Choice("dx", "parameters"),
    }

    def fits(self, place):
        return place["rows"] * place["columns"] <= 4200

    def at(self, rng, place):
        count, columns, kind, asked = place.values()
        x = self.domain["x"].draw(rng, kind, (count, columns))
        return self.rows(rng, asked, count, columns, ("dx",) if asked == "dx" else ("dgamma", "dbeta"), x)

    def rows(self, rng, item, count, columns, only=(), drawn=None):
        inputs = self.matrices(rng, count, columns, rng.uniform(0.5, 3), rng.uniform(0, 2))
        inputs["x"] = inputs["x"] if drawn is None else drawn
        x = inputs["x"].astype(np.float64)
        mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + 1e-3)
        inputs |= {"mean": mean.astype(np.float32), "rstd": rstd.astype(np.float32)}
        inputs["dy"] = rng.normal(rng.uniform(-1, 1), 1, x.shape).astype(np.float32)
        del inputs["beta"]
        return Case(f"{item}, {so_many(count, 'row')} of {columns}", inputs, item, only)

    def make_cases(self, rng):
        def both(count, columns):
            yield self.rows(rng, "dx", count, columns, ("dx",))
            yield self.rows(rng, "parameters", count, columns, ("dgamma", "dbeta"))

        return [
            *both(3, 64),
            *both(2 * rng.integers(20, 30) + 1, 32 * rng.integers(3, 9) + 1),
            *both(1, 1),
            *both(2, 4096),
            self.rows(rng, "once", 256, 512),
        ]

    def make_timed(self, rng):
        """One case: 32 MiB of x and 32 MiB of dy."""
        return [self.rows(rng, "time", 8192, 1024)]

    def result(self, inputs):
        """`partial` is scratch memory of the submission: its contents are not compared."""
        rows, columns = inputs["x"].shape
        return {
            "partial": ((2, PROGRAMS, columns), "float32"),
            "dx": ((rows, columns), "float32"),
            "dgamma": ((columns,), "float32"),
            "dbeta": ((columns,), "float32"),
        }

    @staticmethod
    def parts(inputs):
        """(h, dy, w, rstd) in float64; rstd is (rows, 1)."""
        x, gamma, mean, rstd, dy = (
            inputs[name].astype(np.float64) for name in ("x", "gamma", "mean", "rstd", "dy")
        )
        return (x - mean[:, None]) * rstd[:, None], dy, dy * gamma, rstd[:, None]

    def reference(self, inputs):
        h, dy, w, rstd = self.parts(inputs)
        mean_hw, mean_w = (h * w).mean(axis=1, keepdims=True), w.mean(axis=1, keepdims=True)
        return {
            "dx": (w - h * mean_hw - mean_w) * rstd,
            "dgamma": (dy * h).sum(axis=0),
            "dbeta": dy.sum(axis=0),
        }

    def tolerance(self, inputs, expected):
        """h and w take a few roundings; the means are sums of n products, dgamma and dbeta sums over rows.
        The larger error of x rstd - mean rstd, in place of (x - mean) rstd, is not allowed for.
        """
        h, dy, w, rstd = (np.abs(part) for part in self.parts(inputs))
        rows, n = h.shape
        mean_hw, mean_w = (h * w).mean(axis=1, keepdims=True), w.mean(axis=1, keepdims=True)
        dx = sum_tolerance(n + 8, w + h * mean_hw + mean_w) * rstd
        return {
            "dx": dx,
            "dgamma": sum_tolerance(rows + 8, (dy * h).sum(axis=0)),
            "dbeta": sum_tolerance(rows + 8, dy.sum(axis=0)),
        }

    def bounds(self, inputs):
        """Sectors: x and dy are read and dx is written: three times the sectors of x. With 256 rows and 32
        programs, writing and reading `partial` adds half the sectors of x; each program reads gamma. A second
        launch that reads x and dy again makes it five times, and six if gamma is read for every row.

        Time: the yardstick copies as many bytes as x, dy and dx have. 32 programs are few for a GPU of more
        than a hundred multiprocessors, so full points go up to 12 times the copy's time. Provisional: not yet
        recorded on a GPU.
        """
        fewest = once(inputs["x"].shape)
        return {
            "once": Bound("global_memory.sectors", 4.0 * fewest, 5.0 * fewest, "sectors", 3 * fewest),
            "time": Bound("time.ratio_low", 12.0, 40.0, "times the time of a copy"),
        }

    def must_write(self, inputs):
        return inputs["x"].nbytes


def product_sectors(m, n, k, rows=64, columns=64):
    """Sectors of FP16 that an m x n product with sums of k terms reads in tiles of rows x columns."""
    return m * n * k * (1 / rows + 1 / columns) / 16


@task("ps12/matmul_dot", points=20)
class MatmulDot(TritonTask):
    """c = a @ b, with a (m, k) and b (k, n) in FP16, sums and c in FP32."""

    entry = "matmul_dot"
    arguments = ("a", "b", "c")
    yardstick = ("torch.matmul", "a", "b")
    domain = {axis: Whole(upto=200) for axis in "mnk"}
    corners = 3
    SHARE = 1 / 24  # 512 x 512 numbers in tiles of 128 x 256 are eight programs of four warps
    items = (
        Item("whole", 3, title="Sizes that are whole tiles"),
        Item("ragged", 6, title="Any sizes"),
        Item("sums", 2, title="Long sums, in FP32"),
        Item("tensor", 4, "structure", "Tensor Cores make the products, of numbers in FP16"),
        Item("reuse", 3, "structure", "A program makes at least 64 x 64 numbers"),
        Item("time", 2, "time", "Time, against the library's (CUDA only)"),
    )

    @staticmethod
    def factors(rng, item, m, n, k, least=-2.0, most=2.0):
        m, n, k = int(m), int(n), int(k)
        a, b = (rng.uniform(least, most, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        return Case(f"{item}, {m} x {k} times {k} x {n}", {"a": a, "b": b}, item)

    def make_cases(self, rng):
        odd = [2 * int(half) + 1 for half in rng.integers(20, 90, 3)]
        return [
            self.factors(rng, "whole", 128, 256, 128),
            self.factors(rng, "whole", *rng.permutation([128, 256, 384])),
            self.factors(rng, "ragged", 1, 1, 1),
            self.factors(rng, "ragged", *odd),
            self.factors(rng, "ragged", 65, 129, odd[2]),  # one more than whole tiles
            self.factors(rng, "sums", 64, 64, 2048, 4.0, 8.0),  # exceed the largest number of FP16
            self.factors(rng, "tensor", 512, 512, 32),
            self.factors(rng, "reuse", 512, 512, 64),
        ]

    def at(self, rng, place):
        return self.factors(rng, "ragged", *place.values())

    def make_timed(self, rng):
        """One case: m = n = k = 2,048, 17 GFLOP."""
        return [self.factors(rng, "time", 2048, 2048, 2048)]

    @staticmethod
    def sizes(inputs):
        """(m, n, k)."""
        return len(inputs["a"]), inputs["b"].shape[1], len(inputs["b"])

    def result(self, inputs):
        m, n, _ = self.sizes(inputs)
        return {"c": ((m, n), "float32")}

    def reference(self, inputs):
        return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}

    def tolerance(self, inputs, expected):
        """Products of FP16 numbers are exact in FP32; the sum has k terms."""
        a, b = (np.abs(inputs[name].astype(np.float64)) for name in "ab")
        return {"c": sum_tolerance(len(b), a @ b)}

    def bounds(self, inputs):
        """FLOP in FP32 and TF32: none if tl.dot gets FP16, all if the factors are converted before. Sectors:
        what tiles of 64 x 64 read; tiles of 64 x 32 read 1.5 times, tiles of 32 x 32 twice as many.

        Time: full points go up to 3 times the library's time, for a plain loop over tiles with Triton's own
        pipelining and a tile that is not tuned to the size. CUDA cores take 15 times as long and more.
        Provisional: not yet recorded on a GPU.
        """
        m, n, k = self.sizes(inputs)
        operations, sectors = 2 * m * n * k, product_sectors(m, n, k)
        fewest = 2 * (m * k + k * n) / 32
        return {
            "tensor": Bound(
                "fp32_flops + tf32_flops", 0.1 * operations, 0.6 * operations, "FLOP in FP32 and TF32"
            ),
            "reuse": Bound("global_read.sectors", 1.05 * sectors, 1.9 * sectors, "sectors read", fewest),
            "time": Bound("time.ratio_low", 3.0, 12.0, "times the library's time"),
        }


@task("ps12/autotune", points=20)
class Autotune(TritonTask):
    """Two products with the same weights, each with the tile size that suits its number of rows."""

    entry = "tuned_products"
    arguments = ("prompt", "words", "weights", "out_prompt", "out_words")
    yardstick = ("torch.matmul", "prompt", "weights")
    domain = {axis: Whole(upto=150) for axis in ("prompt", "words", "n", "k")}
    corners = 2  # few: each case tries all configurations for two shapes
    SHARE = 1 / 12  # larger than for one launch: two launches, and few programs for few rows
    WORDS = 16  # rows of `words` in counted and timed cases: those of tl.dot's smallest tile
    items = (
        Item("any", 5, title="Right for any sizes"),
        Item("prompt", 6, "structure", "Many rows: large tiles, which read the factors seldom"),
        Item("words", 6, "structure", "Few rows: small tiles, which multiply no padding"),
        Item("time", 3, "time", "Time of both, against the library's larger one (CUDA only)"),
    )

    @staticmethod
    def products(rng, item, prompt, words, n, k):
        prompt, words, n, k = int(prompt), int(words), int(n), int(k)
        shapes = {"prompt": (prompt, k), "words": (words, k), "weights": (k, n)}
        inputs = {name: rng.uniform(-2, 2, shape).astype(np.float16) for name, shape in shapes.items()}
        return Case(f"{item}, {prompt} and {so_many(words, 'row')} times {k} x {n}", inputs, item)

    def make_cases(self, rng):
        odd = [2 * int(half) + 1 for half in rng.integers(20, 60, 3)]
        return [
            self.products(rng, "any", odd[0], rng.integers(1, 16), odd[1], odd[2]),
            self.products(rng, "prompt", 1024, self.WORDS, 1024, 64),
            self.products(rng, "words", 128, self.WORDS, 1024, 64),
        ]

    def at(self, rng, place):
        return self.products(rng, "any", *place.values())

    def make_timed(self, rng):
        """One case: 4,096 rows and 16 rows, times weights of 2,048 x 2,048."""
        return [self.products(rng, "time", 4096, self.WORDS, 2048, 2048)]

    def result(self, inputs):
        n = inputs["weights"].shape[1]
        return {f"out_{name}": ((len(inputs[name]), n), "float32") for name in ("prompt", "words")}

    def reference(self, inputs):
        weights = inputs["weights"].astype(np.float64)
        return {f"out_{name}": inputs[name].astype(np.float64) @ weights for name in ("prompt", "words")}

    def tolerance(self, inputs, expected):
        """As in MatmulDot."""
        weights = np.abs(inputs["weights"].astype(np.float64))
        return {
            f"out_{name}": sum_tolerance(len(weights), np.abs(inputs[name].astype(np.float64)) @ weights)
            for name in ("prompt", "words")
        }

    def bounds(self, inputs):
        """Many rows: the sectors that tiles of 64 x 64 read for `prompt`; `words` adds up to a sixteenth.
        Tiles of 32 x 32 read twice as many, tiles of 16 x 16 four times as many.

        Few rows: FLOP, with padding. Tiles of 16 rows need none for `words`, tiles of 32 double its FLOP, and
        tiles of 64, which suit `prompt`, take four times as many. `prompt` itself needs no padding here.

        Time: as in MatmulDot; the second product reads the weights once more. Provisional: not yet recorded
        on a GPU.
        """
        k, n = inputs["weights"].shape
        many, few = len(inputs["prompt"]), len(inputs["words"])
        sectors, operations = product_sectors(many, n, k), 2 * n * k * (many + few)
        padded = operations + 2.5 * 2 * n * k * few
        return {
            "prompt": Bound("global_read.sectors", 1.1 * sectors, 1.7 * sectors, "sectors read"),
            "words": Bound("flops", 1.02 * operations, padded, "FLOP", 0.99 * operations),
            "time": Bound("time.ratio_low", 3.0, 12.0, "times the library's time"),
        }
