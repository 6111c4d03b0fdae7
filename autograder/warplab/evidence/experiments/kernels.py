"""The kernels that the experiments time, as the chapters write them. All float32; ragged ends are checked."""

from numba import cuda, float32

TILE = 32
PADDED = TILE + 1
ROWS = 8  # rows of threads in a transpose block: each thread moves TILE / ROWS numbers
BLOCK = 256


@cuda.jit
def empty():
    """Does nothing: what is left is the launch."""
    return  # numba looks for a first line after the docstring


@cuda.jit
def copy_strided(x, out, stride):
    """out[i * stride] = x[i * stride] for thread i."""
    i = cuda.grid(1) * stride
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def transpose_naive(x, out):
    """out = x.T: reads rows, writes columns."""
    col = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    row = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for k in range(0, TILE, ROWS):
        if col < x.shape[1] and row + k < x.shape[0]:
            out[col, row + k] = x[row + k, col]


@cuda.jit
def transpose_tiled(x, out):
    """out = x.T through a shared tile whose columns lie in one bank: both ends
    coalesced, 32-way bank conflicts.
    """
    tile = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for k in range(0, TILE, ROWS):
        if left + tx < x.shape[1] and top + ty + k < x.shape[0]:
            tile[ty + k, tx] = x[top + ty + k, left + tx]
    cuda.syncthreads()
    for k in range(0, TILE, ROWS):
        if left + ty + k < x.shape[1] and top + tx < x.shape[0]:
            out[left + ty + k, top + tx] = tile[tx, ty + k]


@cuda.jit
def transpose_padded(x, out):
    """The same with one column more in the tile, so that a column's numbers lie in 32 banks."""
    tile = cuda.shared.array((TILE, PADDED), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    for k in range(0, TILE, ROWS):
        if left + tx < x.shape[1] and top + ty + k < x.shape[0]:
            tile[ty + k, tx] = x[top + ty + k, left + tx]
    cuda.syncthreads()
    for k in range(0, TILE, ROWS):
        if left + ty + k < x.shape[1] and top + tx < x.shape[0]:
            out[left + ty + k, top + tx] = tile[tx, ty + k]


@cuda.jit
def reduce_atomic(x, out):
    """out[0] += x[i], one atomic a number."""
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])


@cuda.jit
def reduce_tree(x, out):
    """Each thread adds its share, each block a tree in shared memory, then one atomic a block."""
    partial = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    acc = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        acc += x[i]
    partial[t] = acc
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def reduce_shuffle(x, out):
    """Each thread adds its share, each warp by shuffles, then one atomic a warp."""
    acc = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        acc += x[i]
    offset = 16
    while offset > 0:
        acc += cuda.shfl_down_sync(0xFFFFFFFF, acc, offset)
        offset //= 2
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, acc)


@cuda.jit
def divergent(out, paths, steps):
    """Every lane does the same arithmetic, lanes of a warp in ``paths`` groups one after the other."""
    mine = cuda.threadIdx.x % paths
    acc = float32(cuda.grid(1) % 7)
    for path in range(paths):
        if path == mine:
            for _ in range(steps):
                acc = acc * float32(0.999) + float32(0.001)
    out[cuda.grid(1)] = acc


@cuda.jit
def matmul_naive(a, b, c):
    """One thread, one element of c = a @ b."""
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        for k in range(a.shape[1]):
            acc += a[row, k] * b[k, col]
        c[row, col] = acc


@cuda.jit
def matmul_tiled(a, b, c):
    """The same through TILE x TILE tiles in shared memory."""
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    col, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[row, start + tx] if row < a.shape[0] and start + tx < a.shape[1] else float32(0)
        tile_b[ty, tx] = b[start + ty, col] if start + ty < a.shape[1] and col < b.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            acc += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@cuda.jit
def matmul_register_tiled(a, b, c):
    """One thread, 4 x 4 elements of c, 16 apart, from a 64 x 16 tile of a and a 16 x 64
    tile of b. Sides are multiples of 64.
    """
    tile_a = cuda.shared.array((64, 16), float32)
    tile_b = cuda.shared.array((16, 64), float32)
    acc = cuda.local.array((4, 4), float32)
    acc[:] = 0
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = 64 * cuda.blockIdx.x + tx, 64 * cuda.blockIdx.y + ty
    for start in range(0, a.shape[1], 16):
        for i in range(0, 64, 16):
            tile_a[ty + i, tx] = a[row + i, start + tx]
            tile_b[ty, tx + i] = b[start + ty, col + i]
        cuda.syncthreads()
        for k in range(16):
            for i in range(4):
                for j in range(4):
                    acc[i, j] += tile_a[ty + 16 * i, k] * tile_b[k, tx + 16 * j]
        cuda.syncthreads()
    for i in range(4):
        for j in range(4):
            c[row + 16 * i, col + 16 * j] = acc[i, j]


@cuda.jit
def gather(x, index, out):
    """out[i] = x[index[i]]."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[index[i]]


def follow(table, at, steps):
    """Go from table[i] to table[table[i]], so many times, on from where the last call
    stopped: no load can start before the last has ended.
    """
    i = at[0]
    for _ in range(steps):
        i = table[i]
    at[0] = i


chase = cuda.jit(follow)


@cuda.jit
def copy_one_by_one(x, out):
    """A grid of any size copies x; a thread has one number on its way at a time."""
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i]


@cuda.jit
def copy_by_fours(x, out):
    """The same with four loads on their way before the first store."""
    step = cuda.gridsize(1)
    for i in range(cuda.grid(1), x.size, 4 * step):
        if i + 3 * step < x.size:
            first, second, third, fourth = x[i], x[i + step], x[i + 2 * step], x[i + 3 * step]
            out[i], out[i + step], out[i + 2 * step], out[i + 3 * step] = first, second, third, fourth
        else:
            for last in range(i, x.size, step):
                out[last] = x[last]


def chain(length):
    """A kernel that reads a number, does `length` multiply-adds with it, one after the
    other, and writes it. In pieces of 64, which the compiler writes out; a loop that it
    writes out in part tests between two of them whether it has ended.
    """
    pieces, piece = max(1, length // 64), min(length, 64)

    @cuda.jit
    def multiply_adds(x, out):
        i = cuda.grid(1)
        if i < x.size:
            acc = x[i]
            for _ in range(pieces):
                for _ in range(piece):
                    acc = acc * float32(0.999) + float32(0.001)
            out[i] = acc

    return multiply_adds
