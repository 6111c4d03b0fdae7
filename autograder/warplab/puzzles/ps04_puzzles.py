"""The puzzles that open problem set 4: matrix multiplication."""

import numpy as np

from warplab.puzzles import warp_counts
from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps04/uses")
def uses():
    n = 64
    readers = sum(row == 0 for row, col in np.ndindex(n, n))
    return Puzzle(
        readers,
        f"Every element of row 0 of `c` needs it, and there are {readers}. The same number travels "
        f"{readers} times; the whole set is about carrying it less often.",
        {
            1: "Once would be ideal. But which elements of `c` need `a[0, 0]`, and who computes them?",
            n * n: "So many threads there are; those of rows 1 to 63 need other rows of `a`.",
            2 * n: "Those are all the numbers that one thread reads. This is about one number.",
        },
        "Which elements of `c` have `a[0, 0]` in their sum?",
    )


@asks("ps04/two_rows")
def two_rows():
    n, tile = 64, 16
    row_of, col_of = (lambda lane: lane // tile), (lambda lane: lane % tile)
    b = warp_counts.global_request(lambda lane: 3 * n + col_of(lane))
    a = warp_counts.global_request(lambda lane: row_of(lane) * n + 3)
    return Puzzle(
        b.cost[0],
        f"A warp is two rows of 16 threads, and both rows want the same 16 numbers: 64 bytes, {b.cost[0]} "
        f"sectors. Of `a[row, k]` the warp wants two numbers, one in each row, and that takes {a.cost[0]} "
        "sectors as well: 8 bytes used of 64.",
        {
            4: "That would be 32 different numbers. Lane 16 sits in the next row of the block: which "
            "column has it?",
            32: "Neighbouring lanes read neighbouring columns here, not neighbouring rows.",
            1: "16 floats are 64 bytes; a sector has 32.",
        },
        "Which `col` does lane 16 have? How many different numbers does that make?",
    )


@asks("ps04/reads")
def reads():
    def each(side):
        return 2 * side / side**2

    return Puzzle(
        each(8),
        f"16 reads for 64 multiply-adds. With 4 x 4 it is {each(4):g}, for a single element {each(1):g}: "
        "the reads grow with the side, the work with its square. What ends this is the number of "
        "registers: 64 sums.",
        {
            each(4): "That is 4 x 4: 8 reads, 16 multiply-adds.",
            each(1): "That is one element: both factors are read for every multiply-add.",
            1 / each(8): "That is the other way round, multiply-adds for each read.",
            8 / 64: "8 numbers of `a`, and 8 of `b` as well.",
            16: "So many numbers are read. For how many multiply-adds?",
        },
        "8 numbers of `a`, 8 of `b`. How many pairs do they make?",
    )


@asks("ps04/small_layer")
def small_layer():
    conv = {
        "type": "conv2d",
        "in": 64,
        "out": 64,
        "kernel": 3,
        "stride": 1,
        "padding": 1,
        "height": 56,
        "width": 56,
    }
    linear = {"type": "linear", "in": 2048, "out": 1000, "tokens": 1}
    work, other = reference("ps04/count_flops", layers=[conv, linear], batch=1)["flops"]
    weights, others = 64 * 64 * 9, 2048 * 1000
    return Puzzle(
        work / other,
        f"{work / other:.0f} times the work with {weights / others:.1%} of the weights: {weights:,} "
        f"against {others:,}. A convolution uses each weight again at all of its {56 * 56:,} places. How "
        "large a layer is says little about how long it takes.",
        {
            weights / others: "That is the ratio of the weights. How often is each of them used?",
            other / work: "That is the linear layer's share of the convolution's.",
            work / other / 9: "Each output sums over 3 x 3 places of each of 64 channels.",
        },
        f"The convolution: {56 * 56:,} places x 64 outputs x 64 x 9 products. The linear layer: 2,048 x "
        "1,000.",
        within=0.01,
    )
