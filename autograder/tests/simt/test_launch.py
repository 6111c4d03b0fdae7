"""A launch runs under one context: its target's limits, its own observers, its own sample of blocks."""

from dataclasses import replace

import numpy as np
import pytest
from numba import cuda

import warplab
from warplab.hardware.target import Target
from warplab.simt.counters.collect import Counters
from warplab.simt.frontends.launch import LaunchContext
from warplab.simt.profile import profile

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
def wide(x):
    x[cuda.grid(1)] = 1


def test_profile_compiles_and_counts_for_the_architecture_that_it_is_given():
    p = profile(wide[4, 32], np.zeros(128, np.float32), arch="sm_75")
    assert ".target sm_75" in p.ptx and p.arch == "sm_75"
    assert (p.occupancy, p.occupancy_limit) == (0.5, "blocks")  # 16 blocks of one warp in 32 warps
