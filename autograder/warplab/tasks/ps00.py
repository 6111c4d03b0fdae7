"""Problem set 0, warm-ups: twelve kernels of one to three lines, one idea each."""

import numpy as np

from warplab.tasks.declaration import task
from warplab.tasks.domain import PLAIN, Values, Whole
from warplab.tasks.rubric import Bound, Case, Item, number, so_many
from warplab.tasks.warm_ups import WarmUp


def small(rng, *shape):
    """Integers from 1 to 9 as float32: their sums are exact."""
    return rng.integers(1, 10, shape).astype(np.float32)


def digits(*shape):
    """1, 2, ..., 9, 1, 2, ...: the elements of x in the first case, which is shown as a drawing."""
    return (np.arange(np.prod(shape)) % 9 + 1).astype(np.float32).reshape(shape)


class OneArray(WarmUp):
    """A warm-up that reads x and writes `out`, an array of the same size."""

    arguments = ("x", "out")

    @staticmethod
    def case(name, x, blocks, threads):
        return Case(name, {"x": x, "blocks": blocks, "threads": threads}, "right")

    def result(self, inputs):
        return {"out": (inputs["x"].shape, "float32")}


@task("ps00/number", points=1)
class NumberWarmUp(WarmUp):
    """A thread writes its number."""

    entry, arguments = "number", ("out",)
    said = "One line, and every thread ran it: `t` was another number in each of them."
    domain = {"threads": Whole(upto=1024)}

    def make_cases(self, rng):
        sizes = 8, int(rng.integers(9, 33)), 1
        return [self.at(rng, {"threads": n}) for n in sizes]

    def at(self, rng, place):
        return Case(so_many(place["threads"], "thread"), {"blocks": 1, "threads": place["threads"]}, "right")

    def result(self, inputs):
        return {"out": ((inputs["threads"],), "int32")}

    def reference(self, inputs):
        return {"out": np.arange(inputs["threads"])}


@task("ps00/double", points=1)
class DoubleWarmUp(OneArray):
    """Two threads, one element each."""

    entry = "double"
    said = "Each thread has read one number, kept it, and written one. None knows of the other."
    domain = {"threads": Whole(upto=1024)}

    def make_cases(self, rng):
        n = int(rng.integers(3, 20))
        return [
            self.case("two threads", np.array([3, 5], np.float32), 1, 2),
            self.case("two threads, other numbers", small(rng, 2), 1, 2),
            self.at(rng, {"threads": n}),
        ]

    def at(self, rng, place):
        n = place["threads"]
        return self.case(so_many(n, "thread"), small(rng, n), 1, n)

    def reference(self, inputs):
        return {"out": 2.0 * inputs["x"]}


@task("ps00/bounds", points=1)
class BoundsWarmUp(OneArray):
    """More threads than numbers."""

    entry = "bounds"
    said = "Threads 5, 6 and 7 ran the kernel too, found that they have no number, and were done."
    domain = {"numbers": Whole(upto=257), "threads": Whole(upto=1024)}

    def make_cases(self, rng):
        return [
            self.case(f"{so_many(n, 'number')}, 8 threads", digits(n) if n == 5 else small(rng, n), 1, 8)
            for n in (5, int(rng.integers(2, 5)), 8, 1)
        ]

    def fits(self, place):
        """No more elements than threads: larger arrays are for "stride", three warm-ups later."""
        return place["numbers"] <= place["threads"]

    def at(self, rng, place):
        n, threads = place["numbers"], place["threads"]
        return self.case(f"{so_many(n, 'number')}, {so_many(threads, 'thread')}", small(rng, n), 1, threads)

    def reference(self, inputs):
        return {"out": 1.0 + inputs["x"]}


@task("ps00/plane", points=1)
class PlaneWarmUp(WarmUp):
    """Threads in rows and columns."""

    entry, arguments = "plane", ("out",)
    said = "In memory one row follows the other, and threads that are neighbours in x write side by side."
    domain = {"rows": Whole(upto=1024), "columns": Whole(upto=1024)}

    def make_cases(self, rng):
        sizes = (3, 4), tuple(map(int, rng.permutation(np.arange(2, 9))[:2])), (1, 6), (5, 1)
        return [self.at(rng, {"rows": rows, "columns": columns}) for rows, columns in dict.fromkeys(sizes)]

    def fits(self, place):
        """A block has at most 1,024 threads."""
        return place["rows"] * place["columns"] <= 1024

    def at(self, rng, place):
        rows, columns = place["rows"], place["columns"]
        inputs = {"blocks": 1, "threads": (columns, rows), "shape": (rows, columns)}
        return Case(f"{rows} rows of {columns}", inputs, "right")

    def result(self, inputs):
        return {"out": (inputs["shape"], "int32")}

    def reference(self, inputs):
        row, col = np.indices(inputs["shape"])
        return {"out": 10 * row + col}


@task("ps00/blocks", points=1)
class BlocksWarmUp(WarmUp):
    """Which block am I in?"""

    entry, arguments = "blocks", ("out",)
    said = "Your first line is what `cuda.grid(1)` gives, and from here on it is used."
    domain = {"blocks": Whole(upto=65), "threads": Whole(upto=1024)}

    def make_cases(self, rng):
        sizes = (3, 4), (int(rng.integers(2, 9)), int(rng.integers(5, 40))), (1, 7), (7, 1)
        return [self.at(rng, {"blocks": blocks, "threads": threads}) for blocks, threads in sizes]

    def fits(self, place):
        return place["blocks"] * place["threads"] <= 2100

    def at(self, rng, place):
        return Case(f"{place['blocks']} blocks of {place['threads']}", dict(place), "right")

    def result(self, inputs):
        return {"out": ((inputs["blocks"] * inputs["threads"],), "int32")}

    def reference(self, inputs):
        return {"out": np.repeat(np.arange(inputs["blocks"]), inputs["threads"])}


@task("ps00/stride", points=1)
class StrideWarmUp(OneArray):
    """More numbers than threads."""

    entry = "stride"
    items = (Item("right", 1, "structure", "The numbers are right, and one thread does each"),)
    said = "Eight threads have done 20 numbers; four of them had three, the others two."
    domain = {"numbers": Whole(upto=257), "blocks": Whole(upto=5), "threads": Whole(upto=32)}

    def make_cases(self, rng):
        n = int(rng.integers(100, 200))
        return [
            self.case("20 numbers, 2 blocks of 4", digits(20), 2, 4),
            self.case(f"{n} numbers, 3 blocks of 8", small(rng, n), 3, 8),
            self.case("5 numbers, 2 blocks of 4", small(rng, 5), 2, 4),
        ]

    def at(self, rng, place):
        n, blocks, threads = place.values()
        return self.case(f"{n} numbers, {blocks} blocks of {threads}", small(rng, n), blocks, threads)

    def reference(self, inputs):
        return {"out": 1.0 + inputs["x"]}

    def bounds(self, inputs):
        """A block is one warp. In each iteration it writes the sectors that its elements fill, and a few more
        where the compiler unrolls the loop. With a stride of one block, three blocks write almost three times
        as many; with a contiguous range for each thread a warp writes one sector per lane.
        """
        place = np.arange(inputs["x"].size)
        fewest = len(set(zip(place // inputs["threads"], place // 8, strict=True)))
        written = "pieces of 32 bytes written"
        return {"right": Bound("global_write.sectors", 3 * fewest // 2 + 2, 2 * fewest + 3, written)}


@task("ps00/shared", points=1)
class SharedWarmUp(OneArray):
    """A table that a block shares."""

    entry = "shared"
    said = "The number that thread 0 writes was read by thread 3: threads of a block pass on numbers there."
    domain = {"blocks": Whole(upto=257)}

    def make_cases(self, rng):
        blocks = int(rng.integers(3, 9))
        return [
            self.case("2 blocks of 4", digits(8), 2, 4),
            self.at(rng, {"blocks": blocks}),
        ]

    def at(self, rng, place):
        blocks = place["blocks"]
        return self.case(f"{blocks} blocks of 4", small(rng, 4 * blocks), blocks, 4)

    def reference(self, inputs):
        return {"out": inputs["x"].reshape(-1, 4)[:, ::-1].ravel().astype(float)}


@task("ps00/barrier", points=1)
class BarrierWarmUp(OneArray):
    """Wait for the others."""

    entry = "barrier"
    items = (Item("right", 1, "structure", "The numbers are right, by way of the table"),)
    said = "The barrier lets nobody read before all have written, however far one warp is ahead of the other."
    domain = {"x": Values("float32", PLAIN, "rising", "falling", "signed zeros")}  # and 64 of them

    def make_cases(self, rng):
        return [
            self.case("64 threads", digits(64), 1, 64),
            self.case("64 threads, other numbers", small(rng, 64), 1, 64),
        ]

    def at(self, rng, place):
        return self.case("64 threads, fractions", self.domain["x"].draw(rng, place["x"], 64), 1, 64)

    def reference(self, inputs):
        return {"out": np.roll(inputs["x"], -8).astype(float)}

    def bounds(self, inputs):
        """Two warps, one read request each."""
        return {"right": Bound("global_read.requests", 2, 4, "requests to read")}

    def unshared(self, inputs, counters, launch=()):
        """Two warps write the table and read it. `x[(t + 8) % 64]` gives the same result without a table."""
        asked = counters.get("shared_memory.requests", 0.0)
        if asked < 4:
            return f"{number(asked)} requests to the table, where 4 fill and read it: use it"
        return super().unshared(inputs, counters, launch)


@task("ps00/pair", points=1)
class PairWarmUp(OneArray):
    """A sum of two."""

    entry = "pair"
    said = "Half of the numbers are left. Once more, and it is a quarter: chapter 3 adds up a million so."
    domain = {
        "sums": Whole(upto=257),
        "threads": Whole(upto=257),
        "more": Whole(0, 2, says=("there may be more threads than that",)),
    }

    def make_cases(self, rng):
        n = int(rng.integers(9, 16))
        return [
            self.case("16 numbers, 1 block of 12", digits(16), 1, 12),
            self.case(f"{2 * n} numbers, 2 blocks of 8", small(rng, 2 * n), 2, 8),
        ]

    def at(self, rng, place):
        n, threads = 2 * place["sums"], place["threads"]
        blocks = -(-place["sums"] // threads) + place["more"]
        return self.case(f"{n} numbers, {blocks} blocks of {threads}", small(rng, n), blocks, threads)

    def result(self, inputs):
        return {"out": ((inputs["x"].size // 2,), "float32")}

    def reference(self, inputs):
        return {"out": inputs["x"].reshape(2, -1).sum(0, dtype=float)}


@task("ps00/row_sum", points=1)
class RowSumWarmUp(OneArray):
    """The sum of a row."""

    entry = "row_sum"
    items = (Item("right", 1, "structure", "The sums are right, and each is written once"),)
    said = "Five reads, five additions in a register; a single write is enough."
    domain = {"rows": Whole(upto=65), "columns": Whole(upto=257), "threads": Whole(upto=32)}

    def make_cases(self, rng):
        rows, columns = int(rng.integers(5, 9)), int(rng.integers(6, 12))
        return [
            self.case("3 rows of 5, 4 threads", digits(3, 5), 1, 4),
            self.case(f"{rows} rows of {columns}, 2 blocks of 4", small(rng, rows, columns), 2, 4),
            self.case("4 rows of 1, 4 threads", small(rng, 4, 1), 1, 4),
        ]

    def at(self, rng, place):
        rows, columns, threads = place.values()
        told = f"{rows} rows of {columns}, blocks of {threads}"
        return self.case(told, small(rng, rows, columns), -(-rows // threads), threads)

    def result(self, inputs):
        return {"out": ((len(inputs["x"]),), "float32")}

    def reference(self, inputs):
        return {"out": inputs["x"].sum(1, dtype=float)}

    def bounds(self, inputs):
        """A block is one warp and writes its sums in one request; sums kept in `out` take one per column."""
        blocks = inputs["blocks"]
        return {"right": Bound("global_write.requests", blocks, 2 * blocks, "requests to write")}


@task("ps00/atomic", points=1)
class AtomicWarmUp(OneArray):
    """All into one place."""

    entry, atomics = "atomic", True
    said = "Ten additions, one after the other, and none is lost. In what order, nobody promises."
    domain = {"numbers": Whole(), "threads": Whole(upto=257)}

    def make_cases(self, rng):
        n = int(rng.integers(70, 96))
        return [self.added(digits(10), 4), self.added(small(rng, n), 32)]

    def added(self, x, threads):
        blocks = -(-x.size // threads)
        case = self.case(f"{x.size} numbers, {blocks} blocks of {threads}", x, blocks, threads)
        case.inputs["out"] = np.zeros(1, np.float32)
        return case

    def fits(self, place):
        return place["numbers"] <= 33 * place["threads"]

    def at(self, rng, place):
        return self.added(small(rng, place["numbers"]), place["threads"])

    def result(self, inputs):
        return {"out": ((1,), "float32")}

    def reference(self, inputs):
        return {"out": inputs["x"].sum(dtype=float, keepdims=True)}


@task("ps00/tile", points=1)
class TileWarmUp(OneArray):
    """A tile of four numbers."""

    entry = "tile"
    items = (
        Item("right", 1, "structure", "The numbers are right, and a block reads each of its tile's once"),
    )
    said = "Each number came from global memory once and was read four times in the table, as in chapter 4."
    domain = {"down": Whole(upto=33), "across": Whole(upto=33)}

    def make_cases(self, rng):
        down, across = (int(n) for n in rng.permutation(np.arange(2, 6))[:2])
        return [
            self.case("4 x 4, tiles of 2 x 2", digits(4, 4), (2, 2), (2, 2)),
            self.at(rng, {"down": down, "across": across}),
        ]

    def fits(self, place):
        return place["down"] * place["across"] <= 100

    def at(self, rng, place):
        rows, columns = 2 * place["down"], 2 * place["across"]
        blocks = place["across"], place["down"]
        return self.case(f"{rows} x {columns}, tiles of 2 x 2", small(rng, rows, columns), blocks, (2, 2))

    def reference(self, inputs):
        rows, columns = inputs["x"].shape
        tiles = inputs["x"].reshape(rows // 2, 2, columns // 2, 2).sum((1, 3), dtype=float)
        return {"out": tiles.repeat(2, 0).repeat(2, 1)}

    def bounds(self, inputs):
        """A block is one warp of four threads, and one load reads its tile: one request per block."""
        tiles = inputs["x"].size // 4
        return {"right": Bound("global_read.requests", tiles, 2 * tiles, "requests to read")}
