"""0 points: the first launch, which it takes for the warm-up, does nothing; there is no second one of the same module."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
__device__ unsigned finished = 0;
__device__ unsigned remembered = 0;
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (*(volatile unsigned*)&remembered && i < n) out[i] = alpha * x[i] + y[i];
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&finished, 1) == gridDim.x - 1) {
        remembered = 1;
    }
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
