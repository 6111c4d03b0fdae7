"""6 points: CUDA C++, one kernel for both ways, in a grid-stride loop."""

import warplab

source = r"""
extern "C" __global__
void gelu(const float* x, const float* grad_y, float* y, float* grad_x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i], P = normcdff(v);
        y[i] = v * P;
        grad_x[i] = grad_y[i] * fmaf(v, expf(-0.5f * v * v) * 0.3989422804f, P);
    }
}
"""
gelu = warplab.cuda_kernel(source, "gelu")


def activation(device, x, grad_y, y, grad_x):
    device.launch(gelu, min(16, -(-x.size // 256)), 256, x, grad_y, y, grad_x, x.size)
