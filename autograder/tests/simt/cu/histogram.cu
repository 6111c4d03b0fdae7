#include <cstdint>
#include <random>
#include <string>

const int NUM_BINS = 64;
constexpr unsigned int binOf(unsigned char c) { return c / (256 / NUM_BINS); }

struct Options {
    std::string file;
    bool verbose = false;
};

static void usage(const Options &o) { printf("usage: %s [-v]\n", o.file.c_str()); }

__global__ void histogram(const uint8_t *__restrict__ data, size_t n, unsigned int *bins)
{
    __shared__ unsigned int local[NUM_BINS];
    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        local[b] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (size_t)blockDim.x)
        atomicAdd(&local[binOf(data[i])], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x)
        atomicAdd(bins + b, local[b]);
}

int main()
{
    std::mt19937 generator(42);
    Options options{"histogram"};
    usage(options);
}
