"""3 points: each thread walks along a row of its own, so that neighbours are a row apart."""

from numba import cuda


@cuda.jit
def forward(tokens, first, table, y):
    t = cuda.grid(1)
    if t < y.shape[0]:
        for d in range(y.shape[1]):
            y[t, d] = table[tokens[first + t], d]


@cuda.jit
def backward(tokens, first, grad_y, grad_table):
    t = cuda.grid(1)
    if t < grad_y.shape[0]:
        for d in range(grad_y.shape[1]):
            cuda.atomic.add(grad_table, (tokens[first + t], d), grad_y[t, d])


def embedding(device, tokens, first, table, grad_y, y, grad_table):
    device.fill(grad_table, 0)
    blocks = -(-y.shape[0] // 32)
    device.launch(forward, blocks, 32, tokens, first, table, y)
    device.launch(backward, blocks, 32, tokens, first, grad_y, grad_table)
