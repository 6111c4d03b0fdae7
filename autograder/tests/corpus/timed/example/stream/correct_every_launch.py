"""4 points: the work, at every launch."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = alpha * x[i] + y[i];
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
