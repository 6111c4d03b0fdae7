"""19 points: CUDA C++, four launches a step; the loss is added up by the block that comes last."""

from warplab import cuda_kernel

SOURCE = r"""
#define TILE 16

// before = images[first:] @ w + b
extern "C" __global__ void forward(const float* images, int first, const float* w, const float* b,
                                   float* before, int batch, int pixels, int hidden)
{
    __shared__ float xs[TILE][TILE], ws[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float acc = col < hidden ? b[col] : 0.0f;
    for (int at = 0; at < pixels; at += TILE) {
        xs[ty][tx] = row < batch && at + tx < pixels ? images[(first + row) * pixels + at + tx] : 0.0f;
        ws[ty][tx] = col < hidden && at + ty < pixels ? w[(at + ty) * hidden + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) acc = fmaf(xs[ty][k], ws[k][tx], acc);
        __syncthreads();
    }
    if (row < batch && col < hidden) before[row * hidden + col] = acc;
}

// a block a picture: logits, loss, and back to the hidden layer
extern "C" __global__ void middle(const float* before, const int* labels, int first, const float* w,
                                  const float* b, float* active, float* by_logits, float* by_before,
                                  float* losses, int step, int batch, int hidden, int classes)
{
    __shared__ float act[128], weights[128 * 10], logit[10];
    int row = blockIdx.x, t = threadIdx.x, n = blockDim.x;
    for (int i = t; i < hidden * classes; i += n) weights[i] = w[i];
    for (int j = t; j < hidden; j += n) {
        float v = before[row * hidden + j];
        act[j] = v * normcdff(v);
        active[row * hidden + j] = act[j];
    }
    __syncthreads();
    if (t < classes) {
        float acc = b[t];
        for (int j = 0; j < hidden; j++) acc = fmaf(act[j], weights[j * classes + t], acc);
        logit[t] = acc;
    }
    __syncthreads();
    if (t == 0) {
        float top = logit[0], total = 0.0f;
        int label = labels[first + row];
        for (int c = 1; c < classes; c++) top = fmaxf(top, logit[c]);
        for (int c = 0; c < classes; c++) total += expf(logit[c] - top);
        atomicAdd(&losses[step], (logf(total) + top - logit[label]) / batch);
        for (int c = 0; c < classes; c++) {
            logit[c] = (expf(logit[c] - top) / total - (c == label)) / batch;
            by_logits[row * classes + c] = logit[c];
        }
    }
    __syncthreads();
    for (int j = t; j < hidden; j += n) {
        float acc = 0.0f, v = before[row * hidden + j];
        for (int c = 0; c < classes; c++) acc = fmaf(logit[c], weights[j * classes + c], acc);
        by_before[row * hidden + j] = acc * (normcdff(v) + v * 0.39894228f * expf(-0.5f * v * v));
    }
}

__device__ void move(float* w, float* m, float* v, int i, float g, float rate, float beta1, float beta2,
                     float eps, float decay, float whole1, float whole2)
{
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] += (1 - beta2) * (g * g - v[i]);
    w[i] = (1 - rate * decay) * w[i] - rate * (m[i] / whole1) / (sqrtf(v[i] / whole2) + eps);
}

// one layer's gradients, in tiles, and AdamW on them
extern "C" __global__ void learn(const float* x, int first, const float* by, float* w, float* mw, float* vw,
                                 float* b, float* mb, float* vb, int batch, int inputs, int outputs,
                                 float rate, float beta1, float beta2, float eps, float decay,
                                 float whole1, float whole2)
{
    __shared__ float xs[TILE][TILE], gs[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    int at = blockIdx.y * TILE + tx;
    float acc = 0.0f, sum = 0.0f;
    for (int k0 = 0; k0 < batch; k0 += TILE) {
        xs[ty][tx] = k0 + ty < batch && at < inputs ? x[(first + k0 + ty) * inputs + at] : 0.0f;
        gs[ty][tx] = k0 + ty < batch && col < outputs ? by[(k0 + ty) * outputs + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            acc = fmaf(xs[k][ty], gs[k][tx], acc);
            sum += gs[k][tx];
        }
        __syncthreads();
    }
    if (row < inputs && col < outputs)
        move(w, mw, vw, row * outputs + col, acc, rate, beta1, beta2, eps, decay, whole1, whole2);
    if (row == 0 && col < outputs)
        move(b, mb, vb, col, sum, rate, beta1, beta2, eps, decay, whole1, whole2);
}
"""
forward, middle, learn = (cuda_kernel(SOURCE, name) for name in ("forward", "middle", "learn"))


def blocks(rows, cols):
    return (-(-cols // 16), -(-rows // 16)), (16, 16)


def train_mlp(device, images, labels, batch, steps, rate, beta1, beta2, eps, decay, w1, b1, w2, b2, losses):
    pixels, (hidden, classes) = images.shape[1], w2.shape
    before, active, by_before = [device.empty((batch, hidden), "float32") for _ in range(3)]
    by_logits = device.empty((batch, classes), "float32")
    kept = [(w, device.zeros(w.shape, "float32"), device.zeros(w.shape, "float32")) for w in (w1, b1, w2, b2)]
    device.fill(losses, 0)
    for step in range(steps):
        first = step % (images.shape[0] // batch) * batch
        numbers = rate, beta1, beta2, eps, decay, 1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)
        device.launch(forward, *blocks(batch, hidden), images, first, w1, b1, before, batch, pixels, hidden)
        there_and_back = active, by_logits, by_before, losses, step, batch, hidden, classes
        device.launch(middle, batch, 32, before, labels, first, w2, b2, *there_and_back)
        device.launch(
            learn,
            *blocks(pixels, hidden),
            images,
            first,
            by_before,
            *kept[0],
            *kept[1],
            batch,
            pixels,
            hidden,
            *numbers,
        )
        device.launch(
            learn,
            *blocks(hidden, classes),
            active,
            0,
            by_logits,
            *kept[2],
            *kept[3],
            batch,
            hidden,
            classes,
            *numbers,
        )
