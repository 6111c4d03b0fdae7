"""CUDA C++ through NVRTC on the engine, against NumPy."""

import numpy as np
import pytest
from numba import cuda

import warplab

SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""


def test_a_kernel_in_cpp_runs_on_host_arrays():
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    warplab.cuda_kernel(SAXPY, "saxpy")[1, 128](100, 2.0, x, y)
    np.testing.assert_array_equal(y, 2 * np.arange(100) + 1)


def test_a_kernel_in_cpp_runs_on_device_arrays():
    x, y = cuda.to_device(np.ones(100, np.float32)), cuda.to_device(np.ones(100, np.float32))
    warplab.cuda_kernel(SAXPY, "saxpy")[(1,), (128,), 0, 0](100, 2.0, x, y)
    assert (y.copy_to_host() == 3).all()


def test_profile_counts_it_and_names_the_source_line():
    p = warplab.profile(
        warplab.cuda_kernel(SAXPY, "saxpy")[4, 256],
        1000,
        2.0,
        np.ones(1000, np.float32),
        np.ones(1000, np.float32),
    )
    assert (p.global_load.requests, p.global_load.sectors, p.flops) == (64, 250, 2000)
    assert [entry.line for entry in p.lines if entry.global_load.requests] == [6]


TEMPLATE = """
template <int N> __global__ void fill(double* out) { out[threadIdx.x] = N; }
"""


def test_a_template_is_named_as_in_cpp():
    out = np.zeros(32)
    warplab.cuda_kernel(TEMPLATE, "fill<7>")[1, 32](out)
    assert (out == 7).all()


TILE = """
extern "C" __global__ void reverse(float* x)
{
    extern __shared__ float tile[];
    int t = threadIdx.x;
    tile[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    x[blockIdx.x * blockDim.x + t] = tile[blockDim.x - 1 - t];
}
"""


def test_dynamic_shared_memory_and_barriers():
    x = np.arange(256, dtype=np.float32)
    warplab.cuda_kernel(TILE, "reverse")[4, 64, 0, 256](x)
    np.testing.assert_array_equal(x, np.arange(256).reshape(4, 64)[:, ::-1].ravel())


def test_a_missing_barrier_in_cpp_is_a_race_at_its_line():
    with pytest.raises(warplab.SharedRace, match="reverse.cu:7"):
        warplab.cuda_kernel(TILE.replace("__syncthreads();\n", ""), "reverse")[1, 64, 0, 256](
            np.zeros(64, np.float32)
        )


def test_an_overrun_in_cpp_names_its_line_and_argument():
    with pytest.raises(warplab.OutOfBounds, match=r"saxpy.cu:6: .*argument 'number 3'"):
        warplab.cuda_kernel(SAXPY, "saxpy")[1, 128](
            100, 2.0, np.zeros(50, np.float32), np.zeros(100, np.float32)
        )


WARP_SUM = """
extern "C" __global__ void sums(const int* x, int* out)
{
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
"""


def test_shuffles_and_atomics():
    x, out = np.arange(256, dtype=np.int32), np.zeros(1, np.int32)
    warplab.cuda_kernel(WARP_SUM, "sums")[2, 128](x, out)
    assert out[0] == x.sum()


def test_a_mistake_is_shown_with_the_sources_own_line():
    with pytest.raises(warplab.CompileError, match=r'saxpy.cu\(6\): error: expected a ";"'):
        warplab.cuda_kernel(
            SAXPY.replace("threadIdx.x;", "threadIdx.x").replace("int i", "\n    int i"), "saxpy"
        )


@pytest.mark.parametrize(
    "args, message",
    [
        ((1, 2.0), "takes 4 arguments and got 2"),
        ((1.5, 2.0, 0, 0), "wants a whole number"),
        ((1, "two", 0, 0), "is a str"),
        ((1 << 40, 2.0, 0, 0), "does not fit 32 bits"),
        ((np.zeros(4, np.int32), 2.0, 0, 0), "number 1 has 8 bytes .*address of an array.*wants 4"),
    ],
)
def test_wrong_arguments_are_refused(args, message):
    with pytest.raises(warplab.InvalidLaunch, match=message):
        warplab.cuda_kernel(SAXPY, "saxpy")[1, 32](*args)
