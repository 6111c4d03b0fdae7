"""7 points: CUDA C++, a block for each sequence, there and back in one launch; gradients by atomics."""

from warplab import cuda_kernel

SOURCE = r"""
// c (m x n) = plus + a (m x k) @ b (k x n) + bias; the last three may be missing
__device__ void times(const float* a, const float* b, const float* bias, const float* plus, float* c,
                      int m, int k, int n)
{
    for (int i = threadIdx.x; i < m * n; i += blockDim.x) {
        float acc = (bias ? bias[i % n] : 0.0f) + (plus ? plus[i] : 0.0f);
        for (int p = 0; p < k; p++) acc = fmaf(a[i / n * k + p], b[p * n + i % n], acc);
        c[i] = acc;
    }
}

// c (m x k) = g (m x n) @ w (k x n) turned, added to what is there where `more`
__device__ void back(const float* g, const float* w, float* c, int m, int k, int n, bool more)
{
    for (int i = threadIdx.x; i < m * k; i += blockDim.x) {
        float acc = more ? c[i] : 0.0f;
        for (int p = 0; p < n; p++) acc = fmaf(g[i / k * n + p], w[i % k * n + p], acc);
        c[i] = acc;
    }
}

// adds a (m x k) turned @ g (m x n) to by_w, and the sums of g's columns to by_b if there is one
__device__ void give(const float* a, const float* g, float* by_w, float* by_b, int m, int k, int n)
{
    for (int i = threadIdx.x; i < k * n + (by_b ? n : 0); i += blockDim.x) {
        float acc = 0.0f;
        for (int p = 0; p < m; p++) acc += (i < k * n ? a[p * k + i / n] : 1.0f) * g[p * n + i % n];
        atomicAdd(i < k * n ? by_w + i : by_b + i - k * n, acc);
    }
}

extern "C" __global__ void sequence(
    const int* tokens, int first, int length, int width, int hidden, int letters,
    const float* table, const float* places, const float* wq, const float* wk, const float* wv,
    const float* gain, const float* shift, const float* w1, const float* b1, const float* w2,
    const float* b2, const float* wo, const float* bo, float* grads, float* room, int each,
    float* losses, int step)
{
    const int* mine = tokens + first + blockIdx.x * length;
    int t = threadIdx.x, threads = blockDim.x, n = length * width, square = width * width;
    float *x = room + blockIdx.x * each, *q = x + n, *k = q + n, *v = k + n, *y = v + n, *hats = y + n;
    float *normed = hats + n, *z = normed + n, *by_z = z + n, *by_y = by_z + n, *by_q = by_y + n;
    float *by_k = by_q + n, *by_v = by_k + n, *before = by_v + n, *active = before + length * hidden;
    float *by_before = active + length * hidden, *logits = by_before + length * hidden;
    float *scale = logits + length * letters, *share = scale + length, *by_share = share + length * length;
    float *g_places = grads + letters * width, *g_q = g_places + n, *g_k = g_q + square, *g_v = g_k + square;
    float *g_gain = g_v + square, *g_shift = g_gain + width, *g_1 = g_shift + width;
    float *g_b1 = g_1 + width * hidden, *g_2 = g_b1 + hidden, *g_b2 = g_2 + hidden * width;
    float *g_o = g_b2 + width, *g_bo = g_o + width * letters, root = rsqrtf((float)width);

    for (int i = t; i < n; i += threads) x[i] = table[mine[i / width] * width + i % width] + places[i];
    __syncthreads();
    times(x, wq, 0, 0, q, length, width, width);
    times(x, wk, 0, 0, k, length, width, width);
    times(x, wv, 0, 0, v, length, width, width);
    __syncthreads();
    back(q, k, share, length, length, width, false);
    __syncthreads();
    for (int row = t; row < length; row += threads) {
        float most = -INFINITY, total = 0.0f, *p = share + row * length;
        for (int other = 0; other <= row; other++) most = fmaxf(most, p[other]);
        for (int other = 0; other <= row; other++) total += p[other] = expf((p[other] - most) * root);
        for (int other = 0; other < length; other++) p[other] = other <= row ? p[other] / total : 0.0f;
    }
    __syncthreads();
    times(share, v, 0, x, y, length, length, width);
    __syncthreads();
    for (int row = t; row < length; row += threads) {
        float mean = 0.0f, squares = 0.0f, *of = y + row * width;
        for (int d = 0; d < width; d++) mean += of[d] / width;
        for (int d = 0; d < width; d++) squares += (of[d] - mean) * (of[d] - mean);
        scale[row] = rsqrtf(squares / width + 1e-5f);
        for (int d = 0; d < width; d++) {
            hats[row * width + d] = (of[d] - mean) * scale[row];
            normed[row * width + d] = hats[row * width + d] * gain[d] + shift[d];
        }
    }
    __syncthreads();
    times(normed, w1, b1, 0, before, length, width, hidden);
    for (int i = t; i < length * hidden; i += threads) active[i] = before[i] * normcdff(before[i]);
    __syncthreads();
    times(active, w2, b2, y, z, length, hidden, width);
    __syncthreads();
    times(z, wo, bo, 0, logits, length, width, letters);
    __syncthreads();
    for (int row = t; row < length; row += threads) {
        float most = -INFINITY, total = 0.0f, *of = logits + row * letters;
        int label = mine[row + 1], rows = gridDim.x * length;
        for (int c = 0; c < letters; c++) most = fmaxf(most, of[c]);
        for (int c = 0; c < letters; c++) total += expf(of[c] - most);
        atomicAdd(losses + step, (logf(total) + most - of[label]) / rows);
        for (int c = 0; c < letters; c++) of[c] = (expf(of[c] - most) / total - (c == label)) / rows;
    }
    __syncthreads();

    give(z, logits, g_o, g_bo, length, width, letters);
    back(logits, wo, by_z, length, width, letters, false);
    __syncthreads();
    give(active, by_z, g_2, g_b2, length, hidden, width);
    back(by_z, w2, by_before, length, hidden, width, false);
    for (int i = t; i < length * hidden; i += threads)
        by_before[i] *= normcdff(before[i]) + before[i] * 0.39894228f * expf(-0.5f * before[i] * before[i]);
    __syncthreads();
    give(normed, by_before, g_1, g_b1, length, width, hidden);
    back(by_before, w1, by_y, length, width, hidden, false);
    __syncthreads();
    for (int d = t; d < width; d += threads) {
        float by_gain = 0.0f, by_shift = 0.0f;
        for (int i = d; i < n; i += width) {
            by_gain += by_y[i] * hats[i];
            by_shift += by_y[i];
        }
        atomicAdd(g_gain + d, by_gain);
        atomicAdd(g_shift + d, by_shift);
    }
    __syncthreads();
    for (int row = t; row < length; row += threads) {
        float plain = 0.0f, with_hat = 0.0f;
        for (int d = 0; d < width; d++) {
            plain += by_y[row * width + d] * gain[d] / width;
            with_hat += by_y[row * width + d] * gain[d] * hats[row * width + d] / width;
        }
        for (int d = 0, i = row * width; d < width; d++, i++)
            by_y[i] = by_z[i] + scale[row] * (by_y[i] * gain[d] - plain - hats[i] * with_hat);
    }
    __syncthreads();
    back(by_y, v, by_share, length, length, width, false);
    __syncthreads();
    for (int row = t; row < length; row += threads) {
        float inner = 0.0f, *of = by_share + row * length, *p = share + row * length;
        for (int other = 0; other < length; other++) inner += p[other] * of[other];
        for (int other = 0; other < length; other++) of[other] = p[other] * (of[other] - inner) * root;
    }
    __syncthreads();
    times(by_share, k, 0, 0, by_q, length, length, width);
    for (int i = t; i < n; i += threads) {
        float of_key = 0.0f, of_value = 0.0f;
        for (int row = i / width; row < length; row++) {
            of_key += by_share[row * length + i / width] * q[row * width + i % width];
            of_value += share[row * length + i / width] * by_y[row * width + i % width];
        }
        by_k[i] = of_key;
        by_v[i] = of_value;
    }
    __syncthreads();
    give(x, by_q, g_q, 0, length, width, width);
    give(x, by_k, g_k, 0, length, width, width);
    give(x, by_v, g_v, 0, length, width, width);
    back(by_q, wq, by_y, length, width, width, true);
    back(by_k, wk, by_y, length, width, width, true);
    back(by_v, wv, by_y, length, width, width, true);
    for (int i = t; i < n; i += threads) {
        atomicAdd(grads + mine[i / width] * width + i % width, by_y[i]);
        atomicAdd(g_places + i, by_y[i]);
    }
}

// AdamW on `count` weights whose gradients and moments begin at `at`; gradients are zeros again behind it
extern "C" __global__ void learn(float* w, float* grads, float* m, float* v, int at, int count, float rate,
                                 float beta1, float beta2, float eps, float decay, float whole1, float whole2)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = at + i;
    if (i >= count) return;
    m[j] += (1 - beta1) * (grads[j] - m[j]);
    v[j] += (1 - beta2) * (grads[j] * grads[j] - v[j]);
    w[i] = (1 - rate * decay) * w[i] - rate * (m[j] / whole1) / (sqrtf(v[j] / whole2) + eps);
    grads[j] = 0.0f;
}
"""
sequence, learn = (cuda_kernel(SOURCE, name) for name in ("sequence", "learn"))


def train_text(device, tokens, length, sequences, steps, rate, beta1, beta2, eps, decay, *weights_and_losses):
    *weights, losses = weights_and_losses
    (letters, width), hidden = weights[0].shape, weights[8].size
    grads, m, v = (device.zeros(sum(w.size for w in weights), "float32") for _ in range(3))
    each = length * (13 * width + 3 * hidden + letters + 1 + 2 * length)
    room = device.empty(sequences * each, "float32")
    device.fill(losses, 0)
    for step in range(steps):
        first = step * 37 % (tokens.size - sequences * length)
        sizes = first, length, width, hidden, letters
        device.launch(sequence, sequences, 512, tokens, *sizes, *weights, grads, room, each, losses, step)
        numbers = rate, beta1, beta2, eps, decay, 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        at = 0
        for w in weights:
            device.launch(learn, -(-w.size // 128), 128, w, grads, m, v, at, w.size, *numbers)
            at += w.size
