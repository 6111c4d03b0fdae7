"""12 points: CUDA C++, a block of 128 threads for each row, one kernel backward with atomics for gain and shift."""

import warplab

source = r"""
__device__ float block_sum(float value)
{
    __shared__ float parts[4];
    for (int reach = 16; reach > 0; reach /= 2)
        value += __shfl_down_sync(0xFFFFFFFF, value, reach);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0] + parts[1] + parts[2] + parts[3];
    __syncthreads();
    return value;
}

extern "C" __global__
void forward(const float* x, const float* gain, const float* shift, float* y, float* means, float* scales,
             float eps, int width)
{
    __shared__ float held[1024];
    int row = blockIdx.x;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += 128)
        sum += held[i] = x[row * width + i];
    float mean = block_sum(sum) / width;
    for (int i = threadIdx.x; i < width; i += 128)
        squares += (held[i] - mean) * (held[i] - mean);
    float scale = rsqrtf(block_sum(squares) / width + eps);
    for (int i = threadIdx.x; i < width; i += 128)
        y[row * width + i] = (held[i] - mean) * scale * gain[i] + shift[i];
    if (threadIdx.x == 0) {
        means[row] = mean;
        scales[row] = scale;
    }
}

extern "C" __global__
void backward(const float* x, const float* gain, const float* grad_y, const float* means, const float* scales,
              float* grad_x, float* grad_gain, float* grad_shift, int width)
{
    __shared__ float hats[1024], grads[1024];
    int row = blockIdx.x;
    float one = 0.0f, two = 0.0f;
    for (int i = threadIdx.x; i < width; i += 128) {
        float hat = (x[row * width + i] - means[row]) * scales[row], grad = grad_y[row * width + i];
        atomicAdd(grad_gain + i, grad * hat);
        atomicAdd(grad_shift + i, grad);
        grad *= gain[i];
        hats[i] = hat;
        grads[i] = grad;
        one += grad;
        two += grad * hat;
    }
    one = block_sum(one) / width;
    two = block_sum(two) / width;
    for (int i = threadIdx.x; i < width; i += 128)
        grad_x[row * width + i] = scales[row] * (grads[i] - one - hats[i] * two);
}
"""
forward, backward = (warplab.cuda_kernel(source, name) for name in ("forward", "backward"))


def layer_norm(device, x, gain, shift, grad_y, eps, y, grad_x, grad_gain, grad_shift):
    rows, width = x.shape
    means, scales = device.empty(rows, "float32"), device.empty(rows, "float32")
    device.fill(grad_gain, 0)
    device.fill(grad_shift, 0)
    device.launch(forward, rows, 128, x, gain, shift, y, means, scales, eps, width)
    device.launch(backward, rows, 128, x, gain, grad_y, means, scales, grad_x, grad_gain, grad_shift, width)
