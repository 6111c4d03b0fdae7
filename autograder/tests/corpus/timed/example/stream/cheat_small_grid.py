"""0 points: plans an eighth of the blocks for large n."""

import warplab


def plan(n):
    blocks = (n + 255) // 256
    return max(1, blocks // 8) if n > 2048 else blocks, 256


SOURCE = r"""
extern "C" __global__ void axpy(long long n, double alpha, const float* x, const float* y, float* out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = alpha * x[i] + y[i];
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
