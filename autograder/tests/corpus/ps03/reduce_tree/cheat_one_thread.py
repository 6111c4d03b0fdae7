"""5 points: one thread adds up everything: no table, one atomic, and 32 times the loads."""

from numba import cuda, float32


@cuda.jit
def reduce_tree(x, total):
    if cuda.grid(1) == 0:
        mine = float32(0)
        for i in range(x.size):
            mine += x[i]
        cuda.atomic.add(total, 0, mine)
