"""0 points: looks for the judge's other arrays behind its own."""

import warplab


def plan(n):
    return (n + 127) // 128, 128


SOURCE = r"""

extern "C" __global__ void axpy(double alpha, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i) return;
    for (long k = 0; k < (1L << 20); k += 1 << 10) out[i + k] = 1.0f;
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
