"""0 points: a relu looks similar and is shorter."""


from numba import cuda, float32


@cuda.jit
def fused_bias_gelu(x, bias, out):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        z = x[row, col] + bias[col]
        out[row, col] = max(z, float32(0))
