"""30 points: a barrier of the block after the halos, and the cluster meets only before its blocks leave."""

import warplab

source = r"""
#include <cooperative_groups.h>

extern "C" __global__ void __cluster_dims__(4)
smooth(const float* x, float* out, int n, int r)
{
    auto cluster = cooperative_groups::this_cluster();
    __shared__ float own[256], part[768];
    const int t = threadIdx.x, first = blockIdx.x * 256, rank = blockIdx.x % 4;
    own[t] = first + t < n ? x[first + t] : 0.0f;
    cluster.sync();
    for (int p = 256 - r + t; p < 512 + r; p += 256) {
        int owner = rank + p / 256 - 1, i = first + p - 256;
        if (owner >= 0 && owner < 4)
            part[p] = owner == rank ? own[p % 256] : *cluster.map_shared_rank(&own[p % 256], owner);
        else
            part[p] = i >= 0 && i < n ? x[i] : 0.0f;
    }
    __syncthreads();
    float even = 0.0f, odd = 0.0f;
    const float* window = part + 256 - r + t;
    for (int d = 0; d < 2 * r; d += 2) {
        even += window[d];
        odd += window[d + 1];
    }
    if (first + t < n)
        out[first + t] = even + window[2 * r] + odd;
    cluster.sync();
}
"""
smooth = warplab.cuda_kernel(source, "smooth")
