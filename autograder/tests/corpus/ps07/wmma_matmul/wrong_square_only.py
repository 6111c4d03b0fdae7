"""8 points: uses n for everything, as the kernel in the chapter may."""

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
    TileA a[2];  TileB b[2];  Sums sums[2][2];
    int top = 32 * (int)blockIdx.y, left = 32 * (int)blockIdx.x;
    int row[2] = {top, min(top + 16, m - 16)};
    int col[2] = {left, min(left + 16, n - 16)};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            fill_fragment(sums[i][j], 0.0f);
    for (int step = 0; step < n; step += 16) {
        for (int i = 0; i < 2; i++) {
            load_matrix_sync(a[i], A + row[i] * n + step, n);
            load_matrix_sync(b[i], B + step * n + col[i], n);
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++)
                mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            store_matrix_sync(C + row[i] * n + col[j], sums[i][j], n, mem_row_major);
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
