"""The puzzles that open problem set 5: memory."""

import numpy as np

from warplab.puzzles import warp_counts
from warplab.puzzles.blank import Puzzle, asks


@asks("ps05/waste")
def waste():
    def found(place):
        return warp_counts.global_request(place).cost[0]

    best = found(lambda lane: lane)
    return Puzzle(
        max(found(lambda lane, step=step: step * lane) for step in range(1, 65)),
        f"One sector for each lane: 1,024 bytes fetched, 128 wanted. Side by side it would be {best}. No "
        "result is wrong in such a kernel, and no error says so; only the counters do.",
        {
            best: "That is as tidy as it gets: 32 floats side by side. Pull the lanes apart.",
            1: "All lanes in one sector is the least there is. Pull the lanes apart.",
        },
        "Some lanes still share a sector, which has room for eight floats.",
        of=found,
        picture=lambda place: warp_counts.drawn(warp_counts.global_request(place)),
    )


@asks("ps05/same_word")
def same_word():
    one, spread = (
        warp_counts.shared_request(place).cost[0] for place in (lambda lane: 5, lambda lane: 32 * lane)
    )
    return Puzzle(
        one,
        "A word that many lanes want is read once and handed to all. What hurts is different words of "
        f"one bank: `table[32 * lane]` takes {spread} wavefronts.",
        {
            spread: "All 32 lanes do use one bank. But they want the same word of it; `table[32 * lane]` "
            "would want 32 different ones.",
            0: "Something has to be read.",
        },
        "How many different words does the bank have to hand out?",
    )


@asks("ps05/halo")
def halo():
    def each(side):
        return (side + 2) ** 2 / side**2

    return Puzzle(
        each(8),
        f"10 x 10 numbers for 8 x 8 places. With 32 x 32 it is {each(32):.2f}: a larger block has less "
        "edge for its area. That is why tiles want to be large, here and in every product of matrices.",
        {
            each(32): "That is right for blocks of 32 x 32.",
            9 * 9 / 64: "The halo is on both sides.",
            100: "So many are fetched. For how many places?",
            36 / 64: "That is the halo alone; the block's own numbers are fetched too.",
        },
        "8 x 8 places, and a border of one all round.",
        within=0.01,
    )


@asks("ps05/overflow")
def overflow():
    def first(number):
        with np.errstate(over="ignore"):
            return next(n for n in range(2000) if np.isinf(np.exp(number(n))))

    single, double = first(np.float32), first(np.float64)
    return Puzzle(
        single,
        f"`np.exp(np.float32({single}))` is inf, while e to the {single - 1} still fits below 3.4e38. A "
        "network's scores pass that easily; so softmax subtracts the largest one first.",
        {
            128: "That is where 2**x overflows: the largest float32 is just below 2**128. e is larger "
            "than 2.",
            double: "That is where float64 gives up.",
        },
        "The largest float32 is about 3.4e38. Its natural logarithm is "
        f"{np.log(float(np.finfo(np.float32).max)):.2f}.",
    )
