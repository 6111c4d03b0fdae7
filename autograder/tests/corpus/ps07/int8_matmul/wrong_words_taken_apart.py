"""14 points: loads words, but takes them apart with shifts."""

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
        ws[ty][tx] = fetched < n && place < words ? W[fetched * words + place] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            for (int shift = 0; shift < 32; shift += 8)
                sum += (signed char)(xs[ty][i] >> shift) * (signed char)(ws[tx][i] >> shift);
        __syncthreads();
    }
    if (row < m && col < n)
        Y[row * n + col] = sum;
}
"""
int8_matmul = warplab.cuda_kernel(source, "int8_matmul")
