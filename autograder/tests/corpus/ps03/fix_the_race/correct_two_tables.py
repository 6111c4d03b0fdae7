"""11 points: two tables that swap their roles: one barrier a round."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array((2, 256), float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    left, right = max(t - 1, 0), min(t + 1, 255)
    rod[0, t] = x[i]
    cuda.syncthreads()
    for k in range(rounds):
        now, then = k % 2, (k + 1) % 2
        rod[then, t] = (rod[now, left] + rod[now, t] + rod[now, right]) / float32(3)
        cuda.syncthreads()
    out[i] = rod[rounds % 2, t]
