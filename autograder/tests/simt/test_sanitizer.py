"""Each fault is found, at its line, in words for the student; legal code passes."""

import numpy as np
import pytest
from numba import cuda, float32
from told import line_of

import warplab


@cuda.jit
def no_bounds_check(x, out):
    i = cuda.grid(1)
    out[i] = 2 * x[0]  # fault


def test_a_missing_bounds_check_is_an_out_of_bounds_write_that_names_thread_and_element():
    out = np.zeros(1000, np.float32)
    with pytest.raises(warplab.OutOfBounds) as caught:
        no_bounds_check[4, 256](np.ones(1, np.float32), out)
    text = str(caught.value)
    assert f"test_sanitizer.py:{line_of(no_bounds_check, '# fault')}" in text
    assert "kernel no_bounds_check" in text
    assert "thread (232, 0, 0) of block (3, 0, 0)" in text  # 3 * 256 + 232 = 1000
    assert "writes element [1000] of argument 'out' (float32[1000])" in text
    assert "23 more" in text  # threads 1001 to 1023


@cuda.jit
def into_a_neighbour(x, out, far):
    out[cuda.grid(1)] = x[cuda.grid(1) + far]


def test_an_address_that_would_hit_another_live_array_is_still_out_of_bounds():
    x, other = np.zeros(64, np.float32), np.zeros(64, np.float32)
    for far in (64, 1000, 1 << 20, -1 << 20):
        with pytest.raises(warplab.OutOfBounds):
            into_a_neighbour[2, 32](x, other, far)


@pytest.mark.parametrize(
    "grid, block, reason",
    [
        (1, 2048, "2048 threads; the limit is 1024"),
        (1, (1, 1, 128), "dimension z is 128; the limit is 64"),
        ((1, 70_000), 32, "dimension y is 70,000; the limit is 65,535"),
        (0, 32, "must be positive"),
    ],
)
def test_what_cuda_refuses_to_launch_is_refused_with_the_limit(grid, block, reason):
    with pytest.raises(warplab.InvalidLaunch, match=reason):
        no_bounds_check[grid, block](np.zeros(1, np.float32), np.zeros(4096, np.float32))


def test_dynamic_shared_memory_beyond_the_blocks_limit_is_refused():
    with pytest.raises(warplab.InvalidLaunch, match="limit is 232,448 a block"):
        no_bounds_check[1, 32, 0, 300_000](np.zeros(1, np.float32), np.zeros(32, np.float32))


def test_a_strided_host_array_is_refused_as_cuda_refuses_it():
    x = np.zeros(64, np.float32)[::2]
    with pytest.raises(warplab.InvalidLaunch, match="not contiguous"):
        no_bounds_check[1, 32](x, np.zeros(32, np.float32))


elsewhere = cuda.declare_device("elsewhere", "int32(int32)")


@cuda.jit
def calls_what_nobody_wrote(out):
    out[cuda.grid(1)] = elsewhere(1)


def test_what_the_engine_cannot_run_is_named_with_its_kernel_and_its_line():
    with pytest.raises(warplab.UnsupportedInstruction) as caught:
        calls_what_nobody_wrote[1, 32](np.zeros(32, np.int32))
    text = str(caught.value)
    assert "a call to elsewhere, which has no body" in text and "kernel calls_what_nobody_wrote" in text
    assert f":{line_of(calls_what_nobody_wrote, 'elsewhere(1)')}" in text


@cuda.jit
def long_private_loop(x):
    s = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    s[i] = 0
    for k in range(2000):
        s[i] += x[i]
    x[i] = s[63 - i]


def test_a_race_after_a_long_interval_is_still_found():
    with pytest.raises(warplab.SharedRace):
        long_private_loop[1, 64](np.ones(64, np.float32))
