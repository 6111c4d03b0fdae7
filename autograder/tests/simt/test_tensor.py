"""Tensor-core instructions in real CUDA C++ against NumPy: wmma, mma.sync in the PTX manual's layouts,
ldmatrix and its kin.
"""

import ml_dtypes
import numpy as np
import pytest
from ptx_runner import run

import warplab

RNG = np.random.default_rng(5)
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4  # groupID and threadID_in_group of the PTX manual


def to_tf32(x):
    """float32 rounded to 10 fraction bits, ties away from zero."""
    return (
        ((np.asarray(x, np.float32).view(np.uint32) + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    )


def random(kind, shape):
    """(values as the kernel gets them, the same as float64)."""
    if kind in ("s8", "u8"):
        dtype = np.int8 if kind == "s8" else np.uint8
        x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)
        return x, x.astype(float)
    x = RNG.standard_normal(shape).astype(np.float32)
    if kind == "tf32":
        return x, to_tf32(x).astype(float)
    x = x.astype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}[kind])
    return x, x.astype(float)


MATMUL = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void matmul(const TYPE* a, const TYPE* b, SUM* c)
{
    wmma::fragment<wmma::matrix_a, M, N, K, PRECISION, wmma::LAYOUT> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, PRECISION, wmma::LAYOUT> fb;
    wmma::fragment<wmma::accumulator, M, N, K, SUM> fc;
    wmma::fill_fragment(fc, SUM(0));
    int row = blockIdx.y * M, col = blockIdx.x * N;
    for (int k = 0; k < 64; k += K) {
        wmma::load_matrix_sync(fa, BY_ROWS ? a + row * 64 + k : a + k * 64 + row, 64);
        wmma::load_matrix_sync(fb, BY_ROWS ? b + k * 64 + col : b + col * 64 + k, 64);
        CONVERT
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + row * 64 + col, fc, 64, wmma::mem_row_major);
}
"""
TF32 = """for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
        for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);"""
CPP = {
    "f16": "half",
    "bf16": "__nv_bfloat16",
    "tf32": "float",
    "s8": "signed char",
    "u8": "unsigned char",
    "f64": "double",
}


def matmul(kind, shape=(16, 16, 16), layout="row_major", accumulator=None):
    m, n, k = shape
    names = {
        "BY_ROWS": "1" if layout == "row_major" else "0",
        "LAYOUT": layout,
        "PRECISION": "wmma::precision::tf32" if kind == "tf32" else CPP[kind],
        "TYPE": CPP[kind],
        "SUM": accumulator or {"s8": "int", "u8": "int", "f64": "double"}.get(kind, "float"),
        "CONVERT": TF32 if kind == "tf32" else "",
        " M": f" {m}",
        " N": f" {n}",
        " K": f" {k}",
    }
    source = MATMUL
    for old, new in names.items():
        source = source.replace(old, new)
    return warplab.cuda_kernel(source, "matmul")[(64 // n, 64 // m), 32]


def step_by_step(a, b, k, dtype):
    """The accumulator after each k is rounded once to its type."""
    c = np.zeros((64, 64), dtype)
    for i in range(0, 64, k):
        c = (a[:, i : i + k] @ b[i : i + k] + c).astype(dtype)
    return c


@pytest.mark.parametrize(
    "kind, shape, loads, sectors, flops",
    [  # 16 tiles of C, 64 / k steps, two loads in each;
        # a tile of 16 rows touches 16 sectors, of 8 rows of 64 bytes also
        ("f16", (16, 16, 16), 16 * 4 * 2, 16 * 4 * (16 + 16), 2 * 64**3),
        ("bf16", (16, 16, 16), 16 * 4 * 2, 16 * 4 * (16 + 16), 2 * 64**3),
        ("tf32", (16, 16, 8), 16 * 8 * 2, 16 * 8 * (16 + 16), 2 * 64**3),
        ("s8", (16, 16, 16), 16 * 4 * 2, 16 * 4 * (16 + 16), 0),
        ("u8", (16, 16, 16), 16 * 4 * 2, 16 * 4 * (16 + 16), 0),
        ("f16", (32, 8, 16), 16 * 4 * 2, 16 * 4 * (32 + 16), 2 * 64**3),
        ("f16", (8, 32, 16), 16 * 4 * 2, 16 * 4 * (8 + 16 * 2), 2 * 64**3),
        ("s8", (32, 8, 16), 16 * 4 * 2, 16 * 4 * (32 + 16), 0),
        ("f64", (8, 8, 4), 64 * 16 * 2, 64 * 16 * (8 + 4 * 2), 2 * 64**3),
    ],
)
def test_a_wmma_matmul_and_its_counts(kind, shape, loads, sectors, flops):
    (a, x), (b, y) = random(kind, (64, 64)), random(kind, (64, 64))
    dtype = {"s8": np.int32, "u8": np.int32, "f64": np.float64}.get(kind, np.float32)
    c = np.zeros((64, 64), dtype)
    p = warplab.profile(matmul(kind, shape), a, b, c)
    if kind == "f64":
        np.testing.assert_allclose(c, x @ y, rtol=1e-13, atol=1e-13)
    else:
        np.testing.assert_array_equal(c, step_by_step(x, y, shape[2], dtype))
    assert (p.global_load.requests, p.global_load.sectors, p.flops) == (loads, sectors, flops)
    rows, row_bytes = shape[0], shape[1] * c.itemsize
    assert p.global_store.sectors == 64 * 64 // (shape[0] * shape[1]) * rows * (row_bytes // 32)


@pytest.mark.parametrize(
    "kind, shape", [("f16", (16, 16, 16)), ("bf16", (16, 16, 16)), ("tf32", (16, 16, 8)), ("s8", (8, 32, 16))]
)
def test_column_major_operands(kind, shape):
    (a, x), (b, y) = random(kind, (64, 64)), random(kind, (64, 64))
    c = np.zeros((64, 64), np.int32 if kind == "s8" else np.float32)
    matmul(kind, shape, "col_major")(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), c)
    np.testing.assert_array_equal(c, step_by_step(x, y, shape[2], c.dtype))


def test_a_half_accumulator_is_rounded_once_a_step():
    (a, x), (b, y) = random("f16", (64, 64)), random("f16", (64, 64))
    c = np.zeros((64, 64), np.float16)
    matmul("f16", accumulator="half")(a, b, c)
    np.testing.assert_array_equal(c, step_by_step(x, y, 16, np.float16))


SHARED = """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void scale(const float* x, float* out, int elements)
{
    __shared__ float tile[16 * 20];
    int t = threadIdx.x;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
    wmma::load_matrix_sync(f, x, 16, wmma::mem_col_major);
    for (int i = 0; i < f.num_elements; i++) f.x[i] *= 2;
    wmma::store_matrix_sync(tile, f, 20, wmma::mem_row_major);
    __syncwarp();
    for (int i = t; i < 256; i += 32) out[i] = tile[i / 16 * 20 + i % 16];
}
"""


def test_an_accumulator_crosses_layouts_and_padded_shared_memory():
    x, out = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    p = warplab.profile(warplab.cuda_kernel(SHARED, "scale")[1, 32], x, out, 8)
    np.testing.assert_array_equal(out, 2 * x.T)
    # 1024 bytes are 8 wavefronts at least; rows of 20 floats put 8 rows' words on each bank: no conflict
    assert (p.shared_store.requests, p.shared_store.wavefronts, p.shared_store.bank_conflicts) == (1, 8, 0)
    assert (p.global_load.requests, p.global_load.sectors) == (1, 32)


def test_an_accumulator_is_stored_by_columns():
    source = SHARED.replace("f, 20, wmma::mem_row_major", "f, 20, wmma::mem_col_major")
    x, out = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    warplab.cuda_kernel(source, "scale")[1, 32](x, out, 8)
    np.testing.assert_array_equal(out, 2 * x)


def test_a_read_of_the_tile_without_syncwarp_is_a_race():
    with pytest.raises(warplab.SharedRace):
        warplab.cuda_kernel(SHARED.replace("__syncwarp();", ""), "scale")[1, 32](
            np.zeros(256, np.float32), np.zeros(256, np.float32), 8
        )


def test_part_of_a_warp_is_refused_at_its_line():
    with pytest.raises(
        warplab.LaunchError, match=r"warp-wide instruction in kernel scale, scale.cu:9: 16 of the 32 threads"
    ):
        warplab.cuda_kernel(SHARED, "scale")[1, 48](np.zeros(256, np.float32), np.zeros(256, np.float32), 8)


def test_a_tile_that_overruns_its_array_is_found():
    with pytest.raises(warplab.OutOfBounds, match=r"scale.cu:9: .*argument 'number 1'"):
        warplab.cuda_kernel(SHARED, "scale")[1, 32](np.zeros(255, np.float32), np.zeros(256, np.float32), 8)


def test_a_leading_dimension_that_breaks_alignment_is_found():
    with pytest.raises(warplab.LaunchError, match="misaligned access"):
        source = SHARED.replace("f, 20", "f, 18")
        warplab.cuda_kernel(source, "scale")[1, 32](np.zeros(256, np.float32), np.zeros(256, np.float32), 8)


# element i of A, B, C in the words of the PTX manual: (row, column) for each lane
def halves_a16(i):
    return G + 8 * (not (i < 2 or 4 <= i < 6)), T * 2 + (i & 1) + (8 if i >= 4 else 0)


def halves_b(i):
    return T * 2 + (i & 1) + (8 if i >= 2 else 0), G


def accumulator(i):
    return G + (8 if i >= 2 else 0), T * 2 + (i & 1)


LAYOUTS = {
    ("f16", 16, 16): (halves_a16, halves_b),
    ("bf16", 16, 16): (halves_a16, halves_b),
    ("f16", 16, 8): (lambda i: (G + (8 if i >= 2 else 0), T * 2 + (i & 1)), lambda i: (T * 2 + i, G)),
    ("bf16", 16, 8): (lambda i: (G + (8 if i >= 2 else 0), T * 2 + (i & 1)), lambda i: (T * 2 + i, G)),
    ("tf32", 16, 4): (lambda i: (G + 8 * i, T), lambda i: (T, G)),
    ("tf32", 16, 8): (lambda i: (G + 8 * (i in (1, 3)), T + 4 * (i >= 2)), lambda i: (T + 4 * i, G)),
    ("s8", 16, 16): (lambda i: (G + (8 if i >= 4 else 0), T * 4 + (i & 3)), lambda i: (T * 4 + i, G)),
    ("u8", 16, 32): (
        lambda i: (G + 8 * (not (i < 4 or 8 <= i < 12)), T * 4 + (i & 3) + (16 if i >= 8 else 0)),
        lambda i: (T * 4 + (i & 3) + (16 if i >= 4 else 0), G),
    ),
    ("s8", 8, 16): (lambda i: (G, T * 4 + i), lambda i: (T * 4 + i, G)),
    ("f64", 8, 4): (lambda i: (G, T), lambda i: (T, G)),
    ("f64", 16, 16): (
        lambda i: (G + 8 * (i % 2), (i * 2 if i % 2 == 0 else i * 2 - 2) + T),
        lambda i: (i * 4 + T, G),
    ),
}


def mma_source(kind, m, k, result, counts):
    na, nb, nc = counts
    letter = {"f32": "f", "f64": "d"}
    ab, cd = ("d", "d") if kind == "f64" else ("r", letter.get(result, "r"))
    names = {"r": "unsigned", "f": "float", "d": "double"}
    holes = iter(range(99))

    def braces(n):
        return "{" + ", ".join(f"%{next(holes)}" for _ in range(n)) + "}"

    text = ", ".join(braces(n) for n in (nc, na, nb, nc))
    out = ", ".join(f'"={cd}"(d[{i}])' for i in range(nc))
    given = ", ".join(
        f'"{c}"({v}[lane * {n} + {i}])'
        for v, n, c in (("a", na, ab), ("b", nb, ab), ("c", nc, cd))
        for i in range(n)
    )
    return f"""
extern "C" __global__ void product(const {names[ab]}* a, const {names[ab]}* b,
                                   const {names[cd]}* c, {names[cd]}* out)
{{
    int lane = threadIdx.x;
    {names[cd]} d[{nc}];
    asm volatile("mma.sync.aligned.m{m}n8k{k}.row.col.{result}.{kind}.{kind}.{result} {text};"
                 : {out} : {given});
    for (int i = 0; i < {nc}; i++) out[lane * {nc} + i] = d[i];
}}
"""


@pytest.mark.parametrize(
    "kind, m, k, result",
    [
        ("f16", 16, 16, "f32"),
        ("f16", 16, 16, "f16"),
        ("f16", 16, 8, "f32"),
        ("bf16", 16, 16, "f32"),
        ("bf16", 16, 8, "f32"),
        ("tf32", 16, 4, "f32"),
        ("tf32", 16, 8, "f32"),
        ("s8", 16, 16, "s32"),
        ("u8", 16, 32, "s32"),
        ("s8", 8, 16, "s32"),
        ("f64", 8, 4, "f64"),
        ("f64", 16, 16, "f64"),
    ],
)
def test_mma_sync_holds_its_elements_where_the_manual_says(kind, m, k, result):
    (a, x), (b, y) = random(kind, (m, k)), random(kind, (k, 8))
    if kind == "tf32":  # the instruction cuts low bits off: give it values that have none
        a, b = to_tf32(a), to_tf32(b)
    dtype = {"f16": np.float16, "f32": np.float32, "s32": np.int32, "f64": np.float64}[result]
    c = (RNG.standard_normal((m, 8)) * 10).astype(dtype)
    place_a, place_b = LAYOUTS[kind, m, k]
    fa = np.stack([a[place_a(i)] for i in range(m * k // 32)], axis=1)
    fb = np.stack([b[place_b(i)] for i in range(k * 8 // 32)], axis=1)
    fc = np.stack([c[accumulator(i)] for i in range(m // 4)], axis=1)
    counts = [f.nbytes // 32 // (8 if kind == "f64" else 4) for f in (fa, fb, fc)]
    out = np.zeros_like(fc)
    p = warplab.profile(
        warplab.cuda_kernel(mma_source(kind, m, k, result, counts), "product")[1, 32], fa, fb, fc, out
    )
    d = np.zeros((m, 8), dtype)
    for i in range(m // 4):
        d[accumulator(i)] = out[:, i]
    if kind == "f64":
        np.testing.assert_allclose(d, x @ y + c, rtol=1e-14, atol=1e-14)
    else:
        np.testing.assert_array_equal(d, (x @ y + c.astype(float)).astype(dtype))
    assert p.flops == (0 if result == "s32" else 2 * m * 8 * k)


LDMATRIX = """
extern "C" __global__ void rows(const unsigned short* x, unsigned* out, unsigned short* back)
{
    __shared__ __align__(16) unsigned short tile[32 * STRIDE];
    __shared__ __align__(16) unsigned short copy[32 * 8];
    int lane = threadIdx.x;
    for (int i = 0; i < 8; i++) tile[lane * STRIDE + i] = x[lane * 8 + i];
    __syncthreads();
    unsigned r[4] = {0, 0, 0, 0};
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[lane * STRIDE]);
    unsigned to = (unsigned)__cvta_generic_to_shared(&copy[lane * 8]);
    asm volatile("LOAD" : HOLES : "r"(at));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[3]) : "r"(r[0]));
    for (int i = 0; i < 4; i++) out[lane * 4 + i] = r[i];
    __syncthreads();
    for (int i = 0; i < 8; i++) back[lane * 8 + i] = copy[lane * 8 + i];
}
"""


def fragment(matrix):
    """The register of each lane: elements 2 (lane % 4) and the next of row lane / 4."""
    return matrix[G, 2 * T].astype(np.uint32) | (matrix[G, 2 * T + 1].astype(np.uint32) << 16)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_its_two_elements(count, trans):
    x = RNG.integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)
    names = ", ".join(f"%{i}" for i in range(count))
    load = (
        f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if trans else ''}.shared.b16 {{{names}}}, [%{count}];"
    )
    source = (
        LDMATRIX.replace("LOAD", load)
        .replace("HOLES", ", ".join(f'"=r"(r[{i}])' for i in range(count)))
        .replace("STRIDE", "8")
    )
    out, back = np.zeros((32, 4), np.uint32), np.zeros((4, 8, 8), np.uint16)
    warplab.cuda_kernel(source, "rows")[1, 32](x, out, back)
    held = x.transpose(0, 2, 1) if trans else x
    for i in range(min(count, 3)):
        np.testing.assert_array_equal(out[:, i], fragment(held[i]))
    np.testing.assert_array_equal(out[:, 3], fragment(held[0].T))  # movmatrix
    np.testing.assert_array_equal(back[:count], held[:count])  # stmatrix


ROWS = """
    mov.u32 %r2, words; shl.b32 %r3, %r1, 4; add.u32 %r3, %r2, %r3; shl.b32 %r4, %r1, 1; add.u32 %r5, %r4, 1;
    st.shared.v4.u32 [%r3], {%r4, %r5, %r4, %r5}; bar.warp.sync -1;
"""


@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_of_one_row_for_all_lanes(count):
    """All give the address of row 3, whose words are 6, 7, 6, 7: lane l gets word l % 4."""
    targets = ", ".join(f"%r{10 + i}" for i in range(count))
    body = f"""{ROWS} add.u32 %r2, %r2, 48;
        ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{targets}}}, [%r2];
        st.global.u32 [%rd1], %r{9 + count};"""
    out = run(body, regs=".shared .align 16 .b8 words[512];")
    np.testing.assert_array_equal(out[:, 0], np.tile([6, 7, 6, 7], 8))


@pytest.mark.parametrize("count", [1, 4])
def test_ldmatrix_of_part_of_a_warp_is_refused(count):
    targets = ", ".join(f"%r{10 + i}" for i in range(count))
    body = f"""{ROWS} setp.lt.u32 %p1, %r1, 8;
        @%p1 ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{targets}}}, [%r3];"""
    with pytest.raises(warplab.LaunchError, match="8 of the 32 threads"):
        run(body, regs=".shared .align 16 .b8 words[512];")


@pytest.mark.parametrize(
    "stride, wavefronts", [(8, 4), (64, 32), (72, 4)]
)  # rows side by side; 128 bytes apart: one set of banks; padded
def test_ldmatrix_counts_one_request_and_its_bank_conflicts(stride, wavefronts):
    load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    source = (
        LDMATRIX.replace("LOAD", load)
        .replace("HOLES", ", ".join(f'"=r"(r[{i}])' for i in range(4)))
        .replace("STRIDE", str(stride))
    )
    x, out, back = np.zeros(256, np.uint16), np.zeros(128, np.uint32), np.zeros(256, np.uint16)
    p = warplab.profile(warplab.cuda_kernel(source, "rows")[1, 32], x, out, back)
    line = next(entry for entry in p.lines if entry.line == 12)
    assert (line.shared_load.requests, line.shared_load.wavefronts, line.shared_load.bank_conflicts) == (
        1,
        wavefronts,
        wavefronts - 4,
    )
