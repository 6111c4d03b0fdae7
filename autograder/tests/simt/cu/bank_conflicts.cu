// The same words from shared memory with a stride: one kernel for each, made by a macro.
#include <cstdio>
#include <tuple>

#define STRIDED(name, stride)                                       \
    extern "C" __global__ void name(const float *in, float *out)    \
    {                                                               \
        __shared__ float tile[32 * (stride)];                       \
        for (int i = threadIdx.x; i < 32 * (stride); i += 32)       \
            tile[i] = in[i];                                        \
        __syncthreads();                                            \
        out[threadIdx.x] = tile[threadIdx.x * (stride)];            \
    }

STRIDED(stride1, 1)
STRIDED(stride2, 2)
STRIDED(stride32, 32)

int main()
{
    for (auto kernel : {stride1, stride2, stride32}) kernel<<<1, 32>>>(nullptr, nullptr);
}
