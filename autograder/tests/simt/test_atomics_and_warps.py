"""Atomics and warp-level operations against NumPy."""

import numpy as np
import pytest
from numba import cuda, int32

import warplab

RNG = np.random.default_rng(3)


@cuda.jit
def histogram(x, bins):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_atomic_add_counts_every_thread(dtype):
    x, bins = RNG.integers(0, 10, 5000).astype(np.int32), np.zeros(10, dtype)
    p = warplab.profile(histogram[40, 128], x, bins)
    np.testing.assert_array_equal(bins, np.bincount(x, minlength=10))
    assert p.atomics.requests == -(-5000 // 32)


@cuda.jit
def tickets(counter, out):
    out[cuda.grid(1)] = cuda.atomic.add(counter, 0, 1)


def test_atomic_add_returns_each_value_once():
    counter, out = np.zeros(1, np.int32), np.zeros(256, np.int32)
    tickets[2, 128](counter, out)
    assert counter[0] == 256 and sorted(out) == list(range(256))


@cuda.jit
def extremes(x, out):
    i = cuda.grid(1)
    cuda.atomic.max(out, 0, x[i])
    cuda.atomic.min(out, 1, x[i])


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_atomic_min_and_max(dtype):
    x = (RNG.standard_normal(128) * 100).astype(dtype)
    out = np.zeros(2, dtype)
    extremes[1, 128](x, out)
    np.testing.assert_array_equal(out, [max(x.max(), 0), min(x.min(), 0)])


@cuda.jit
def first_come(slot, won):
    i = cuda.grid(1)
    won[i] = cuda.atomic.cas(slot, 0, -1, i)


def test_compare_and_swap_lets_one_thread_win():
    slot, won = np.full(1, -1, np.int32), np.zeros(64, np.int32)
    first_come[1, 64](slot, won)
    assert (won == -1).sum() == 1 and slot[0] == int(np.flatnonzero(won == -1)[0])


@cuda.jit
def warp_sum(x, out):
    i = cuda.grid(1)
    value = x[i]
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    if cuda.laneid == 0:
        out[i // 32] = value


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_shuffle_down_adds_a_warp(dtype):
    x, out = RNG.integers(0, 100, 256).astype(dtype), np.zeros(8, dtype)
    warp_sum[2, 128](x, out)
    np.testing.assert_array_equal(out, x.reshape(8, 32).sum(1))


@cuda.jit
def shuffles(x, out):
    i = cuda.threadIdx.x
    out[0, i] = cuda.shfl_sync(0xFFFFFFFF, x[i], 5)
    out[1, i] = cuda.shfl_up_sync(0xFFFFFFFF, x[i], 3)
    out[2, i] = cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 1)


def test_shuffle_modes():
    x, out = np.arange(32, dtype=np.int32) * 10, np.zeros((3, 32), np.int32)
    shuffles[1, 32](x, out)
    lane = np.arange(32)
    np.testing.assert_array_equal(
        out, np.stack([x[np.full(32, 5)], x[np.where(lane < 3, lane, lane - 3)], x[lane ^ 1]])
    )


@cuda.jit
def votes(x, out):
    i = cuda.threadIdx.x
    out[0, i] = cuda.ballot_sync(0xFFFFFFFF, x[i] > 0)
    out[1, i] = cuda.all_sync(0xFFFFFFFF, x[i] > -1)
    out[2, i] = cuda.any_sync(0xFFFFFFFF, x[i] > 30)
    out[3, i] = cuda.match_any_sync(0xFFFFFFFF, x[i] % 2)


def test_votes_and_matches():
    x, out = np.arange(32, dtype=np.int32), np.zeros((4, 32), np.int64)
    votes[1, 32](x, out)
    assert set(out[0] & 0xFFFFFFFF) == {0xFFFFFFFE} and (out[1] == 1).all() and (out[2] == 1).all()
    np.testing.assert_array_equal(out[3] & 0xFFFFFFFF, np.where(x % 2, 0xAAAAAAAA, 0x55555555))


@cuda.jit
def shared_histogram(x, out):
    bins = cuda.shared.array(16, int32)
    t = cuda.threadIdx.x
    if t < 16:
        bins[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, x[cuda.grid(1)], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, bins[t])


def test_atomics_in_shared_memory_are_no_race():
    x, out = RNG.integers(0, 16, 512).astype(np.int32), np.zeros(16, np.int32)
    shared_histogram[4, 128](x, out)
    np.testing.assert_array_equal(out, np.bincount(x, minlength=16))


@cuda.jit
def half_a_warp(x, out):
    i = cuda.threadIdx.x
    if i < 16:
        out[i] = cuda.shfl_down_sync(0xFFFFFFFF, x[i], 8)


def test_what_a_lane_holds_that_does_not_come_to_a_shuffle_is_not_to_matter():
    """Lanes 8 to 15 ask for what lanes 16 to 23 hold, which are elsewhere."""
    x = np.arange(32, dtype=np.float32)
    with pytest.raises(warplab.UninitialisedRead, match="takes the value of lane 16 of its warp"):
        half_a_warp[1, 32](x, np.zeros(16, np.float32))


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


SIXTEEN_BITS = """
#include <cuda_fp16.h>
__global__ void k(unsigned short* won, half* sum, half2* pair) {
    atomicCAS(won + 1, (unsigned short)0, (unsigned short)(7 + threadIdx.x));
    atomicAdd(sum + 1, __float2half(0.5f));
    atomicAdd(pair, __floats2half2_rn(1.0f, 2.0f));
}
"""


def test_atomics_on_16_bits_leave_their_neighbours_alone():
    won, sums, pair = np.full(4, 9, np.uint16), np.full(3, 3, np.float16), np.zeros(4, np.float16)
    won[1] = 0
    warplab.cuda_kernel(SIXTEEN_BITS, "k")[1, 32](won, sums, pair)
    assert won.tolist() == [9, 7, 9, 9]  # the first lane wins
    assert sums.tolist() == [3, 19, 3] and pair.tolist() == [32, 64, 0, 0]
