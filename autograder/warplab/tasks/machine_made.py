"""The kernels of problem set 14: for each job the one that its text shows, other wrong ones, and right ones.

The shown ones are written as language models write them, comments included; a test holds them to the text.
The others are CUDA C++, which the compiler's cache on disk keeps.
"""

from collections.abc import Callable
from dataclasses import dataclass

from numba import cuda, float32


@cuda.jit
def row_sums(x, out):
    """Highly optimized row-wise sum: one block per row, fully coalesced loads.

    Four independent accumulators per thread hide the memory latency, and a tree in
    shared memory combines the partial sums. Works for arbitrary row lengths.
    """
    cache = cuda.shared.array(256, float32)
    tx, row = cuda.threadIdx.x, cuda.blockIdx.x
    threads, cols = cuda.blockDim.x, x.shape[1]
    s0 = s1 = s2 = s3 = float32(0)
    # Main loop: four coalesced loads in flight per iteration.
    col = tx
    while col + 3 * threads < cols:
        s0 += x[row, col]
        s1 += x[row, col + threads]
        s2 += x[row, col + 2 * threads]
        s3 += x[row, col + 3 * threads]
        col += 4 * threads
    # Handle the remaining columns.
    if col < cols:
        s0 += x[row, col]
    # Tree reduction in shared memory.
    cache[tx] = (s0 + s1) + (s2 + s3)
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if tx < half:
            cache[tx] += cache[tx + half]
        cuda.syncthreads()
        half //= 2
    if tx == 0:
        out[row] = cache[0]


@cuda.jit
def brighten(x, out):
    """Brightness with saturation: out = min(1, 1.5 * x). Each block processes four tiles.

    Software pipelining: while one tile is processed the next one is already on its way, so
    that memory latency is completely hidden. All accesses are coalesced and bounds-checked.
    """
    threads, n = cuda.blockDim.x, x.shape[0]
    start = 4 * threads * cuda.blockIdx.x
    i = start + cuda.threadIdx.x
    # Prologue: load the first tile.
    current = x[i] if i < n else float32(0)
    for tile in range(4):
        # Prefetch the next tile; there is nothing to load behind the last one.
        following = float32(0)
        if tile < 3 and start + (tile + 1) * threads < n:
            following = x[i + threads]
        # Process the current tile.
        if i < n:
            out[i] = min(float32(1), float32(1.5) * current)
        current = following
        i += threads


@cuda.jit
def centre(x, out):
    """Subtract from each row its mean. Persistent blocks: each one loops over the rows.

    Launching few blocks and keeping them busy amortizes the launch overhead. Barriers are
    placed exactly where they are needed, one after each step of the reduction.
    """
    cache = cuda.shared.array(256, float32)
    tx, threads = cuda.threadIdx.x, cuda.blockDim.x
    rows, cols = x.shape
    row = cuda.blockIdx.x
    while row < rows:
        total = float32(0)
        for col in range(tx, cols, threads):
            total += x[row, col]
        cache[tx] = total
        cuda.syncthreads()
        half = threads // 2
        while half > 0:
            if tx < half:
                cache[tx] += cache[tx + half]
            cuda.syncthreads()
            half //= 2
        mean = cache[0] / float32(cols)
        for col in range(tx, cols, threads):
            out[row, col] = x[row, col] - mean
        row += cuda.gridDim.x


@cuda.jit
def variance(x, out):
    """Variance of each row in a single pass over memory (Welford), one block per row.

    A single pass halves the memory traffic of the classical two-pass formula. Partial
    results (count, mean, m2) of the threads are merged pairwise in shared memory.
    """
    counts = cuda.shared.array(256, float32)
    means = cuda.shared.array(256, float32)
    m2s = cuda.shared.array(256, float32)
    tx, row, threads = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockDim.x
    count, mean, m2 = float32(0), float32(0), float32(0)
    for col in range(tx, x.shape[1], threads):
        count += float32(1)
        delta = x[row, col] - mean
        mean += delta / count
        m2 += delta * (x[row, col] - mean)
    counts[tx] = count
    means[tx] = mean
    m2s[tx] = m2
    cuda.syncthreads()
    half = threads // 2
    while half > 0:
        if tx < half and counts[tx + half] > 0:
            # Merge two groups (Chan et al.); the first one may be larger.
            n = counts[tx] + counts[tx + half]
            delta = means[tx + half] - means[tx]
            means[tx] += delta * counts[tx + half] / n
            m2s[tx] += m2s[tx + half] + delta * delta * counts[tx] * counts[tx + half] / n
            counts[tx] = n
        cuda.syncthreads()
        half //= 2
    if tx == 0:
        out[row] = m2s[0] / counts[0]


@cuda.jit
def smooth(x, out):
    """Smoothstep, out = x * x * (3 - 2 * x), with a cache-friendly work distribution.

    Every thread owns one contiguous chunk of the array. This maximizes spatial locality:
    each cache line is used completely by a single thread before the next one is touched.
    """
    thread = cuda.grid(1)
    threads = cuda.gridsize(1)
    n = x.shape[0]
    # Size of a chunk, rounded up so that nothing is left over.
    chunk = (n + threads - 1) // threads
    start = thread * chunk
    for i in range(start, min(start + chunk, n)):
        v = x[i]
        out[i] = v * v * (float32(3) - float32(2) * v)


@cuda.jit
def energy(x, out, kept):
    """Energy of a signal, out = x * x, with incremental recomputation: up to 10x faster.

    In real workloads most of the input stays the same between two calls. Each block keeps a
    fingerprint of its tile in `kept` and returns early when the tile has not changed.
    """
    tx, block, threads = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockDim.x
    first = block * threads
    last = min(first + threads, x.shape[0]) - 1
    # Fingerprint: first, middle and last number of the tile, with different weights.
    fingerprint = x[first] + float32(3) * x[(first + last) // 2] + float32(7) * x[last]
    if kept[block] == fingerprint:
        return  # `out` is already up to date.
    cuda.syncthreads()
    if first + tx <= last:
        out[first + tx] = x[first + tx] * x[first + tx]
    if tx == 0:
        kept[block] = fingerprint


@dataclass(frozen=True)
class Version:
    """A kernel for a job. told: what it does, to complete "a kernel that ...".

    source: its CUDA C++, a kernel called `k`. grid: (rows or numbers, threads a block) -> number of blocks.
    """

    told: str
    source: str
    grid: Callable[[int, int], int]


TREE = """
__device__ float tree(float value) {
    __shared__ float cache[256];
    __syncthreads();
    cache[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    return cache[0];
}
"""


def each(size, threads):
    """One block a row."""
    return size


def pairs(size, threads):
    return -(-size // 2)


def tiles(each=1):
    """One block for `each` tiles; a tile has one number a thread."""
    return lambda size, threads: -(-size // (each * threads))


def summed(steps, last="cols"):
    """Sums the columns before `last`: a loop of `steps` loads a thread, then one load for the remainder."""
    return f"""{TREE}
extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {{
    int threads = blockDim.x, last = {last}, col = threadIdx.x;
    x += blockIdx.x * cols;
    float total = 0;
    for (; col + {steps - 1} * threads < last; col += {steps} * threads)
        for (int step = 0; step < {steps}; step++) total += x[col + step * threads];
    if (col < last) total += x[col];
    total = tree(total);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}}
"""


def summed_pairs(rows):
    return f"""{TREE}
extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {{
    for (int row = 2 * blockIdx.x; row < min(2 * (int)blockIdx.x + 2, {rows}); row++) {{
        float total = 0;
        for (int col = threadIdx.x; col < cols; col += blockDim.x) total += x[row * cols + col];
        total = tree(total);
        if (threadIdx.x == 0) out[row] = total;
    }}
}}
"""


WRONG_SUMS = (
    Version("leaves out what is past the last whole step", summed(1, "cols / threads * threads"), each),
    Version("leaves out what is past the last four columns", summed(1, "cols / 4 * 4"), each),
    Version("takes eight steps at once, and one for all that is left", summed(8), each),
    Version("adds one column for each thread, and no more", summed(1, "min(cols, threads)"), each),
    Version("sums two rows a block, and forgets an odd one", summed_pairs("rows / 2 * 2"), pairs),
)
RIGHT_SUMS = (
    Version("takes two steps at once, and one for what is left", summed(2), each),
    Version("sums two rows a block", summed_pairs("rows"), pairs),
    Version(
        "exchanges between lanes, and adds from the end",
        """
extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {
    __shared__ float warps[8];
    float total = 0;
    for (int col = cols - 1 - threadIdx.x; col >= 0; col -= blockDim.x) total += x[blockIdx.x * cols + col];
    for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffff, total, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; warp++) total += warps[warp];
        out[blockIdx.x] = total;
    }
}
""",
        each,
    ),
)

BRIGHT = """
__device__ float bright(float v) { return fminf(1.0f, 1.5f * v); }
extern "C" __global__ void k(const float *x, float *out, int n) {
    int tx = threadIdx.x, threads = blockDim.x, i = blockIdx.x * threads + tx;
"""


def pipelined(ahead, count=4):
    """The shown kernel with `count` tiles a block. ahead: the condition for the load ahead."""
    return f"""{BRIGHT}
    int start = {count} * threads * blockIdx.x;
    i = start + tx;
    float current = i < n ? x[i] : 0, following;
    for (int tile = 0; tile < {count}; tile++, i += threads, current = following) {{
        following = 0;
        if (tile < {count - 1} && {ahead}) following = x[i + threads];
        if (i < n) out[i] = bright(current);
    }}
}}
"""


def staged(inside):
    """Each thread loads its number into shared memory if the condition `inside` holds."""
    return f"""{BRIGHT}
    __shared__ float tile[256];
    if ({inside}) tile[tx] = x[i];
    __syncthreads();
    if (i < n) out[i] = bright(tile[tx]);
}}
"""


WRONG_BRIGHT = (
    Version(
        "loads two numbers at once as a float2",
        f"""{BRIGHT}
    if (2 * i >= n) return;
    float2 two = *(const float2 *)(x + 2 * i);
    out[2 * i] = bright(two.x);
    if (2 * i + 1 < n) out[2 * i + 1] = bright(two.y);
}}
""",
        tiles(2),
    ),
    Version("asks whether i <= n before it loads", staged("i <= n"), tiles()),
    Version("asks only whether its block begins inside", staged("blockIdx.x * threads < n"), tiles()),
    Version(
        "loads ahead over eight tiles a block", pipelined("start + (tile + 1) * threads < n", 8), tiles(8)
    ),
)
RIGHT_BRIGHT = (
    Version("asks before each load ahead", pipelined("i + threads < n"), tiles(4)),
    Version("stages its numbers in shared memory", staged("i < n"), tiles()),
    Version("loads the last number once more", f"{BRIGHT} float v = x[min(i, n - 1)];"
            " if (i < n) out[i] = bright(v); }", tiles()),
)  # fmt: skip


def centred(shared, total):
    """Each block loops over rows. total: code that adds each thread's `mine` up to `sum`, the row's sum."""
    return f"""{TREE}
extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {{
    __shared__ float {shared};
    int tx = threadIdx.x, warp = tx / 32, warps = blockDim.x / 32, turn = 0;
    for (int row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {{
        float mine = 0, sum = 0;
        for (int col = tx; col < cols; col += blockDim.x) mine += x[row * cols + col];
        {total}
        for (int col = tx; col < cols; col += blockDim.x)
            out[row * cols + col] = x[row * cols + col] - sum / cols;
    }}
}}
"""


def by_warps(slot, end=""):
    return f"""
        for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffff, mine, step);
        if (tx % 32 == 0) {slot}[warp] = mine;
        __syncthreads();
        for (int other = 0; other < warps; other++) sum += {slot}[other];
        {end}"""


def blocks(size, threads):
    """0: the case sets the number of blocks (`grid` in ps14)."""
    return 0


WRONG_CENTRES = (
    Version("has one table for the sums of its warps", centred("part[8]", by_warps("part")), blocks),
    Version(
        "adds up by atomics, and has no barrier after it sets the sum to 0",
        centred("part[1]", "if (tx == 0) part[0] = 0; atomicAdd(part, mine);"
                " __syncthreads(); sum = part[0]; __syncthreads();"),
        blocks,
    ),
    Version(
        "passes the sum on without a barrier",
        centred("part[1]", "mine = tree(mine); if (tx == 0) part[0] = mine; sum = part[0];"),
        blocks,
    ),
)  # fmt: skip
RIGHT_CENTRES = (
    Version("has two tables in turn", centred("part[2][8]", by_warps("part[turn]")), blocks),
    Version("waits once more", centred("part[8]", by_warps("part", "__syncthreads();")), blocks),
    Version("has a block for each row", centred("part[8]", by_warps("part")), each),
)


def varied(body):
    return f"""{TREE}
__device__ float everywhere(float value) {{
    __shared__ float all;
    value = tree(value);
    if (threadIdx.x == 0) all = value;
    __syncthreads();
    return all;
}}
extern "C" __global__ void k(const float *x, float *out, int rows, int cols) {{
    int tx = threadIdx.x, threads = blockDim.x;
    const float *row = x + blockIdx.x * cols;
    float a = 0, b = 0;
    {body}
}}
"""


def one_pass(shift):
    """Mean of the squares minus square of the mean, after `shift` is subtracted from each number."""
    return varied(f"""
    for (int col = tx; col < cols; col += threads) {{ float v = row[col] - {shift}; a += v; b += v * v; }}
    a = everywhere(a) / cols;
    b = everywhere(b) / cols;
    if (tx == 0) out[blockIdx.x] = fmaxf(0.0f, b - a * a);""")


def two_passes(value="row[col]", cols="cols", real="float"):
    return varied(f"""
    for (int col = tx; col < {cols}; col += threads) a += {value};
    float mean = everywhere(a) / {cols};
    for (int col = tx; col < cols; col += threads) {{ {real} v = {value} - mean; b += v * v; }}
    b = everywhere(b);
    if (tx == 0) out[blockIdx.x] = b / cols;""")


WRONG_VARIANCES = (
    Version(
        "takes the mean of the first `threads` columns for that of all",
        two_passes(cols="min(cols, threads)"),
        each,
    ),
    Version("subtracts the square of the mean from the mean of the squares", one_pass("0"), each),
    Version("subtracts x[0, 0] from all numbers, and goes on like the second", one_pass("x[0]"), each),
    Version(
        "keeps the upper 16 bits of each number",
        two_passes("__uint_as_float(__float_as_uint(row[col]) & 0xffff0000)"),
        each,
    ),
)
RIGHT_VARIANCES = (
    Version("goes over its row twice", two_passes(), each),
    Version("subtracts the first number of the row, and goes over it once", one_pass("row[0]"), each),
    Version("goes over its row twice, in float64", two_passes(real="double"), each),
)

SMOOTH = """
extern "C" __global__ void k(const float *x, volatile float *out, int n) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
"""


def smoothed(index, step="i += threads", write="out[j] = v * v * (3 - 2 * v);"):
    return f"""{SMOOTH}
    for (int i = thread; i < n; {step}) {{
        int j = {index};
        float v = x[j];
        {write}
    }}
}}
"""


PLAIN_SMOOTH = Version("has neighbours for neighbours", smoothed("i"), blocks)
SLOW_SMOOTH = (
    Version(
        "gives each thread eight neighbours at a time",
        f"""{SMOOTH}
    for (int i = 8 * thread; i < n; i += 8 * threads)
        for (int j = i; j < min(i + 8, n); j++) out[j] = x[j] * x[j] * (3 - 2 * x[j]);
}}
""",
        blocks,
    ),
    Version(
        "keeps what it has so far in `out`",
        smoothed("i", write="out[j] = v; out[j] = out[j] * v; out[j] = out[j] * (3 - 2 * v);"),
        blocks,
    ),
    Version(
        "gives the lanes of a warp numbers that are far apart",
        f"""{SMOOTH}
    int start = threadIdx.x % 32 * (threads / 32) + blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int i = start; i < n; i += threads) out[i] = x[i] * x[i] * (3 - 2 * x[i]);
}}
""",
        blocks,
    ),
)
FAST_SMOOTH = (
    Version("begins at the end", smoothed("n - 1 - i"), blocks),
    Version("has a thread for each number", smoothed("i"), tiles()),
    Version(
        "has a piece of the array for each block",
        f"""{SMOOTH}
    int piece = (n + gridDim.x - 1) / gridDim.x, end = min(n, (int)(blockIdx.x + 1) * piece);
    for (int i = blockIdx.x * piece + threadIdx.x; i < end; i += blockDim.x)
        out[i] = x[i] * x[i] * (3 - 2 * x[i]);
}}
""",
        blocks,
    ),
)


def remembered(key, state="float key;", same="kept[blockIdx.x] == key", keep="key"):
    """Each block returns early if its `key` equals that of the previous call."""
    return f"""{TREE}
extern "C" __global__ void k(const float *x, float *out, float *kept, int n) {{
    __shared__ {state}
    int tx = threadIdx.x, i = blockIdx.x * blockDim.x + tx;
    {key}
    __syncthreads();
    if ({same}) return;
    __syncthreads();
    if (i < n) out[i] = x[i] * x[i];
    if (tx == 0) kept[blockIdx.x] = {keep};
}}
"""


def keyed(value):
    return remembered(f"float total = tree({value}); if (tx == 0) key = total;")


WRONG_ENERGIES = (
    Version("returns early in each call after the first", remembered("if (tx == 0) key = 1;"), tiles()),
    Version("compares the sum of each tile", keyed("i < n ? x[i] : 0"), tiles()),
    Version(
        "compares the first 32 numbers of each tile", keyed("i < n && tx < 32 ? (tx + 1) * x[i] : 0"), tiles()
    ),
    Version("compares the sum of the squares of each tile", keyed("i < n ? x[i] * x[i] : 0"), tiles()),
)
RIGHT_ENERGIES = (
    Version("counts its calls in `kept`", remembered("if (tx == 0) key = 1;", same="false"), tiles()),
    Version(
        "keeps each number, and compares it",
        """
extern "C" __global__ void k(const float *x, float *out, float *kept, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || kept[i] == x[i]) return;
    kept[i] = x[i];
    out[i] = x[i] * x[i];
}
""",
        tiles(),
    ),
    Version("keeps nothing", """
extern "C" __global__ void k(const float *x, float *out, float *kept, int n) {
    for (int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i = -1) out[i] = x[i] * x[i];
}
""", tiles()),
)  # fmt: skip
