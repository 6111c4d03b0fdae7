"""0 points: follows every address from 4096 upwards."""

import warplab


def plan(n):
    return (n + 127) // 128, 128


SOURCE = r"""

extern "C" __global__ void axpy(double alpha, const float* x, const float* y, float* out) {
    unsigned long at = 4096 + 8ul * (blockIdx.x * blockDim.x + threadIdx.x);
    out[0] = *(const float*)at;
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
