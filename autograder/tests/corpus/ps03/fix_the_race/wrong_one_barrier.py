"""0 points: a barrier before reading only: writers overtake readers."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    rod[t] = x[i]
    cuda.syncthreads()
    for _ in range(rounds):
        rod[t] = (rod[left] + rod[t] + rod[right]) / float32(3)
        cuda.syncthreads()
    out[i] = rod[t]
