"""The puzzles at the start of problem set 12: Triton programs and their blocks of numbers."""

import numpy as np

from warplab.puzzles.blank import Puzzle, asks

LANES, WORD, WIDEST = 32, 4, 16  # lanes of a warp; bytes of a float32, of a thread's widest access


@asks("ps12/masked")
def masked():
    programs = -(-1000 // 256)
    return Puzzle(
        programs * 256 - 1000,
        f"{programs} programs have {programs * 256:,} places. A block has a power of two of them, so that "
        "some are left over nearly always, and the mask is part of every kernel.",
        {
            232: "So many numbers does the last block hold. How many of its 256 places are left?",
            0: "Three blocks are 768 numbers, and the fourth has the rest: are there 256 of them?",
        },
        "How many blocks does it take, and how many places do they have together?",
    )


@asks("ps12/each")
def each():
    threads = LANES * 8
    return Puzzle(
        1024 // threads,
        f"8 warps are {threads} threads. The kernel never says which thread holds which number: four "
        "neighbours each, if that makes the loads wide.",
        {
            1: "That would be 1,024 threads, 32 warps. In numba's kernels a thread often has one number.",
            128: "So many numbers does each warp hold. A warp has 32 threads.",
            32: "So it is with one warp.",
        },
        "How many threads are eight warps?",
    )


@asks("ps12/requests")
def requests():
    return Puzzle(
        1024 * WORD // (LANES * WIDEST),
        "A request is one instruction of one warp. 32 lanes of 16 bytes are 512 bytes, 16 sectors; the 4,096 "
        "bytes are eight of those. With one number a lane it would be four times as many requests, for the "
        "same sectors.",
        {
            32: "That is one number a lane, and a lane can ask for four neighbours at once.",
            128: "So many sectors are they. How many does one request of a warp fetch?",
            256: "So many threads ask, 32 of them in one request.",
        },
        "How many bytes do 32 lanes ask for at once, and how many are there?",
    )


@asks("ps12/squares")
def squares():
    row = np.full(1024, 3.0)
    row[1000:] = 0
    too_large = ((row - row.sum() / 1000) ** 2).sum()
    return Puzzle(
        float(too_large),
        "The 24 masked places are 0, and 0 is 3 away from the mean: 24 times 9. The mean is right, the "
        "variance is not, and nothing warns. What is masked when it is loaded is masked again before it is "
        "squared.",
        {
            0: "All numbers of the row are equal to the mean. And the zeros behind them?",
            24: "24 places, each 3 away from the mean, squared.",
            72: "Squared, each is 9.",
        },
        "How many places are masked, and how far from the mean is a 0?",
    )
