"""Kernels compiled by numba's own compiler, run by the engine, against NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda, float32

import warplab

RNG = np.random.default_rng(7)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


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
