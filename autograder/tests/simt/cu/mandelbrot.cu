#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM 64

struct cuComplex {
    float r;
    float i;
    __device__ cuComplex(float a, float b) : r(a), i(b) {}
    __device__ float magnitude2(void) { return r * r + i * i; }
    __device__ cuComplex operator*(const cuComplex &a)
    {
        return cuComplex(r * a.r - i * a.i, i * a.r + r * a.i);
    }
    __device__ cuComplex operator+(const cuComplex &a) { return cuComplex(r + a.r, i + a.i); }
};

__device__ int mandelbrot(int x, int y, int depth)
{
    cuComplex c(3.0f * x / DIM - 2.0f, 3.0f * y / DIM - 1.5f), z(0.0f, 0.0f);
    for (int n = 0; n < depth; n++) {
        z = z * z + c;
        if (z.magnitude2() > 4.0f) return n;
    }
    return depth;
}

__global__ void kernel(unsigned char *ptr, int depth)
{
    int x = blockIdx.x;
    int y = blockIdx.y;
    int offset = x + y * gridDim.x;
    int n = mandelbrot(x, y, depth);
    ptr[offset * 4 + 0] = 255 * n / depth;
    ptr[offset * 4 + 1] = 0;
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
}

struct DataBlock {
    unsigned char *dev_bitmap;
};

int main(void)
{
    DataBlock data;
    CPUBitmap bitmap(DIM, DIM, &data);
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_bitmap, bitmap.image_size()));
    dim3 grid(DIM, DIM);
    kernel<<<grid, 1>>>(data.dev_bitmap, 200);
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), data.dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    bitmap.display_and_exit();
}
