"""8 points: one block goes through the whole array, piece after piece, while all others are missing."""

from numba import cuda, int32


@cuda.jit
def walk(x, out):
    table = cuda.shared.array(256, int32)
    t = cuda.threadIdx.x
    so_far = int32(0)
    for start in range(0, x.size, 256):
        i = start + t
        table[t] = x[i] if i < x.size else 0
        cuda.syncthreads()
        reach = 1
        while reach < 256:
            before = table[t - reach] if t >= reach else 0
            cuda.syncthreads()
            table[t] += before
            cuda.syncthreads()
            reach *= 2
        if i < x.size:
            out[i] = so_far + table[t]
        so_far += table[255]
        cuda.syncthreads()


def scan(device, x, out):
    device.launch(walk, 1, 256, x, out)
