"""The numbers that engine.md and reference-engine.md work out in prose are what the engine counts."""

import re

import numpy as np
import pytest
import torch
from conftest import ROOT
from numba import cuda, float32

import warplab
from warplab.figures import counted
from warplab.simt.toolchain.ptxas import find

LESSON, REFERENCE = (
    (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8") for name in ("engine", "reference-engine")
)
needs_nvdisasm = pytest.mark.skipif(find("nvdisasm") is None, reason="nvdisasm is not installed")


# Places of the page before it was two, which other sites may link to
@cuda.jit
def mirror(x, out, factor):
    tile = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i]
    cuda.syncthreads()
    out[i] = factor * tile[255 - t]


@cuda.jit
def hasty(x, out, factor):
    tile = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[t] = x[i]
    out[i] = factor * tile[255 - t]


@pytest.fixture
def numbers():
    return np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32), np.float32(3)


@pytest.mark.slow
def test_the_launch_of_the_lesson_is_the_one_that_it_explains(numbers):
    p = warplab.profile(mirror[4, 256], *numbers, caches="h100-sxm")
    for part in (p.global_load, p.global_store):
        assert (part.requests, part.bytes, part.sectors) == (32, 4096, 128)
    assert (p.shared_load.wavefronts, p.shared_load.bank_conflicts, p.flops) == (32, 0, 1024)
    assert p.warp_instructions == 43 * 32  # of which the page prints six
    assert p.caches.l1_hits == 0
    assert warplab.bounds(p, "h100-sxm").at_least == pytest.approx(16e-9, rel=0.02)


def test_without_its_barrier_thread_0_races_with_thread_255(numbers):
    with pytest.raises(warplab.SharedRace) as found:
        hasty[4, 256](*numbers)
    assert re.search(
        r"thread \(0, 0, 0\) .* reads tile\[255\] .* thread \(255, 0, 0\) .* writes", str(found.value)
    )


def test_a_gpu_counted_as_many_launches_as_the_lesson_says():
    cards = [launch.card for launch in counted.counted()]
    assert (cards.count("h200-sxm"), cards.count("h100-sxm")) == (46, 12)
    assert "46 launches on an H200 and 12 on an H100" in LESSON


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


@cuda.jit
def dot_of_four(x, out):
    tile = cuda.shared.array((32, 4), float32)
    t = cuda.threadIdx.x
    for k in range(4):
        tile[t, k] = x[k * 32 + t]
    cuda.syncthreads()
    acc = float32(0)
    for k in range(4):
        acc += tile[31 - t, k]
    out[t] = acc


@pytest.mark.slow
@needs_nvdisasm
def test_four_loads_of_a_row_are_one_of_128_bits():
    x, out = np.ones(128, np.float32), np.zeros(32, np.float32)
    p = warplab.profile(dot_of_four[1, 32], x, out)
    line = next(line for line in p.lines if "acc += tile" in line.source)
    assert (line.shared_load.requests, line.assembled["shared_load"]) == (4, 1)
    assert p.machine.forms("shared_load") == {"LDS.128": 1}
    shown = next(one for one in warplab.machine_code(dot_of_four).lines if "acc += tile" in one.source)
    assert sum(text.startswith("ld.shared") for text in shown.ptx) == 4


@cuda.jit
def tally(boxes):
    i = cuda.grid(1)
    cuda.atomic.add(boxes, i % boxes.size, 1)


@cuda.jit
def total(box):
    cuda.atomic.add(box, 0, 1)


@pytest.mark.slow
@needs_nvdisasm
@pytest.mark.parametrize("kernel, lanes", [(tally, 96), (total, 3)])
def test_one_lane_acts_for_its_warp_where_the_address_is_the_warps(kernel, lanes):
    p = warplab.profile(kernel[1, 96], np.zeros(1, np.int32))
    assert (p.atomics.lanes, p.assembled["atomic"], p.assembled["atomic_lanes"]) == (96, 3, lanes)


@pytest.mark.skipif(warplab.device().kind == "cuda", reason="on CUDA numba's arrays have no DLPack")
def test_here_numpy_and_torch_take_device_arrays_by_dlpack():
    there = cuda.to_device(np.arange(3.0))
    assert np.from_dlpack(there).tolist() == torch.from_dlpack(there).tolist() == [0, 1, 2]
