#include <cstdlib>
#include <cstring>
#include "common.h"

#define MASK_RADIUS 2
#define MASK_WIDTH (2 * MASK_RADIUS + 1)

__constant__ float d_mask[MASK_WIDTH][MASK_WIDTH];
__device__ unsigned int pixels_done;

namespace image {
struct Size {
    int width, height;
    CPU_GPU int area() const { return width * height; }
    static Size of(const char *file);
};
}  // namespace image

__global__ void convolve(const float *in, float *out, image::Size size)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= size.width || y >= size.height) return;
    float sum = 0.f;
    for (int dy = -MASK_RADIUS; dy <= MASK_RADIUS; dy++)
        for (int dx = -MASK_RADIUS; dx <= MASK_RADIUS; dx++) {
            int u = clamp_to(x + dx, 0, size.width - 1), v = clamp_to(y + dy, 0, size.height - 1);
            sum += d_mask[dy + MASK_RADIUS][dx + MASK_RADIUS] * in[v * size.width + u];
        }
    out[y * size.width + x] = sum;
    atomicAdd(&pixels_done, 1u);
}

image::Size image::Size::of(const char *file)
{
    Timer timer("read");
    image::Size size = {std::atoi(file), (int)std::strlen(file)};
    return size;
}

int main(int argc, char **argv)
{
    float h_mask[MASK_WIDTH][MASK_WIDTH] = {{0}};
    CUDA_CALL(cudaMemcpyToSymbol(d_mask, h_mask, sizeof(h_mask)));
    image::Size size = image::Size::of(argv[1]);
    convolve<<<dim3(size.width / 16, size.height / 16), dim3(16, 16)>>>(nullptr, nullptr, size);
    unsigned int done;
    CUDA_CALL(cudaMemcpyFromSymbol(&done, pixels_done, sizeof(done)));
}
