"""Figures drawn from a profile: what they say must be what was counted."""

import numpy as np
import pytest
import warplab
from numba import cuda, float32
from warplab import plots


@cuda.jit
def strided(x, out, stride):
    tile = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    tile[t * stride] = x[t * stride]
    cuda.syncthreads()
    if t < 20:
        out[t] = tile[t * stride]


@pytest.fixture(scope="module")
def p():
    return warplab.profile(strided[1, 32], np.zeros(1024, np.float32), np.zeros(32, np.float32), 2)


def test_a_sample_has_the_byte_offsets_of_the_first_warp(p):
    sample = next(s for s in p.samples if s.space == "global" and s.kind == "read")
    assert sample.lanes == tuple(range(32)) and sample.offsets == tuple(8 * i for i in range(32)) and sample.width == 4


def test_a_load_is_drawn_over_its_sectors(p):
    figure = plots.access(p, "= x[t * stride]", kind="read")
    assert "8 sectors of 32 bytes touched in argument" in figure.body and "8 sectors" in figure.alt


def test_a_shared_store_is_drawn_over_its_banks(p):
    figure = plots.access(p, "tile[t * stride] =", kind="write")
    assert "2 wavefronts" in figure.body


def test_a_line_without_access_says_which_lines_have_one(p):
    with pytest.raises(ValueError, match=r"no load or store on line 'syncthreads'; lines that have one are \d+: "):
        plots.access(p, "syncthreads")


def test_the_timeline_shows_the_lanes_that_skip_a_branch(p):
    assert {step.active for step in p.timeline} == {0xFFFFFFFF, (1 << 20) - 1}
    assert "32 rows" in plots.divergence(p).alt
