"""Kernels compiled by numba's own compiler, run by the engine, against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda, float32, float64, int32

import warplab

RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 257, 1000, 100_003])
def test_add_matches_numpy_for_every_tail(n):
    a, b, out = f32(n), f32(n), np.full(n, np.nan, np.float32)
    add[-(-n // 128), 128](a, b, out)
    np.testing.assert_array_equal(out, a + b)


@pytest.mark.parametrize("threads", [1, 7, 31, 33, 100, 1024])
def test_block_sizes_that_are_not_a_multiple_of_the_warp_run_every_thread(threads):
    n = 3 * threads
    a, b, out = f32(n), f32(n), np.zeros(n, np.float32)
    add[3, threads](a, b, out)
    np.testing.assert_array_equal(out, a + b)


@cuda.jit
def indices(out):
    x, y, z = cuda.grid(3)
    if x < out.shape[2] and y < out.shape[1] and z < out.shape[0]:
        out[z, y, x] = (
            cuda.threadIdx.x
            + 10 * cuda.threadIdx.y
            + 100 * cuda.threadIdx.z
            + 1000 * cuda.blockIdx.x
            + 10_000 * cuda.blockIdx.y
            + 100_000 * cuda.blockIdx.z
        )


def test_three_dimensional_indices_are_those_of_cuda():
    out = np.zeros((5, 6, 7), np.int64)
    indices[(2, 3, 3), (4, 2, 2)](out)
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(
        out, x % 4 + 10 * (y % 2) + 100 * (z % 2) + 1000 * (x // 4) + 10_000 * (y // 2) + 100_000 * (z // 2)
    )


@cuda.jit
def arithmetic(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i, 0] = a[i] // b[i]
        out[i, 1] = a[i] % b[i]
        out[i, 2] = a[i] * b[i]
        out[i, 3] = a[i] << (b[i] & 7)
        out[i, 4] = a[i] >> (b[i] & 7)
        out[i, 5] = (a[i] & b[i]) ^ (a[i] | 3)
        out[i, 6] = min(a[i], b[i]) - max(a[i], b[i])
        out[i, 7] = abs(a[i]) + (1 if a[i] < b[i] else -1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integer_arithmetic_is_pythons(dtype):
    a = RNG.integers(-1000, 1000, 500).astype(dtype)
    b = RNG.integers(1, 50, 500).astype(dtype) * RNG.choice([-1, 1], 500).astype(dtype)
    out = np.zeros((500, 8), dtype)
    arithmetic[4, 128](a, b, out)
    shift = b & 7
    expected = np.stack(
        [
            a // b,
            a % b,
            a * b,
            a << shift,
            a >> shift,
            (a & b) ^ (a | 3),
            np.minimum(a, b) - np.maximum(a, b),
            np.abs(a) + np.where(a < b, 1, -1),
        ],
        1,
    )
    np.testing.assert_array_equal(out, expected)


@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i, 0] = math.sqrt(abs(x[i]))
        out[i, 1] = math.exp(x[i])
        out[i, 2] = math.sin(x[i])
        out[i, 3] = math.log(abs(x[i]) + 1)
        out[i, 4] = math.tanh(x[i])
        out[i, 5] = math.floor(x[i]) + math.ceil(x[i])
        out[i, 6] = 1 / (1 + x[i] * x[i])


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_mathematical_functions_agree_with_numpy_to_rounding(dtype, tolerance):
    x = RNG.uniform(-5, 5, 300).astype(dtype)
    out = np.zeros((300, 7), dtype)
    functions[3, 128](x, out)
    y = x.astype(np.float64)
    expected = np.stack(
        [
            np.sqrt(abs(y)),
            np.exp(y),
            np.sin(y),
            np.log(abs(y) + 1),
            np.tanh(y),
            np.floor(y) + np.ceil(y),
            1 / (1 + y * y),
        ],
        1,
    )
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


@cuda.jit
def conversions(x, as_int, as_byte, as_single):
    i = cuda.grid(1)
    if i < x.size:
        as_int[i] = int32(x[i])
        as_byte[i] = np.uint8(int32(x[i]) & 255)
        as_single[i] = float32(x[i])


def test_conversions_truncate_towards_zero():
    x = np.array([-2.7, -0.5, 0.0, 0.5, 1.5, 2.5, 300.9, -1e6])
    i, b, s = np.zeros(8, np.int32), np.zeros(8, np.uint8), np.zeros(8, np.float32)
    conversions[1, 32](x, i, b, s)
    np.testing.assert_array_equal(i, [-2, 0, 0, 0, 1, 2, 300, -1_000_000])
    np.testing.assert_array_equal(
        b, np.array([-2, 0, 0, 0, 1, 2, 300, -1_000_000], np.int32).astype(np.uint8)
    )
    np.testing.assert_array_equal(s, x.astype(np.float32))


@cuda.jit
def collatz(start, steps):
    i = cuda.grid(1)
    if i >= start.size:
        return
    n, count = start[i], 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        count += 1
    steps[i] = count


def test_lanes_that_diverge_in_a_loop_meet_again():
    start = np.arange(1, 300, dtype=np.int64)
    steps = np.zeros(start.size, np.int32)
    collatz[10, 32](start, steps)

    def by_hand(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    np.testing.assert_array_equal(steps, [by_hand(int(n)) for n in start])


@cuda.jit
def reverse(x):
    s = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    s[i] = x[cuda.grid(1)]
    cuda.syncthreads()
    x[cuda.grid(1)] = s[cuda.blockDim.x - 1 - i]


def test_shared_memory_belongs_to_one_block():
    x = f32(1024)
    expected = x.reshape(4, 256)[:, ::-1].ravel().copy()
    reverse[4, 256](x)
    np.testing.assert_array_equal(x, expected)


@cuda.jit
def two_arrays(x, out):
    a, b = cuda.shared.array(32, float32), cuda.shared.array(32, float32)
    i = cuda.threadIdx.x
    a[i] = x[i]
    b[i] = 2 * x[i]
    cuda.syncthreads()
    out[i] = a[31 - i] + b[i]


def test_two_shared_arrays_on_one_line_are_two():
    x, out = f32(32), np.zeros(32, np.float32)
    two_arrays[1, 32](x, out)
    np.testing.assert_array_equal(out, x[::-1] + 2 * x)


@cuda.jit
def block_sum(x, out):
    s = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)] if cuda.grid(1) < x.size else float32(0)
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


def test_dynamic_shared_memory_and_barriers_in_a_loop_reduce():
    x, out = f32(1000), np.zeros(8, np.float32)
    block_sum[8, 128, 0, 128 * 4](x, out)
    np.testing.assert_allclose(out, np.pad(x, (0, 24)).reshape(8, 128).sum(1), rtol=1e-5)


@cuda.jit
def early_return_before_a_barrier(out):
    if cuda.threadIdx.x >= 20:
        return
    s = cuda.shared.array(32, int32)
    s[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = s[19 - cuda.threadIdx.x]


def test_a_barrier_waits_only_for_threads_that_have_not_exited():
    out = np.full(20, -1, np.int32)
    early_return_before_a_barrier[1, 64](out)
    np.testing.assert_array_equal(out, np.arange(19, -1, -1))


@cuda.jit
def private_sort(x):
    i = cuda.grid(1)
    mine = cuda.local.array(8, float64)
    for k in range(8):
        mine[k] = x[i, k]
    for k in range(8):
        for j in range(7 - k):
            if mine[j] > mine[j + 1]:
                mine[j], mine[j + 1] = mine[j + 1], mine[j]
    for k in range(8):
        x[i, k] = mine[k]


def test_local_arrays_are_private_to_each_thread():
    x = RNG.standard_normal((64, 8))
    expected = np.sort(x, axis=1)
    private_sort[2, 32](x)
    np.testing.assert_array_equal(x, expected)


TABLE = np.arange(10, dtype=np.float32) ** 2


@cuda.jit
def lookup(out):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < out.size:
        out[i] = table[i % 10]


def test_constant_memory_holds_its_initial_values():
    out = np.zeros(25, np.float32)
    lookup[1, 32](out)
    np.testing.assert_array_equal(out, TABLE[np.arange(25) % 10])


@cuda.jit
def fused(a, b, c, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = cuda.fma(a[i], b[i], c[i])


def test_fma_rounds_once_in_single_precision():
    a = np.full(4, 1 + 2.0**-12, np.float32)
    out = np.zeros(4, np.float32)
    fused[1, 32](
        a, a, -(a * a), out
    )  # a*a is rounded; what the fused operation leaves is its rounding error, 2**-24
    np.testing.assert_array_equal(out, np.full(4, 2.0**-24, np.float32))


def test_fma_rounds_once_in_double_precision():
    a = (1 + 2.0**-27) * np.ones(4)
    out = np.zeros(4)
    fused[1, 32](a, a, -(a * a), out)
    np.testing.assert_array_equal(out, np.full(4, 2.0**-54))


@cuda.jit
def either(which, a, b, out):
    i = cuda.grid(1)
    source = a if which[i] else b
    out[i] = source[i]


def test_a_pointer_chosen_by_each_thread_reads_two_arrays():
    which = RNG.integers(0, 2, 64).astype(bool)
    a, b, out = f32(64), f32(64), np.zeros(64, np.float32)
    either[2, 32](which, a, b, out)
    np.testing.assert_array_equal(out, np.where(which, a, b))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 24), st.integers(1, 24))
def test_transposing_any_shape_with_any_block_gives_the_transpose(rows, cols, bx, by):
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    out = np.full((cols, rows), np.nan, np.float32)
    transpose[(-(-cols // bx), -(-rows // by)), (bx, by)](x, out)
    np.testing.assert_array_equal(out, x.T)


@cuda.jit
def transpose(x, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        out[col, row] = x[row, col]


def test_the_result_does_not_depend_on_how_many_blocks_run_together(monkeypatch):
    from warplab.simt.engine import machine

    x, expected = f32(1000), np.zeros(8, np.float32)
    block_sum[8, 128, 0, 512](x, expected)
    monkeypatch.setattr(machine, "CHUNK_LANES", 128)
    out = np.zeros(8, np.float32)
    block_sum[8, 128, 0, 512](x, out)
    np.testing.assert_array_equal(out, expected)
    assert warplab.profile(block_sum[8, 128, 0, 512], x, out).global_load.requests == 32


@cuda.jit
def shift_in_block(x, out):
    tile = cuda.shared.array(32, float32)
    own = cuda.local.array(2, float32)
    t = cuda.threadIdx.x
    own[0], own[1] = x[cuda.grid(1)], float32(1)
    tile[t] = own[0] + own[t % 2]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[31 - t]


@pytest.mark.parametrize("limit", ["CHUNK_LANES", "CHUNK_SHARED", "CHUNK_LOCAL"])
def test_a_limit_that_lets_one_block_run_at_a_time_changes_no_result(monkeypatch, limit):
    x, together, alone = f32(160), np.zeros(160, np.float32), np.zeros(160, np.float32)
    shift_in_block[5, 32](x, together)
    monkeypatch.setattr(f"warplab.simt.engine.machine.{limit}", 1)
    shift_in_block[5, 32](x, alone)
    np.testing.assert_array_equal(alone, together)
    own = x.reshape(5, 32)
    np.testing.assert_array_equal(
        together.reshape(5, 32), (own + np.where(np.arange(32) % 2, np.float32(1), own))[:, ::-1]
    )
