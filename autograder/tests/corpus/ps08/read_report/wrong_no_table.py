"""7 points: a warp for a column, and shuffles: no table, and every lane in a row of its own."""

import warplab

read_report = warplab.cuda_kernel(
    r"""
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    int col = 32 * blockIdx.x + threadIdx.y;
    float sum = 0;
    if (col < cols)
        for (int row = threadIdx.x; row < rows; row += 32)
            sum += 0.01f * x[row * cols + col];
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, half);
    if (threadIdx.x == 0 && col < cols)
        out[col] = sum;
}
""",
    "read_report",
)
