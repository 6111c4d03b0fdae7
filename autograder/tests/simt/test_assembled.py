"""The informative column: requests of the assembled code, estimated from nvdisasm's listing."""

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.simt.toolchain import nvdisasm
from warplab.simt.toolchain.ptxas import find

needs_nvdisasm = pytest.mark.skipif(find("nvdisasm") is None, reason="nvdisasm is not installed")


@cuda.jit
def rows_and_columns(x, out):
    a = cuda.shared.array((16, 16), float32)
    col, row = cuda.threadIdx.x, cuda.threadIdx.y
    a[row, col] = x[row, col]
    cuda.syncthreads()
    acc = float32(0)
    for k in range(16):
        acc += a[row, k] * 2
        acc -= a[k, col]
    out[row, col] = acc


@pytest.fixture(scope="module")
def p():
    return warplab.profile(
        rows_and_columns[1, (16, 16)], np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    )


def line(p, text):
    return next(entry for entry in p.lines if text in entry.source)


@needs_nvdisasm
def test_sixteen_neighbouring_loads_of_a_thread_become_four_of_128_bits(p):
    along = line(p, "a[row, k]")
    assert along.shared_load.requests == 8 * 16  # PTX: 8 warps, 16 steps
    assert along.assembled == {"shared_load": 8 * 4}  # ptxas: 4 x LDS.128 each


@needs_nvdisasm
def test_loads_that_are_not_neighbours_stay_as_they_are(p):
    across = line(p, "a[k, col]")
    assert across.assembled == {"shared_load": across.shared_load.requests} == {"shared_load": 8 * 16}
    assert p.assembled["shared_load"] == 8 * 4 + 8 * 16
    assert p.assembled["global_load"] == p.global_load.requests == 8


@needs_nvdisasm
def test_the_table_has_a_column_of_its_own_for_it_and_the_grades_have_none(p):
    page = p._repr_html_()
    assert (
        '<th style="text-align:left">assembled code, estimated</th>' in page and "160 requests</td>" in page
    )
    assert "; assembled code, estimated: 160 requests" in str(p)
    assert not [key for key in p.as_dict() if "assembled" in key] and not [
        key for key in p.ncu() if "assembled" in key
    ]


WMMA = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(acc, fa, fb, acc);
    wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);
}"""


@needs_nvdisasm
def test_a_wmma_load_is_one_instruction_of_ptx_and_four_loads_of_the_assembled_code():
    half = np.ones(256, np.float16)
    p = warplab.profile(warplab.cuda_kernel(WMMA, "product")[1, 32], half, half, np.zeros(256, np.float32))
    assert (p.global_load.requests, p.assembled["global_load"]) == (
        2,
        8,
    )  # 512 bytes / 32 lanes / 4 bytes = 4 a tile
    assert (p.global_store.requests, p.assembled["global_store"]) == (
        1,
        4,
    )  # 1,024 bytes / 32 lanes / 8 bytes


def test_without_the_tool_the_column_is_absent(monkeypatch):
    @cuda.jit
    def doubled(x):
        x[cuda.grid(1)] *= 2

    monkeypatch.setattr(nvdisasm, "find", lambda tool="ptxas": None)
    p = warplab.profile(doubled[1, 32], np.ones(32, np.float32))
    assert p.assembled == {} and "assembled" not in str(p) + p._repr_html_()


LISTING = """
\t.section\t.text.other,"ax",@progbits
\t//## File "/a/k.cu", line 3
        /*0000*/                   LDG.E R0, desc[UR4][R2.64] ;
\t.section\t.text.mine,"ax",@progbits
\t//## File "/cuda/mma.hpp", line 91 inlined at "/a/k.cu", line 12
\t//## File "/a/k.cu", line 12
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   LDSM.16.M88.4 R4, [R0] ;
        /*0030*/                   LDC R1, c[0x0][0x28] ;
\t//## File "/a/k.cu", line 13
        /*0040*/              @P1 LDGSTS.E.BYPASS.LTC128B.128 [R9], desc[UR4][R2.64] ;
        /*0050*/                   ST.E.U8 desc[UR4][R2.64], R0 ;
"""


def test_a_listing_is_read_by_line_kind_and_width():
    found = nvdisasm.read(LISTING, "/a/k.cu", {"other"})
    assert {key[1:]: (a.count, a.bytes) for key, a in found.items()} == {
        (12, "global_load"): (1, 16),
        (12, "shared_load"): (1, 16),
        (13, "global_load"): (1, 16),
        (13, "shared_store"): (1, 16),
        (13, "generic_store"): (1, 1),
    }
