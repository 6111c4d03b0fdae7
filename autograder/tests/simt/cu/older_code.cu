// Code from before Volta, saved by an editor that begins files with a byte order mark.
#include <stdio.h>
#include <thrust/device_vector.h>

#define BLOCK 64

extern "C"__global__ void sumBlocks(const float *in, float *out)
{
    __shared__ float part[BLOCK];
    register unsigned int tid = threadIdx.x;
    part[tid] = in[blockIdx.x * BLOCK + tid];
    for (register int half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (tid < half) part[tid] += part[tid + half];
    }
    if (tid == 0) out[blockIdx.x] = part[0];
}

// two kernels of one name, told apart by their parameters
__global__ void fill(float *x, float value) { x[blockIdx.x * BLOCK + threadIdx.x] = value; }
__global__ void fill(int *x, int value) { x[blockIdx.x * BLOCK + threadIdx.x] = -value; }

// shuffles without a mask, and a kernel that launches itself: neither compiles any more
__device__ float sumOfWarp(float x)
{
    for (int half = 16; half > 0; half /= 2) x += __shfl_down(x, half);
    return x;
}

__global__ void sumRecursively(float *x, int n)
{
    x[threadIdx.x] = sumOfWarp(x[threadIdx.x]);
    if (threadIdx.x == 0 && n > 32) sumRecursively<<<1, n / 32>>>(x, n / 32);
}

int main()
{
    thrust::device_vector<float> in(256, 1.0f), out(4);
    sumBlocks<<<4, BLOCK>>>(thrust::raw_pointer_cast(in.data()), thrust::raw_pointer_cast(out.data()));
    printf("%f\n", (float)out[0]);
    return 0;
}
