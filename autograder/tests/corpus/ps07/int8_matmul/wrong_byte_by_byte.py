"""2 points: right, with a load for every number."""

import warplab

source = r"""
extern "C" __global__
void int8_matmul(const signed char* X, const signed char* W, int* Y, int m, int n, int words)
{
    int row = 16 * blockIdx.y + threadIdx.y, col = 16 * blockIdx.x + threadIdx.x;
    if (row >= m || col >= n)
        return;
    int sum = 0;
    for (int i = 0; i < 4 * words; i++)
        sum += X[row * 4 * words + i] * W[col * 4 * words + i];
    Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
