// One product climbed on Hopper: c = a bᵀ in BF16, sums in FP32; a is [m, k], b [n, k], c [m, n], all row by row.
// m and n are multiples of 256, k of 64. Five kernels, each of which changes one thing of the one before:
//
//   threads_copy          all threads copy (cp.async), each warp multiplies for itself (mma.sync)
//   one_thread_copies     one thread asks for a whole tile (TMA), which an mbarrier says has come
//   warpgroup_multiplies  four warps share a product that reads shared memory by itself (wgmma)
//   roles_apart           a warp does nothing but ask for tiles; the others do nothing but multiply
//   a_cluster_shares      two blocks read the columns that both need once, and multicast them
//
// A tile has 64 numbers of k in each row, 128 bytes, which is what TMA's widest swizzle is made for: the chunk of
// 16 bytes number i of row r lies at i ^ (r % 8), so that eight rows of a column lie in all 32 banks.

#include <cuda_bf16.h>

typedef __nv_bfloat16 bf16;

constexpr int DEEP = 64;                        // of k in a tile
constexpr int BOX = 128;                        // rows of a tile that one request of TMA brings
constexpr unsigned BOX_BYTES = BOX * DEEP * 2;  // 16 KiB
constexpr int GROUP = 32;                       // rows of tiles that are under way at once, for the sake of L2

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// ---- the machine's words, one function each

__device__ unsigned at(const void* in_shared) { return (unsigned)__cvta_generic_to_shared(in_shared); }

__device__ void copy_16_bytes(unsigned to, const bf16* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
}

__device__ void load_matrices(unsigned (&r)[4], unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from) : "memory");
}

__device__ void multiply_16x8(float* d, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void start_barrier(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ void expect(unsigned barrier, unsigned bytes)  // arrives, too
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

// At the same barrier of a block of the cluster. Nothing that this thread wrote is announced by it: with
// .release.cluster it would be, and on an H100 wait for all of the thread's writes, in each stage.
__device__ void arrive_at(unsigned barrier, unsigned block)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }"
                 :: "r"(barrier), "r"(block) : "memory");
}

__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

__device__ void show_barriers_to_tma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ void meet_in_cluster()
{
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ unsigned rank_in_cluster()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ void fetch(unsigned to, const TensorMap& map, int k, int row, unsigned barrier)  // a box of 128 rows
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier) : "memory");
}

__device__ void fetch_for_both(unsigned to, const TensorMap& map, int k, int row, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(to), "l"(&map), "r"(k), "r"(row), "r"(barrier), "h"((unsigned short)3) : "memory");
}

// Where wgmma finds a tile: rows of 128 bytes, eight of them (1,024 bytes) a core of the swizzle of 128 bytes.
__device__ unsigned long long described(unsigned tile)
{
    return (tile >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

#define TEN(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define HELD(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define HELD_16(i) HELD(i), HELD(i + 4), HELD(i + 8), HELD(i + 12)
#define HELD_64(i) HELD_16(i), HELD_16(i + 16), HELD_16(i + 32), HELD_16(i + 48)

__device__ void multiply_64x128(float* d, unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) "%60, %61, %62, %63}, %64, %65, 1, 1, 1, 0, 0;"
                 : HELD_64(0) : "l"(a), "l"(b));
}

__device__ void multiply_64x256(float* d, unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 TEN() TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11)
                 "%120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, 1, 1, 1, 0, 0;"
                 : HELD_64(0), HELD_64(64) : "l"(a), "l"(b));
}

__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int OPEN> __device__ void wait_for_products()  // until at most OPEN groups are under way
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(OPEN) : "memory");
}

// ---- what several kernels do

// The tile of c that a block makes: 32 rows of tiles down, then the next column, so that blocks that run at the
// same time read the same rows of a and b.
__device__ void place(int tiles_m, int tiles_n, int& row, int& col)
{
    int first = blockIdx.x / (GROUP * tiles_n) * GROUP, inside = blockIdx.x % (GROUP * tiles_n);
    int rows = min(GROUP, tiles_m - first);
    row = first + inside % rows;
    col = inside / rows;
}

// Four numbers of c of each eight columns: where mma.sync and wgmma leave their sums.
__device__ void store_sums(bf16* c, int n, const float* sums, int eights)
{
    int lane = threadIdx.x % 32;
    c += lane / 4 * n + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < eights; ++j) {
        *(__nv_bfloat162*)(c + 8 * j) = __floats2bfloat162_rn(sums[4 * j], sums[4 * j + 1]);
        *(__nv_bfloat162*)(c + 8 * n + 8 * j) = __floats2bfloat162_rn(sums[4 * j + 2], sums[4 * j + 3]);
    }
}

// A warp's part, 64 x 32, of a tile of 128 x 128: eight warps, two below each other, four beside each other.
__device__ void multiply_by_warps(float (&sums)[4][16], unsigned a, unsigned b)
{
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int a_row = warp / 4 * 64 + lane % 16, b_row = warp % 4 * 32 + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int k = 0; k < DEEP / 16; ++k) {
        unsigned left[4][4], right[2][4];
        for (int i = 0; i < 4; ++i)
            load_matrices(left[i], a + (a_row + 16 * i) * 128 + ((2 * k + lane / 16) ^ a_row % 8) * 16);
        for (int j = 0; j < 2; ++j)
            load_matrices(right[j], b + (b_row + 16 * j) * 128 + ((2 * k + lane / 8 % 2) ^ b_row % 8) * 16);
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j)
                multiply_16x8(&sums[i][4 * j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
    }
}

__device__ void store_by_warps(bf16* c, int n, int row, int col, const float (&sums)[4][16])
{
    int warp = threadIdx.x / 32;
    for (int i = 0; i < 4; ++i)
        store_sums(c + (row * 128 + warp / 4 * 64 + 16 * i) * (long long)n + col * 128 + warp % 4 * 32, n, sums[i], 4);
}

extern __shared__ __align__(1024) unsigned char memory[];

// ---- 1: 256 threads, tiles of 128 x 128, two stages

__device__ void copy_by_all(unsigned to, const bf16* from, int k)  // 128 rows of 128 bytes, swizzled by hand
{
    for (int chunk = threadIdx.x; chunk < BOX * 8; chunk += 256) {
        int row = chunk / 8, i = chunk % 8;
        copy_16_bytes(to + row * 128 + (i ^ row % 8) * 16, from + row * (long long)k + i * 8);
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
threads_copy(const bf16* a, const bf16* b, bf16* c, int m, int n, int k)
{
    int row, col;
    place(m / 128, n / 128, row, col);
    a += row * 128ll * k;
    b += col * 128ll * k;
    unsigned stages = at(memory);
    float sums[4][16] = {};
    for (int step = -1; step < k / DEEP; ++step) {
        int next = step + 1;
        if (next < k / DEEP) {
            unsigned stage = stages + next % 2 * 2 * BOX_BYTES;
            copy_by_all(stage, a + next * DEEP, k);
            copy_by_all(stage + BOX_BYTES, b + next * DEEP, k);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (step < 0)
            continue;
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();  // the copies of all threads are there
        unsigned stage = stages + step % 2 * 2 * BOX_BYTES;
        multiply_by_warps(sums, stage, stage + BOX_BYTES);
        __syncthreads();  // nobody reads the stage any more
    }
    store_by_warps(c, n, row, col, sums);
}

// ---- 2: the same tiles, brought by TMA

extern "C" __global__ void __launch_bounds__(256, 2)
one_thread_copies(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, bf16* c,
                  int m, int n, int k)
{
    int row, col;
    place(m / 128, n / 128, row, col);
    unsigned stages = at(memory), full = stages + 4 * BOX_BYTES;
    if (threadIdx.x == 0) {
        start_barrier(full, 1);
        start_barrier(full + 8, 1);
        show_barriers_to_tma();
    }
    __syncthreads();
    float sums[4][16] = {};
    for (int step = -1; step < k / DEEP; ++step) {
        int next = step + 1;
        if (threadIdx.x == 0 && next < k / DEEP) {
            unsigned stage = stages + next % 2 * 2 * BOX_BYTES, barrier = full + next % 2 * 8;
            expect(barrier, 2 * BOX_BYTES);
            fetch(stage, a, next * DEEP, row * 128, barrier);
            fetch(stage + BOX_BYTES, b, next * DEEP, col * 128, barrier);
        }
        if (step < 0)
            continue;
        wait(full + step % 2 * 8, step / 2 % 2);
        unsigned stage = stages + step % 2 * 2 * BOX_BYTES;
        multiply_by_warps(sums, stage, stage + BOX_BYTES);
        __syncthreads();  // nobody reads the stage any more
    }
    store_by_warps(c, n, row, col, sums);
}

// ---- 3: the same tiles, multiplied by one warpgroup

extern "C" __global__ void __launch_bounds__(128)
warpgroup_multiplies(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, bf16* c,
                     int m, int n, int k)
{
    int row, col;
    place(m / 128, n / 128, row, col);
    unsigned stages = at(memory), full = stages + 4 * BOX_BYTES;
    if (threadIdx.x == 0) {
        start_barrier(full, 1);
        start_barrier(full + 8, 1);
        show_barriers_to_tma();
    }
    __syncthreads();
    float sums[2][64] = {};
    for (int step = -1; step < k / DEEP; ++step) {
        int next = step + 1;
        if (threadIdx.x == 0 && next < k / DEEP) {
            unsigned stage = stages + next % 2 * 2 * BOX_BYTES, barrier = full + next % 2 * 8;
            expect(barrier, 2 * BOX_BYTES);
            fetch(stage, a, next * DEEP, row * 128, barrier);
            fetch(stage + BOX_BYTES, b, next * DEEP, col * 128, barrier);
        }
        if (step < 0)
            continue;
        wait(full + step % 2 * 8, step / 2 % 2);
        unsigned stage = stages + step % 2 * 2 * BOX_BYTES;
        begin_products();
#pragma unroll
        for (int i = 0; i < DEEP; i += 16)  // 16 numbers of k are 32 bytes; 64 rows of a are 8 KiB
#pragma unroll
            for (int half = 0; half < 2; ++half)
                multiply_64x128(sums[half], described(stage + half * 64 * 128 + i * 2),
                                described(stage + BOX_BYTES + i * 2));
        commit_products();
        wait_for_products<0>();
        __syncthreads();  // nobody reads the stage any more
    }
    c += (row * 128 + threadIdx.x / 32 * 16) * (long long)n + col * 128;
    for (int half = 0; half < 2; ++half)
        store_sums(c + half * 64ll * n, n, sums[half], 16);
}

// ---- 4: tiles of 128 x 256, a ring of four stages, a producer and two consumers

constexpr int STAGES = 4;
constexpr unsigned STAGE_BYTES = 3 * BOX_BYTES;  // a box of a, two of b

// Registers move from the producer to the consumers: 40 and 232 a thread, of 168 that each began with.
__device__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 40;"); }
__device__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 232;"); }

// One consumer's 64 rows: the products of a stage are under way while those of the next are issued.
template <bool CLUSTER>
__device__ void consume(float* sums, unsigned stages, unsigned full, unsigned empty, int half, int steps)
{
    auto release = [&](int step) {  // the stage of a step may be overwritten
        unsigned barrier = empty + step % STAGES * 8, lane = threadIdx.x % 128;
        if (CLUSTER && lane < 2)
            arrive_at(barrier, lane);
        if (!CLUSTER && lane == 0)
            arrive(barrier);
    };
    for (int step = 0; step < steps; ++step) {
        unsigned stage = stages + step % STAGES * STAGE_BYTES;
        wait(full + step % STAGES * 8, step / STAGES % 2);
        begin_products();
#pragma unroll
        for (int i = 0; i < DEEP; i += 16)
            multiply_64x256(sums, described(stage + half * 64 * 128 + i * 2), described(stage + BOX_BYTES + i * 2));
        commit_products();
        wait_for_products<1>();
        if (step > 0)
            release(step - 1);
    }
    wait_for_products<0>();
}

extern "C" __global__ void __launch_bounds__(384)
roles_apart(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, bf16* c, int m, int n, int k)
{
    int row, col;
    place(m / 128, n / 256, row, col);
    unsigned stages = at(memory), full = stages + STAGES * STAGE_BYTES, empty = full + STAGES * 8;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            start_barrier(full + stage * 8, 1);
            start_barrier(empty + stage * 8, 2);  // two consumers
        }
        show_barriers_to_tma();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        give_registers();
        for (int step = 0; threadIdx.x == 0 && step < k / DEEP; ++step) {
            unsigned stage = stages + step % STAGES * STAGE_BYTES, barrier = full + step % STAGES * 8;
            if (step >= STAGES)
                wait(empty + step % STAGES * 8, step / STAGES % 2 ^ 1);
            expect(barrier, STAGE_BYTES);
            fetch(stage, a, step * DEEP, row * 128, barrier);
            fetch(stage + BOX_BYTES, b, step * DEEP, col * 256, barrier);
            fetch(stage + 2 * BOX_BYTES, b, step * DEEP, col * 256 + 128, barrier);
        }
    } else {
        take_registers();
        int half = threadIdx.x / 128 - 1;
        float sums[128] = {};
        consume<false>(sums, stages, full, empty, half, k / DEEP);
        store_sums(c + (row * 128 + half * 64 + threadIdx.x % 128 / 32 * 16) * (long long)n + col * 256, n, sums, 32);
    }
}

// ---- 5: two blocks, one below the other, share the columns

extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(384)
a_cluster_shares(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, bf16* c,
                 int m, int n, int k)
{
    int row, col;
    place(m / 128, n / 256, row, col);  // neighbours in a row of blocks lie below each other
    unsigned stages = at(memory), full = stages + STAGES * STAGE_BYTES, empty = full + STAGES * 8;
    unsigned rank = rank_in_cluster();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            start_barrier(full + stage * 8, 1);
            start_barrier(empty + stage * 8, 4);  // two consumers of each block
        }
        show_barriers_to_tma();
    }
    meet_in_cluster();  // both blocks' barriers are there before anything comes
    if (threadIdx.x < 128) {
        give_registers();
        for (int step = 0; threadIdx.x == 0 && step < k / DEEP; ++step) {
            unsigned stage = stages + step % STAGES * STAGE_BYTES, barrier = full + step % STAGES * 8;
            if (step >= STAGES)
                wait(empty + step % STAGES * 8, step / STAGES % 2 ^ 1);
            expect(barrier, STAGE_BYTES);  // a box of its own, and one from each block
            fetch(stage, a, step * DEEP, row * 128, barrier);
            fetch_for_both(stage + (1 + rank) * BOX_BYTES, b, step * DEEP, col * 256 + rank * 128, barrier);
        }
    } else {
        take_registers();
        int half = threadIdx.x / 128 - 1;
        float sums[128] = {};
        consume<true>(sums, stages, full, empty, half, k / DEEP);
        store_sums(c + (row * 128 + half * 64 + threadIdx.x % 128 / 32 * 16) * (long long)n + col * 256, n, sums, 32);
    }
    meet_in_cluster();  // no block leaves while the other may still write to it or arrive at its barriers
}
