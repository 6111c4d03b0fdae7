"""12 points: in numba, with the program's own tree."""

from numba import cuda, float32


@cuda.jit
def read_report(x, out, rows, cols):
    part = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = 32 * cuda.blockIdx.x + tx
    total = float32(0)
    if col < cols:
        for row in range(ty, rows, 32):
            total += float32(0.01) * x[row, col]
    part[ty, tx] = total
    cuda.syncthreads()
    half = 16
    while half > 0:
        if ty < half:
            part[ty, tx] += part[ty + half, tx]
        cuda.syncthreads()
        half //= 2
    if ty == 0 and col < cols:
        out[col] = part[0, tx]
