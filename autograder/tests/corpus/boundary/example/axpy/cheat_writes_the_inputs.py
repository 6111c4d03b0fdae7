"""0 points: makes the inputs fit the answer."""

import warplab


def plan(n):
    return (n + 127) // 128, 128


SOURCE = r"""

extern "C" __global__ void axpy(double alpha, const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i) return;
    ((float*)x)[i] = 0; ((float*)y)[i] = 0; out[i] = 0;
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
