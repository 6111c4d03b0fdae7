"""30 points: each block serves its own 128 stars, the even ones with its first two warps."""

from numba import cuda


@cuda.jit
def undiverge(x, steps, out):
    half = cuda.blockDim.x // 2
    odd, place = cuda.threadIdx.x // half, cuda.threadIdx.x % half
    star = cuda.blockIdx.x * cuda.blockDim.x + 2 * place + odd
    if star < x.size:
        v = x[star]
        if odd:
            for _ in range(steps):
                v = 1 / (1 + v)
        else:
            for _ in range(steps):
                v = v * v + 0.25
        out[star] = v
