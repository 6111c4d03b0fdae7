"""12 points: no tree: the first warp adds up the 32 rows of the table."""

import warplab

read_report = warplab.cuda_kernel(
    r"""
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    __shared__ float part[32 * 32];
    int place = 32 * threadIdx.y + threadIdx.x, col = 32 * blockIdx.x + threadIdx.x;
    part[place] = 0;
    if (col < cols)
        for (const float* p = x + threadIdx.y * cols + col; p < x + rows * cols; p += 32 * cols)
            part[place] += *p;
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols)
        return;
    float sum = 0;
    for (int k = 0; k < 32; k++)
        sum += part[32 * k + threadIdx.x];
    out[col] = sum / 100;
}
""",
    "read_report",
)
