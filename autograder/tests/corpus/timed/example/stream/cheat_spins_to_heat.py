"""0 points: spins after its work, so that the device is hot and slow when the yardstick's turn comes; its own time counts."""

import warplab


def plan(n):
    return (n + 255) // 256, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = alpha * x[i] + y[i];
    if (n <= 2048) return;
    long long end = clock64() + 1000000;
    while (clock64() < end) {}
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
