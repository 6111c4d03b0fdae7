"""11 points: places stay in registers; neighbours come by shuffles, and by a table at the edges of a warp."""

from numba import cuda, float32


@cuda.jit
def fix_the_race(x, rounds, out):
    first = cuda.shared.array((2, 8), float32)
    last = cuda.shared.array((2, 8), float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane, warp = t % 32, t // 32
    mine = x[i]
    for k in range(rounds):
        now = k % 2
        if lane == 0:
            first[now, warp] = mine
        if lane == 31:
            last[now, warp] = mine
        left = cuda.shfl_up_sync(0xFFFFFFFF, mine, 1)
        right = cuda.shfl_down_sync(0xFFFFFFFF, mine, 1)
        cuda.syncthreads()
        if lane == 0 and warp > 0:
            left = last[now, warp - 1]
        if lane == 31 and warp < 7:
            right = first[now, warp + 1]
        mine = (left + mine + right) / float32(3)
    out[i] = mine
