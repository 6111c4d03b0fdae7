"""6 points: the lanes' sums meet on a table in shared memory."""

from numba import cuda, float32


@cuda.jit
def layer(w, x, y):
    table = cuda.shared.array((8, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.x * 8 + ty
    mine = float32(0)
    if row < w.shape[0]:
        k = tx
        while k < w.shape[1]:
            mine += x[k] * w[row, k]
            k += 32
    table[ty, tx] = mine
    cuda.syncthreads()
    if tx == 0 and row < w.shape[0]:
        for lane in range(1, 32):
            mine += table[ty, lane]
        y[row] = mine
