"""profile(): the contract's names, on CPU and on CUDA machines alike."""

import json

import numpy as np
import pytest
import warplab
from numba import cuda, float32


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


def test_the_names_of_the_contract_are_there(p):
    assert (p.global_load.requests, p.global_load.sectors, p.global_load.sectors_per_request, p.global_load.bytes) == (4, 16, 4.0, 512)
    assert (p.global_store.requests, p.shared_load.requests, p.shared_store.wavefronts, p.shared_load.bank_conflicts) == (4, 4, 4, 0)
    assert p.flops == 128 and p.warp_execution_efficiency == p.branch_efficiency == 1.0
    assert p.shared_bytes == 256 and p.atomics.requests == 0 and 0 < p.occupancy <= 1 and p.ptx_instructions > 10


def test_as_dict_is_json_of_flat_numbers(p):
    flat = json.loads(json.dumps(p.as_dict()))
    assert flat["global_load.sectors"] == 16 and flat["flops"] == 128


def test_ncu_uses_nsight_computes_names(p):
    metrics = p.ncu()
    assert metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 16
    assert metrics["memory_l1_wavefronts_shared"] == metrics["memory_l1_wavefronts_shared_ideal"] == 8
    assert metrics["smsp__thread_inst_executed_per_inst_executed.ratio"] == 32


def test_a_notebook_shows_a_table_that_says_these_are_counts(p):
    page = p._repr_html_()
    assert "<table" in page and "counts, not times" in page and "16 sectors (4.00 a request)" in page
    assert "counted on the SIMT engine" in str(p)


def test_another_architecture_can_be_asked_for():
    p = warplab.profile(tile[2, 64], np.ones(128, np.float32), np.zeros(128, np.float32), arch="sm_80")
    assert p.arch == "sm_80" and ".target sm_80" in p.ptx


def test_profile_of_something_else_says_what_it_takes():
    with pytest.raises(warplab.ProfileError, match=r"kernel\[grid, block\]"):
        warplab.profile(tile, np.ones(3))


def test_a_launch_too_large_to_count_is_refused_with_the_cap():
    with pytest.raises(warplab.ProfileError, match="cap is 67,108,864"):
        warplab.profile(tile[1 << 20, 128], np.ones(3, np.float32), np.ones(3, np.float32))


def test_counts_are_the_same_twice():
    args = np.ones(128, np.float32), np.zeros(128, np.float32)
    assert warplab.profile(tile[2, 64], *args).as_dict() == warplab.profile(tile[2, 64], *args).as_dict()
