"""Barriers that count, vote, have a number, or hold the whole grid; and locks that spin."""

import numpy as np
import pytest
from numba import cuda

import warplab


@cuda.jit
def votes(x, out):
    i = cuda.threadIdx.x
    out[i, 0] = cuda.syncthreads_count(x[i])
    out[i, 1] = cuda.syncthreads_and(x[i])
    out[i, 2] = cuda.syncthreads_or(x[i])


@pytest.mark.parametrize("true", [0, 5, 48])
def test_a_barrier_that_votes_tells_every_thread_of_the_block(true):
    x, out = (np.arange(48) < true).astype(np.int32), np.zeros((48, 3), np.int32)
    votes[1, 48](x, out)
    assert (out == [true, true == 48, true > 0]).all()


@cuda.jit
def neighbour_blocks(x, out):
    i = cuda.grid(1)
    x[i] = i
    cuda.cg.this_grid().sync()
    out[i] = x[x.size - 1 - i]


def test_a_grid_barrier_holds_every_block():
    n = 64 * 1024
    x, out = np.zeros(n, np.int32), np.zeros(n, np.int32)
    neighbour_blocks[64, 1024](x, out)
    np.testing.assert_array_equal(out, np.arange(n)[::-1])


NAMED = r"""
extern "C" __global__ void halves(int *out) {
    __shared__ int x[128];
    int half = threadIdx.x / 64;
    x[threadIdx.x] = threadIdx.x;
    if (half == 0) asm volatile("bar.sync 1, %0;" :: "n"(64) : "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = x[64 * half + 63 - threadIdx.x % 64];
}
"""


def test_each_half_of_a_block_meets_at_its_own_named_barrier():
    out = np.zeros(128, np.int32)
    warplab.cuda_kernel(NAMED, "halves")[1, 128](out)
    np.testing.assert_array_equal(out, np.r_[np.arange(64)[::-1], 64 + np.arange(64)[::-1]])


HALVES_MEET = r"""
extern "C" __global__ void k(int *out) {
    __shared__ int s;
    int t = threadIdx.x;
    if (t == 0) s = 0;
    __syncthreads();
    if (WHO) atomicAdd(&s, t);
    SYNC;
    if (t % 32 < 16) {
        asm volatile("barrier.sync 1, 32;" ::: "memory");
        if (t == 0) out[0] = s;
    }
}
"""


@pytest.mark.parametrize("who, total", [("t == 52", 52), ("t % 32 == 20", 72)])
def test_what_came_before_a_syncwarp_is_behind_a_barrier_of_some_of_its_lanes(who, total):
    out, kernel = np.zeros(1, np.int32), HALVES_MEET.replace("WHO", who)
    warplab.cuda_kernel(kernel.replace("SYNC", "__syncwarp()"), "k")[1, 64](out)
    assert out[0] == total
    with pytest.raises(warplab.SharedRace):
        warplab.cuda_kernel(kernel.replace("SYNC", ""), "k")[1, 64](out)


LONG = r"""
#define MEET(...) asm volatile(#__VA_ARGS__ ";" ::: "memory");
extern "C" __global__ void k(int *out) {
    __shared__ int s[600];
    int t = threadIdx.x;
    for (int i = t; i < 600; i += 64) s[i] = 0;
    __syncthreads();
    if (t % 32 == 4) for (int i = 0; i < 600; i++) atomicAdd(&s[i], t);
    THERE
    if (t == 0) s[0] = 1;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "meet", ["if (t < 32) MEET(bar.sync 1, 32)", "if (t < 16) MEET(bar.warp.sync 0xffff)"]
)
def test_whoever_came_long_before_a_barrier_of_some_is_remembered(meet):
    with pytest.raises(warplab.SharedRace, match="several threads"):
        warplab.cuda_kernel(LONG.replace("THERE", meet), "k")[1, 64](np.zeros(1, np.int32))
    both = LONG.replace("THERE", "MEET(bar.sync 1, 64)")
    warplab.cuda_kernel(both, "k")[1, 64](np.zeros(1, np.int32))


GRID = r"""
extern "C" __global__ void k(int *x, int *flag, int *out) {
    int b = blockIdx.x, t = threadIdx.x;
    BEFORE
    asm volatile("barrier.sync.grid 0;" ::: "memory");
    out[64 * b + t] = x[0];
}
"""


def all_read(before: str, blocks: int) -> np.ndarray:
    """What each thread reads behind a barrier of the grid."""
    out = np.zeros(64 * blocks, np.int32)
    kernel = warplab.cuda_kernel(GRID.replace("BEFORE", before), "k")
    kernel[blocks, 64](np.zeros(1, np.int32), np.zeros(4, np.int32), out)
    return out


@pytest.mark.slow
def test_no_block_passes_a_grid_barrier_while_another_spins_before_it():
    out = all_read(
        """
    if (b == 0 && t == 0) {
        for (int i = 0; i < 20; i++) { while (atomicAdd(&flag[0], 0) <= i) {} atomicAdd(&flag[1], 1); }
        x[0] = 5;
    }
    if (b == 2 && t == 0)
        for (int i = 0; i < 20; i++) { atomicAdd(&flag[0], 1); while (atomicAdd(&flag[1], 0) <= i) {} }""",
        3,
    )
    assert (out == 5).all()


def test_a_block_passes_its_own_barrier_while_others_wait_at_that_of_the_grid():
    assert (all_read("if (b == 1) { __syncthreads(); if (t == 3) x[0] = 5; }", 2) == 5).all()


@pytest.mark.parametrize(
    "before",
    [
        'if (t < 32) asm volatile("barrier.sync.grid 0;" ::: "memory");',
        "if (t < 32) __syncthreads();",
        'if (b == 0) asm volatile("barrier.sync.grid 0;" ::: "memory");',
    ],
    ids=["another of the grid", "its block's", "one for each block"],
)
def test_threads_at_a_grid_barrier_and_at_another_one_do_not_meet(before):
    with pytest.raises(warplab.BarrierDivergence, match="wait at two different barriers"):
        all_read(before + " else x[0] = 1;", 2)


RACE_WHILE_OTHERS_MEET = r"""
extern "C" __global__ void k(int *flag, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (blockIdx.x == 0) {
        s[t] = t;
        while (atomicAdd(flag, 0) < 64) {}
        out[t] = s[63 - t];
    } else {
        for (int i = 0; i < 3; i++) __syncthreads();
        atomicAdd(flag, 1);
    }
}
"""


def test_a_barrier_that_one_block_passes_early_orders_nothing_in_the_others():
    with pytest.raises(warplab.SharedRace):
        warplab.cuda_kernel(RACE_WHILE_OTHERS_MEET, "k")[2, 64](np.zeros(1, np.int32), np.zeros(64, np.int32))
