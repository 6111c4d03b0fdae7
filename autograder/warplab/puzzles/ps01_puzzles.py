"""The puzzles that open problem set 1: pixels."""

import numpy as np
from numba import cuda, float32

from warplab.puzzles.blank import Puzzle, asks, reference
from warplab.simt.profile import profile


def places_of(shape):
    """{(row, col): place of that number in memory} of a two-dimensional array as NumPy lays it out."""
    return {at: int(np.ravel_multi_index(at, shape)) for at in np.ndindex(*shape)}


@asks("ps01/place")
def place():
    shape = (3, 5)
    places = places_of(shape)

    def table(index):
        return tuple(index(row, col, shape[1]) for row, col in places)

    return Puzzle(
        tuple(places.values()),
        "Whole rows come first, so a step in `col` is a step of one number, and a step in `row` one of "
        f"`width`. In an image {shape[1]} wide, pixel (2, 1) is number {places[2, 1]}. Neighbours in x are "
        "neighbours in memory: that is why x comes first in `cuda.grid(2)`.",
        {
            table(lambda row, col, width: col * width + row): "That runs down the columns, as Fortran does. "
            "In NumPy and in C the pixels of one row lie side by side.",
            table(lambda row, col, width: row + col): "That gives pixels (0, 1) and (1, 0) the same place. "
            "How many numbers must be passed to get one row down?",
        },
        lambda yours: next(
            f"In an image {shape[1]} wide, yours puts pixel {at} at place {got}; it stands at {wanted}."
            for (at, wanted), got in zip(places.items(), yours, strict=True)
            if got != wanted
        ),
        of=table,
    )


@asks("ps01/idle")
def idle():
    width, height, block = 1366, 768, (16, 16)
    plan = reference("ps01/launch_plan", width=width, height=height, block=block)
    columns, rows = plan["grid"]
    beyond = columns * block[0] - width
    missed = (block[0] - beyond) * height
    return Puzzle(
        plan["idle"],
        f"{width} / {block[0]} is {width / block[0]:g}, so {columns} blocks stand side by side, and the "
        f"last sticks out by {beyond} threads in each of {height} rows. They run your kernel too, which "
        "is why its first line asks whether there is a pixel.",
        {
            0: f"{height} / {block[1]} comes out even, but {width} / {block[0]} does not, and a block is "
            "not cut.",
            missed: "So many pixels would have no thread if you left the last column of blocks out.",
            block[0]
            * block[1]
            * rows: "That is the whole last column of blocks; some of its threads do have a pixel.",
            beyond: "In one row, yes. The image has more rows.",
        },
        f"Blocks are never cut. How many of {block[0]} cover a row of {width}, and how many threads is that?",
    )


@asks("ps01/corner")
def corner():
    def window(row, col, radius, size=50):
        """Pixels of a size x size image that lie in the window."""
        near = [max(0, at - radius) for at in (row, col)]
        far = [min(size, at + radius + 1) for at in (row, col)]
        return (far[0] - near[0]) * (far[1] - near[1])

    radius = 2
    whole, there, smaller = window(25, 25, radius), window(0, 0, radius), window(0, 0, 1)
    return Puzzle(
        there,
        f"{there} of the window's {whole} pixels exist. A blur that divides by {whole} all the same makes "
        f"the corner {1 - there / whole:.0%} too dark: that is the dark frame of task 3.",
        {
            whole: f"That is the whole window. Round pixel (0, 0), {whole - there} of its places are "
            "outside.",
            smaller: "That would be right for radius 1.",
        },
        "Rows 0 to 2 and columns 0 to 2 of the window exist. How many pixels is that?",
    )


@cuda.jit
def wait_for_the_slowest(rounds, out):
    lane = cuda.threadIdx.x
    value = float32(0)
    while value < rounds[lane]:
        value += float32(1)  # a whole number would let the compiler unroll the loop
    out[lane] = value


def rounds_issued(rounds):
    """(rounds of the loop that a warp goes through, its efficiency) when lane i wants rounds[i] of them."""

    def counted(each):
        return profile(wait_for_the_slowest[1, 32], np.array(each, np.float32), np.zeros(32, np.float32))

    none, one, own = counted([1] * 32), counted([2] * 32), counted(rounds)
    each = one.warp_instructions - none.warp_instructions
    return 1 + round((own.warp_instructions - none.warp_instructions) / each), own.warp_execution_efficiency


@asks("ps01/slowest")
def slowest():
    rounds = [100] + [1] * 31
    issued, efficiency = rounds_issued(rounds)
    return Puzzle(
        issued,
        f"As many as its slowest lane. The engine counted: with {rounds[0]} rounds for all 32 lanes it "
        f"issues the same {rounds_issued([rounds[0]] * 32)[0]}. Here only {efficiency:.0%} of the lanes "
        "are at work on average; 31 of them wait.",
        {
            sum(
                rounds
            ): "That is the work of all lanes added up. But lanes of a warp do not take turns: they "
            "go through the loop together.",
            round(
                sum(rounds) / 32
            ): "That is the mean. A warp cannot let lanes go that are done; it can only switch them off.",
            1: "31 lanes would be content with that. When may the warp go on?",
        },
        "The warp leaves the loop when its last lane does.",
        within=0.011,
    )
