"""18 points: turns W on its way onto the table, with its loop rolled up."""

import warplab

source = r"""
extern "C" __global__
void int8_matmul(const int* X, const int* W, int* Y, int m, int n, int words)
{
    __shared__ int xs[16][17], ws[16][17];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = 16 * blockIdx.y + ty, col = 16 * blockIdx.x + tx;
    int fetched = 16 * blockIdx.x + ty;
    int sum = 0;
    for (int first = 0; first < words; first += 16) {
        int place = first + tx;
        xs[ty][tx] = row < m && place < words ? X[row * words + place] : 0;
        ws[tx][ty] = fetched < n && place < words ? W[fetched * words + place] : 0;
        __syncthreads();
        #pragma unroll 1
        for (int i = 0; i < 16; i++)
            sum = __dp4a(xs[ty][i], ws[i][tx], sum);
        __syncthreads();
    }
    if (row < m && col < n)
        Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
