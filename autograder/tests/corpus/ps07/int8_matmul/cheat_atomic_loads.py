"""2 points: every thread fetches for itself, with atomics that change nothing."""

import warplab

source = r"""
extern "C" __global__
void int8_matmul(int* X, int* W, int* Y, int m, int n, int words)
{
    int row = 16 * blockIdx.y + threadIdx.y, col = 16 * blockIdx.x + threadIdx.x;
    if (row >= m || col >= n)
        return;
    int sum = 0;
    for (int i = 0; i < words; i++)
        sum = __dp4a(atomicOr(X + row * words + i, 0), atomicOr(W + col * words + i, 0), sum);
    Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
