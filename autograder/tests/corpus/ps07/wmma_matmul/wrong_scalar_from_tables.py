"""9 points: a careful kernel without Tensor Cores: every number is loaded once and multiplied one by one."""

import warplab

source = r"""
#include <cuda_fp16.h>

extern "C" __global__
void wmma_matmul(const half* A, const half* B, float* C, int m, int n, int k, int lda, int ldb)
{
    __shared__ half tableA[32][16], tableB[16][32];
    int t = threadIdx.x, x = 4 * (t % 8), y = 8 * (t / 8);
    int top = 32 * blockIdx.y, left = 32 * blockIdx.x;
    float sums[8][4] = {};
    for (int step = 0; step < k; step += 16) {
        for (int p = t; p < 512; p += 32) {
            int row = top + p / 16, col = left + p % 32;
            tableA[p / 16][p % 16] = row < m ? A[row * lda + step + p % 16] : __float2half(0.0f);
            tableB[p / 32][p % 32] = col < n ? B[(step + p / 32) * ldb + col] : __float2half(0.0f);
        }
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            float b[4];
            for (int j = 0; j < 4; j++)
                b[j] = __half2float(tableB[i][x + j]);
            for (int r = 0; r < 8; r++) {
                float a = __half2float(tableA[y + r][i]);
                for (int j = 0; j < 4; j++)
                    sums[r][j] += a * b[j];
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; r++)
        for (int j = 0; j < 4; j++)
            if (top + y + r < m && left + x + j < n)
                C[(top + y + r) * n + left + x + j] = sums[r][j];
}
"""
wmma_matmul = warplab.cuda_kernel(source, "wmma_matmul")
