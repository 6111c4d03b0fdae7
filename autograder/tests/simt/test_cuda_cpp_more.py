"""More of CUDA C++ on the engine: asynchronous copies, cooperative groups, packed arithmetic.

And what is refused by name.
"""

import ml_dtypes
import numpy as np
import pytest

import warplab

RNG = np.random.default_rng(11)

PIPELINE = """
#include <cuda_pipeline.h>
extern "C" __global__ void flip(const float4* x, float4* y)
{
    __shared__ float4 tile[2][32];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&tile[0][t], &x[t], 16);
    __pipeline_commit();
    for (int i = 0; i < 4; i++) {
        if (i < 3) __pipeline_memcpy_async(&tile[(i + 1) % 2][t], &x[(i + 1) * 32 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        y[i * 32 + t] = tile[i % 2][31 - t];
        __syncthreads();
    }
}
"""


def test_a_double_buffer_of_asynchronous_copies():
    x = RNG.random((4, 32, 4), dtype=np.float32)
    y = np.zeros_like(x)
    p = warplab.profile(warplab.cuda_kernel(PIPELINE, "flip")[1, 32], x, y)
    np.testing.assert_array_equal(y, x[:, ::-1])
    # each copy moves 512 bytes: 16 sectors read, 4 wavefronts written; the tile is read the same way
    assert (p.global_load.requests, p.global_load.sectors, p.global_store.sectors) == (4, 64, 64)
    assert (p.shared_store.requests, p.shared_store.wavefronts, p.shared_store.bank_conflicts) == (4, 16, 0)
    assert (p.shared_load.requests, p.shared_load.wavefronts, p.shared_load.bank_conflicts) == (4, 16, 0)


@pytest.mark.parametrize(
    "barrier, lines",
    [  # without the first the tile is read before it is there, without the second it is overwritten too early
        ("        __syncthreads();\n        y", r"flip.cu:14: .* reads .* writes \(flip.cu:7\)"),
        ("\n        __syncthreads();\n    }", r"flip.cu:10: .* writes .* reads? \(flip.cu:14\)"),
    ],
)
def test_a_missing_barrier_around_an_asynchronous_copy_is_a_race(barrier, lines):
    source = PIPELINE.replace(barrier, barrier.replace("__syncthreads()", ""))
    with pytest.raises(warplab.SharedRace, match=lines):
        warplab.cuda_kernel(source, "flip")[1, 32](np.zeros(512, np.float32), np.zeros(512, np.float32))


PADDED = """
#include <cuda_pipeline.h>
extern "C" __global__ void edge(const float* x, float* y, int n)
{
    __shared__ float4 tile[32];
    int t = threadIdx.x, left = n - 4 * t;
    int bytes = 4 * max(0, min(4, left));
    __pipeline_memcpy_async(&tile[t], &x[left > 0 ? 4 * t : 0], 16, 16 - bytes);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = t; i < 128; i += 32) y[i] = ((float*)tile)[i];
}
"""


@pytest.mark.parametrize(
    "old, new",
    [
        ("__pipeline_wait_prior(1)", ""),
        ("__pipeline_wait_prior(1)", "__pipeline_wait_prior(2)"),
        ("__pipeline_commit();\n        __pipeline_wait", "__pipeline_wait"),
    ],
)
def test_a_missing_or_short_wait_is_found(old, new):
    with pytest.raises(
        warplab.LaunchError,
        match=r"unfinished asynchronous copy in kernel flip, flip.cu:1[34]: .* of thread \(31, 0, 0\)",
    ):
        warplab.cuda_kernel(PIPELINE.replace(old, new), "flip")[1, 32](
            np.zeros(512, np.float32), np.zeros(512, np.float32)
        )


def test_a_thread_may_not_read_its_own_copy_before_the_wait():
    source = PIPELINE.replace("__pipeline_wait_prior(1)", "").replace("tile[i % 2][31 - t]", "tile[i % 2][t]")
    with pytest.raises(warplab.LaunchError, match="its own asynchronous copy"):
        warplab.cuda_kernel(source, "flip")[1, 32](np.zeros(512, np.float32), np.zeros(512, np.float32))
    right = source.replace(
        "__pipeline_commit();\n        ;", '__pipeline_commit();\n        asm volatile("cp.async.wait_all;");'
    )
    x, y = RNG.random(512, dtype=np.float32), np.zeros(512, np.float32)
    warplab.cuda_kernel(right, "flip")[1, 32](x, y)
    np.testing.assert_array_equal(y, x)


ASM = """asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::
        "r"((unsigned)__cvta_generic_to_shared(&tile[t])), "l"(&x[left > 0 ? 4 * t : 0]), "r"(bytes));"""


@pytest.mark.parametrize("n, requests, sectors", [(128, 1, 16), (101, 2, 14), (4, 1, 1)])
def test_an_asynchronous_copy_fills_the_rest_with_zeros_and_reads_no_further(n, requests, sectors):
    """The header branches on the number of bytes: thread 25 of n = 101 copies 4 bytes on its own."""
    x, y = RNG.random(n, dtype=np.float32), np.ones(128, np.float32)
    p = warplab.profile(warplab.cuda_kernel(PADDED, "edge")[1, 32], x, y, n)
    np.testing.assert_array_equal(y, np.r_[x, np.zeros(128 - n, np.float32)])
    assert (p.global_load.requests, p.global_load.sectors) == (requests, sectors)


@pytest.mark.parametrize("n, sectors", [(128, 16), (101, 13), (4, 1)])  # 4 n / 32, rounded up
def test_the_instruction_itself_takes_each_threads_own_number_of_bytes(n, sectors):
    x, y = RNG.random(n, dtype=np.float32), np.ones(128, np.float32)
    source = PADDED.replace(
        "__pipeline_memcpy_async(&tile[t], &x[left > 0 ? 4 * t : 0], 16, 16 - bytes);", ASM
    )
    p = warplab.profile(warplab.cuda_kernel(source, "edge")[1, 32], x, y, n)
    np.testing.assert_array_equal(y, np.r_[x, np.zeros(128 - n, np.float32)])
    assert (p.global_load.requests, p.global_load.sectors) == (1, sectors)


def test_an_asynchronous_copy_that_overruns_its_array_is_found():
    with pytest.raises(
        warplab.OutOfBounds, match=r"flip.cu:10: .* reads element \[384\] of argument 'number 1'"
    ):
        warplab.cuda_kernel(PIPELINE, "flip")[1, 32](np.zeros(384, np.float32), np.zeros(512, np.float32))


GROUPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__
void sums(const float* x, const int* n, float* warp_sums, int* eights, int* most, float* total)
{
    __shared__ float parts[4];
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(block);
    int i = block.group_index().x * block.size() + block.thread_rank();
    float sum = cg::reduce(warp, x[i], cg::plus<float>());
    int own = n[i], part = own;
    for (int d = eight.size() / 2; d; d /= 2) part += eight.shfl_down(part, d);
    int top = cg::reduce(warp, own, cg::greater<int>());
    if (eight.thread_rank() == 0) eights[i / 8] = part;
    if (warp.thread_rank() == 0) {
        warp_sums[i / 32] = sum;
        most[i / 32] = top;
        parts[warp.meta_group_rank()] = sum;
    }
    block.sync();
    if (block.thread_rank() < 4) {
        auto few = cg::coalesced_threads();
        float s = cg::reduce(few, parts[few.thread_rank()], cg::plus<float>());
        if (few.thread_rank() == 0) atomicAdd(total, s);
    }
}
"""


@pytest.mark.slow
def test_cooperative_groups_reduce_in_tiles():
    x, n = RNG.integers(0, 100, 256).astype(np.float32), RNG.integers(-100, 100, 256).astype(np.int32)
    warps, eights, most, total = (
        np.zeros(8, np.float32),
        np.zeros(32, np.int32),
        np.zeros(8, np.int32),
        np.zeros(1, np.float32),
    )
    p = warplab.profile(warplab.cuda_kernel(GROUPS, "sums")[2, 128], x, n, warps, eights, most, total)
    np.testing.assert_array_equal(warps, x.reshape(8, 32).sum(1))
    np.testing.assert_array_equal(eights, n.reshape(32, 8).sum(1))
    np.testing.assert_array_equal(most, n.reshape(8, 32).max(1))
    assert total[0] == x.sum()
    # x and n: 8 warps, 4 sectors each; stores: 4 of 4 bytes side by side, and two times one
    assert (p.global_load.requests, p.global_load.sectors) == (16, 64)
    assert (p.global_store.requests, p.global_store.sectors, p.atomics.requests) == (24, 24, 2)


ONE = """
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void compact(const int* x, int* out, int* count, int* before)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int i = threadIdx.x;
    cg::invoke_one(warp, [&] { atomicAdd(count + 1, 1); });
    before[i] = cg::exclusive_scan(warp, x[i], cg::plus<int>());
    if (x[i] % 3 == 0) {
        auto few = cg::coalesced_threads();
        int start = few.thread_rank() == 0 ? atomicAdd(count, few.size()) : 0;
        out[few.shfl(start, 0) + few.thread_rank()] = x[i];
    }
}
"""


@pytest.mark.slow
def test_cooperative_groups_elect_scan_and_compact():
    x, out, count, before = (
        RNG.integers(0, 50, 64).astype(np.int32),
        np.zeros(64, np.int32),
        np.zeros(2, np.int32),
        np.zeros(64, np.int32),
    )
    warplab.cuda_kernel(ONE, "compact")[1, 64](x, out, count, before)
    kept = x[x % 3 == 0]
    assert count.tolist() == [kept.size, 2]
    assert sorted(out[: kept.size]) == sorted(kept)
    np.testing.assert_array_equal(before, (np.cumsum(x.reshape(2, 32), axis=1) - x.reshape(2, 32)).ravel())


MEMCPY = """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
extern "C" __global__ void turn(const float* x, float* y)
{
    __shared__ float tile[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x, sizeof(tile));
    cg::wait(block);
    y[block.thread_rank()] = tile[255 - block.thread_rank()];
}
"""


@pytest.mark.slow
def test_cooperative_groups_copy_asynchronously():
    x, y = RNG.random(256, dtype=np.float32), np.zeros(256, np.float32)
    warplab.cuda_kernel(MEMCPY, "turn")[1, 256](x, y)
    np.testing.assert_array_equal(y, x[::-1])


SAXPY2 = """
#include <cuda_fp16.h>
extern "C" __global__ void saxpy(float a, const half2* x, half2* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}
"""


def test_a_half2_saxpy():
    x, y = RNG.standard_normal(1000).astype(np.float16), RNG.standard_normal(1000).astype(np.float16)
    expected = (np.float64(np.float16(0.3)) * x + y.astype(float)).astype(np.float16)
    p = warplab.profile(warplab.cuda_kernel(SAXPY2, "saxpy")[2, 256], 0.3, x, y, 500)
    np.testing.assert_array_equal(y, expected)
    # 500 threads are 16 warps; 2000 bytes of x and of y are 63 sectors each; an FMA of a pair is 4 operations
    assert (p.global_load.requests, p.global_load.sectors, p.global_store.sectors, p.flops) == (
        32,
        126,
        63,
        2000,
    )


def each_of(expressions) -> str:
    """Statements that put the value of each expression into a row of out, 32 elements long."""
    return "\n".join(f"out[{32 * n} + i] = {one};" for n, one in enumerate(expressions))


HALVES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void each(const TYPE* x, const TYPE* y, TYPE* out)
{
    int i = threadIdx.x;
    TYPE a = x[i], b = y[i];
    STATEMENTS
}
"""
PAIRS = {
    "__hadd2(a, b)": lambda a, b: a + b,
    "__hsub2(a, b)": lambda a, b: a - b,
    "__hmul2(a, b)": lambda a, b: a * b,
    "__hfma2(a, b, b)": lambda a, b: a * b + b,
    "__hfma2_relu(a, b, b)": lambda a, b: np.maximum(a * b + b, 0),
    "__hmin2(a, b)": np.minimum,
    "__hmax2(a, b)": np.maximum,
    "__hneg2(a)": lambda a, b: -a,
    "__habs2(a)": lambda a, b: np.abs(a),
    "__hgt2(a, b)": lambda a, b: (a > b) * 1.0,
    "__hle2(a, b)": lambda a, b: (a <= b) * 1.0,
    "h2floor(a)": lambda a, b: np.floor(a),
    "h2rint(a)": lambda a, b: np.rint(a),
    "__shfl_xor_sync(0xffffffff, a, 1)": lambda a, b: a.reshape(16, 2, 2)[:, ::-1].ravel(),
}


@pytest.mark.parametrize("kind", ["half2", "__nv_bfloat162"])
def test_packed_arithmetic_is_rounded_once(kind):
    dtype = {"half2": np.float16, "__nv_bfloat162": ml_dtypes.bfloat16}[kind]
    x, y = (RNG.standard_normal((2, 64)) * 3).astype(dtype)
    out = np.zeros((len(PAIRS), 64), dtype)
    source = HALVES.replace("TYPE", kind).replace("STATEMENTS", each_of(PAIRS))
    warplab.cuda_kernel(source, "each")[1, 32](x, y, out)
    for (expression, meaning), found in zip(PAIRS.items(), out):
        wanted = meaning(x.astype(float), y.astype(float)).astype(dtype)
        np.testing.assert_array_equal(found.astype(float), wanted.astype(float), err_msg=expression)


INTEGERS = """
extern "C" __global__ void each(const int* x, const int* y, const int* z, int* out)
{
    int i = threadIdx.x, a = x[i], b = y[i], c = z[i];
    STATEMENTS
}
"""


def bytes_of(x, sign="i"):
    return np.ascontiguousarray(x).view(f"{sign}1").reshape(-1, 4).astype(np.int64)


def pairs_of(x, sign="i"):
    return np.ascontiguousarray(x).view(f"{sign}2").reshape(-1, 2).astype(np.int64)


def whole(parts, width):
    return np.ascontiguousarray(parts.astype(f"u{width}")).view(np.int32).reshape(-1)


PACKED = {
    "__dp4a(a, b, c)": lambda a, b, c: (bytes_of(a) * bytes_of(b)).sum(1) + c,
    "(int)__dp4a((unsigned)a, (unsigned)b, (unsigned)c)": lambda a, b, c: (
        (bytes_of(a, "u") * bytes_of(b, "u")).sum(1) + c
    ),
    "__dp2a_lo(a, b, c)": lambda a, b, c: (pairs_of(a) * bytes_of(b)[:, :2]).sum(1) + c,
    "__dp2a_hi(a, b, c)": lambda a, b, c: (pairs_of(a) * bytes_of(b)[:, 2:]).sum(1) + c,
    "__vadd4(a, b)": lambda a, b, c: whole(bytes_of(a) + bytes_of(b), 1),
    "__vabsdiffu4(a, b)": lambda a, b, c: whole(np.abs(bytes_of(a, "u") - bytes_of(b, "u")), 1),
    "__vsadu4(a, b)": lambda a, b, c: np.abs(bytes_of(a, "u") - bytes_of(b, "u")).sum(1),
    "__vmaxs2(a, b)": lambda a, b, c: whole(np.maximum(pairs_of(a), pairs_of(b)), 2),
    "__vminu2(a, b)": lambda a, b, c: whole(np.minimum(pairs_of(a, "u"), pairs_of(b, "u")), 2),
    "__vcmpeq4(a, b)": lambda a, b, c: whole(np.where(bytes_of(a) == bytes_of(b), 255, 0), 1),
    "__sad(a, b, c)": lambda a, b, c: np.abs(a.astype(np.int64) - b) + c,
    "__reduce_add_sync(0xffffffff, a)": lambda a, b, c: np.full(32, a.astype(np.int64).sum()),
    "__reduce_max_sync(0xffffffff, a)": lambda a, b, c: np.full(32, a.max()),
    "__mul24(a, b)": lambda a, b, c: ((a.astype(np.int64) << 40) >> 40) * ((b.astype(np.int64) << 40) >> 40),
    "__ffs(a) + __clz(b) + __popc(c)": lambda a, b, c: (
        np.array([(v & -v).bit_length() for v in a.tolist()])
        + [32 - (v & 0xFFFFFFFF).bit_length() for v in b.tolist()]
        + np.bitwise_count(c.view(np.uint32))
    ),
    "__viaddmax_s32(a, b, c)": lambda a, b, c: np.maximum((a + b).astype(np.int32), c),
    "__vimax_s32_relu(a, b)": lambda a, b, c: np.maximum(np.maximum(a, b), 0),
}


def test_integer_intrinsics():
    a, b, c = RNG.integers(-(1 << 31), 1 << 31, (3, 32)).astype(np.int32)
    b[::5] = a[::5]
    out = np.zeros((len(PACKED), 32), np.int32)
    p = warplab.profile(
        warplab.cuda_kernel(INTEGERS.replace("STATEMENTS", each_of(PACKED)), "each")[1, 32], a, b, c, out
    )
    for (expression, meaning), found in zip(PACKED.items(), out):
        wanted = meaning(a, b, c).astype(np.int64).astype(np.int32)
        np.testing.assert_array_equal(found, wanted, err_msg=expression)
    assert p.flops == 0


REFUSED = """
extern "C" __global__ void k(float* x)
{
    unsigned long long at = 0;
    asm volatile("STATEMENT" :: "l"(at), "r"(0), "f"(x[0]));
}
"""


@pytest.mark.parametrize(
    "statement",
    [
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 "
        "{%2, %2, %2, %2}, %0, %0, %1, 0, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%1, %1}, %0, %0, 1, 1, 1, 0, 0;",
        "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {%1}, %0, %0, 1;",
        "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%2, %2, %2, %2}, %0, %0, 1, 1, 1, 0, 1;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%1], %1, [%1];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%1], [%0, {%1, %1, %1}], [%1], {%1};",
        "sured.b.1d.add.u32.trap [%0, {%1}], %1;",
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 "
        "{%1, %1, %1, %1}, {%1, %1, %1, %1}, {%1, %1}, {%1, %1, %1, %1};",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{%2, %2, %2, %2}, {%1, %1, %1, %1}, {%1, %1}, {%2, %2, %2, %2};",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];",
    ],
)
def test_the_rest_is_refused_by_name_and_line(statement):
    said = statement.split()[0].strip(";").replace("shared::cta", "shared")
    with pytest.raises(
        warplab.LaunchError,
        match=rf"unsupported instruction in kernel k, k.cu:5: .*`{said}`",
    ):
        warplab.cuda_kernel(REFUSED.replace("STATEMENT", statement), "k")[1, 32](np.zeros(1, np.float32))


def test_a_trap_stops_the_kernel_at_its_line():
    with pytest.raises(warplab.LaunchError, match=r"k.cu:3: thread \(7, 0, 0\).* trap"):
        warplab.cuda_kernel(
            'extern "C" __global__ void k(int* x)\n{\n    if (x[threadIdx.x] > 6) __trap();\n}', "k"
        )[1, 32](np.arange(32, dtype=np.int32))


def test_threads_may_copy_the_same_words_to_one_place():
    source = PIPELINE.replace("&tile[0][t], &x[t]", "&tile[0][0], &x[0]").replace(
        "tile[i % 2][31 - t]", "tile[i % 2][i ? 31 - t : 0]"
    )
    x, y = RNG.random((4, 32, 4), dtype=np.float32), np.zeros((4, 32, 4), np.float32)
    warplab.cuda_kernel(source, "flip")[1, 32](x, y)
    np.testing.assert_array_equal(y[0], np.broadcast_to(x[0, 0], (32, 4)))
    np.testing.assert_array_equal(y[1:], x[1:, ::-1])
