// Pi from points in the unit square; each thread has a generator of its own.
#include <cstdio>
#include <cstdint>
#include <curand.h>

class Lcg {
    uint32_t state;

public:
    __device__ explicit Lcg(uint32_t seed) : state(seed * 747796405u + 2891336453u) {}
    __device__ uint32_t next() { return state = state * 1664525u + 1013904223u; }
    __device__ float uniform() { return (next() >> 8) * (1.0f / (1 << 24)); }
};

__global__ void count_hits(unsigned long long *hits, int trials)
{
    const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x;
    Lcg random(id);
    unsigned int inside = 0;
    for (int t = 0; t < trials; ++t) {
        const float x = random.uniform(), y = random.uniform();
        inside += x * x + y * y <= 1.0f;
    }
    inside = __reduce_add_sync(__activemask(), inside);
    if (threadIdx.x % warpSize == 0) atomicAdd(hits, (unsigned long long)inside);
}

int main()
{
    unsigned long long *hits, total;
    cudaMallocManaged(&hits, sizeof *hits);
    *hits = 0;
    count_hits<<<64, 256>>>(hits, 1000);
    cudaDeviceSynchronize();
    total = 64ull * 256 * 1'000;
    std::printf("pi is about %.6f, off by %.1e\n", 4.0 * *hits / total, fabs(4.0 * *hits / total - M_PI));
}
