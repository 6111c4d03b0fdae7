"""Programs of CUDA C++ that wait at ``cuda::barrier`` and ``cuda::pipeline``: each right, and with mistakes
to be found. The argument ``mistake`` chooses one, 0 is none.
"""

import numpy as np
import pytest

import warplab

ROUNDS = """
#include <cuda/barrier>
extern "C" __global__ void rounds(const float* x, float* y, int mistake)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ float tile[64];
    int t = threadIdx.x;
    if (t == 0) init(&bar, mistake == 1 ? 96 : 64);
    if (mistake != 2) __syncthreads();
    tile[t] = x[t];
    if (mistake != 3) bar.arrive_and_wait();
    float left = tile[63 - t];
    auto token = bar.arrive();
    left *= 2;
    if (mistake != 4) bar.wait(std::move(token));
    tile[t] = left;
    if (t >= 32) {
        bar.arrive_and_drop();
        return;
    }
    bar.arrive_and_wait();
    float sum = left + tile[t + 32];
    for (int d = 16; d > 0; d /= 2) {
        tile[t] = sum;
        bar.arrive_and_wait();
        sum += tile[t ^ d];
        if (mistake != 5) bar.arrive_and_wait();
    }
    y[t] = sum;
}
"""


@pytest.fixture(scope="module")
def rounds():
    return warplab.cuda_kernel(ROUNDS, "rounds")


@pytest.mark.slow
def test_threads_go_in_rounds_and_drop_out(rounds):
    x, y = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    rounds[1, 64](x, y, 0)
    np.testing.assert_array_equal(y, np.full(32, 2 * x.sum()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake, error, said",
    [
        (1, warplab.NoProgress, r"mbarrier bar \(.*rounds.cu:8\) .*: 64 of 96 arrivals"),
        (2, warplab.SharedRace, "nothing orders that after its initialisation"),
        (3, warplab.SharedRace, r"rounds.cu:12: .* reads tile\[.*\(rounds.cu:10\)"),
        (4, warplab.SharedRace, r"rounds.cu:16: .* writes tile\[.* reads \(rounds.cu:12\)"),
        (5, warplab.SharedRace, r"rounds.cu:24: .* writes tile\[.* reads \(rounds.cu:26\)"),
    ],
)
def test_a_mistake_in_a_round_is_found(rounds, mistake, error, said):
    with pytest.raises(error, match=said):
        rounds[1, 64](np.zeros(64, np.float32), np.zeros(32, np.float32), mistake)


FETCH = """
#include <cuda/barrier>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void fetch(const int* x, int* y, int mistake)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(16) int tile[256];
    auto block = cg::this_thread_block();
    int t = block.thread_rank();
    if (t == 0) init(&bar, block.size());
    block.sync();
    for (int i = 0; i < 3; i++) {
        cuda::memcpy_async(block, tile, x + 256 * i, cuda::aligned_size_t<16>(sizeof(tile)), bar);
        if (mistake != 1) bar.arrive_and_wait();
        y[256 * i + t] = tile[255 - t];
        if (mistake != 2) block.sync();
    }
}
"""


@pytest.fixture(scope="module")
def fetch():
    return warplab.cuda_kernel(FETCH, "fetch")


@pytest.fixture(params=["sm_80", "sm_90"])
def arch(request, monkeypatch):
    monkeypatch.setenv("WARPLAB_ARCH", request.param)
    return request.param


@pytest.mark.slow
def test_a_block_copies_and_waits_at_a_barrier(fetch, arch):
    x = np.arange(768, dtype=np.int32).reshape(3, 256)
    y = np.zeros_like(x)
    p = warplab.profile(fetch[1, 256], x, y, 0)
    np.testing.assert_array_equal(y, x[:, ::-1])
    if arch == "sm_90":  # one thread has TMA copy
        assert (p.tma_load.requests, p.tma_load.sectors, p.tma_load.shared_bytes) == (3, 96, 3072)
        assert p.global_load.requests == p.shared_store.requests == 0
    else:  # three copies of 1,024 bytes, 16 a thread, by two warps; what they wait at is no load or store
        assert (p.global_load.requests, p.global_load.sectors) == (6, 96)
        assert (p.shared_store.requests, p.shared_load.requests) == (6, 24)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake, error, said",
    [
        (1, warplab.UnfinishedCopy, r"16: .* (the asynchronous copy of thread|its own bulk copy) .*cu:14"),
        (2, warplab.SharedRace, r"fetch.cu:14: .* writes tile\[.* reads? \(fetch.cu:16\)"),
    ],
)
def test_a_mistake_around_a_copy_is_found(fetch, arch, mistake, error, said):
    with pytest.raises(error, match=said):
        fetch[1, 256](np.zeros(768, np.int32), np.zeros(768, np.int32), mistake)


STAGES = """
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void together(const float* x, float* y, int batches, int mistake)
{
    constexpr int STAGES = 2;
    __shared__ alignas(16) float tile[STAGES][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = block.thread_rank(), fetched = 0;
    for (int b = 0; b < batches; b++) {
        for (; fetched < batches && fetched < b + STAGES; fetched++) {
            if (mistake != 1) pipe.producer_acquire();
            cuda::memcpy_async(block, tile[fetched % STAGES], x + 64 * fetched, sizeof(tile[0]), pipe);
            pipe.producer_commit();
        }
        if (mistake != 2) pipe.consumer_wait();
        y[64 * b + t] = tile[b % STAGES][63 - t];
        pipe.consumer_release();
    }
}
extern "C" __global__ void roles(const float* x, float* y, int batches, int mistake)
{
    constexpr int STAGES = 3;
    __shared__ float tile[STAGES][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto role = threadIdx.x < 64 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int t = threadIdx.x % 64;
    if (role == cuda::pipeline_role::producer) {
        for (int b = 0; b < batches; b++) {
            if (mistake != 1) pipe.producer_acquire();
            cuda::memcpy_async(&tile[b % STAGES][t], &x[64 * b + t], sizeof(float), pipe);
            pipe.producer_commit();
        }
    } else {
        for (int b = 0; b < batches; b++) {
            if (mistake != 2) pipe.consumer_wait();
            float sum = tile[b % STAGES][t] + tile[b % STAGES][63 - t];
            if (mistake != 3) pipe.consumer_release();
            y[64 * b + t] = sum;
        }
    }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name, threads", [("together", 64), ("roles", 128)])
def test_a_pipeline_of_a_block(name, threads):
    kernel = warplab.cuda_kernel(STAGES, name)
    x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
    y = np.zeros_like(x)
    kernel[2, threads](x, y, 7, 0)
    np.testing.assert_array_equal(y, x[:, ::-1] + (x if name == "roles" else 0))
    found = warplab.SharedRace, warplab.UnfinishedCopy, warplab.BarrierMisuse, warplab.UninitialisedRead
    for mistake in (1, 2, 3)[
        : 3 if name == "roles" else 2
    ]:  # without a release the next wait is for the same
        with pytest.raises(found, match=f"{name}.cu"):
            kernel[1, threads](x, y, 7, mistake)
