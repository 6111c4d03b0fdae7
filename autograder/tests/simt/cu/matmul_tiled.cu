// C = A * B with tiles in shared memory; the matrix type of the programming guide, passed by value.
#include <cassert>
#include <cuda_runtime.h>
#include "helper_cuda.h"

template <typename T>
struct Matrix {
    int width;
    int height;
    int stride;
    T *elements;

    Matrix(int w, int h) : width(w), height(h), stride{w} { checkCudaErrors(cudaMallocManaged(&elements, w * h * sizeof(T))); }
    ~Matrix() { cudaFree(elements); }
    __device__ T get(int row, int col) const { return row < height && col < width ? elements[row * stride + col] : T(0); }
};

template <typename T, int TILE>
__global__ void __launch_bounds__(TILE * TILE) matmul(Matrix<T> A, Matrix<T> B, Matrix<T> C)
{
    __shared__ T As[TILE][TILE];
    __shared__ T Bs[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    T acc = 0;
    for (int m = 0; m < (A.width + TILE - 1) / TILE; ++m) {
        As[threadIdx.y][threadIdx.x] = A.get(row, m * TILE + threadIdx.x);
        Bs[threadIdx.y][threadIdx.x] = B.get(m * TILE + threadIdx.y, col);
        __syncthreads();
#pragma unroll
        for (int e = 0; e < TILE; ++e)
            acc += As[threadIdx.y][e] * Bs[e][threadIdx.x];
        __syncthreads();
    }
    if (row < C.height && col < C.width)
        C.elements[row * C.stride + col] = acc;
}

template <typename T>
bool verify(const Matrix<T> &C, T expected)
{
    for (int i = 0; i < C.width * C.height; i++)
        if (C.elements[i] != expected) { fprintf(stderr, "wrong at %d\n", i); return false; }
    return true;
}

int main(int argc, char *argv[])
{
    Matrix<float> A(320, 320), B(640, 320), C(640, 320);
    dim3 threads(16, 16), grid(C.width / threads.x, C.height / threads.y);
    matmul<float, 16><<<grid, threads>>>(A, B, C);
    checkCudaErrors(cudaDeviceSynchronize());
    assert(verify(C, 0.0f));
}
