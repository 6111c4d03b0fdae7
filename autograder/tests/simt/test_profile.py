"""profile(): the contract's names, on CPU and on CUDA machines alike."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda, float32

import warplab


@cuda.jit
def tile(x, out):
    s = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    out[i] = s[63 - cuda.threadIdx.x] * 2


@pytest.fixture(scope="module")
def p():
    return warplab.profile(tile[2, 64], np.ones(128, np.float32), np.zeros(128, np.float32))


def test_as_dict_is_json_of_flat_numbers_of_the_contracts_names(p):
    flat = json.loads(json.dumps(p.as_dict()))
    assert flat["global_load.sectors"] == 16 and flat["flops"] == 128
    assert (p.global_load.sectors_per_request, p.shared_bytes) == (4.0, 256) and p.ptx_instructions > 10


def test_ncu_uses_nsight_computes_names(p):
    metrics = p.ncu()
    assert metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 16
    assert metrics["memory_l1_wavefronts_shared"] == metrics["memory_l1_wavefronts_shared_ideal"] == 8
    assert metrics["smsp__thread_inst_executed_per_inst_executed.ratio"] == 32


@pytest.mark.slow
def test_a_notebook_shows_a_table_that_says_these_are_counts(p):
    page = p._repr_html_()
    assert "<table" in page and "16 sectors (4.00 a request)" in page
    for said in (page, str(p)):
        assert "PTX for sm_90" in said and "not machine code, not times" in said


def test_the_table_escapes_a_kernels_name_and_its_warnings(p):
    attack = "<script>alert('x')</script>"
    page = replace(p, kernel=attack, warnings=[attack])._repr_html_()
    assert "<script" not in page and page.count("&lt;script&gt;") == 2


def test_profile_of_something_else_says_what_it_takes():
    with pytest.raises(warplab.ProfileError, match=r"kernel\[grid, block\]"):
        warplab.profile(tile, np.ones(3))


def test_a_launch_too_large_to_count_is_refused_with_the_cap():
    with pytest.raises(warplab.ProfileError, match="cap is 67,108,864"):
        warplab.profile(tile[1 << 20, 128], np.ones(3, np.float32), np.ones(3, np.float32))


@cuda.jit
def touches_all(x, out, done):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i]
    cuda.atomic.add(done, 0, 1)


@pytest.mark.slow
def test_a_sample_of_blocks_is_scaled_says_so_and_leaves_the_arrays_alone():
    x, out = np.ones(1 << 17, np.float32), np.zeros(1 << 17, np.float32)
    done = cuda.to_device(np.zeros(1, np.int32))
    p = warplab.profile(touches_all[512, 256], x, out, done, sample_blocks=16)
    full = warplab.profile(touches_all[512, 256], x, out.copy(), done)
    # every block does the same, so the sample is exact
    assert (p.as_dict(), p.ncu(), p.lines) == (full.as_dict(), full.ncu(), full.lines)
    assert p.sampled == (16, 512) and "SAMPLE" in p._repr_html_()
    assert "16 of 512 blocks ran; counts are scaled by 32" in str(p)
    assert full.sampled is None and "SAMPLE" not in str(full)
    assert not out.any() and done.copy_to_host()[0] == 512 * 256  # the full run's alone


@pytest.mark.slow
def test_a_sample_makes_a_launch_countable_that_is_too_large():
    x = np.ones(1 << 10, np.float32)
    with pytest.raises(warplab.ProfileError, match="sample_blocks=1024"):
        warplab.profile(touches_all[1 << 20, 128], x, x, np.zeros(1, np.int32))
    p = warplab.profile(touches_all[1 << 20, 128], x, x, np.zeros(1, np.int32), sample_blocks=64)
    assert p.atomics.lanes == 1 << 27


def test_a_sample_of_more_blocks_than_there_are_is_the_whole_and_none_is_refused():
    args = np.ones(128, np.float32), np.zeros(128, np.float32)
    p = warplab.profile(tile[2, 64], *args, sample_blocks=100)
    assert p.sampled is None and args[1].any()
    with pytest.raises(warplab.ProfileError, match="sample_blocks=0 runs no block"):
        warplab.profile(tile[2, 64], *args, sample_blocks=0)


@cuda.jit
def waits_for_all(x):
    x[cuda.grid(1)] = 1
    cuda.cg.this_grid().sync()
    x[cuda.grid(1)] += x[0]


def test_blocks_that_wait_for_each_other_cannot_be_sampled():
    with pytest.raises(warplab.InvalidLaunch, match="cannot run in a sample"):
        warplab.profile(waits_for_all[8, 32], np.ones(256, np.float32), sample_blocks=2)


@cuda.jit
def everybody_adds(x, total):
    total[0] += x[cuda.grid(1)]


@pytest.mark.slow
def test_a_conflict_in_global_memory_is_a_line_of_the_table():
    with pytest.warns(warplab.GlobalConflict):
        p = warplab.profile(everybody_adds[4, 64], np.ones(256, np.float32), np.zeros(1, np.float32))
    assert any(
        "global-memory conflict in kernel everybody_adds" in text and "cuda.atomic" in text
        for text in p.warnings
    )
    assert "nothing orders the two" in str(p) and "nothing orders the two" in p._repr_html_()


class OnGpu:
    """A GPU's array: the engine reaches it by its copies alone."""

    def __init__(self, array):
        self.array, self.written = array, 0

    def copy_to_host(self):
        return self.array.copy()

    def copy_to_device(self, array):
        self.array[:], self.written = array, self.written + 1


def test_arrays_on_a_gpu_are_counted_as_those_on_the_host_and_hold_the_results(monkeypatch):
    torch = pytest.importorskip("torch")

    class Tensor(torch.Tensor):
        """One that says it lies on a GPU."""

        device = torch.device("cuda", 0)

        def cpu(self):
            return self.as_subclass(torch.Tensor).clone()

    x, total = np.ones(256, np.float32), np.zeros(1, np.float32)
    with pytest.warns(warplab.GlobalConflict):
        plain = warplab.profile(everybody_adds[4, 64], x, total)
    monkeypatch.setattr("warplab.simt.watched.device", lambda: SimpleNamespace(kind="cuda"))
    there, sums = OnGpu(x), OnGpu(np.zeros(1, np.float32))
    tensors = torch.ones(256).as_subclass(Tensor), torch.zeros(1).as_subclass(Tensor)
    for args in (there, sums), tensors:
        with pytest.warns(warplab.GlobalConflict):
            p = warplab.profile(everybody_adds[4, 64], *args)
        assert p.global_load == plain.global_load and float(
            args[1].cpu() if args is tensors else sums.array[0]
        )
    assert sums.array == total and (there.written, sums.written) == (0, 1), (
        "what was only read is not written"
    )
    both = OnGpu(np.ones(32, np.float32))
    warplab.profile(adds_itself[1, 32], both, both)
    assert (both.array == 2).all() and both.written == 1, "one array passed twice is one copy"


@cuda.jit
def adds_itself(x, same):
    x[cuda.grid(1)] += same[cuda.grid(1)]
