"""10 points: chapter 7's kernel four times over: every tile is loaded for each use."""

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
    Sums sums;
    int top = 32 * blockIdx.y, left = 32 * blockIdx.x;
    for (int row = top; row < min(m, top + 32); row += 16)
        for (int col = left; col < min(n, left + 32); col += 16) {
            fill_fragment(sums, 0.0f);
            for (int step = 0; step < k; step += 16) {
                load_matrix_sync(a, A + row * lda + step, lda);
                load_matrix_sync(b, B + step * ldb + col, ldb);
                mma_sync(sums, a, b, sums);
            }
            store_matrix_sync(C + row * n + col, sums, n, mem_row_major);
        }
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
