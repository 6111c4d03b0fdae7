"""0 points: a kernel that takes fewer parameters than are passed."""

import warplab


def plan(n):
    return (n + 127) // 128, 128


SOURCE = r"""

extern "C" __global__ void axpy(float* out) {
    out[threadIdx.x] = 0;
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
