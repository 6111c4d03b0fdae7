"""The puzzles that open problem set 10: many GPUs."""

from warplab.models import vram
from warplab.puzzles.blank import Puzzle, asks


def passed_once(ranks):
    """After one round of the ring's first phase: [{piece: how many ranks' arrays are in it}, ...] by rank."""
    held = [dict.fromkeys(range(ranks), 1) for _ in range(ranks)]
    for rank in range(ranks):
        held[(rank + 1) % ranks][rank] += 1
    return held


@asks("ps10/piece")
def piece():
    ranks, wanted = 4, 3
    held = passed_once(ranks)
    holder = next(rank for rank in range(ranks) if held[rank][wanted] == 2)
    return Puzzle(
        holder,
        f"Rank {wanted} passed piece {wanted} on, and after rank 3 comes rank 0. From there it travels "
        "further: after three rounds every rank has one piece summed to the end, and nobody was in "
        "anybody's way.",
        {
            wanted: "Rank 3 has sent its piece 3. Who has added it?",
            4: "There are ranks 0 to 3; after the last comes the first.",
            2: "Rank 2 passes to rank 3, not the other way round.",
        },
        "In round 0, rank r sends piece r to rank r + 1, modulo 4.",
    )


@asks("ps10/door")
def door():
    ranks = 1000
    from warplab.tasks.ps10 import ring_bytes

    sent = ring_bytes(ranks, ranks, itemsize=1) / ranks
    return Puzzle(
        sent,
        f"{sent:.3f} GB: two trips, less a thousandth each. With 4 ranks it is {2 * 3 / 4:g}, and it "
        "never passes 2, however many there are. If all sent theirs to rank 0, its door would pass "
        f"{ranks - 1} GB each way.",
        {
            ranks
            - 1: "That is rank 0's door if all send to it. In a ring everybody sends pieces of a thousandth.",
            1: "There are two phases: sums on their way, then results.",
        },
        f"Pieces of 1 / {ranks} GB, and each of the two phases has {ranks - 1} rounds.",
        within=5e-4,
    )


@asks("ps10/moments")
def moments():
    parts = [sum(vram.zero_bytes(1, 8, stage).values()) for stage in range(4)]
    return Puzzle(
        parts[1],
        "2 + 2 + 12 / 8: the optimiser's 12 bytes are divided, weights and gradients stay whole. From "
        f"{parts[0]:g} to {parts[1]:g}, and the bytes between the ranks are those of one all-reduce. "
        f"Dividing all three gives {parts[3]:g}.",
        {
            parts[3]: "That divides all of it, ZeRO's third stage. Here only the optimiser is divided.",
            parts[2]: "That divides the gradients too, ZeRO's second stage.",
            12 / 8: "The weights and the gradients are there as well.",
            parts[0]: "That is without ZeRO.",
        },
        "Weights 2 and gradients 2 on every rank, and an eighth of the other 12.",
    )


@asks("ps10/bubble")
def bubble():
    def idle(ranks, micro):
        busy = [
            [tick for tick in range(micro + ranks - 1) if rank <= tick < rank + micro]
            for rank in range(ranks)
        ]
        return 1 - len(busy[0]) / (micro + ranks - 1)

    share = idle(4, 4)
    return Puzzle(
        share,
        f"3 of 7 ticks, {share:.0%}. With one batch in one piece it would be {idle(4, 1):.0%}, with 32 "
        f"pieces {idle(4, 32):.0%}. The bubble shrinks with the pieces, and so does the work in each of "
        "them.",
        {
            idle(4, 1): "That is one undivided batch: always one of four works.",
            0: "Rank 3 has to wait until the first piece has come through the others.",
            3 / 4: "Three ticks of standing still, yes. Of how many?",
        },
        "4 pieces and 4 ranks take 4 + 4 - 1 ticks. In how many of them does a rank work?",
        within=0.02,
    )
