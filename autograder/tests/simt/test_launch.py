"""A launch runs under one context: its target's limits, its own observers, its own sample of blocks."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.hardware.target import Target
from warplab.simt.counters.collect import Counters
from warplab.simt.frontends.launch import LaunchContext

SOURCE = 'extern "C" __global__ void fill(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 3; }'
TARGET = Target.of("sm_90")


def launch(context, blocks=4):
    """Launch 32 threads a block under a context; returns the array."""
    x = np.zeros(32 * blocks, np.float32)
    warplab.cuda_kernel(SOURCE, "fill")[blocks, 32].run_on_engine((x,), context)
    return x


def requests(counters):
    return sum(traffic.requests for traffic in counters.traffic.values())


def test_every_observer_of_a_context_is_told_and_a_context_without_any_is_harmless():
    one, other = Counters(), Counters()
    launch(LaunchContext(TARGET, (one, other)))
    launch(LaunchContext(TARGET))
    assert requests(one) == requests(other) == 4


def test_a_launch_is_told_to_no_other_launchs_observers():
    outer, inner = Counters(), Counters()

    class Launches(Counters):
        """An observer that launches a kernel of its own, as profile() within profile() would."""

        def done(self, machine):
            launch(LaunchContext(TARGET, (inner,)), blocks=2)
            launch(LaunchContext(TARGET))

    launch(LaunchContext(TARGET, (Launches(), outer)))
    assert (requests(outer), requests(inner)) == (4, 2)


def test_a_sample_is_the_contexts_own():
    x = launch(LaunchContext(TARGET, sample=2))
    assert (x.reshape(4, 32)[:, 0] == 3).tolist() == [False, True, False, True]
    assert (launch(LaunchContext(TARGET)) == 3).all()


def test_the_limits_are_those_of_the_target():
    small = replace(TARGET, limits=replace(TARGET.limits, max_threads_per_block=16))
    with pytest.raises(warplab.InvalidLaunch, match="the limit is 16 a block"):
        launch(LaunchContext(small))


@cuda.jit
def indices(out):
    x, y, z = cuda.grid(3)
    if x < out.shape[2] and y < out.shape[1] and z < out.shape[0]:
        t, b = cuda.threadIdx, cuda.blockIdx
        out[z, y, x] = t.x + 10 * t.y + 100 * t.z + 1000 * b.x + 10_000 * b.y + 100_000 * b.z


def test_three_dimensional_indices_are_those_of_cuda():
    out = np.zeros((5, 6, 7), np.int64)
    indices[(2, 3, 3), (4, 2, 2)](out)
    z, y, x = np.indices(out.shape)
    threads = x % 4 + 10 * (y % 2) + 100 * (z % 2)
    np.testing.assert_array_equal(out, threads + 1000 * (x // 4) + 10_000 * (y // 2) + 100_000 * (z // 2))


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
    x = np.random.default_rng(7).standard_normal(160).astype(np.float32)
    together, alone = np.zeros((2, 160), np.float32)
    shift_in_block[5, 32](x, together)
    monkeypatch.setattr(f"warplab.simt.engine.machine.{limit}", 1)
    shift_in_block[5, 32](x, alone)
    np.testing.assert_array_equal(alone, together)
    own = x.reshape(5, 32)
    np.testing.assert_array_equal(
        together.reshape(5, 32), (own + np.where(np.arange(32) % 2, np.float32(1), own))[:, ::-1]
    )


WALK = """
import sys
import numpy as np
import warplab
from numba import cuda

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2

def passed(launch):
    files, importing = set(), 0
    def note(frame, event, _):
        nonlocal importing
        if frame.f_code.co_name == "_find_and_load":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing and "/warplab/" in frame.f_code.co_filename:
            files.add(frame.f_code.co_filename)
    sys.setprofile(note)
    launch()
    sys.setprofile(None)
    return len(files)

launch = lambda: double[2, 32](np.ones(64, np.float32))
print(passed(launch), passed(launch))
"""


@pytest.mark.slow
def test_a_kernel_of_three_lines_passes_few_files():
    """What is passed for nothing makes the way of a kernel (ARCHITECTURE.md) hard to explain."""
    done = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, timeout=120)
    first, second = map(int, done.stdout.split())
    assert 20 < first <= 31 and 10 < second <= 17, done.stderr
