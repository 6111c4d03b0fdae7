"""Counters against numbers worked out by hand. A warp has 32 lanes, a sector 32 bytes, shared memory 32 banks of 4 bytes."""

import numpy as np
import pytest
import warplab
from numba import cuda, float32, float64


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


LANES = np.arange(32)


@pytest.mark.parametrize(
    "name, index, itemsize, sectors",
    [
        ("neighbours, 4 bytes: 32 x 4 = 128 bytes", LANES, 4, 4),
        ("neighbours, 8 bytes: 256 bytes", LANES, 8, 8),
        ("neighbours, 2 bytes: 64 bytes", LANES, 2, 2),
        ("neighbours, 1 byte: 32 bytes", LANES, 1, 1),
        ("stride 2, 4 bytes: 256 bytes spanned", 2 * LANES, 4, 8),
        ("stride 3, 4 bytes: 384 bytes spanned", 3 * LANES, 4, 12),
        ("stride 8, 4 bytes: one sector a lane", 8 * LANES, 4, 32),
        ("stride 32, 4 bytes: one sector a lane", 32 * LANES, 4, 32),
        ("one address for all: a broadcast", 0 * LANES, 4, 1),
        ("two addresses in one sector", LANES % 2, 4, 1),
        ("two addresses far apart", LANES % 2 * 100, 4, 2),
        ("shifted by one element: 4 whole sectors and a straddle", LANES + 1, 4, 5),
        ("shifted by one sector: still aligned", LANES + 8, 4, 4),
        ("backwards: order does not matter", 31 - LANES, 4, 4),
        ("a random order of neighbours", np.random.default_rng(1).permutation(32), 4, 4),
        ("rows of 16: two runs of 64 bytes", LANES % 16 + LANES // 16 * 1000, 4, 4),
        ("stride 2, 8 bytes", 2 * LANES, 8, 16),
    ],
)
def test_sectors_of_a_load(name, index, itemsize, sectors):
    x = np.zeros(1100, f"i{itemsize}")
    p = warplab.profile(gather[1, 32], x, index.astype(np.int64), np.zeros(32, x.dtype))
    index_sectors = 8  # 32 int64 indices: 256 bytes
    assert p.global_load.requests == 2
    assert p.global_load.sectors == index_sectors + sectors
    assert p.global_load.bytes == 32 * (index_sectors + sectors)


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i]


@pytest.mark.parametrize(
    "n, requests, sectors",
    [(32, 1, 4), (33, 2, 5), (1000, 32, 125), (1024, 32, 128), (1, 1, 1)],  # ceil(n / 32) warps; ceil(4 n / 32) sectors
)
def test_a_ragged_tail_touches_only_its_own_sectors(n, requests, sectors):
    p = warplab.profile(copy[-(-n // 256), 256], np.ones(n, np.float32), np.zeros(n, np.float32))
    assert (p.global_load.requests, p.global_load.sectors) == (requests, sectors)
    assert (p.global_store.requests, p.global_store.sectors) == (requests, sectors)


def test_addresses_are_counted_as_if_the_buffer_were_aligned_as_cudas_are():
    raw = np.zeros(33, np.float32)
    p = warplab.profile(copy[1, 32], raw[1:], np.zeros(32, np.float32))  # NumPy's pointer is 4 bytes off, a device copy's is not
    assert p.global_load.sectors == 4


@cuda.jit
def struct_of(x, out, fields):
    i = cuda.grid(1)
    out[i] = x[i * fields]


def test_an_array_of_structs_spreads_a_field_over_all_its_sectors():
    p = warplab.profile(struct_of[1, 32], np.zeros(32 * 4, np.float32), np.zeros(32, np.float32), 4)  # 16-byte structs
    assert p.global_load.sectors == 16


@cuda.jit
def shared_stride(stride, out):
    s = cuda.shared.array(2048, float32)
    t = cuda.threadIdx.x
    s[t * stride] = t
    cuda.syncthreads()
    out[t] = s[t * stride]


@pytest.mark.parametrize(
    "stride, wavefronts",
    [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (31, 1), (6, 2)],  # gcd(stride, 32)
)
def test_bank_conflicts_of_a_stride_are_its_common_divisor_with_32(stride, wavefronts):
    p = warplab.profile(shared_stride[1, 32], stride, np.zeros(32, np.float32))
    for part in (p.shared_load, p.shared_store):
        assert (part.requests, part.wavefronts, part.bank_conflicts) == (1, wavefronts, wavefronts - 1)


@cuda.jit
def shared_broadcast(out):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[7] + s[t // 16]


def test_reading_one_word_is_a_broadcast_and_never_a_conflict():
    p = warplab.profile(shared_broadcast[1, 32], np.zeros(32, np.float32))
    assert (p.shared_load.requests, p.shared_load.wavefronts, p.shared_load.bank_conflicts) == (2, 2, 0)


@cuda.jit
def shared_doubles(out):
    s = cuda.shared.array(64, float64)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[t]


def test_doubles_need_two_wavefronts_and_that_is_no_conflict():
    p = warplab.profile(shared_doubles[1, 32], np.zeros(32))
    assert (p.shared_load.wavefronts, p.shared_load.bank_conflicts) == (2, 0)  # 64 words, 32 a wavefront
    assert p.global_store.sectors == 8


@cuda.jit
def column_of_tile(pad, out):
    s = cuda.shared.array(32 * 33, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[y * (32 + pad) + x] = x
    cuda.syncthreads()
    out[y, x] = s[x * (32 + pad) + y]


@pytest.mark.parametrize("pad, conflicts", [(0, 32 * 31), (1, 0)])
def test_padding_a_tile_by_one_word_removes_the_conflicts_of_its_columns(pad, conflicts):
    p = warplab.profile(column_of_tile[1, (32, 32)], pad, np.zeros((32, 32), np.float32))
    assert p.shared_load.bank_conflicts == conflicts
    assert p.shared_store.bank_conflicts == 0


def test_a_branch_inside_a_warp_diverges_and_one_between_warps_does_not():
    p = warplab.profile(divides_at[2, 64], 16, np.zeros(128, np.float32))
    assert p.divergent_branches == 4  # each of the four warps splits once; its loops do not
    q = warplab.profile(divides_at[2, 64], 32, np.zeros(128, np.float32))
    assert (q.divergent_branches, q.branch_efficiency) == (0, 1.0)
    assert q.warp_execution_efficiency == 1.0
    assert p.warp_execution_efficiency < 1.0


@cuda.jit
def divides_at(width, out):
    i = cuda.grid(1)
    if cuda.threadIdx.x // width % 2 == 0:
        for k in range(3):
            out[i] += k * out[i] + 1.5
    else:
        for k in range(5):
            out[i] -= k * out[i] + 2.5


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


def test_an_fma_counts_two_operations_and_only_for_active_threads():
    p = warplab.profile(saxpy[4, 256], np.float32(2), np.ones(1000, np.float32), np.ones(1000, np.float32))
    assert p.flops == 2 * 1000


def test_idle_threads_of_a_partial_block_are_inactive_lanes():
    p = warplab.profile(copy[1, 1], np.ones(1, np.float32), np.zeros(1, np.float32))
    assert p.warp_execution_efficiency == pytest.approx(1 / 32)


def test_lines_add_up_to_the_kernel_and_name_its_source():
    p = warplab.profile(saxpy[4, 256], np.float32(2), np.ones(1000, np.float32), np.ones(1000, np.float32))
    line = next(entry for entry in p.lines if entry.global_load.requests)
    assert line.source.strip() == "y[i] = a * x[i] + y[i]"
    assert line.global_load.requests == p.global_load.requests == 64
    assert sum(entry.flops for entry in p.lines) == p.flops


@cuda.jit
def naive_matmul(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


def test_a_naive_matmul_reads_a_as_a_broadcast_and_b_in_full_sectors():
    n = 64
    a = np.ones((n, n), np.float32)
    p = warplab.profile(naive_matmul[(n // 32, n // 8), (32, 8)], a, a, np.zeros((n, n), np.float32))
    warps = n * n // 32
    assert p.global_load.requests == 2 * n * warps
    assert p.global_load.sectors == n * warps * (1 + 4)  # one sector for all lanes of A, four for a row of B
    assert p.flops == 2 * n**3
