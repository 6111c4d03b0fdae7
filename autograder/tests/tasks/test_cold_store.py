"""The case without points of set 8: what its check says to right answers, and to each way to be wrong."""

import linecache
import math
import re

import numpy as np
import pytest
from corpus_files import SOLUTIONS
from numba import cuda, float32

import warplab

STORE = r" *last\[row % 8\] = x\[row, col\]\n"
MOVES = (STORE, "            for k in range(7): last[k] = last[k + 1]\n            last[7] = x[row, col]\n")
ROUNDS = """for first in range(0, x.shape[0], 8):
            for k in range(8):
                if first + k < x.shape[0]:
                    last[k] = x[first + k, col]
                    coolest = last[0]
                    for j in range(1, 8):
                        coolest = min(coolest, last[j])
                    out[first + k, col] = coolest
"""
RIGHT = {
    "numbers that move on": [MOVES],
    "eight rows a round": [(r"(?s)for row in range.*", ROUNDS)],
    "shared table": [
        (r"local.array\(8", "shared.array((8, 64)"),
        (r"last\[(.+?)\]", r"last[\1, cuda.threadIdx.x]"),
    ],
}
WRONG = {
    "asks again": (
        "right, and 4.3 times a copy's sectors",
        [
            (STORE, ""),
            (r"= last\[0\]", "= x[row, col]"),
            (r"range\(1, 8\)", "range(max(0, row - 7), row)"),
            (r"coolest, last\[k\]", "coolest, x[k, col]"),
        ],
    ),
    "shared, down the columns": (
        "bank conflicts",
        [
            (r"local.array\(8", "shared.array((64, 8)"),
            (r"last\[(.+?)\]", r"last[cuda.threadIdx.x, \1]"),
        ],
    ),
    "all minutes so far": (
        "67 x 104: wrong at [",
        [(STORE, " " * 12 + "last[0] = min(last[0], x[row, col])\n")],
    ),
    "begins at zero": ("3 x 40: wrong at [", [MOVES, (r"math\.inf", "0")]),
    "seven minutes": ("67 x 104: wrong at [7, ", [MOVES, (r"= last\[0\]", "= last[1]")]),
    "no bound": ("out-of-bounds access", [MOVES, (r"x\.shape\[1\]", "10_000")]),
}


def run(source):
    """What a cell defines, with its lines for numba."""
    namespace = {"cuda": cuda, "float32": float32, "math": math, "np": np, "warplab": warplab}
    name = f"<cold store {hash(source)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), namespace)
    return namespace


@pytest.fixture(scope="module")
def cell():
    section = SOLUTIONS["ps08"].read_text(encoding="utf-8").partition("the cold store *\n")[2]
    return re.split(r"\n# %%.*\n", section)[1]


def told(cell, capsys, edits):
    """What the check prints of the given kernel after these edits."""
    kernel, check = cell.split("\n\n\ndef ")
    for old, new in edits:
        kernel, edited = re.subn(old, new, kernel)
        assert edited
    run(f"def {check.partition(chr(10) * 3)[0]}")["watched"](run(kernel)["coolest_given"], (67, 104), (3, 40))
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("edits", RIGHT.values(), ids=RIGHT)
def test_a_right_answer_is_told_that_it_is_mended(cell, capsys, edits):
    assert told(cell, capsys, edits).count(": mended: ") == 2


@pytest.mark.parametrize(("said", "edits"), WRONG.values(), ids=WRONG)
def test_each_way_to_be_wrong_is_told(cell, capsys, said, edits):
    out = told(cell, capsys, edits)
    assert said in out and "67 x 104: mended" not in out


@pytest.mark.slow
def test_the_given_kernel_is_right_and_asks_for_local_memory(cell, capsys):
    """Of each row a warp stores a number of its table and loads the eight, by fours or one by one; of global
    memory it asks a load and a store, as a copy does.
    """
    out = told(cell, capsys, [])
    assert out.count(": right, and ") == 2 and "to local memory beside 536 to global" in out
    kernel, x = run(cell)["coolest_given"], np.ones((64, 64), np.float32)
    more, fewer = (warplab.profile(kernel[1, 32], x[:rows], np.ones_like(x)) for rows in (64, 32))
    assert more.global_memory.requests - fewer.global_memory.requests == 2 * 32
    assert more.spill_bytes == 0 and 3 <= (more.local_requests - fewer.local_requests) / 32 <= 9
    report = str(warplab.report(kernel[2, 64], x, np.ones_like(x), device="t4"))
    assert re.search(r"Local Memory: Line \d+ goes to local memory", report)
