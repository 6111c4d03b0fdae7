"""12 points: turns the sums on a padded table, and a warp adds up a column by shuffles."""

import warplab

read_report = warplab.cuda_kernel(
    r"""
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    __shared__ float part[32][33];
    int tx = threadIdx.x, ty = threadIdx.y, col = 32 * blockIdx.x + tx;
    float sum = 0;
    for (int row = ty; row < rows && col < cols; row += 32)
        sum += x[row * cols + col];
    part[ty][tx] = sum;
    __syncthreads();
    float mine = part[tx][ty];
    for (int half = 16; half > 0; half /= 2)
        mine += __shfl_down_sync(0xffffffff, mine, half);
    col = 32 * blockIdx.x + ty;
    if (tx == 0 && col < cols)
        out[col] = 0.01f * mine;
}
""",
    "read_report",
)
