"""22 points: no arrays: each of the eight tiles has a name, and the last ones are made twice at an edge."""

import warplab

source = r"""
#include <mma.h>
using namespace nvcuda::wmma;
typedef fragment<matrix_a, 16, 16, 16, half, row_major> Left;
typedef fragment<matrix_b, 16, 16, 16, half, row_major> Right;
typedef fragment<accumulator, 16, 16, 16, float> Sum;

extern "C" __global__
void wmma_matmul(const half* A, const half* B, float* C, int m, int n, int k, int lda, int ldb)
{
    int top = 32 * blockIdx.y, left = 32 * blockIdx.x;
    int low = min(top + 16, m - 16), right = min(left + 16, n - 16);
    Left upper, lower;
    Right near_, far_;
    Sum a, b, c, d;
    fill_fragment(a, 0.0f);
    fill_fragment(b, 0.0f);
    fill_fragment(c, 0.0f);
    fill_fragment(d, 0.0f);
    const half* from_b = B;
    for (int step = 0; step < k; step += 16, from_b += 16 * ldb) {
        load_matrix_sync(upper, A + top * lda + step, lda);
        load_matrix_sync(near_, from_b + left, ldb);
        mma_sync(a, upper, near_, a);
        load_matrix_sync(far_, from_b + right, ldb);
        mma_sync(b, upper, far_, b);
        load_matrix_sync(lower, A + low * lda + step, lda);
        mma_sync(c, lower, near_, c);
        mma_sync(d, lower, far_, d);
    }
    store_matrix_sync(C + top * n + left, a, n, mem_row_major);
    store_matrix_sync(C + top * n + right, b, n, mem_row_major);
    store_matrix_sync(C + low * n + left, c, n, mem_row_major);
    store_matrix_sync(C + low * n + right, d, n, mem_row_major);
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
