"""0 points: works in `out` itself, without a barrier: in lockstep the numbers are right, on a GPU they are not."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    left, right = i - min(t, 1), i + min(255 - t, 1)
    out[i] = x[i]
    for _ in range(rounds):
        mean = (out[left] + out[i] + out[right]) / float32(3)
        out[i] = mean
