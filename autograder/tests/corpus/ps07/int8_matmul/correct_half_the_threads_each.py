"""18 points: eight words a round; one half of the threads fetches X, and the other half W."""

import warplab

source = r"""
extern "C" __global__
void int8_matmul(const int* X, const int* W, int* Y, int m, int n, int words)
{
    __shared__ int xs[16][9], ws[16][9];
    int tx = threadIdx.x, ty = threadIdx.y, col8 = tx % 8;
    int row = 16 * blockIdx.y + ty, col = 16 * blockIdx.x + tx, other = 16 * blockIdx.x + ty;
    int sum = 0;
    for (int first = 0; first < words; first += 8) {
        bool there = first + col8 < words;
        if (tx < 8)
            xs[ty][col8] = there && row < m ? X[row * words + first + col8] : 0;
        else
            ws[ty][col8] = there && other < n ? W[other * words + first + col8] : 0;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 8; i++)
            sum = __dp4a(xs[ty][i], ws[tx][i], sum);
        __syncthreads();
    }
    if (row < m && col < n)
        Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
