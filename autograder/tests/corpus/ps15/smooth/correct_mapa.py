"""30 points: the instructions themselves, and the right halo fetched by the threads at the other end."""

import warplab

source = r"""
__device__ float of_block(const float* place, unsigned rank)
{
    float value;
    unsigned here = (unsigned)__cvta_generic_to_shared(place);
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(value) : "r"(here), "r"(rank) : "memory");
    return value;
}

__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

extern "C" __global__ void __cluster_dims__(4, 1, 1)
smooth(const float* x, float* out, int n, int r)
{
    __shared__ float part[768];
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    int i = 256 * blockIdx.x + threadIdx.x;
    float* mine = part + 256 + threadIdx.x;
    *mine = i < n ? x[i] : 0.0f;
    meet();
    int from_end = 255 - threadIdx.x;
    if (from_end < r) {  // a whole block to the left
        if (rank)
            mine[-256] = of_block(mine, rank - 1);
        else
            mine[-256] = i >= 256 && i - 256 < n ? x[i - 256] : 0.0f;
    }
    if (threadIdx.x < r) {
        if (rank != 3)
            mine[256] = of_block(mine, rank + 1);
        else
            mine[256] = i + 256 < n ? x[i + 256] : 0.0f;
    }
    meet();
    if (i < n) {
        float sum = *mine;
        for (int d = 1; d <= r; d++)
            sum += mine[-d] + mine[d];
        out[i] = sum;
    }
}
"""
smooth = warplab.cuda_kernel(source, "smooth")
