/*
 * A ladder of reductions, each a little better than the one before. The launch is chosen by a switch.
 */
#include <stdio.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Dynamic shared memory of a template's type, as the samples do it.
template <class T>
struct SharedMemory {
    __device__ inline operator T *()
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
    __device__ inline operator const T *() const
    {
        extern __shared__ int __smem[];
        return (T *)__smem;
    }
};

template <class T>
__global__ void reduce0(T *g_idata, T *g_odata, unsigned int n)
{
    cg::thread_block cta = cg::this_thread_block();
    T *sdata = SharedMemory<T>();
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    cg::sync(cta);
    for (unsigned int s = 1; s < blockDim.x; s *= 2) {
        if ((tid % (2 * s)) == 0) sdata[tid] += sdata[tid + s];
        cg::sync(cta);
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <class T>
__global__ void reduce2(T *g_idata, T *g_odata, unsigned int n)
{
    T *sdata = SharedMemory<T>();
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] += sdata[tid + s];
        __syncthreads();
    }
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

template <class T, unsigned int blockSize>
__global__ void reduce5(const T *__restrict__ g_idata, T *__restrict__ g_odata, unsigned int n)
{
    __shared__ T warp_sums[blockSize / 32];
    T sum = 0;
    for (unsigned int i = blockIdx.x * blockSize + threadIdx.x; i < n; i += blockSize * gridDim.x)
        sum += g_idata[i];
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockSize / 32 ? warp_sums[threadIdx.x] : T(0);
        for (int offset = 16; offset > 0; offset >>= 1)
            sum += __shfl_down_sync(0xffffffff, sum, offset);
        if (threadIdx.x == 0) g_odata[blockIdx.x] = sum;
    }
}

extern "C" bool isPow2(unsigned int x) { return ((x & (x - 1)) == 0); }

template <class T>
void reduce(int size, int threads, int blocks, int which, T *d_idata, T *d_odata)
{
    int smemSize = (threads <= 32) ? 2 * threads * sizeof(T) : threads * sizeof(T);
    switch (which) {
    case 0: reduce0<T><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
    case 2: reduce2<T><<<blocks, threads, smemSize>>>(d_idata, d_odata, size); break;
    default: reduce5<T, 256><<<blocks, threads>>>(d_idata, d_odata, size);
    }
}

// The instances that other files link to.
template void reduce<int>(int size, int threads, int blocks, int which, int *d_idata, int *d_odata);
template void reduce<float>(int size, int threads, int blocks, int which, float *d_idata, float *d_odata);
