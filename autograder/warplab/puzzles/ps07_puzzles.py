"""The puzzles that open problem set 7: low precision."""

import numpy as np

from warplab.puzzles.blank import Puzzle, asks, reference


@asks("ps07/plus_one")
def plus_one():
    big = np.float32(2**24)
    answer = int(big + np.float32(1))
    return Puzzle(
        answer,
        f"It stays {answer:,}. A float32 has 24 bits for its digits, and from 2**24 on its neighbours are "
        f"{float(np.spacing(big)):g} apart. A counter in float32 stops here, and a long sum of ones as well.",
        {
            2**24 + 1: "So it is on paper. In float32 this number does not exist: 24 bits cannot hold it.",
            2**24 + 2: "That is the next float32. The sum lies half-way between, and such a tie goes to the "
            "even one.",
        },
        "How far apart are two neighbouring float32 numbers there?",
        within=0,
    )


@asks("ps07/between")
def between():
    import ml_dtypes

    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)

    def inside(low, high):
        return int(((codes >= low) & (codes < high)).sum())

    return Puzzle(
        inside(128, 256),
        f"{inside(1, 2)} from 1 up to 2, {inside(128, 256)} from 128 up to 256: three fraction bits give "
        "every power of two the same 8 places. So the steps grow with the number, and what stays the "
        "same is the error in per cent.",
        {
            128: "Then they would be 1 apart, with more than three fraction bits.",
            8 * 128: "That would be as dense as between 1 and 2. The places move apart with the exponent.",
        },
        "Three fraction bits are left, whatever the exponent says.",
    )


@asks("ps07/whisper")
def whisper():
    small = 1e-8
    answer = next(k for k in range(60) if np.float16(small * 2.0**k) != 0)
    least = float(np.finfo(np.float16).smallest_subnormal)
    return Puzzle(
        answer,
        f"FP16's smallest number is {least:.1e}, and {small * 2**answer:.0e} is rounded up to it. Below "
        "half of it there is only zero. Multiply before it gets lost, divide in FP32: that is loss "
        "scaling.",
        {
            0: f"`np.float16({small})` is 0.0: FP16 has nothing below {least:.1e}.",
            answer + 1: "Enough, but half of that would do: what lies above half of the smallest number is "
            "rounded up to it.",
        },
        lambda k: (
            f"2**{k:g} makes {small * 2.0 ** min(k, 60):.1e} of it; "
            + ("that is zero still." if k < answer else "less would do.")
        ),
    )


@asks("ps07/outlier")
def outlier():
    row = np.array([[100.0, 0.3, -0.3, 0.2]], np.float32)
    q = reference("ps07/quantize_int8", w=row, reach=1.0)["q"][0]
    alone = reference("ps07/quantize_int8", w=row[:, 1:], reach=1.0)["q"][0]
    return Puzzle(
        q[1],
        f"The scale is 100 / 127 = {100 / 127:.2f}, and 0.3 is less than half a step: the row becomes "
        f"{q}. Without the first number the others would be {alone}. One outlier costs its whole row, "
        "hence a scale for each row.",
        {
            alone[0]: "That would be right without the 100: the row's largest number becomes 127.",
            1: "0.3 of a step of 0.79 is nearer to 0 than to 1.",
        },
        "The row's largest number becomes 127, so a step is 100 / 127.",
    )
