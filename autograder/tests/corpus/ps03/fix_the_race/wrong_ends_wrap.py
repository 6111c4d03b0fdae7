"""0 points: the ends of the rod touch."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = (t - 1) % 256, (t + 1) % 256
    rod[t] = x[i]
    cuda.syncthreads()
    for _ in range(rounds):
        mean = (rod[left] + rod[t] + rod[right]) / float32(3)
        cuda.syncthreads()
        rod[t] = mean
        cuda.syncthreads()
    out[i] = rod[t]
