"""Warp-wide instructions whose lanes give masks of their own, and copies of some bytes of several arrays:
expected is what an oracle works out for each lane alone. And what comes of lanes that are not there: nothing
that may matter from a shuffle, no vote and no match.
"""

import random

import numpy as np
import pytest
from numba import cuda
from ptx_runner import run

import warplab

LANES = range(32)
REDUCTIONS = {
    "add.u32": lambda values: sum(values) & 0xFFFFFFFF,
    "add.s32": lambda values: sum(values) & 0xFFFFFFFF,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda values: min(values, key=signed),
    "max.s32": lambda values: max(values, key=signed),
    "and.b32": lambda values: int(np.bitwise_and.reduce(np.array(values, np.uint32))),
    "or.b32": lambda values: int(np.bitwise_or.reduce(np.array(values, np.uint32))),
    "xor.b32": lambda values: int(np.bitwise_xor.reduce(np.array(values, np.uint32))),
}


def signed(bits):
    return bits - (bits >> 31 << 32)


def partition(rng):
    """Member masks of a random partition of the warp: for each lane the mask of its part."""
    part = [rng.randrange(rng.choice((1, 2, 3, 6))) for _ in LANES]
    return [sum(1 << other for other in LANES if part[other] == part[lane]) for lane in LANES]


def select(register, numbers):
    """PTX that puts each lane's number into the register."""
    lines = [f"mov.u32 {register}, 0;"]
    for number in sorted(set(numbers)):
        who = sum(1 << lane for lane in LANES if numbers[lane] == number)
        lines.append(f"shr.u32 %r30, {who:#x}, %r1; and.b32 %r30, %r30, 1; setp.ne.u32 %p7, %r30, 0;")
        lines.append(f"@%p7 mov.u32 {register}, {number};")
    return "\n".join(lines)


def members(mask):
    return [lane for lane in LANES if mask >> lane & 1]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("operation", REDUCTIONS)
def test_a_reduction_takes_the_lanes_of_each_mask_alone(operation, seed):
    rng = random.Random(f"{operation} {seed}")
    masks = partition(rng)
    values = [rng.choice((rng.getrandbits(32), rng.getrandbits(4))) for _ in LANES]
    out = run(
        f"{select('%r5', masks)} {select('%r6', values)} redux.sync.{operation} %r7, %r6, %r5; "
        "st.global.u32 [%rd1], %r7;"
    )
    expected = [REDUCTIONS[operation]([values[other] for other in members(masks[lane])]) for lane in LANES]
    assert out[:, 0].tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_votes_matches_and_shuffles_stay_within_each_mask(seed):
    rng = random.Random(seed)
    masks, values = partition(rng), [rng.randrange(4) for _ in LANES]
    sources = [rng.choice(members(masks[lane])) for lane in LANES]
    out = run(
        f"{select('%r5', masks)} {select('%r6', values)} {select('%r8', sources)} setp.eq.u32 %p1, %r6, 1;"
        "vote.sync.ballot.b32 %r10, %p1, %r5; st.global.u32 [%rd1], %r10;"
        "vote.sync.all.pred %p2, %p1, %r5; selp.u32 %r10, 1, 0, %p2; st.global.u32 [%rd1+4], %r10;"
        "vote.sync.any.pred %p2, %p1, %r5; selp.u32 %r10, 1, 0, %p2; st.global.u32 [%rd1+8], %r10;"
        "match.any.sync.b32 %r10, %r6, %r5; st.global.u32 [%rd1+12], %r10;"
        "match.all.sync.b32 %r10, %r6, %r5; st.global.u32 [%rd1+16], %r10;"
        "shfl.sync.idx.b32 %r10, %r6, %r8, 31, %r5; st.global.u32 [%rd1+20], %r10;",
        words=6,
    )
    for lane in LANES:
        inside = members(masks[lane])
        ones = sum(1 << other for other in inside if values[other] == 1)
        alike = sum(1 << other for other in inside if values[other] == values[lane])
        everyone = masks[lane] if alike == masks[lane] else 0
        expected = [ones, ones == masks[lane], ones != 0, alike, everyone, values[sources[lane]]]
        assert out[lane].tolist() == [int(one) for one in expected], lane


@pytest.mark.parametrize(
    "register, expected",
    [
        ("%lanemask_eq", [1 << lane for lane in LANES]),
        ("%lanemask_lt", [sum(1 << other for other in LANES if other < lane) for lane in LANES]),
        ("%lanemask_le", [sum(1 << other for other in LANES if other <= lane) for lane in LANES]),
        ("%lanemask_ge", [sum(1 << other for other in LANES if other >= lane) for lane in LANES]),
        ("%lanemask_gt", [sum(1 << other for other in LANES if other > lane) for lane in LANES]),
        ("%clusterid.x", [0] * 32),
        ("%nclusterid.x", [1] * 32),
        ("%cluster_ctaid.y", [0] * 32),
        ("%cluster_nctaid.z", [1] * 32),
        ("%cluster_ctarank", [0] * 32),
        ("%cluster_nctarank", [1] * 32),
    ],
)
def test_a_register_of_the_hardware_has_its_value(register, expected):
    out = run(f"mov.u32 %r2, {register}; st.global.u32 [%rd1], %r2;")
    assert out[:, 0].tolist() == expected


def test_a_launch_without_clusters_says_so_and_waits_for_no_other_launch():
    out = run(
        "griddepcontrol.wait; griddepcontrol.launch_dependents; mov.pred %p1, %is_explicit_cluster;"
        "selp.u32 %r2, 7, 5, %p1; st.global.u32 [%rd1], %r2;"
    )
    assert out[:, 0].tolist() == [5] * 32


COPY = """
extern "C" __global__
void copy(const float *a, const float *b, float *out, const int *which, const int *given) {
    __shared__ __align__(16) float tile[32 * 4];
    int lane = threadIdx.x;
    const float *arrays[] = {a + 4 * lane, b + 4 * lane, nullptr}, *from = arrays[which[lane]];
    unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * lane);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(given[lane]) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 4; i++) out[4 * lane + i] = tile[4 * lane + i];
}
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_copy_of_some_bytes_reads_several_arrays_and_fills_with_zeros(seed):
    """A lane that is given 0 bytes reads nothing and may hold any address."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, 128), np.float32)
    which = rng.integers(0, 3, 32).astype(np.int32)
    given = np.where(which == 2, 0, rng.integers(0, 5, 32) * 4).astype(np.int32)
    out = np.full(128, -1, np.float32)
    warplab.cuda_kernel(COPY, "copy")[1, 32](a, b, out, which, given)
    for lane in LANES:
        row = [a, b, np.zeros(128, np.float32)][which[lane]][4 * lane : 4 * lane + 4].copy()
        row[given[lane] // 4 :] = 0
        assert out[4 * lane : 4 * lane + 4].tolist() == row.tolist()


def test_a_copy_of_some_bytes_past_the_end_of_one_of_two_arrays_is_out_of_bounds():
    a, b = np.ones((2, 128), np.float32)
    which, given = np.arange(32, dtype=np.int32) % 2, np.full(32, 12, np.int32)
    with pytest.raises(warplab.OutOfBounds):
        warplab.cuda_kernel(COPY, "copy")[1, 32](a, b[:100].copy(), np.empty(128, np.float32), which, given)


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
