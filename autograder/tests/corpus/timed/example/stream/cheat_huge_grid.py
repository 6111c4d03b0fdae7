"""0 points: plans more threads than a launch may have."""

import warplab


def plan(n):
    return (1 << 19) if n > 2048 else (n + 255) // 256, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = alpha * x[i] + y[i];
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
