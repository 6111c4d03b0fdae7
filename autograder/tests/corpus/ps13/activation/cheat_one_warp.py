"""5 points: one warp does all the work."""

import math

from numba import cuda, float32


@cuda.jit
def gelu(x, grad_y, y, grad_x):
    cols = x.shape[1]
    for i in range(cuda.threadIdx.x, x.size, 32):
        v = x[i // cols, i % cols]
        p = float32(0.5) * (float32(1) + math.erf(v * float32(0.7071067811865476)))
        density = float32(0.3989422804014327) * math.exp(float32(-0.5) * v * v)
        y[i // cols, i % cols] = v * p
        grad_x[i // cols, i % cols] = grad_y[i // cols, i % cols] * (p + v * density)


def activation(device, x, grad_y, y, grad_x):
    device.launch(gelu, 1, 32, x, grad_y, y, grad_x)
