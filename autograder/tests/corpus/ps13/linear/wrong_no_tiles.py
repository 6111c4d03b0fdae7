"""11 points: right, and every thread fetches both factors of each product from memory."""

from numba import cuda, float32


@cuda.jit
def forward(x, first, w, b, y):
    col, row = cuda.grid(2)
    if row < y.shape[0] and col < y.shape[1]:
        acc = b[col]
        for i in range(w.shape[0]):
            acc += x[first + row, i] * w[i, col]
        y[row, col] = acc


@cuda.jit
def by_inputs(grad_y, w, grad_x):
    col, row = cuda.grid(2)
    if row < grad_x.shape[0] and col < grad_x.shape[1]:
        acc = float32(0)
        for o in range(w.shape[1]):
            acc += grad_y[row, o] * w[col, o]
        grad_x[row, col] = acc


@cuda.jit
def by_weights(x, first, grad_y, grad_w, grad_b):
    col, row = cuda.grid(2)
    if row < grad_w.shape[0] and col < grad_w.shape[1]:
        acc, of_bias = float32(0), float32(0)
        for i in range(grad_y.shape[0]):
            acc += x[first + i, row] * grad_y[i, col]
            of_bias += grad_y[i, col]
        grad_w[row, col] = acc
        if row == 0:
            grad_b[col] = of_bias


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    def blocks(array):
        rows, cols = array.shape
        return -(-cols // 16), -(-rows // 16)

    device.launch(forward, blocks(y), (16, 16), x, first, w, b, y)
    device.launch(by_inputs, blocks(grad_x), (16, 16), grad_y, w, grad_x)
    device.launch(by_weights, blocks(grad_w), (16, 16), x, first, grad_y, grad_w, grad_b)
