"""The puzzles that open problem set 15: Hopper."""

from warplab.hardware.target import Target
from warplab.puzzles.blank import Puzzle, asks
from warplab.tasks import ps15


@asks("ps15/borders")
def borders():
    reach, blocks = 64, ps15.CLUSTER
    saved = 2 * reach * (blocks - 1)
    return Puzzle(
        saved,
        f"Four blocks have three borders, and across each of them {reach} numbers go either way: {saved}. "
        "Both ends of the cluster still ask global memory, and longer clusters have fewer ends.",
        {
            2 * reach * blocks: "The first block has no neighbour to its left, the last none to its right.",
            reach * (blocks - 1): "Across a border both blocks want something.",
        },
        "How many borders are there between four blocks in a row, and what goes across one?",
        within=0,
    )


@asks("ps15/expected")
def expected():
    box = ps15.ROWS * ps15.COLS * 4
    return Puzzle(
        box,
        f"{box:,}. TMA writes the whole box, zeros in the place of what lies outside, and reports every byte "
        "that it has written. A barrier that expects fewer is never in step again.",
        {
            20 * 40 * 4: "So many come out of the array. What does TMA write where there is no array?",
            ps15.ROWS * ps15.COLS: "So many numbers; a float32 has 4 bytes.",
        },
        "Shared memory gets a whole box, and each of its bytes is counted.",
        within=0,
    )


@asks("ps15/parity")
def parity():
    step, stages = 7, 3
    answer = step // stages % 2
    return Puzzle(
        answer,
        f"Step {step} uses stage {step % stages}, for the third time after steps 1 and 4. The barrier's "
        f"phases count 0, 1, 2, and the parity of its phase {step // stages} is {answer}.",
        {1: "That is the parity of the step. How often was its barrier used before?"},
        "0 or 1: which steps used this stage's barrier before step 7?",
        within=0,
    )


@asks("ps15/stages")
def stages():
    stage = (ps15.M + ps15.N) * ps15.K * 2
    most = Target.of("sm_90").limits.max_static_shared
    answer = most // (stage + 8)
    return Puzzle(
        answer,
        f"{answer}. A stage has {stage:,} bytes, and four of them are {4 * stage:,}: all that a block may "
        f"declare, {most:,}, with no room for a barrier of 8 bytes. Fast kernels ask for more when they are "
        "launched.",
        {
            answer + 1: "Four stages fit to the byte. Where do their barriers lie?",
            most // (stage // 2): "A float16 has 2 bytes.",
        },
        "(64 + 32) rows of 64 numbers of 2 bytes each, and a barrier of 8 bytes.",
        within=0,
    )
