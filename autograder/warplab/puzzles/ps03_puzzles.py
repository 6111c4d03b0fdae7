"""The puzzles that open problem set 3: serial and parallel."""

import numpy as np
from numba import cuda

from warplab.puzzles import warp_counts
from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps03/limit")
def limit():
    share, workers = 0.05, 20
    n = [1, 2, 4, 8]
    fit = reference("ps03/amdahl_fit", workers=n, seconds=[[share + (1 - share) / each] for each in n])
    speedup = 1 / (share + (1 - share) / workers)
    return Puzzle(
        speedup,
        f"A serial share of {share:.0%} limits the speedup to {fit['limit']:.0f}, and with as many "
        f"workers as that you have just about half of it, {speedup:.1f}. The other half costs endlessly "
        "many.",
        {
            workers: f"That is the limit, 1 / {share:g}, for endlessly many workers.",
            share
            + (1 - share) * workers: "That is Gustafson's law, where the job grows with the workers. Here "
            "it stays the same.",
        },
        f"With a job of one hour, the serial part takes {60 * share:g} minutes, the rest "
        f"{60 - 60 * share:g} / {workers}.",
        within=0.03,
    )


@cuda.jit
def hurry(total):
    total[0] += 1


@asks("ps03/lost")
def lost():
    left = int(warp_counts.after(hurry, np.zeros(1, np.int64))[0])
    return Puzzle(
        left,
        f"All 32 lanes read 0, all add 1, all write 1, and the engine found {left} there. 31 additions "
        "are lost, and nothing complained. `cuda.atomic.add` makes one step of the three.",
        {
            32: "That would need each lane to read what the lane before has written. They read at the "
            "same time.",
            0: "Somebody does write. What did they all read before?",
        },
        "`total[0] += 1` is three steps: read, add, write. What do all 32 lanes read?",
    )


@asks("ps03/rounds")
def rounds():
    count, million = (sum(1 for _ in halvings(n)) for n in (256, 1_048_576))
    return Puzzle(
        count,
        f"Strides {', '.join(map(str, halvings(256)))}. It makes the same 255 additions as a loop, but in "
        f"{count} rounds, since those of one round do not wait for each other. A million numbers take "
        f"{million}.",
        {
            255: "So many additions there are. But 128 of them happen at the same time.",
            128: "That is the first stride, and the additions of the first round.",
            count + 1: "The first stride is 128, not 256: thread 0 already stands at number 0.",
        },
        "After the first round 128 numbers are left, after the second 64.",
    )


def halvings(count):
    """The strides of a tree over `count` numbers, a power of two."""
    while count > 1:
        count //= 2
        yield count


@cuda.jit
def from_far(out):
    lane = cuda.threadIdx.x
    out[lane] = lane + cuda.shfl_down_sync(0xFFFFFFFF, lane, 16)


@asks("ps03/lane")
def from_beyond():
    held = warp_counts.after(from_far, np.zeros(32, np.int64)).tolist()
    return Puzzle(
        held[20],
        f"Lane 36 does not exist, and then a lane gets back its own: 20 + 20. Lane 0 holds {held[0]}, as "
        "it should. So the upper lanes hold nonsense from the first step on, which does not matter: no "
        "lane whose sum is wanted ever reads from them.",
        {
            20: "That would be 20 + 0. A lane beyond the end does not bring 0, though.",
            20 + 4: "That goes round the circle to lane 4. `shfl_down` does not wrap.",
            36 + 20: "That would be what lane 36 holds. A warp ends at lane 31.",
        },
        "Lane 20 asks lane 36. The warp ends at 31; whose value does it get?",
    )
