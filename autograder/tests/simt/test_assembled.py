"""The informative column: what is read in nvdisasm's listing of the machine code, and estimated with it."""

import numpy as np
import pytest
from numba import cuda, float32

import warplab
from warplab.simt.counters.assembled import elects, kinds_of, width_of
from warplab.simt.toolchain import nvdisasm
from warplab.simt.toolchain.ptxas import find

needs_nvdisasm = pytest.mark.skipif(find("nvdisasm") is None, reason="nvdisasm is not installed")


@cuda.jit
def product(a, b, c):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * 16 + x, cuda.blockIdx.y * 16 + y
    acc = float32(0)
    for t in range(a.shape[1] // 16):
        left[y, x], right[y, x] = a[row, t * 16 + x], b[t * 16 + y, col]
        cuda.syncthreads()
        for k in range(16):
            along = left[y, k]
            acc += along * right[k, x]
        cuda.syncthreads()
    c[row, col] = acc


STEPS = 4 * 8 * 2  # blocks, warps of each, tiles along k


@pytest.fixture(scope="module")
def p():
    a = np.ones((32, 32), np.float32)
    return warplab.profile(product[(2, 2), (16, 16)], a, a, np.zeros_like(a))


@pytest.mark.slow
@needs_nvdisasm
def test_a_tile_of_16_makes_20_shared_loads_for_16_multiply_adds(p):
    """As nvdisasm lists it for sm_90: a row of `left` lies in one piece, a column of `right` does not."""
    along, across = (
        next(entry for entry in p.lines if text in entry.source) for text in ("left[y, k]", "right[k, x]")
    )
    assert along.shared_load.requests == across.shared_load.requests == STEPS * 16
    assert (along.assembled, across.assembled) == ({"shared_load": STEPS * 4}, {"shared_load": STEPS * 16})
    assert p.machine.forms("shared_load") == {"LDS": 16, "LDS.128": 4}
    assert sum(i.opcode == "FFMA" for i in p.machine.code) == 16
    assert p.assembled["shared_load"] == STEPS * 20
    assert p.assembled["global_load"] == p.global_load.requests == STEPS * 2


@needs_nvdisasm
def test_the_table_has_a_column_of_its_own_for_it_and_the_grades_have_none(p):
    page = p._repr_html_()
    assert (
        '<th style="text-align:left">machine code, estimated or read in its listing</th>' in page
        and '<td style="text-align:left">estimated 1,280 requests; in the code 16 LDS, 4 LDS.128</td>' in page
    )
    assert "- machine code: estimated 1,280 requests; in the code 16 LDS, 4 LDS.128\n" in str(p)
    assert not [key for key in (*p.as_dict(), *p.ncu()) if "assembled" in key]


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


@pytest.mark.slow
@needs_nvdisasm
def test_a_wmma_load_is_one_instruction_of_ptx_and_four_loads_of_the_assembled_code():
    half = np.ones(256, np.float16)
    p = warplab.profile(warplab.cuda_kernel(WMMA, "product")[1, 32], half, half, np.zeros(256, np.float32))
    # 512 bytes / 32 lanes / 4 bytes = 4 a tile; 1,024 bytes / 32 lanes / 8 bytes
    assert (p.global_load.requests, p.assembled["global_load"]) == (2, 8)
    assert (p.global_store.requests, p.assembled["global_store"]) == (1, 4)


def test_without_the_tool_the_column_is_absent(monkeypatch):
    @cuda.jit
    def doubled(x):
        x[cuda.grid(1)] *= 2

    monkeypatch.setattr(nvdisasm, "find", lambda tool="ptxas": None)
    p = warplab.profile(doubled[1, 32], np.ones(32, np.float32))
    assert p.assembled == {} and p.machine_instructions == 0
    assert "machine code:" not in str(p) and "in the code" not in p._repr_html_()


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
    found = nvdisasm.read(LISTING, {"other"})
    assert [(i.place("/a/k.cu")[1], kinds_of(i), width_of(i)) for i in found if kinds_of(i)] == [
        (12, ("global_load",), 16),
        (12, ("shared_load",), 16),
        (13, ("global_load", "shared_store"), 16),
        (13, ("global_store", "shared_store"), 1),
    ]
    assert [i.guard for i in found] == ["P0", "", "", "P1", ""] and found[2].opcode == "LDC"


VOTES = """extern "C" __global__ void votes(const int* x, int* n, float* f) {
    __shared__ int box[8];
    __shared__ float sums[8];
    int t = threadIdx.x;
    if (t < 8) { box[t] = 0; sums[t] = 0; }
    __syncthreads();
    if (x[t] > 3)
        atomicAdd(n, 1);
    atomicAdd(n + 1, x[t]);
    if (t < 5) atomicAdd(&n[t], 1);
    atomicAdd(&n[8 + x[t]], 1);
    atomicAdd(f, 1.0f);
    atomicAdd(&box[x[t]], 1);
    atomicAdd(&sums[x[t]], 2.0f);
    __syncthreads(); n[16 + t] = atomicAdd(n + 2, 1) + box[t & 7] + sums[t & 7];
}"""


@pytest.fixture(scope="module")
def votes():
    x = np.arange(64, dtype=np.int32) % 8
    kernel = warplab.cuda_kernel(VOTES, "votes")
    return warplab.profile(kernel[1, 64], x, np.zeros(80, np.int32), np.zeros(1, np.float32))


@pytest.mark.slow
@needs_nvdisasm
def test_of_a_warp_that_adds_to_one_word_one_lane_is_elected(votes):
    """Line by line as read by hand: UFLO of a vote, compared with the lane's number, guards the atomic."""
    elected = {line.line: line.assembled["atomic_lanes"] for line in votes.lines if line.atomics.requests}
    lanes = {line.line: line.atomics.lanes for line in votes.lines if line.atomics.requests}
    assert lanes == {8: 32, 9: 64, 10: 5, 11: 64, 12: 64, 13: 64, 14: 64, 15: 64}
    assert elected == lanes | {8: 2, 9: 2, 15: 2}  # integers to one address; not scattered, not floats
    assert votes.assembled["atomic"] == votes.atomics.requests == 2 + 2 + 1 + 5 * 2


@needs_nvdisasm
def test_the_row_of_atomics_says_what_they_became(votes):
    told = dict((label, machine) for label, _, machine in votes.rows())["atomics"]
    assert told == (
        "estimated at least 15 requests of 267 lanes, one acting for its warp where it can; "
        "in the code 1 ATOMG.ADD, 1 ATOMS.CAST.SPIN, 1 ATOMS.POPC.INC, 5 REDG.ADD"
    )


ELECTION = """
        /*0000*/                   S2R R4, SR_LANEID ;
        /*0010*/                   VOTEU.ANY UR4, UPT, PT ;
        /*0020*/                   UFLO.U32 UR5, UR4 ;
        /*0030*/                   ISETP.{how}.U32.AND P0, PT, R4, UR5, PT ;
{more}
        /*0050*/              @P0 REDG.E.ADD.STRONG.GPU desc[UR8][R2.64], R5 ;
"""


@pytest.mark.parametrize(
    "how, more, elected",
    [
        ("EQ", "", True),
        ("NE", "", False),  # all but one
        ("EQ", "        /*0040*/                   ISETP.GT.AND P0, PT, R0, 0x3, PT ;", False),  # anew
    ],
)
def test_an_election_is_the_comparison_with_the_highest_lane_of_a_vote(how, more, elected):
    assert elects(nvdisasm.read(ELECTION.format(how=how, more=more), set()))[-1] is elected


@needs_nvdisasm
def test_the_instructions_are_those_of_the_listing_without_what_fills_it_up(p):
    told = dict((label, machine) for label, _, machine in p.rows())["instructions"]
    assert told == (
        f"{p.machine_instructions} in the code where PTX has {p.ptx_instructions}; "
        "how often each runs is not known"
    )
    assert p.machine.code[-1].opcode == "EXIT" and not [i for i in p.machine.code if i.opcode == "NOP"]
