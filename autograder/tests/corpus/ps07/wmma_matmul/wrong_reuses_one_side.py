"""14.29 points: keeps a tile of A for two of B, and then fetches the same tiles of B again."""

import warplab

source = r"""
#include <mma.h>
using namespace nvcuda::wmma;
using TileA = fragment<matrix_a, 16, 16, 16, half, row_major>;
using TileB = fragment<matrix_b, 16, 16, 16, half, row_major>;
using Sums = fragment<accumulator, 16, 16, 16, float>;

extern "C" __global__
void wmma_matmul(const half* A, const half* B, float* C, int m, int n, int k, int lda, int ldb)
{
    TileA a;
    TileB b;
    Sums sums[2];
    int top = 32 * blockIdx.y, left = 32 * blockIdx.x;
    int across = n - left < 32 ? 1 : 2;
    for (int row = top; row < min(m, top + 32); row += 16) {
        for (int j = 0; j < across; j++)
            fill_fragment(sums[j], 0.0f);
        for (int step = 0; step < k; step += 16) {
            load_matrix_sync(a, A + row * lda + step, lda);
            for (int j = 0; j < across; j++) {
                load_matrix_sync(b, B + step * ldb + left + 16 * j, ldb);
                mma_sync(sums[j], a, b, sums[j]);
            }
        }
        for (int j = 0; j < across; j++)
            store_matrix_sync(C + row * n + left + 16 * j, sums[j], n, mem_row_major);
    }
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
