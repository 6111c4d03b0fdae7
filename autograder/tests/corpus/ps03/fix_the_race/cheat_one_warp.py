"""6 points: the first warp works for all eight, and the other seven watch."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    rod = cuda.shared.array((2, 256), float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 256
    if t >= 32:
        return
    for place in range(t, 256, 32):
        rod[0, place] = x[first + place]
    cuda.syncwarp()
    for k in range(rounds):
        now, then = k % 2, (k + 1) % 2
        for place in range(t, 256, 32):
            left, right = max(place - 1, 0), min(place + 1, 255)
            rod[then, place] = (rod[now, left] + rod[now, place] + rod[now, right]) / float32(3)
        cuda.syncwarp()
    for place in range(t, 256, 32):
        out[first + place] = rod[rounds % 2, place]
