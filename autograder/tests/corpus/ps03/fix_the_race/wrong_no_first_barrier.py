"""0 points: reads before the neighbours have put down."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    rod[t] = x[i]
    for _ in range(rounds):
        mean = (rod[left] + rod[t] + rod[right]) / float32(3)
        cuda.syncthreads()
        rod[t] = mean
        cuda.syncthreads()
    out[i] = rod[t]
