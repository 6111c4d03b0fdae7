// One step of a bitonic sort a launch, and a comparison that is a template's argument.
#include <stdlib.h>
#include <time.h>
#include <functional>

struct Ascending { __host__ __device__ bool operator()(int a, int b) const { return a < b; } };
struct Descending { __host__ __device__ bool operator()(int a, int b) const { return a > b; } };

template <typename Before>
__global__ void bitonic_step(int *values, int j, int k)
{
    unsigned int i = threadIdx.x + blockDim.x * blockIdx.x, ixj = i ^ j;
    Before before;
    if (ixj > i) {
        bool up = (i & k) == 0;
        if (up ? before(values[ixj], values[i]) : before(values[i], values[ixj])) {
            int temp = values[i];
            values[i] = values[ixj];
            values[ixj] = temp;
        }
    }
}

double print_elapsed(clock_t start, clock_t stop)
{
    return ((double)(stop - start)) / CLOCKS_PER_SEC;
}

template <typename Before>
void bitonic_sort(int *values, int n)
{
    int *dev_values;
    cudaMalloc((void **)&dev_values, n * sizeof(int));
    for (int k = 2; k <= n; k <<= 1)
        for (int j = k >> 1; j > 0; j = j >> 1)
            bitonic_step<Before><<<n / 512, 512>>>(dev_values, j, k);
    cudaFree(dev_values);
}

int main(void) { bitonic_sort<Ascending>(NULL, 1 << 15); }
