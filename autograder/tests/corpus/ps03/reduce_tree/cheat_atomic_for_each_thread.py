"""5 points: each thread hands in its own sum, so that nobody needs a table."""

from numba import cuda, float32


@cuda.jit
def reduce_tree(x, total):
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    cuda.atomic.add(total, 0, mine)
