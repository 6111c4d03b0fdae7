"""The puzzles that open problem set 2: cores."""

import numpy as np

from warplab.puzzles import warp_counts
from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps02/third")
def third():
    threads, numbers, thread = 128, 1000, 5
    own = list(range(thread, numbers, threads))
    return Puzzle(
        own[2],
        f"Thread {thread} takes {own[0]}, {own[1]}, {own[2]}, ..., always a whole grid further on. At "
        "each step the warp's 32 lanes stand side by side.",
        {
            thread
            + 2: "That is a run of neighbours for each thread. Then what do lanes 0 and 1 read at the same "
            "time? The next puzzle counts it.",
            own[1]: "That is its second number.",
            own[3]: "That is its fourth number.",
        },
        f"It begins at {thread}, and the stride is the number of threads.",
    )


@asks("ps02/run")
def run():
    each = 4
    wide, narrow, twice = (
        warp_counts.global_request(lambda lane, step=step: step * lane).cost[0]
        for step in (each, 1, 2 * each)
    )
    return Puzzle(
        wide,
        f"Lane 1 stands {each} numbers, {4 * each} bytes, behind lane 0, so that two lanes share a sector "
        f"and no more. Side by side the same 32 numbers lie in {narrow}. The result is right all the "
        f"same, and the memory moves {wide // narrow} times as many bytes for this load.",
        {
            narrow: "That is right for 32 numbers side by side. At its first step lane 0 reads `x[0]`, "
            f"and lane 1 reads `x[{each}]`.",
            twice: f"So many it would be if lanes were {2 * each} numbers apart. Here lanes 0 and 1 still "
            "share a sector: it has 32 bytes.",
            1: "A sector has 32 bytes, which is eight floats. Where do lanes 0 and 2 read?",
        },
        "A sector holds eight floats. Which lanes share one?",
    )


@asks("ps02/branch")
def branch():
    def split(condition, threads=128):
        sides = np.array([condition(t) for t in range(threads)]).reshape(-1, 32)
        return int((sides.any(axis=1) & ~sides.all(axis=1)).sum())

    answer, alternating = split(lambda t: t % 64 < 32), split(lambda t: t % 2 == 0)
    return Puzzle(
        answer,
        "The condition changes only where a warp ends, so each warp goes one way as a whole. With `t % 2 "
        f"== 0`, half of the threads too, it would be {alternating} of 4. What divides the threads does "
        "not matter; what divides a warp does.",
        {
            alternating: "`t % 2 == 0` would split every warp. Threads 0 to 31 are warp 0: what does this "
            "condition say to them?",
            2: "Two warps do take each side. But does any warp have to take both?",
        },
        "Warp 0 is threads 0 to 31, warp 1 is 32 to 63. What does the condition say to each?",
    )


H100_SM = {
    **{"warps": 64, "blocks": 32, "schedulers": 4, "registers": 65_536, "register_unit": 256},
    **{"shared": 233_472, "reserved": 1024, "shared_unit": 128, "latency": 700, "bytes_per_cycle": 12.8},
}


@asks("ps02/one_more")
def one_more():
    def blocks(registers):
        return reference("ps02/latency_hiding", sm=H100_SM, registers=registers, shared=0, threads=1024)[
            "blocks"
        ]

    return Puzzle(
        blocks(33),
        f"33 x 2,048 threads would need {33 * 2048:,} registers, and there are {H100_SM['registers']:,}. "
        f"Blocks move in whole, so one register too many costs half of the warps: {blocks(33)} block "
        f"instead of {blocks(32)}.",
        {
            blocks(32): f"That is what 32 registers allow: 32 x 2,048 is {32 * 2048:,}, to the last one.",
            0: f"One block needs about {33 * 1024:,} registers. Those are there.",
        },
        "Multiply: 33 registers for each of 1,024 threads. How many times does that fit into 65,536?",
    )
