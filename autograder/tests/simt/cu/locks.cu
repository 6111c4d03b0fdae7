// A lock in global memory, a queue with atomics, and a maximum of floats by compare and swap.
#include <mutex>
#include <thread>

struct Lock {
    int *mutex;
    Lock(void) { int state = 0; cudaMalloc((void **)&mutex, sizeof(int)); cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice); }
    ~Lock(void) { cudaFree(mutex); }
    __device__ void lock(void) { while (atomicCAS(mutex, 0, 1) != 0); __threadfence(); }
    __device__ void unlock(void) { __threadfence(); atomicExch(mutex, 0); }
};

__device__ __managed__ int tickets = 0;
static __device__ unsigned int served;
std::mutex on_the_host;

__device__ float atomicMaxFloat(float *address, float val)
{
    int *address_as_i = (int *)address;
    int old = *address_as_i, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_i, assumed, __float_as_int(fmaxf(val, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

__global__ void count_blocks(Lock lock, volatile int *total)
{
    if (threadIdx.x == 0) {
        lock.lock();
        *total = *total + 1;
        lock.unlock();
        atomicAdd(&tickets, 2);
        atomicInc(&served, 1000);
    }
}

__global__ void maximum(const float *x, int n, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMaxFloat(out, x[i]);
}

int main()
{
    std::lock_guard<std::mutex> guard(on_the_host);
    std::thread waiter([&] { cudaDeviceSynchronize(); });
    Lock lock;
    count_blocks<<<512, 32>>>(lock, &tickets);
    waiter.join();
}
