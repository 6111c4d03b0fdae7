"""The numbers that chapters/engine.md works out in prose are what the engine counts."""

import numpy as np
from numba import cuda

import warplab


@cuda.jit
def scale(x, out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = factor * x[i]


def test_the_first_table_is_the_one_that_the_page_explains():
    p = warplab.profile(scale[4, 256], np.ones(1000, np.float32), np.zeros(1000, np.float32), np.float32(3))
    assert (p.global_load.requests, p.global_load.bytes, p.global_load.sectors) == (32, 4000, 125)
    assert (p.flops, p.divergent_branches) == (1000, 1)
    assert "mul.f32" in p.ptx


@cuda.jit
def halves(out):
    i = cuda.grid(1)
    if cuda.threadIdx.x < 8:
        for k in range(out[i]):
            out[i] += k


def test_of_four_warps_the_first_has_the_loop_to_itself():
    alone = warplab.profile(halves[1, 32], np.full(32, 4, np.int32))
    p = warplab.profile(halves[1, 128], np.full(128, 4, np.int32))
    assert (
        p.busiest_warp_instructions
        == alone.busiest_warp_instructions
        == alone.warp_instructions
        > 0.75 * p.warp_instructions
    )


@cuda.jit
def copied(x, out, by_atomics):
    i = cuda.grid(1)
    if by_atomics:
        cuda.atomic.exch(out, i, x[i])
    else:
        out[i] = x[i]


def test_a_copy_by_atomics_reads_and_writes_its_results():
    """96 numbers of 4 bytes are 12 sectors."""
    sectors = []
    for by_atomics in (False, True):
        p = warplab.profile(copied[1, 96], np.arange(96, dtype="i4"), np.zeros(96, "i4"), by_atomics)
        parts = p.global_store, p.global_read, p.global_write, p.global_memory
        sectors.append([part.sectors for part in parts])
    assert sectors == [[12, 12, 12, 24], [0, 24, 12, 36]]
