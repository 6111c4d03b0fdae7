"""The numbers that chapters/engine.md works out in prose are what the engine counts."""

import numpy as np
import pytest
import torch
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


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="on CUDA numba's arrays have no DLPack")
def test_here_numpy_and_torch_take_device_arrays_by_dlpack():
    there = cuda.to_device(np.arange(3.0))
    assert np.from_dlpack(there).tolist() == torch.from_dlpack(there).tolist() == [0, 1, 2]
