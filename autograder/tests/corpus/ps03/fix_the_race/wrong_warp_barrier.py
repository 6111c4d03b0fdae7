"""0 points: syncwarp where the whole block must meet."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    rod[t] = x[i]
    cuda.syncwarp()
    for _ in range(rounds):
        mean = (rod[left] + rod[t] + rod[right]) / float32(3)
        cuda.syncwarp()
        rod[t] = mean
        cuda.syncwarp()
    out[i] = rod[t]
