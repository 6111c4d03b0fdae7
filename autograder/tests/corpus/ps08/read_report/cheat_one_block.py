"""7 points: one block does the work of all the others, which go home."""

import warplab

read_report = warplab.cuda_kernel(
    r"""
extern "C" __global__
void read_report(const float* x, float* out, int rows, int cols)
{
    __shared__ float part[32][32];
    int tx = threadIdx.x, ty = threadIdx.y;
    if (blockIdx.x > 0)
        return;
    for (int col = tx; col - tx < cols; col += 32) {
        float sum = 0;
        if (col < cols)
            for (int row = ty; row < rows; row += 32)
                sum += 0.01f * x[row * cols + col];
        part[ty][tx] = sum;
        __syncthreads();
        for (int half = 16; half > 0; half /= 2) {
            if (ty < half)
                part[ty][tx] += part[ty + half][tx];
            __syncthreads();
        }
        if (ty == 0 && col < cols)
            out[col] = part[0][tx];
        __syncthreads();
    }
}
""",
    "read_report",
)
