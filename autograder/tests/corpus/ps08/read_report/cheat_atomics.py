"""5.5 points: adds up by atomics in memory, without a table; threads beyond the edge leave before the barrier."""

import warplab

read_report = warplab.cuda_kernel(
    r"""
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    int col = 32 * blockIdx.x + threadIdx.x;
    if (col >= cols)
        return;
    float sum = 0;
    for (int row = threadIdx.y; row < rows; row += 32)
        sum += 0.01f * x[row * cols + col];
    if (threadIdx.y == 0)
        out[col] = 0;
    __syncthreads();
    atomicAdd(&out[col], sum);
}
""",
    "read_report",
)
