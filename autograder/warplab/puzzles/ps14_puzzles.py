"""The puzzles that open problem set 14: audits."""

import numpy as np

from warplab.hardware import specs
from warplab.puzzles.blank import Puzzle, asks
from warplab.tasks import ps14


@asks("ps14/bound")
def bound():
    moved = 3 * 4 * 2**24
    least = 1e6 * moved / specs.get("h100-sxm")["memory_bandwidth"].si
    return Puzzle(
        least,
        f"Three arrays of 64 MiB are {moved / 1e6:.0f} MB, and those take {least:.0f} µs. In 40 µs the "
        "kernel moved less, or the clock stopped too early. This verdict needs no test of numbers.",
        {
            least / 3: "Two arrays are read and one is written: three of them go through the memory.",
            least * 2 / 3: "What two arrays take, as the model reports. The sum has to be written, too.",
        },
        "Three arrays of 4-byte numbers, over 3.35 TB/s, in microseconds.",
        within=0.03,
    )


@asks("ps14/places")
def places():
    first = np.arange(1, 65, dtype=np.float32)
    second = first.copy()
    second[[3, 5]] = first[[5, 3]]
    again = first.sum() != second.sum()
    return Puzzle(
        "yes" if again else "no",
        f"Both sums are {first.sum():,.0f}: it takes the second array for the first and returns old "
        "results. A fingerprint that is smaller than what it stands for belongs to others as well.",
        {"yes": "What does a sum say about the order of its numbers?"},
        'The answer is "yes" or "no".',
    )


@asks("ps14/spacing")
def spacing():
    gap = float(np.spacing(np.float32(1e6)))
    return Puzzle(
        gap,
        f"{gap:g}: 24 binary digits hold a number below 2 to the 20th to a sixteenth. Numbers near 1,000 "
        "have squares near a million; the difference of two such squares is a whole number of sixteenths, "
        "so that a variance of 0.1 is lost in it.",
        {
            1: "Float32 holds whole numbers up to 16,777,216, and has room to spare at a million.",
            2.0**-23: "That is the gap just above 1. It grows with the number.",
        },
        "A float32 has 24 binary digits, and 1,000,000 lies just below 2 to the 20th.",
    )


@asks("ps14/powers")
def powers():
    audit, wrong = ps14.RowSums(), ps14.machine_made.WRONG_SUMS[0]
    tried = {cols: {"x": np.ones((1, cols), np.float32)} for cols in (64, 128, 256, 512, 1024, 1025)}
    failed = [cols for cols, witness in tried.items() if audit.broken(wrong, {"threads": 64}, witness)]
    return Puzzle(
        len(failed) - 1,
        f"None. All five are multiples of 64. A row of {failed[0]:,} columns fails, and who tests only "
        "powers of two does not try it.",
        {
            5: "Each of them is a whole number of steps. What is left out?",
            1: "64 is one full step.",
        },
        "Which of the five sizes leaves a step that is not full?",
    )
