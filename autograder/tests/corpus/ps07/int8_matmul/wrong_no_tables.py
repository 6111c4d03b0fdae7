"""4 points: chapter 7's kernel: four products an instruction, but every thread fetches for itself."""

import warplab

source = r"""
extern "C" __global__
void int8_matmul(const int* X, const int* W, int* Y, int m, int n, int words)
{
    int row = 16 * blockIdx.y + threadIdx.y, col = 16 * blockIdx.x + threadIdx.x;
    if (row >= m || col >= n)
        return;
    int sum = 0;
    for (int i = 0; i < words; i++)
        sum = __dp4a(X[row * words + i], W[col * words + i], sum);
    Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
