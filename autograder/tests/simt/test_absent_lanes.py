"""What comes of lanes that are not there: nothing that may matter from a shuffle, no vote and no match."""

import numpy as np
import pytest
from numba import cuda

import warplab


@cuda.jit
def sum_of_half_a_warp(x, out):
    i = cuda.threadIdx.x
    if i < 16:
        value = x[i]
        for offset in (8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        if i == 0:
            out[0] = value


def test_what_comes_of_missing_lanes_may_be_thrown_away():
    """Lane 8 adds what lane 16 does not give; lane 0 takes nothing of it."""
    x, out = np.arange(32, dtype=np.int32), np.zeros(1, np.int32)
    sum_of_half_a_warp[1, 32](x, out)
    assert out[0] == 120


@cuda.jit
def sum_of_a_warp(x, out):
    value = x[cuda.threadIdx.x]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, offset)
    out[0] = value


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_a_sum_over_a_warp_that_the_block_does_not_fill_is_refused(dtype):
    message = r"lane 31 of its warp, which has no part in this shuffle; thread .* stores it to global memory"
    with pytest.raises(warplab.UninitialisedRead, match=message):
        sum_of_a_warp[1, 16](np.ones(16, dtype), np.zeros(1, dtype))


@cuda.jit
def masked(x, mask, out):
    i = cuda.threadIdx.x
    out[i] = cuda.shfl_down_sync(mask, x[i], 1)


def test_a_lane_that_the_mask_does_not_name_gives_nothing_that_may_matter():
    """Lane 4 asks lane 5, under a mask without lane 5."""
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    with pytest.raises(warplab.UninitialisedRead, match="takes the value of lane 5 of its warp"):
        masked[1, 32](x, np.uint32(0xFFFFFFFF ^ 1 << 5), out)


@cuda.jit
def of_a_short_warp(out):
    lane = cuda.threadIdx.x
    out[0, lane] = cuda.all_sync(0xFFFFFFFF, lane < 20)
    out[1, lane] = cuda.eq_sync(0xFFFFFFFF, lane < 20)
    out[2, lane] = cuda.ballot_sync(0xFFFFFFFF, True)
    out[3, lane] = cuda.match_any_sync(0xFFFFFFFF, out[3, lane])


def test_lanes_that_a_short_block_does_not_have_neither_vote_nor_match():
    out = np.zeros((4, 20), np.int64)
    of_a_short_warp[1, 20](out)
    np.testing.assert_array_equal(out, np.repeat([[1], [1], [(1 << 20) - 1], [(1 << 20) - 1]], 20, axis=1))
