"""16 points: numba, three kernels, each with the two tiles that it needs."""

from numba import cuda, float32

SIDE, WIDER = 16, 17


@cuda.jit
def forward(x, first, w, b, y):
    xs = cuda.shared.array((SIDE, SIDE), float32)
    ws = cuda.shared.array((SIDE, SIDE), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    batch, outputs = y.shape
    acc = float32(0)
    for start in range(0, w.shape[0], SIDE):
        inside = row < batch and start + tx < w.shape[0]
        xs[ty, tx] = x[first + row, start + tx] if inside else float32(0)
        inside = start + ty < w.shape[0] and col < outputs
        ws[ty, tx] = w[start + ty, col] if inside else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += xs[ty, i] * ws[i, tx]
        cuda.syncthreads()
    if row < batch and col < outputs:
        y[row, col] = acc + b[col]


@cuda.jit
def by_inputs(grad_y, w, grad_x):
    gs = cuda.shared.array((SIDE, SIDE), float32)
    ws = cuda.shared.array((SIDE, WIDER), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    batch, outputs = grad_y.shape
    fetched = cuda.blockIdx.x * SIDE + ty
    acc = float32(0)
    for start in range(0, outputs, SIDE):
        gs[ty, tx] = grad_y[row, start + tx] if row < batch and start + tx < outputs else float32(0)
        inside = fetched < w.shape[0] and start + tx < outputs
        ws[ty, tx] = w[fetched, start + tx] if inside else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += gs[ty, i] * ws[tx, i]
        cuda.syncthreads()
    if row < batch and col < w.shape[0]:
        grad_x[row, col] = acc


@cuda.jit
def by_weights(x, first, grad_y, grad_w, grad_b):
    xs = cuda.shared.array((SIDE, SIDE), float32)
    gs = cuda.shared.array((SIDE, SIDE), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    batch, outputs = grad_y.shape
    fetched = cuda.blockIdx.y * SIDE + tx
    acc, of_bias = float32(0), float32(0)
    for start in range(0, batch, SIDE):
        inside = start + ty < batch and fetched < x.shape[1]
        xs[ty, tx] = x[first + start + ty, fetched] if inside else float32(0)
        gs[ty, tx] = grad_y[start + ty, col] if start + ty < batch and col < outputs else float32(0)
        cuda.syncthreads()
        for i in range(SIDE):
            acc += xs[i, ty] * gs[i, tx]
            of_bias += gs[i, tx]
        cuda.syncthreads()
    if row < x.shape[1] and col < outputs:
        grad_w[row, col] = acc
    if row == 0 and col < outputs:
        grad_b[col] = of_bias


def blocks(rows, cols):
    return (cols + SIDE - 1) // SIDE, (rows + SIDE - 1) // SIDE


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    block = SIDE, SIDE
    device.launch(forward, blocks(*y.shape), block, x, first, w, b, y)
    device.launch(by_inputs, blocks(*grad_x.shape), block, grad_y, w, grad_x)
    device.launch(by_weights, blocks(*grad_w.shape), block, x, first, grad_y, grad_w, grad_b)
