"""0 points: the ends have a branch of their own, and its barriers are other ones."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    rod[t] = x[i]
    cuda.syncthreads()
    for _ in range(rounds):
        if 0 < t < 255:
            mean = (rod[t - 1] + rod[t] + rod[t + 1]) / float32(3)
            cuda.syncthreads()
        else:
            mean = (rod[t] + rod[t] + rod[1 if t == 0 else 254]) / float32(3)
            cuda.syncthreads()
        rod[t] = mean
        cuda.syncthreads()
    out[i] = rod[t]
