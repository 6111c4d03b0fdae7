"""18 points: computes its position from blockIdx and threadIdx, and calls a device function."""

from numba import cuda, float32


@cuda.jit(device=True)
def brightness(red, green, blue):
    return float32(0.299) * red + float32(0.587) * green + float32(0.114) * blue


@cuda.jit
def grayscale(rgb, out):
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row >= out.shape[0] or col >= out.shape[1]:
        return
    out[row, col] = brightness(rgb[row, col, 0], rgb[row, col, 1], rgb[row, col, 2])
