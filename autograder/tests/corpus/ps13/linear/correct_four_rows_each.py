"""16 points: CUDA C++, tiles of 32 x 32, of which each thread works out four rows; the bias in a launch of its own."""

import warplab

source = r"""
#define TILE 32
extern "C" __global__
void product(const float* a, const float* b, float* c, int first, int m, int n, int k, int turn_a, int turn_b)
{
    __shared__ float as[TILE][TILE + 1], bs[TILE][TILE + 1];
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int tx = threadIdx.x, ty = threadIdx.y;
    int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    a += first * (turn_a ? m : k);
    for (int start = 0; start < k; start += TILE) {
        #pragma unroll 1
        for (int i = ty; i < TILE; i += 8) {
            if (turn_a)
                as[tx][i] = top + tx < m && start + i < k ? a[(start + i) * m + top + tx] : 0.0f;
            else
                as[i][tx] = top + i < m && start + tx < k ? a[(top + i) * k + start + tx] : 0.0f;
            if (turn_b)
                bs[tx][i] = left + i < n && start + tx < k ? b[(left + i) * k + start + tx] : 0.0f;
            else
                bs[i][tx] = left + tx < n && start + i < k ? b[(start + i) * n + left + tx] : 0.0f;
        }
        __syncthreads();
        #pragma unroll 1
        for (int p = 0; p < TILE; p++)
            for (int r = 0; r < 4; r++)
                sums[r] += as[ty + 8 * r][p] * bs[p][tx];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        int row = top + ty + 8 * r, col = left + tx;
        if (row < m && col < n)
            c[row * n + col] = sums[r];
    }
}

extern "C" __global__ void bias(const float* b, const float* grad_y, float* y, float* grad_b, int m, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= n)
        return;
    float sum = 0.0f;
    for (int row = 0; row < m; row++) {
        sum += grad_y[row * n + col];
        y[row * n + col] += b[col];
    }
    grad_b[col] = sum;
}
"""
product, bias = (warplab.cuda_kernel(source, name) for name in ("product", "bias"))


def tiles(rows, cols):
    return (cols + 31) // 32, (rows + 31) // 32


def linear(device, x, first, w, b, grad_y, y, grad_x, grad_w, grad_b):
    (batch, outputs), inputs = y.shape, x.shape[1]
    device.launch(product, tiles(batch, outputs), (32, 8), x, w, y, first, batch, outputs, inputs, 0, 0)
    device.launch(product, tiles(batch, inputs), (32, 8), grad_y, w, grad_x, 0, batch, inputs, outputs, 0, 1)
    device.launch(product, tiles(inputs, outputs), (32, 8), x, grad_y, grad_w, first, inputs, outputs, batch, 1, 0)
    device.launch(bias, (outputs + 31) // 32, 32, b, grad_y, y, grad_b, batch, outputs)
