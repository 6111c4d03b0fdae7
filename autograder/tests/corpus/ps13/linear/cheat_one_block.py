"""11 points: one block goes through all tiles of all three products."""

from numba import cuda, float32

SIDE, WIDER = 16, 17


@cuda.jit
def product(a, b, bias, c, first, m, n, k, turn_a, turn_b, with_bias):
    left = cuda.shared.array((SIDE, WIDER), float32)
    right = cuda.shared.array((SIDE, WIDER), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for top in range(0, m, SIDE):
        for side in range(0, n, SIDE):
            acc = bias[side + tx] if with_bias and side + tx < n else float32(0)
            for start in range(0, k, SIDE):
                if turn_a:
                    left[tx, ty] = a[first + start + ty, top + tx] if start + ty < k and top + tx < m else float32(0)
                else:
                    left[ty, tx] = a[first + top + ty, start + tx] if top + ty < m and start + tx < k else float32(0)
                if turn_b:
                    right[tx, ty] = b[side + ty, start + tx] if side + ty < n and start + tx < k else float32(0)
                else:
                    right[ty, tx] = b[start + ty, side + tx] if start + ty < k and side + tx < n else float32(0)
                cuda.syncthreads()
                for i in range(SIDE):
                    acc += left[ty, i] * right[i, tx]
                cuda.syncthreads()
            if top + ty < m and side + tx < n:
                c[top + ty, side + tx] = acc


@cuda.jit
def columns(a, sums):
    for col in range(cuda.threadIdx.x, a.shape[1], 32):
        acc = float32(0)
        for row in range(a.shape[0]):
            acc += a[row, col]
        sums[col] = acc


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    (batch, outputs), inputs, block = y.shape, x.shape[1], (SIDE, SIDE)
    device.launch(product, 1, block, x, w, b, y, first, batch, outputs, inputs, 0, 0, 1)
    device.launch(product, 1, block, grad_y, w, b, grad_x, 0, batch, inputs, outputs, 0, 1, 0)
    device.launch(product, 1, block, x, grad_y, b, grad_w, first, inputs, outputs, batch, 1, 0, 0)
    device.launch(columns, 1, 32, grad_y, grad_b)
