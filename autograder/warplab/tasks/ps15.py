"""Problem set 15, Hopper: a halo through distributed shared memory, tiles copied by TMA, and a pipelined
matrix product with wgmma. All tasks are marked with a star in the notebook.

No task has a timed row: the kernels need compute capability 9.0, and no answer was timed on such a GPU.
"""

import functools

import numpy as np

from warplab.tasks.compare import sum_tolerance
from warplab.tasks.declaration import KernelTask, task
from warplab.tasks.domain import PLAIN, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, so_many

BLOCK, CLUSTER = 256, 4  # of smooth: elements per block, blocks per cluster
ROWS, COLS = 32, 64  # of row_energy: the tile's shape
M, N, K = 64, 32, 64  # of wgmma_product: a block's tile of C, and the length of a step along k
SUMMED = (PLAIN, "zeros", "equal", "negative", "ties")  # contents of arrays that are summed


@task("ps15/smooth", points=30)
class SmoothInCluster(KernelTask):
    """out[i] = x[i - r] + ... + x[i + r], with zeros outside x; a cluster is four blocks of 256 elements."""

    entry = "smooth"
    arguments = ("x", "out", "n", "r")
    items = (
        Item("whole", 4, title="Whole clusters"),
        Item("ragged", 5, title="Any number of samples"),
        Item("wide", 5, title="No neighbour at all, and a whole block of them"),
        Item("sectors", 8, "structure", "What a neighbour has is not fetched from memory again"),
        Item("neighbours", 8, "structure", "Of each neighbour r numbers are read, once"),
    )
    domain = {
        "n": Whole(upto=2100),
        "r": Whole(0, BLOCK),
        "x": Values("float32", *SUMMED),
    }

    @staticmethod
    def samples(item, x, r):
        x = x.astype(np.float32)
        return Case(f"{item}, {so_many(len(x), 'sample')}, r = {r}", {"x": x, "n": len(x), "r": int(r)}, item)

    def make_cases(self, rng):
        def drawn(item, n, r):
            return self.samples(item, rng.normal(size=int(n)), r)

        inside = int(rng.integers(1, BLOCK))
        return [
            drawn("whole", 1024, rng.integers(1, 9)),
            drawn("whole", 2048, rng.integers(40, 100)),
            drawn("ragged", 1, 3),
            drawn("ragged", 1024 + BLOCK + inside, rng.integers(65, 120)),
            drawn("ragged", 2048 + inside, rng.integers(9, 64)),
            drawn("wide", 2 * BLOCK + inside, 0),
            drawn("wide", 1024 + inside, BLOCK),
            drawn("sectors", 3072, 8 * rng.integers(20, 28)),
            drawn("neighbours", 1024, rng.integers(100, 200)),
        ]

    def fits(self, place):
        return place["n"] * place["r"] <= 200_000

    def at(self, rng, place):
        x = self.domain["x"].draw(rng, place["x"], place["n"])
        return self.samples("wide" if place["r"] in (0, BLOCK) else "ragged", x, place["r"])

    def result(self, inputs):
        return {"out": ((inputs["n"],), "float32")}

    def plan(self, inputs):
        return CLUSTER * -(-inputs["n"] // (CLUSTER * BLOCK)), BLOCK

    @staticmethod
    def windows(x, r):
        sums = np.concatenate([[0.0], np.cumsum(np.pad(x.astype(np.longdouble), r))])
        return (sums[2 * r + 1 :] - sums[: -2 * r - 1]).astype(np.float64)

    def reference(self, inputs):
        return {"out": self.windows(inputs["x"], inputs["r"])}

    def tolerance(self, inputs, expected):
        """For a sum of 2 r + 1 numbers in any order; differences of float32 prefix sums exceed it."""
        return {"out": sum_tolerance(2 * inputs["r"] + 1, self.windows(np.abs(inputs["x"]), inputs["r"]))}

    def bounds(self, inputs):
        """Sectors: each element is read once, and the r elements on each side of a border between clusters
        once more. Blocks that load both halos from global memory read 1.8 to 2 times as many sectors.

        Neighbours: a cluster has three borders, and r elements cross each in both directions. Threads that
        sum directly from their neighbours' shared memory read about r / 2 times as many bytes.
        """
        n, r = inputs["n"], inputs["r"]
        clusters = n // (CLUSTER * BLOCK)
        sectors = n / 8 + (clusters - 1) * 2 * -(-r // 8)
        exchanged = clusters * (CLUSTER - 1) * 2 * r * 4
        counter = " + ".join(f"distributed_{kind}.bytes" for kind in ("load", "store", "atomic"))
        return {
            "sectors": Bound("global_read.sectors", 1.1 * sectors, 1.6 * sectors, "sectors read"),
            "neighbours": Bound(counter, 1.1 * exchanged, 3 * exchanged, "bytes of other blocks", exchanged),
        }


@task("ps15/row_energy", points=30)
class RowEnergy(KernelTask):
    """out[row] = sum of x[row, col]^2, from tiles of 32 x 64 copied by TMA; one block per 32 rows."""

    entry = "row_energy"
    arguments = ("tiles", "out", "rows", "cols")
    maps = {"tiles": ("x", (ROWS, COLS), 0)}
    mbarriers = True
    items = (
        Item("tile", 4, title="One whole tile"),
        Item("steps", 6, title="Many tiles, one after the other"),
        Item("ragged", 6, title="Tiles that reach beyond the array"),
        Item("requests", 8, "structure", "Each tile is asked for once"),
        Item("banks", 6, "structure", "The tile is read once, without a queue"),
    )
    domain = {
        "rows": Whole(upto=100),
        "cols": Whole(4, multiple=4, upto=700),
        "x": Values("float32", *SUMMED),
    }

    @staticmethod
    def array(item, x):
        rows, cols = x.shape
        inputs = {"x": x.astype(np.float32), "rows": rows, "cols": cols}
        return Case(f"{item}, {rows} x {cols}", inputs, item)

    def make_cases(self, rng):
        def drawn(item, rows, cols):
            return self.array(item, rng.normal(size=(int(rows), int(cols))))

        return [
            drawn("tile", ROWS, COLS),
            drawn("tile", 2 * ROWS, COLS),
            drawn("steps", ROWS, COLS * rng.integers(5, 9)),
            drawn("steps", 3 * ROWS, COLS * 2),
            drawn("ragged", ROWS + rng.integers(26, ROWS), COLS * rng.integers(4, 8) + 4),
            drawn("ragged", 2 * ROWS + rng.integers(1, 8), COLS * 3 - 4 * rng.integers(1, 15)),
            drawn("ragged", rng.integers(1, 8), 4 * rng.integers(1, 8)),
            drawn("requests", 2 * ROWS - 8, COLS * 6 - 12),  # the last tiles extend beyond x
            drawn("banks", 2 * ROWS - 8, COLS * 4 - 12),
        ]

    def fits(self, place):
        return place["rows"] * place["cols"] <= 30_000

    def at(self, rng, place):
        x = self.domain["x"].draw(rng, place["x"], (place["rows"], place["cols"]))
        return self.array("ragged", x)

    def result(self, inputs):
        return {"out": ((inputs["rows"],), "float32")}

    def plan(self, inputs):
        return -(-inputs["rows"] // ROWS), 128

    def reference(self, inputs):
        return {"out": (inputs["x"].astype(np.float64) ** 2).sum(axis=1)}

    def tolerance(self, inputs, expected):
        """For a sum of `cols` products; the zeros that TMA writes beyond the edge add nothing."""
        return {"out": sum_tolerance(inputs["cols"], expected["out"])}

    def bounds(self, inputs):
        """Requests: one of 8 KiB per tile, and none beyond the last tile.

        Banks: 32 lanes read 32 neighbouring elements in one wavefront, 64 per tile; a kernel that keeps a
        tile's sums in shared memory takes 32 more. With one row per thread a warp's 32 elements share a bank
        and take 32 wavefronts.
        """
        tiles = -(-inputs["rows"] // ROWS) * -(-inputs["cols"] // COLS)
        box, wavefronts = ROWS * COLS * 4, tiles * ROWS * COLS / 32
        return {
            "requests": Bound(
                "tma_load.shared_bytes",
                1.02 * tiles * box,
                3 * tiles * box,
                "bytes that TMA writes into shared memory",
                tiles * box,
            ),
            "banks": Bound(
                "shared_read.wavefronts",
                1.6 * wavefronts,
                4 * wavefronts,
                "wavefronts of shared memory",
                wavefronts / 4,
            ),
        }


@task("ps15/wgmma_product", points=35)
class WgmmaProduct(KernelTask):
    """C = A @ B.T with float16 factors and float32 sums: one warp group per 64 x 32 tile of C, and a ring of
    stages that TMA fills while wgmma multiplies.
    """

    entry = "wgmma_product"
    arguments = ("A", "B", "C", "m", "n", "k")
    maps = {"A": ("left", (M, K), 128), "B": ("right", (N, K), 128)}
    mbarriers = True
    items = (
        Item("step", 4, title="One step along k"),
        Item("steps", 6, title="More steps than the ring has stages"),
        Item("tiles", 5, title="Many tiles of C"),
        Item("requests", 4, "structure", "Each tile is asked for once, and none beyond the last"),
        Item("products", 6, "structure", "The Tensor Cores multiply, and each number once"),
        Item("ahead", 10, "structure", "The next tiles are on their way while a product runs"),
    )
    domain = {
        "m": Whole(M, multiple=M, upto=192),
        "n": Whole(N, multiple=N, upto=160),
        "k": Whole(K, multiple=K, upto=640),
        "numbers": Values("float16", *SUMMED),
    }

    @staticmethod
    def matrices(rng, item, m, n, k, kind=PLAIN):
        m, n, k = int(m), int(n), int(k)
        draw = functools.partial(WgmmaProduct.domain["numbers"].draw, rng, kind)
        inputs = {"left": draw((m, k)), "right": draw((n, k)), "m": m, "n": n, "k": k}
        return Case(f"{item}, {m} x {k} times {k} x {n}", inputs, item)

    def make_cases(self, rng):
        return [
            self.matrices(rng, "step", M, N, K),
            self.matrices(rng, "steps", M, N, K * rng.integers(5, 8)),
            self.matrices(rng, "steps", M, 2 * N, K * rng.integers(8, 14)),
            self.matrices(rng, "tiles", 2 * M, 3 * N, K),
            self.matrices(rng, "tiles", M, 5 * N, K * rng.integers(2, 4)),
            self.matrices(rng, "requests", 3 * M, N, K),
            self.matrices(rng, "products", 2 * M, 2 * N, 4 * K),
            self.matrices(rng, "ahead", 2 * M, N, 10 * K),
        ]

    def fits(self, place):
        return place["m"] * place["n"] * place["k"] <= 5_000_000

    def at(self, rng, place):
        many = place["k"] > 3 * K
        m, n, k = (place[name] for name in "mnk")
        return self.matrices(rng, "steps" if many else "tiles", m, n, k, place["numbers"])

    def result(self, inputs):
        return {"C": ((inputs["m"], inputs["n"]), "float32")}

    def plan(self, inputs):
        return (inputs["n"] // N, inputs["m"] // M), 128

    def factors(self, inputs):
        return inputs["left"].astype(np.float64), inputs["right"].astype(np.float64).T

    def reference(self, inputs):
        a, b = self.factors(inputs)
        return {"C": a @ b}

    def tolerance(self, inputs, expected):
        """float16 products are exact in float32; Tensor Cores truncate terms (see simt/engine/wgmma.py)."""
        a, b = self.factors(inputs)
        return {"C": sum_tolerance(inputs["k"], np.abs(a) @ np.abs(b))}

    def bounds(self, inputs):
        """Requests: one box of A and one of B per step, 12 KiB. The case has one step, so that a kernel that
        always requests the next step copies at least twice as many bytes: no points.

        Products: per 16 columns of k one instruction reads 32 bytes of each of 64 rows of A and 32 of B.

        Ahead: only the last step's product must run with no copy under way. In a kernel that waits for each
        tile right after requesting it, all 10 steps do: no points.
        """
        blocks, steps = inputs["m"] // M * (inputs["n"] // N), inputs["k"] // K
        of_step = blocks * (M + N) * K * 2
        alone = "bytes of operands while no tile was on its way"
        brought = "bytes that TMA writes into shared memory"
        return {
            "requests": Bound(
                "tma_load.shared_bytes",
                1.02 * steps * of_step,
                2 * steps * of_step,
                brought,
                steps * of_step,
            ),
            "products": Bound(
                "operand_bytes", 1.02 * steps * of_step, 2 * steps * of_step, "bytes", steps * of_step
            ),
            "ahead": Bound("operand_bytes_alone", 1.5 * of_step, 0.6 * steps * of_step, alone, of_step / 4),
        }
