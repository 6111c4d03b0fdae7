"""Problem set 4, matrix multiplication: three kernels, each with fewer memory accesses, FLOPs of layers, a
convolution as a product, and a layer to mend.
"""

import functools

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import KernelTask, Task, task
from warplab.tasks.domain import PLAIN, Choice, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, number

TILE = 16
LIBRARY = ("torch.matmul", "a", "b")


class Matmul(KernelTask):
    """c = a @ b for float32 a (M, K), b (K, N), c (M, N), one thread for each element of c, blocks of 16 x
    16.
    """

    arguments = ("a", "b", "c")
    domain = {
        "M": Whole(),
        "N": Whole(),
        "K": Whole(),
        "a": Values("float32", PLAIN, "zeros", "equal", "negative"),
    }
    corner_row = "edges"
    corners = 6

    def fits(self, place):
        sides = place["M"], place["N"], place["K"]
        return np.prod(sides) <= 40_000 and sum(side > 256 for side in sides) < 2

    def at(self, rng, place):
        case = self.product(rng, self.corner_row, place["M"], place["N"], place["K"])
        case.inputs["a"][:] = self.domain["a"].draw(rng, place["a"], case.inputs["a"].shape)
        return case

    @staticmethod
    def product(rng, item, m, n, k):
        """A case with entries in [-1, 1): rows of c are sums with both signs, so a missing term shows."""

        def matrix(rows, cols):
            return 2 * rng.random((rows, cols), dtype=np.float32) - 1

        return Case(f"{item}, M={m} N={n} K={k}", {"a": matrix(m, k), "b": matrix(k, n)}, item)

    @classmethod
    def large(cls, rng):
        """The timed case: 17 GFLOP, 48 MiB, with half a tile beyond the edge."""
        return cls.product(rng, "time", 2040, 2040, 2040)

    @staticmethod
    def shape(inputs):
        """(M, N, K)."""
        (m, k), n = inputs["a"].shape, inputs["b"].shape[1]
        return m, n, k

    def result(self, inputs):
        m, n, _ = self.shape(inputs)
        return {"c": ((m, n), "float32")}

    def plan(self, inputs):
        m, n, _ = self.shape(inputs)
        return (-(-n // TILE), -(-m // TILE)), (TILE, TILE)

    def reference(self, inputs):
        return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}

    def tolerance(self, inputs, expected):
        magnitude = np.abs(inputs["a"]).astype(np.float64) @ np.abs(inputs["b"]).astype(np.float64)
        return {"c": sum_tolerance(inputs["a"].shape[1], magnitude)}


def ragged_shape(rng, low=17, high=70):
    """A random M, N, K of which none is a multiple of 16."""
    return tuple(int(x) + (x % TILE == 0) for x in rng.integers(low, high, 3))


def side(rng, low, high):
    """A random multiple of 16, from 16 * low to 16 * high."""
    return TILE * int(rng.integers(low, high + 1))


def half_over(rng, low, high):
    """A random odd multiple of 8: rows begin at the start of a sector, and half of the last tile is outside.

    The counted cases have such sizes, so that a kernel for whole tiles only earns nothing for its counts.
    """
    return side(rng, low, high) - TILE // 2


def tiles(length):
    """The number of tiles of 16 along a side; the last one may be partly filled."""
    return -(-length // TILE)


def result_shapes(rng):
    """(item, M, N, K) of the rows that check results, for kernels with one thread per element."""
    squares = [("square", n, n, n) for n in (side(rng, 2, 3), side(rng, 4, 5))]
    ragged = [
        ("ragged", *ragged_shape(rng)),
        ("ragged", *ragged_shape(rng)),
        ("ragged", 16, side(rng, 3, 4), 40),
    ]
    prime = [int(rng.choice([19, 31, 37, 61, 67])) for _ in range(3)]
    edges = [
        ("edges", 1, 1, 1),
        ("edges", 1, prime[0], 31),
        ("edges", prime[1], 1, 19),
        ("edges", prime[2], 29, 1),
    ]
    return squares + ragged + edges


@task("ps04/matmul_naive", points=20)
class MatmulNaive(Matmul):
    """One thread reads a row of a and a column of b."""

    entry = "matmul_naive"
    items = (
        Item("square", 5, title="Square matrices whose side is a multiple of 16"),
        Item("ragged", 9, title="Rectangular matrices of any size"),
        Item("edges", 3, title="One row, one column, K = 1, primes"),
        Item("sectors", 3, "structure", "A warp reads, sums in 32 bits and writes without waste"),
    )

    def make_cases(self, rng):
        n = half_over(rng, 3, 4)
        shapes = [*result_shapes(rng), ("sectors", n, n, half_over(rng, 5, 6))]
        return [self.product(rng, *shape) for shape in shapes]

    def bounds(self, inputs):
        """A warp is 2 rows x 16 columns of c.

        For each k it reads 2 elements of a (2 sectors) and 16 consecutive ones of b (64 bytes, 2 sectors),
        and at the end it writes 4 sectors: 4 K + 4 for each warp, 3 K + 2 where half of it is outside. With x
        and y swapped it is 17 K + 16, with the sum kept in c 8 K or more: no points from 1.8 times the
        smallest count on.
        """
        m, n, k = self.shape(inputs)
        fewest = m / 2 * (k * (2 * tiles(n) + n / 8) + 2 * n / 8)
        moved = "global_memory.sectors + fp64_flops"
        unit = "sectors read and written, and operations in 64 bits"
        return {"sectors": Bound(moved, fewest, 1.8 * fewest, unit)}


@task("ps04/matmul_tiled", points=30)
class MatmulTiled(Matmul):
    """A block copies a 16 x 16 tile of a and of b to shared memory; 16 threads use each element."""

    entry = "matmul_tiled"
    yardstick = LIBRARY
    items = (
        Item("square", 5, title="Square matrices whose side is a multiple of 16"),
        Item("ragged", 7, title="Rectangular matrices of any size"),
        Item("edges", 3, title="One row, one column, K = 1, primes"),
        Item("requests", 8, "structure", "Load requests fall by the width of the tile"),
        Item("sectors", 4, "structure", "Coalesced loads, few bank conflicts, sums in 32 bits"),
        Item("time", 3, "time", "Time, against the library's (CUDA only)"),
    )

    def make_cases(self, rng):
        n = half_over(rng, 3, 4)
        shapes = [
            *result_shapes(rng),
            ("requests", n, n, half_over(rng, 5, 6)),
            ("sectors", n, n, half_over(rng, 4, 5)),
        ]
        return [self.product(rng, *shape) for shape in shapes]

    def make_timed(self, rng):
        return [self.large(rng)]

    def bounds(self, inputs):
        """With all sides rounded up to whole tiles there are M N / 32 warps and K / 16 steps; in a step a
        warp makes 2 load requests, one per tile. The naive kernel makes 2 for each k, about sixteen times as
        many: no points there, and half if one of the two tiles is shared. A request covers 2 rows of 16
        floats, 4 sectors where nothing is outside; the naive kernel reads 8 times as many sectors in all, an
        uncoalesced tile 2.5 times: no points from twice the smallest count on. A sector counts as ten bank
        conflicts: one conflict for each product of a warp, as with tables 32 wide, is allowed; tables indexed
        [tx, ty] have seven. A sum in 64 bits is one 64-bit operation for each product of a thread.

        Time: a multiply-add needs two reads from shared memory. An SM serves one warp's read per clock, in
        which it could issue multiply-adds for four warps; that is an eighth of the peak, and the library
        comes near the peak: a ratio of 8, as published kernels have (chapter 4). Indices, barriers and
        occupancy cost more, so there are full points up to 20. Where FP64 is slow a sum in 64 bits is beyond
        60. Provisional: not yet recorded on a GPU.
        """
        m, n, k = self.shape(inputs)
        requests = 2 * (TILE / 2) * tiles(m) * tiles(n) * tiles(k)
        sectors = k / 8 * (m * tiles(n) + n * tiles(m))
        products = 8 * tiles(m) * tiles(n) * TILE * tiles(k)  # of a warp
        return {
            "requests": Bound("global_read.requests", requests, k * m * tiles(n), "load requests"),
            "sectors": Bound(
                f"{10 * 'global_read.sectors + '}shared_memory.bank_conflicts + fp64_flops",
                10 * sectors + 1.5 * products,
                20 * sectors,
                "bank conflicts and operations in 64 bits, and ten for each sector read",
            ),
            "time": Bound("time.ratio_low", 20.0, 60.0, "times the library's time"),
        }


@task("ps04/matmul_register_tiled", points=15)
class MatmulRegisterTiled(Matmul):
    """Each thread computes a small block of c and uses each value from shared memory several times."""

    entry = "matmul_register_tiled"
    plan_entry = "plan_register_tiled"
    yardstick = LIBRARY
    corner_row = "ragged"
    items = (
        Item("square", 2, title="Matrices that the tiles fit"),
        Item("ragged", 3, title="Matrices of any other size"),
        Item("requests", 5, "structure", "Fewer load requests for each multiply-add"),
        Item("time", 5, "time", "Time, against the library's (CUDA only)"),
    )

    def make_cases(self, rng):
        shapes = [("square", 64, 64, side(rng, 2, 4)), ("square", 128, 64, 32), ("ragged", 1, 1, 1)]
        shapes += [("ragged", 67, 131, 41), ("ragged", *ragged_shape(rng, 60, 100))]
        shapes += [("requests", 120, 120, side(rng, 3, 4))]  # tiles partly outside, as in half_over()
        shapes += [("requests", 184, 184, 16)]  # nine tiles of 64 x 64, for as many blocks
        return [self.product(rng, *shape) for shape in shapes]

    def make_timed(self, rng):
        return [self.large(rng)]

    def plan_arguments(self, inputs):
        m, n, k = self.shape(inputs)
        return {"M": m, "N": n, "K": k}

    def unshared(self, inputs, counters, launch=()):
        """Besides the balance of the blocks: for each k, a 64 x 64 tile of c reads 2 x 64 floats, 16 sectors.

        Tiles of 32 x 32 read twice as many; loads along columns read four times as many in as many requests.
        """
        m, n, k = self.shape(inputs)
        fewest, read = 16 * k * m * n / 64**2, counters.get("global_read.sectors", 0.0)
        if read > 3 * fewest:
            return (
                f"{number(read)} sectors read where {number(fewest)} hold the tiles: neighbouring threads "
                "read neighbouring numbers of a row"
            )
        return super().unshared(inputs, counters, launch)

    def bounds(self, inputs):
        """Shared and global load requests together.

        With 4 x 4 results per thread, a warp computes 512 elements of c and reads 8 values from shared memory
        for each k; a 64 x 64 tile of c needs 2 x 64 global values for each k, half a request for each of its
        8 warps. That is 8.5 requests for each k and 512 elements; full points up to 9. The tiled kernel of
        the task before makes 2 + 2 / 16 for each k and 32 elements, 34 for 512: no points there. Sides are
        rounded up to whole tiles of 64, since the part outside is read from shared memory, too.

        Time: by the count above 8 reads serve 16 multiply-adds, which allows half of the peak; full points
        up to 3 times the library's time, none for the tiled kernel's 8 to 10. Provisional: not yet recorded
        on a GPU.
        """
        m, n, k = self.shape(inputs)
        unit = k * 64 * -(-m // 64) * 64 * -(-n // 64) / 512
        return {
            "requests": Bound(
                "shared_read.requests + global_read.requests", 9 * unit, 34 * unit, "load requests"
            ),
            "time": Bound("time.ratio_low", 3.0, 10.0, "times the library's time"),
        }


@task("ps04/count_flops", points=11)
class CountFlops(Task):
    """The FLOPs of the matrix products in each layer; a multiply-add counts as two."""

    entry = "count_flops"
    arguments = ("layers", "batch")
    returns = {"flops": "integers"}
    items = (
        Item("linear", 2, title="Fully connected layers"),
        Item("conv2d", 3, title="Convolutions"),
        Item("attention", 4, title="Attention"),
        Item("model", 2, title="A whole model, with layers that multiply nothing"),
    )
    domain = {
        "layers": Whole(0, upto=17, says=("list of dicts",)),
        "batch": Whole(),
        "type": Choice("linear", "conv2d", "attention", "relu", said=True),
        "size": Choice("least", "drawn"),
    }

    @staticmethod
    def layers_of(rng):
        """Functions that draw a layer, by type."""

        def pick(*choices):
            return int(rng.choice(choices))

        def linear(tokens):
            return {
                "type": "linear",
                "in": int(rng.integers(3, 3000)),
                "out": int(rng.integers(3, 3000)),
                "tokens": tokens,
            }

        def conv(kernel, stride, padding):
            return {
                "type": "conv2d",
                "in": pick(1, 3, 16, 64),
                "out": pick(7, 32, 128),
                "kernel": kernel,
                "stride": stride,
                "padding": padding,
                "height": int(rng.integers(kernel, 60)),
                "width": int(rng.integers(kernel, 60)),
            }

        def attention():
            heads = pick(2, 3, 5, 8)
            return {
                "type": "attention",
                "tokens": int(rng.integers(1, 400)),
                "width": heads * pick(16, 32, 64),
                "heads": heads,
            }

        return linear, conv, attention

    @classmethod
    def model(cls, name, item, batch, *layers):
        told = f": {'; '.join(map(cls.in_words, layers))}" if item != "model" else f", {len(layers)} layers"
        return Case(f"{name}, batch of {batch}{told}", {"layers": list(layers), "batch": batch}, item)

    def make_cases(self, rng):
        linear, conv, attention = self.layers_of(rng)

        model = self.model
        return [
            model("one vector", "linear", 1, linear(1)),
            model("tokens", "linear", 8, linear(128), linear(1)),
            model("3 x 3, same size", "conv2d", 1, conv(3, 1, 1)),
            model("strides and padding", "conv2d", 4, conv(7, 2, 3), conv(1, 1, 0), conv(5, 3, 0)),
            model("one attention", "attention", 1, attention()),
            model("a batch", "attention", 16, attention(), attention()),
            model(
                "mixed",
                "model",
                32,
                conv(3, 2, 1),
                {"type": "relu"},
                linear(1),
                {"type": "relu"},
                attention(),
                linear(77),
            ),
            model("empty", "model", 2),
        ]

    def at(self, rng, place):
        """Layers of all types, that of `place` first; "least": all sizes of that layer are 1."""
        linear, conv, attention = self.layers_of(rng)
        made = [linear(int(rng.integers(1, 99))), conv(int(rng.integers(1, 6)), 1, 0), attention()]
        layers = [*made, {"type": "relu"}]
        layers.sort(key=lambda layer: layer["type"] != place["type"])
        if place["size"] == "least":
            layers[0] = {
                key: value if key == "type" else int(key != "padding") for key, value in layers[0].items()
            }
        layers = (layers * 5)[: place["layers"]]
        one = len(layers) == 1 and place["type"] != "relu"
        return self.model(place["type"], place["type"] if one else "model", place["batch"], *layers)

    @staticmethod
    def in_words(layer):
        """The text of a layer in the name of its case, from which its FLOPs can be computed by hand."""
        if layer["type"] == "linear":
            return f"{layer['in']} to {layer['out']}, tokens {layer['tokens']}"
        if layer["type"] == "attention":
            return f"{layer['tokens']} tokens, width {layer['width']}, {layer['heads']} heads"
        size = f"{layer['height']} x {layer['width']}, {layer['in']} to {layer['out']} channels"
        return f"{size}, kernel {layer['kernel']}, stride {layer['stride']}, padding {layer['padding']}"

    def reference(self, inputs):
        return {
            "flops": np.array(
                [self.flops(layer, inputs["batch"]) for layer in inputs["layers"]], dtype=np.int64
            )
        }

    @staticmethod
    def flops(layer, batch):
        """FLOPs of one layer for `batch` inputs, as torch.utils.flop_counter.FlopCounterMode counts them."""
        if layer["type"] == "linear":
            return 2 * batch * layer["tokens"] * layer["in"] * layer["out"]
        if layer["type"] == "conv2d":
            high, wide = (
                (layer[side] + 2 * layer["padding"] - layer["kernel"]) // layer["stride"] + 1
                for side in ("height", "width")
            )
            return 2 * batch * high * wide * layer["out"] * layer["in"] * layer["kernel"] ** 2
        if layer["type"] == "attention":
            return 2 * 2 * batch * layer["tokens"] ** 2 * layer["width"]
        return 0


@task("ps04/conv_as_matmul", points=11)
class ConvAsMatmul(Task):
    """A convolution as one product: the patches of the image become columns of a matrix (im2col)."""

    entry = "conv_as_matmul"
    arguments = ("image", "weights", "stride")
    returns = {"columns": "float32", "out": "float32"}
    items = (
        Item("columns", 4, title="The matrix of patches"),
        Item("out", 3, title="The product, folded back into an image"),
        Item("ragged", 4, title="Strides that do not divide, kernels that are not square, one pixel"),
    )
    domain = {
        "C": Whole(upto=9),
        "H": Whole(upto=300),
        "W": Whole(upto=300),
        "F": Whole(upto=9),
        "R": Whole(upto=9),
        "S": Whole(upto=9),
        "stride": Whole(upto=9),
    }
    corners = 10

    @staticmethod
    def conv(rng, item, image, weights, stride, only=()):
        arrays = [(2 * rng.random(shape) - 1).astype(np.float32) for shape in (image, weights)]
        name = f"{item}, image {image}, weights {weights}, stride {stride}"
        return Case(name, {"image": arrays[0], "weights": arrays[1], "stride": int(stride)}, item, only)

    def make_cases(self, rng):
        conv = functools.partial(self.conv, rng)
        odd = int(rng.integers(11, 20))
        return [
            conv("columns", (1, 4, 5), (1, 1, 2, 2), 1, ("columns",)),
            conv("columns", (3, 8, 9), (4, 3, 3, 3), 1, ("columns",)),
            conv("out", (1, 4, 5), (2, 1, 2, 2), 1, ("out",)),
            conv("out", (3, 16, 16), (8, 3, 3, 3), 1, ("out",)),
            conv("ragged", (2, odd, odd + 4), (5, 2, 4, 3), 3),
            conv("ragged", (7, 1, 1), (3, 7, 1, 1), 1),
            conv("ragged", (1, 6, 11), (1, 1, 1, 5), 2),
        ]

    def fits(self, place):
        pixels = place["H"] * place["W"]
        return place["R"] <= place["H"] and place["S"] <= place["W"] and pixels <= 2000

    def at(self, rng, place):
        image, weights = (tuple(place[side] for side in sides) for sides in ("CHW", "FCRS"))
        return self.conv(rng, "ragged", image, weights, place["stride"])

    def reference(self, inputs):
        image, weights, stride = inputs["image"], inputs["weights"], inputs["stride"]
        outputs, channels, high, wide = weights.shape
        windows = np.lib.stride_tricks.sliding_window_view(image, (high, wide), axis=(1, 2))[
            :, ::stride, ::stride
        ]
        rows, cols = windows.shape[1:3]
        columns = windows.transpose(0, 3, 4, 1, 2).reshape(channels * high * wide, rows * cols)
        out = weights.reshape(outputs, -1).astype(np.float64) @ columns.astype(np.float64)
        return {"columns": columns, "out": out.reshape(outputs, rows, cols)}

    def tolerance(self, inputs, expected):
        weights = np.abs(inputs["weights"]).reshape(len(inputs["weights"]), -1).astype(np.float64)
        magnitude = (weights @ np.abs(expected["columns"]).astype(np.float64)).reshape(expected["out"].shape)
        return {"out": sum_tolerance(weights.shape[1], magnitude)}


@task("ps04/layer_cause", points=2)
class LayerCause(Task):
    """The bug of the given program: it takes w as transposed, in the index and in the length of the sum."""

    entry = "layer_cause"
    arguments = ("w", "x")
    returns = {"y": "float32"}
    items = (
        Item("square", 1, title="As many outputs as inputs"),
        Item("wide", 1, title="Fewer outputs than inputs"),
    )
    domain = {"N": Whole(upto=70), "more": Choice(0, 1, 30)}

    @staticmethod
    def asked(rng, outputs, more):
        """Integers: sums of products are exact in any order."""
        inputs = outputs + more
        w, x = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((outputs, inputs), inputs))
        item = "wide" if more else "square"
        return Case(f"{item}, N={outputs} K={inputs}", {"w": w, "x": x}, item)

    def make_cases(self, rng):
        sizes = [(16, 0), (5, 0), (31, 0), (10, 54), (2, 1), (17, 20)]
        return [self.asked(rng, outputs, more) for outputs, more in sizes]

    def at(self, rng, place):
        return self.asked(rng, place["N"], place["more"])

    def reference(self, inputs):
        outputs = len(inputs["w"])
        return {"y": inputs["x"][:outputs].astype(np.float64) @ inputs["w"][:, :outputs]}


@task("ps04/layer", points=6)
class Layer(KernelTask):
    """y = w @ x with a warp for each output: a program to mend."""

    entry = "layer"
    arguments = ("w", "x", "y")
    WARPS = 8  # of a block
    items = (
        Item("square", 1, title="As many outputs as inputs"),
        Item("any", 2, title="Any numbers of outputs and inputs"),
        Item("sectors", 2, "structure", "Neighbours load neighbours along a row"),
        Item("single", 1, "structure", "No 64-bit arithmetic"),
    )
    domain = {"N": Whole(), "K": Whole(), "x": Values("float32", PLAIN, "zeros", "equal", "negative")}

    @staticmethod
    def scores(rng, item, n, k):
        w, x = ((2 * rng.random(shape) - 1).astype(np.float32) for shape in ((int(n), int(k)), int(k)))
        return Case(f"{item}, N={n} K={k}", {"w": w, "x": x}, item)

    def make_cases(self, rng):
        prime = [int(rng.choice([19, 31, 37, 61, 67])) for _ in range(2)]
        return [
            self.scores(rng, "square", 64, 64),
            self.scores(rng, "square", prime[0], prime[0]),
            self.scores(rng, "any", 10, 64),
            self.scores(rng, "any", 64, 40),
            self.scores(rng, "any", 9, 1),
            self.scores(rng, "any", prime[1], 2 * int(rng.integers(50, 90)) + 1),
            self.scores(rng, "sectors", 37, 256),
            self.scores(rng, "single", 37, 96),
        ]

    def fits(self, place):
        return place["N"] * place["K"] <= 40_000

    def at(self, rng, place):
        square = place["N"] == place["K"]
        case = self.scores(rng, "square" if square else "any", place["N"], place["K"])
        case.inputs["x"][:] = self.domain["x"].draw(rng, place["x"], place["K"])
        return case

    def result(self, inputs):
        return {"y": ((len(inputs["w"]),), "float32")}

    def plan(self, inputs):
        return -(-len(inputs["w"]) // self.WARPS), (32, self.WARPS)

    def reference(self, inputs):
        return {"y": inputs["w"].astype(np.float64) @ inputs["x"]}

    def tolerance(self, inputs, expected):
        w, x = (np.abs(inputs[name]).astype(np.float64) for name in ("w", "x"))
        return {"y": sum_tolerance(len(x), w @ x)}

    def bounds(self, inputs):
        """A warp reads its row of w and all of x, eight floats to a sector. If all of its lanes read the same
        element at a time, each request is of one float: eight times as many sectors. The given program makes
        two operations in 64 bits for each element of w, or one that counts for two.
        """
        n, k = inputs["w"].shape
        return {
            "sectors": Bound("global_read.sectors", n * k / 4, n * k / 2, "sectors read"),
            "single": Bound("fp64_flops", 1, n * k, "operations in 64 bits"),
        }
