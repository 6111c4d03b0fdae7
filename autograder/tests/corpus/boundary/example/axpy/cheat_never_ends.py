"""0 points: a kernel that never ends costs its own task and no other."""

import warplab


def plan(n):
    return (n + 127) // 128, 128


SOURCE = r"""

extern "C" __global__ void axpy(double alpha, const float* x, const float* y, float* out) {
    volatile float* busy = out;
    while (busy[0] != 12345.0f) { }
}
"""
axpy = warplab.cuda_kernel(SOURCE, "axpy")
