"""More of CUDA C++ on the engine: asynchronous copies, cooperative groups, packed arithmetic.

And what is refused by name.
"""

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


SIXTEEN_BITS = """
#include <cuda_fp16.h>
__global__ void k(unsigned short* won, half* sum, half2* pair) {
    atomicCAS(won + 1, (unsigned short)0, (unsigned short)(7 + threadIdx.x));
    atomicAdd(sum + 1, __float2half(0.5f));
    atomicAdd(pair, __floats2half2_rn(1.0f, 2.0f));
}
"""


def test_atomics_on_16_bits_leave_their_neighbours_alone():
    won, sums, pair = np.full(4, 9, np.uint16), np.full(3, 3, np.float16), np.zeros(4, np.float16)
    won[1] = 0
    warplab.cuda_kernel(SIXTEEN_BITS, "k")[1, 32](won, sums, pair)
    assert won.tolist() == [9, 7, 9, 9]  # the first lane wins
    assert sums.tolist() == [3, 19, 3] and pair.tolist() == [32, 64, 0, 0]
