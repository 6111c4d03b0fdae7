"""The case without points of set 8: what its check says to right answers, and to each way to be wrong."""

import linecache
import math
import re

import numpy as np
import pytest
from corpus_files import SOLUTIONS
from numba import cuda, float32

import warplab

SIDES = (67, 104), (3, 40)


@pytest.fixture(scope="module")
def case():
    """What the cells of the case define."""
    text = SOLUTIONS["ps08"].read_text(encoding="utf-8")
    section = text.partition("the cold store *\n")[2].partition("\n# ## ")[0]
    first = re.split(r"\n# %%.*\n", section)[1]
    namespace = {"cuda": cuda, "float32": float32, "math": math, "np": np, "warplab": warplab}
    linecache.cache["<cold store>"] = len(first), None, first.splitlines(keepends=True), "<cold store>"
    exec(compile(first, "<cold store>", "exec"), namespace)
    return namespace


@cuda.jit
def moves_on(x, out):
    last = cuda.local.array(8, float32)
    col = cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[k] = math.inf
        for row in range(x.shape[0]):
            for k in range(7):
                last[k] = last[k + 1]
            last[7] = x[row, col]
            coolest = last[0]
            for k in range(1, 8):
                coolest = min(coolest, last[k])
            out[row, col] = coolest


@cuda.jit
def eight_rows_a_round(x, out):
    last = cuda.local.array(8, float32)
    col = cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[k] = math.inf
        for first in range(0, x.shape[0], 8):
            for k in range(8):
                if first + k < x.shape[0]:
                    last[k] = x[first + k, col]
                    coolest = last[0]
                    for j in range(1, 8):
                        coolest = min(coolest, last[j])
                    out[first + k, col] = coolest


@cuda.jit
def shared_table(x, out):
    last = cuda.shared.array((8, 64), float32)
    t, col = cuda.threadIdx.x, cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[k, t] = math.inf
        for row in range(x.shape[0]):
            last[row % 8, t] = x[row, col]
            coolest = last[0, t]
            for k in range(1, 8):
                coolest = min(coolest, last[k, t])
            out[row, col] = coolest


@cuda.jit
def doubled_twice(x, out):
    """The lowest of 2 and of 4 before, in seven registers and no table: 8 = 2 * 2 * 2."""
    col = cuda.grid(1)
    if col < x.shape[1]:
        inf = float32(math.inf)
        one, two_1, two_2, four_1, four_2, four_3, four_4 = inf, inf, inf, inf, inf, inf, inf
        for row in range(x.shape[0]):
            now = x[row, col]
            two = min(now, one)
            four = min(two, two_2)
            out[row, col] = min(four, four_4)
            one, two_2, two_1 = now, two_1, two
            four_4, four_3, four_2, four_1 = four_3, four_2, four_1, four


@cuda.jit
def asks_again(x, out):
    col = cuda.grid(1)
    if col < x.shape[1]:
        for row in range(x.shape[0]):
            coolest = x[row, col]
            for before in range(max(0, row - 7), row):
                coolest = min(coolest, x[before, col])
            out[row, col] = coolest


@cuda.jit
def shared_down_the_columns(x, out):
    last = cuda.shared.array((64, 8), float32)
    t, col = cuda.threadIdx.x, cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[t, k] = math.inf
        for row in range(x.shape[0]):
            last[t, row % 8] = x[row, col]
            coolest = last[t, 0]
            for k in range(1, 8):
                coolest = min(coolest, last[t, k])
            out[row, col] = coolest


@cuda.jit
def coolest_so_far(x, out):
    col = cuda.grid(1)
    if col < x.shape[1]:
        coolest = float32(math.inf)
        for row in range(x.shape[0]):
            coolest = min(coolest, x[row, col])
            out[row, col] = coolest


@cuda.jit
def begins_at_zero(x, out):
    last = cuda.local.array(8, float32)
    col = cuda.grid(1)
    if col < x.shape[1]:
        for k in range(8):
            last[k] = 0
        for row in range(x.shape[0]):
            for k in range(7):
                last[k] = last[k + 1]
            last[7] = x[row, col]
            coolest = last[0]
            for k in range(1, 8):
                coolest = min(coolest, last[k])
            out[row, col] = coolest


@cuda.jit
def seven_minutes(x, out):
    last = cuda.local.array(7, float32)
    col = cuda.grid(1)
    if col < x.shape[1]:
        for k in range(7):
            last[k] = math.inf
        for row in range(x.shape[0]):
            for k in range(6):
                last[k] = last[k + 1]
            last[6] = x[row, col]
            coolest = last[0]
            for k in range(1, 7):
                coolest = min(coolest, last[k])
            out[row, col] = coolest


@cuda.jit
def no_bound(x, out):
    col = cuda.grid(1)
    for row in range(x.shape[0]):
        out[row, col] = x[row, col]


@pytest.mark.parametrize("kernel", [moves_on, eight_rows_a_round, shared_table, doubled_twice])
def test_a_right_answer_is_told_that_it_is_mended(case, capsys, kernel):
    case["watched"](kernel, *SIDES)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 and all(": mended: " in line for line in told)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (asks_again, "times a copy's sectors"),
        (shared_down_the_columns, "bank conflicts"),
        (coolest_so_far, "67 x 104: wrong at ["),
        (begins_at_zero, "3 x 40: wrong at ["),
        (seven_minutes, "67 x 104: wrong at [7, "),
        (no_bound, "out-of-bounds access"),
    ],
)
def test_each_way_to_be_wrong_is_told(case, capsys, kernel, said):
    case["watched"](kernel, *SIDES)
    assert said in (told := capsys.readouterr().out) and told.count("mended") < 2


def test_the_given_kernel_is_right_and_asks_local_memory_as_counted_by_hand(case, capsys):
    """Of each row a warp stores a number of its table and loads the eight, by fours or one by one; of global
    memory it asks a load and a store, as a copy does.
    """
    case["watched"](case["coolest_given"], *SIDES)
    assert capsys.readouterr().out.startswith("67 x 104: right, and ")
    x = np.ones((64, 64), np.float32)
    more, fewer = (
        warplab.profile(case["coolest_given"][1, 32], x[:rows], np.ones_like(x)) for rows in (64, 32)
    )
    assert more.global_memory.requests - fewer.global_memory.requests == 2 * 32
    assert more.spill_bytes == 0 and 3 <= (more.local_requests - fewer.local_requests) / 32 <= 9


def test_the_report_names_the_line_and_local_memory(case):
    x = np.ones((64, 64), np.float32)
    report = str(warplab.report(case["coolest_given"][2, 64], x, np.ones_like(x), device="t4"))
    assert re.search(r"Local Memory: Line \d+ goes to local memory", report)
