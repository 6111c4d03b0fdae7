"""10 points: CUDA C++, a thread for each row and an online softmax; keys and values get theirs by atomics."""

import warplab

source = r"""
extern "C" __global__
void forward(const float* q, const float* k, const float* v, float* out, float* most_of, float* sum_of,
             int rows, int length, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float acc[64], most = -INFINITY, sum = 0.0f;
    for (int d = 0; d < width; d++)
        acc[d] = 0.0f;
    for (int other = row / length * length; other <= row; other++) {
        float score = 0.0f;
        for (int d = 0; d < width; d++)
            score += q[row * width + d] * k[other * width + d];
        score *= rsqrtf(width);
        float next = fmaxf(most, score), shrink = expf(most - next), power = expf(score - next);
        sum = sum * shrink + power;
        for (int d = 0; d < width; d++)
            acc[d] = acc[d] * shrink + power * v[other * width + d];
        most = next;
    }
    for (int d = 0; d < width; d++)
        out[row * width + d] = acc[d] / sum;
    most_of[row] = most;
    sum_of[row] = sum;
}

extern "C" __global__
void backward(const float* q, const float* k, const float* v, const float* grad_out, const float* out,
              const float* most_of, const float* sum_of, float* grad_q, float* grad_k, float* grad_v,
              int rows, int length, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float acc[64], inner = 0.0f, root = rsqrtf(width);
    for (int d = 0; d < width; d++) {
        acc[d] = 0.0f;
        inner += grad_out[row * width + d] * out[row * width + d];
    }
    for (int other = row / length * length; other <= row; other++) {
        float score = 0.0f, by_p = 0.0f;
        for (int d = 0; d < width; d++) {
            score += q[row * width + d] * k[other * width + d];
            by_p += grad_out[row * width + d] * v[other * width + d];
        }
        float p = expf(score * root - most_of[row]) / sum_of[row];
        float by_score = p * (by_p - inner) * root;
        for (int d = 0; d < width; d++) {
            acc[d] += by_score * k[other * width + d];
            atomicAdd(grad_k + other * width + d, by_score * q[row * width + d]);
            atomicAdd(grad_v + other * width + d, p * grad_out[row * width + d]);
        }
    }
    for (int d = 0; d < width; d++)
        grad_q[row * width + d] = acc[d];
}
"""
forward, backward = (warplab.cuda_kernel(source, name) for name in ("forward", "backward"))


def attention(device, q, k, v, grad_out, length, out, grad_q, grad_k, grad_v):
    rows, width = q.shape
    most, total = device.empty(rows, "float32"), device.empty(rows, "float32")
    blocks, sizes = -(-rows // 16), (rows, length, width)
    device.fill(grad_k, 0)
    device.fill(grad_v, 0)
    device.launch(forward, blocks, 16, q, k, v, out, most, total, *sizes)
    device.launch(backward, blocks, 16, q, k, v, grad_out, out, most, total, grad_q, grad_k, grad_v, *sizes)
