# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Problem set 15: Tomorrow's kernels
#
# A seismological service listens to the ground at a thousand stations and has been given four H100s. Its kernels were
# written for the GPUs of 2016. You rewrite three of them for the machinery of chapter 14, and no GPU is needed to try them.
#
# **About 5 hours** (estimated), after chapter 14. Every task has a star, and none needs another. Write in the place of
# the comment in each kernel; `help(grade)` says how points are counted. Unless a task says otherwise, sizes are whole
# numbers from 1 on. Inputs must stay as they are: a changed one costs the row.
#
# These kernels run on GPUs of compute capability 9.0 (H100, H200) and on the course's engine. There is no row for
# time: what is judged are results, the engine's checks, and what the engine counts.

# %%
import numpy as np
import warplab
from warplab.check import grade, needs, predict, puzzle, when_written

needs("cuda")  # what the sets before could do without

rng = np.random.default_rng(15)

# %% [markdown]
# ## Four guesses
#
# Put a guess in the place of each `...` and run its cell. There are no points, and every guess is answered.

# %% [markdown]
# Each number becomes the sum of itself, the 64 before it and the 64 after it. A block has 256 numbers of its own, and four blocks
# in a row form a cluster. How many numbers do blocks of a cluster read from each other, in all?

# %%
puzzle("ps15/borders", ...)

# %% [markdown]
# TMA is asked for a box of 32 x 64 float32 numbers. Only 20 of its rows and 40 of its columns lie inside of the array. How many
# bytes must the mbarrier expect?

# %%
puzzle("ps15/expected", ...)

# %% [markdown]
# A ring has three stages, numbered 0 to 2, each with an mbarrier of its own. Steps 0, 1, 2, ... use stages 0, 1, 2, 0, ... For
# which parity, 0 or 1, does step 7 wait?

# %%
puzzle("ps15/parity", ...)

# %% [markdown]
# A stage holds 64 x 64 numbers of A and 32 x 64 of B in float16, and has an mbarrier of 8 bytes. A block may declare 48 KiB of
# shared memory. How many stages can its ring have?

# %%
puzzle("ps15/stages", ...)

# %% [markdown]
# ## 1. A window across blocks *
#
# A seismogram is smoothed by a window that reaches `r` samples to each side:
#
# ```python
# out[i] = x[i - r] + ... + x[i + r]         # zeros beyond the ends of x
# ```
#
# x and out are float32, and r is 0 to 256. Each block of 256 threads makes 256 sums, so it needs 256 samples of its own and r more
# on each side, its *halo*. The given launch makes clusters of four blocks. A block's neighbours in the cluster
# have its halo in their shared memory already:
#
# ```text
#  x      ... | 256 samples | 256 samples | 256 samples | 256 samples | ...
#               rank 0        rank 1        rank 2        rank 3           one cluster
#
#  rank 1:  r from rank 0's shared memory, 256 from x, r from rank 2's shared memory
#  rank 0:  r from x,                      256 from x, r from rank 1's shared memory
# ```
#
# So fetch each block's own samples from global memory, and only at the two ends of a cluster also a halo.
# Read each number of any other halo once, from the neighbour, into your own shared memory; then add up from there.
#
# With `cg = cooperative_groups`, `cg::this_cluster()` is the cluster, `cluster.block_rank()` is 0 to 3,
# `cluster.map_shared_rank(part, other)` is the array `part` of the block of rank `other`, and `cluster.sync()` is
# a barrier of all its threads. Two things can go wrong: a block reads what its neighbour has not written yet, and a block
# ends while its neighbour still reads from it.

# %% solution="smooth"
source = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Thread t of a block makes out[256 * blockIdx.x + t]. About 20 lines.
extern "C" __global__ void __cluster_dims__(4)
smooth(const float* x, float* out, int n, int r)
{
    __shared__ float part[3 * 256];  // the halo on the left, up to 256; 256 samples; the halo on the right
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // Two meetings of the cluster: after the first everybody's own samples are there, after the second nobody reads another block's
    // memory any more, and the halos are there for all threads of the block. Usual slips: one of the two is missing (the engine tells
    // of a race, or of a block that has left), the neighbour's place counted as one's own (part[t] is its halo, not its first
    // sample), and a halo from x for every block, which is right and costs the row on sectors.
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), first = 256 * blockIdx.x;
    part[256 + t] = first + t < n ? x[first + t] : 0.0f;
    cluster.sync();
    if (t < r) {
        int left = first - r + t, right = first + 256 + t;
        if (rank > 0)
            part[256 - r + t] = cluster.map_shared_rank(part, rank - 1)[512 - r + t];
        else
            part[256 - r + t] = left >= 0 ? x[left] : 0.0f;
        if (rank < 3)
            part[512 + t] = cluster.map_shared_rank(part, rank + 1)[256 + t];
        else
            part[512 + t] = right < n ? x[right] : 0.0f;
    }
    cluster.sync();
    float sum = 0.0f;
    for (int d = -r; d <= r; d++)
        sum += part[256 + t + d];
    if (first + t < n)
        out[first + t] = sum;
    /*
    ### END SOLUTION
    */
}
"""
smooth = warplab.cuda_kernel(source, "smooth")

# %% grade="ps15/smooth"
grade("ps15/smooth", smooth)

# %% [markdown]
# What your kernel reads, and from where:

# %%
x, out = rng.normal(size=4096).astype(np.float32), np.zeros(4096, np.float32)
p = warplab.profile(smooth[16, 256], x, out, 4096, 192)
print(f"global memory: {p.global_read.sectors} sectors; other blocks: {p.distributed_load.bytes:,} bytes")

# %% [markdown]
# ## The words of TMA
#
# The next two kernels use the instructions of chapter 14. Each has a function here; an `unsigned` in their arguments is a place in
# shared memory, which `at(array)` gives.
#
# | call | what it does |
# |---|---|
# | `start_barrier(bar, 1)` | makes an mbarrier whose phase ends after one arrival and all expected bytes; one thread, once |
# | `show_barriers_to_tma()` | after that: TMA may complete at the barriers |
# | `expect(bar, bytes)` | arrives, and says how many bytes will come in this phase |
# | `fetch(to, map, col, row, bar)` | asks TMA for the box that begins at this column and row, into shared memory at `to` |
# | `wait(bar, parity)` | waits until the phase of this parity is over: 0 for the first, 1 for the second, 0, ... |
#
# The host makes the tensor map, `warplab.tensor_map(x, box)`: it holds the address and the shape of x, and the box that a request brings.

# %%
TMA = r"""
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ unsigned at(const void* in_shared) { return (unsigned)__cvta_generic_to_shared(in_shared); }

__device__ void start_barrier(unsigned bar, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(arrivals) : "memory");
}

__device__ void show_barriers_to_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ void expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}

__device__ void fetch(unsigned to, const TensorMap& map, int col, int row, unsigned bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(col), "r"(row), "r"(bar) : "memory");
}

__device__ void wait(unsigned bar, unsigned parity)
{
    asm volatile("{ .reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again; }" :: "r"(bar), "r"(parity) : "memory");
}
"""

# %% [markdown]
# ## 2. Tiles by TMA *
#
# Each row of x is what one station has heard, in float32. Its energy is wanted:
#
# ```python
# out[row] = (x[row].astype(float64) ** 2).sum()
# ```
#
# There are any number of rows; the number of columns is a multiple of 4, because TMA wants rows that begin at multiples of 16 bytes. A block of 128 threads, four warps, makes 32 rows. It goes along
# them in tiles of 32 x 64 numbers, 8 KiB. The kernel gets no pointer to x, only a tensor map with boxes of 32 x 64, so one thread asks TMA:
#
# ```text
#  step 0          step 1          step 2         what happens in each step
#  cols 0 - 63     cols 64 - 127   cols 128 - ..  1. one thread: expect(bytes), fetch(tile)
#  parity 0        parity 1        parity 0       2. all: wait(parity), add up squares from the tile
#                                                 3. all: meet, before the next fetch overwrites the tile
# ```
#
# At the right and lower edge a box reaches beyond x. TMA writes zeros there, and all 8,192 bytes of a box are counted, whatever lies inside.
# Fetch each tile once, and read it so that the 32 lanes of a warp read 32 neighbours of a row: each warp adds up 8 of the 32
# rows. `sum_of_warp(v)` gives lane 0 the sum of all lanes.

# %% solution="row_energy"
source = (
    TMA
    + r"""
__device__ float sum_of_warp(float v)
{
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_down_sync(0xffffffff, v, step);
    return v;
}

// A block makes out[32 * blockIdx.x] and the 31 after it, as far as there are rows. About 25 lines.
extern "C" __global__ void __launch_bounds__(128)
row_energy(const __grid_constant__ TensorMap x, float* out, int rows, int cols)
{
    __shared__ __align__(128) float tile[32][64];
    __shared__ unsigned long long barrier;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, top = 32 * blockIdx.x;
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // The barrier serves every step, so its parity alternates. All threads wait, also the one that asked. Usual slips: fewer bytes expected at
    // the edge (the kernel waits for ever), always parity 0 (step 1 reads before its tile is there, which the engine tells), no meeting
    // at the end of a step, out written beyond the last row. With the number of a thread's row in place of the lane, rows 64 words apart
    // share their banks.
    float sums[8] = {};
    if (threadIdx.x == 0) {
        start_barrier(at(&barrier), 1);
        show_barriers_to_tma();
    }
    __syncthreads();
    for (int step = 0; 64 * step < cols; step++) {
        if (threadIdx.x == 0) {
            expect(at(&barrier), 32 * 64 * 4);
            fetch(at(tile), x, 64 * step, top, at(&barrier));
        }
        wait(at(&barrier), step % 2);
        for (int i = 0; i < 8; i++)
            for (int col = lane; col < 64; col += 32)
                sums[i] += tile[8 * warp + i][col] * tile[8 * warp + i][col];
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        float sum = sum_of_warp(sums[i]);
        if (lane == 0 && top + 8 * warp + i < rows)
            out[top + 8 * warp + i] = sum;
    }
    /*
    ### END SOLUTION
    */
}
"""
)
row_energy = warplab.cuda_kernel(source, "row_energy")

# %% grade="ps15/row_energy"
grade("ps15/row_energy", row_energy)

# %% [markdown]
# The host's side of it, and what TMA brings at a ragged edge: fewer sectors from memory than bytes into shared memory.

# %%
x, out = rng.normal(size=(50, 100)).astype(np.float32), np.zeros(50, np.float32)
p = warplab.profile(row_energy[2, 128], warplab.tensor_map(x, (32, 64)), out, 50, 100)
print(
    f"{p.tma_load.requests} requests: {p.tma_load.bytes:,} bytes from memory, {p.tma_load.shared_bytes:,} into shared memory"
)

# %% [markdown]
# ## 3. A product that does not wait *
#
# Each event is compared with a library of known ones, row with row: a product.
#
# ```python
# C = A.astype(float32) @ B.astype(float32).T        # A: m x k, B: n x k, both float16; C: m x n, float32
# ```
#
# m is a multiple of 64, n a multiple of 32 and k a multiple of 64. A block of 128 threads, one warp group, makes 64 x 32 of C. A step along k
# takes 64 x 64 numbers of A and 32 x 64 of B: two boxes, 12 KiB, one *stage*. There is room for a ring of three. TMA must already be filling
# a stage while the Tensor Cores multiply what lies in another:
#
# ```text
#  TMA    fill 0   fill 1    fill 2    fill 0        fill 1         stages
#                  (step 1)  (step 2)  (step 3)      (step 4)
#  wgmma           step 0    step 1    step 2        step 3
#                  from 0    from 1    from 2        from 0
# ```
#
# 1. One thread starts a barrier for each stage, and asks for the first two steps, as far as there are so many.
# 2. In each step all wait for its stage. `begin_products()`, four times `multiply(sums, a, b)`, `commit_products()` start the product: each `multiply`
#    takes 16 numbers of k, 32 bytes of each row, so its operands are `described(place)` with `place` 0, 32, 64 and 96 bytes behind the beginning of A's and of B's tile.
# 3. A stage may be filled again when its product has read it. `wait_for_products<1>()` waits until only one product, the latest, is under way; then the stage of the step *before* is free. All
#    threads should meet, and one asks for the step that comes into that stage.
# 4. After the last step `wait_for_products<0>()`, and `store_sums(C + row * n + col, n, sums)` stores the block's 64 x 32 sums.
#
# The tensor maps have a swizzle of 128 bytes, which `described` says to the Tensor Cores, so a tile begins at a multiple of 1,024 bytes.

# %% solution="wgmma_product"
source = (
    TMA
    + r"""
__device__ unsigned long long described(unsigned place)
{
    return (place >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int OPEN> __device__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(OPEN) : "memory");
}

// sums += 64 x 16 numbers of A times 32 x 16 of B, transposed
__device__ void multiply(float (&d)[16], unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                 : "l"(a), "l"(b));
}

__device__ void store_sums(float* c, int n, const float (&d)[16])
{
    int lane = threadIdx.x % 32;
    c += (threadIdx.x / 32 * 16 + lane / 4) * n + lane % 4 * 2;
    for (int j = 0; j < 4; j++) {
        *(float2*)(c + 8 * j) = make_float2(d[4 * j], d[4 * j + 1]);
        *(float2*)(c + 8 * n + 8 * j) = make_float2(d[4 * j + 2], d[4 * j + 3]);
    }
}

constexpr int STAGES = 3, A_BYTES = 64 * 64 * 2, B_BYTES = 32 * 64 * 2;

// A block makes rows 64 * blockIdx.y ... + 63 and columns 32 * blockIdx.x ... + 31 of C. About 30 lines.
extern "C" __global__ void __launch_bounds__(128)
wgmma_product(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* C, int m, int n, int k)
{
    __shared__ __align__(1024) unsigned char a[STAGES][A_BYTES], b[STAGES][B_BYTES];
    __shared__ unsigned long long full[STAGES];
    int row = 64 * blockIdx.y, col = 32 * blockIdx.x, steps = k / 64;
    float sums[16] = {};
    /* Your code takes the place of this comment.
    ### BEGIN SOLUTION
    */
    // Step s lies in stage s % STAGES, whose barrier it uses for the (s / STAGES + 1)th time. In step s the product of step s - 1 is done, so the stage
    // that becomes free is that of s - 1, and what comes into it is step s - 1 + STAGES. Usual slips: the request right after the
    // products were started, into a stage that they still read; the parity of the step; the ask without the meeting, so that
    // one warp's products are done and another's are not; sums stored after wait_for_products<1>.
    auto ask = [&](int step) {
        int stage = step % STAGES;
        expect(at(&full[stage]), A_BYTES + B_BYTES);
        fetch(at(a[stage]), A, 64 * step, row, at(&full[stage]));
        fetch(at(b[stage]), B, 64 * step, col, at(&full[stage]));
    };
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++)
            start_barrier(at(&full[stage]), 1);
        show_barriers_to_tma();
        for (int step = 0; step < min(STAGES - 1, steps); step++)
            ask(step);
    }
    __syncthreads();
    for (int step = 0; step < steps; step++) {
        int stage = step % STAGES;
        wait(at(&full[stage]), step / STAGES % 2);
        begin_products();
        for (int i = 0; i < 4; i++)
            multiply(sums, described(at(a[stage]) + 32 * i), described(at(b[stage]) + 32 * i));
        commit_products();
        wait_for_products<1>();
        __syncthreads();
        if (threadIdx.x == 0 && step + STAGES - 1 < steps)
            ask(step + STAGES - 1);
    }
    wait_for_products<0>();
    store_sums(C + row * n + col, n, sums);
    /*
    ### END SOLUTION
    */
}
"""
)
wgmma_product = warplab.cuda_kernel(source, "wgmma_product")

# %% grade="ps15/wgmma_product"
grade("ps15/wgmma_product", wgmma_product)

# %% [markdown]
# How much of the operands the Tensor Cores read while no tile was on its way: of a kernel that waits for each tile, all of it.

# %%
A, B = (rng.normal(size=(rows, 640)).astype(np.float16) for rows in (128, 64))
C = np.zeros((128, 64), np.float32)
maps = warplab.tensor_map(A, (64, 64), swizzle=128), warplab.tensor_map(B, (32, 64), swizzle=128)
p = warplab.profile(wgmma_product[(2, 2), 128], *maps, C, 128, 64, 640)
print(
    f"{p.operand_bytes:,} bytes of operands, {p.operand_bytes_alone:,} of them alone; {p.tma_load.requests} requests of TMA"
)

# %% [markdown]
# ## Predict, then count
#
# **Guess first.** Your `smooth` runs on 4,096 samples, 16 blocks in four clusters. How many sectors does it read from global memory for r = 8,
# for r = 64 and for r = 256? Write your guesses in the place of `...`, then run the cell.
#
# **Then explain.** What share of the halos' sectors do clusters of four save, here and in a recording without end, and when is that worth little? In both other kernels one thread
# asks TMA. Which wait is left in `row_energy` that `wgmma_product` does not have, and what would it take to remove it there? About 150 words.


# %%
def sectors(r):
    """Sectors that `smooth` reads from global memory for 4,096 samples."""
    x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    return warplab.profile(smooth[16, 256], x, out, 4096, r).global_read.sectors


with when_written():
    predict({8: ..., 64: ..., 256: ...}, sectors)

# %% [markdown] manual="predict_explain" points=5
# ### BEGIN SOLUTION
# **Sample answer.** 518, 560 and 704. The samples themselves are 512 sectors. There are three borders between clusters, and across each r / 8 sectors go either
# way; the two ends of the array need none.
#
# Without clusters there are 15 borders between 16 blocks, with them three: four fifths are saved here, and in a long recording three quarters, since one of four borders is left. That is worth
# little where the halo is small beside the block: with r = 8 and no clusters 542 sectors would be read, of which 30 are halos. And L2 may have the neighbour's samples anyway, so that HBM sees no difference.
#
# `row_energy` has one tile: nobody adds up while TMA fills it, and TMA rests while they add. A ring of two tiles with a barrier each,
# the next one asked for before the wait, removes that: 16 KiB in place of 8, and the meeting at the end of a step then guards the tile of the step before.
#
# **Marking.** 1 point: prediction or its correction. 2 points: borders between clusters remain, and halos are small beside blocks, or in L2. 2 points: the wait for the only tile, and
# a second one with its own barrier.
# ### END SOLUTION
