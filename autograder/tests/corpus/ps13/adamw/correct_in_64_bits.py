"""9 points: CUDA C++ with everything in double, two parameters a thread, half of the array apart."""

import warplab

source = r"""
extern "C" __global__
void update(const float* grads, double step, double rate, double beta1, double beta2, double eps, double decay,
            float* weights, float* m, float* v, int n)
{
    int half = (n + 1) / 2;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = t; t < half && i < n; i += half) {
        double g = grads[i], w = weights[i];
        double first = beta1 * m[i] + (1 - beta1) * g;
        double second = beta2 * v[i] + (1 - beta2) * g * g;
        w -= rate * decay * w;
        w -= rate * (first / (1 - pow(beta1, step))) / (sqrt(second / (1 - pow(beta2, step))) + eps);
        weights[i] = w;
        m[i] = first;
        v[i] = second;
    }
}
"""
update = warplab.cuda_kernel(source, "update")


def adamw(device, grads, step, rate, beta1, beta2, eps, decay, weights, m, v):
    n = weights.size
    blocks = -(-n // 256)
    device.launch(update, blocks, 128, grads, step, rate, beta1, beta2, eps, decay, weights, m, v, n)
