"""bench(): what it measures, and what it refuses to."""

import time

import numpy as np
import pytest
from numba import cuda

import warplab
from warplab.timing.bench import seconds


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="times the host clock")
def test_a_sleep_is_timed_by_the_host_clock():
    t = warplab.bench(time.sleep, 0.002, max_seconds=0.2)
    assert t.clock == "host" and t.n >= 10 and 0.002 <= t.median < 0.05
    assert t.iqr >= 0 and "host clock" in str(t)


@cuda.jit
def nothing(x):
    pass


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="needs a machine without CUDA")
def test_a_kernel_on_the_engine_is_never_timed():
    with pytest.raises(warplab.NotTimed, match="its run time is not a GPU's"):
        warplab.bench(nothing[1, 32], np.zeros(1))


@pytest.mark.gpu
def test_a_kernel_on_cuda_is_timed_by_events():
    t = warplab.bench(nothing[1, 32], cuda.to_device(np.zeros(1)))
    assert t.clock == "cuda" and 0 < t.median < 1e-3


@pytest.mark.parametrize(
    "value, text",
    [(1.234e-3, "1.23 ms"), (5.6e-8, "56.0 ns"), (2.5, "2.50 s"), (0, "0 s"), (123e-6, "123 µs")],
)
def test_times_read_well(value, text):
    assert seconds(value) == text
