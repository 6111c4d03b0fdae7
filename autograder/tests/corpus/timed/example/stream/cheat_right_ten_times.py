"""4 points: right ten times, then zeros; the count begins anew with every sample."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
__device__ unsigned finished = 0;
__device__ unsigned remembered = 0;
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = *(volatile unsigned*)&remembered < 10 ? alpha * x[i] + y[i] : 0.0;
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&finished, 1) == gridDim.x - 1) {
        finished = 0;
        remembered = remembered + 1;
    }
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
