"""30 points: each block writes its borders into its neighbours' halos, and nobody reads another block."""

import warplab

source = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4)
smooth(const float* x, float* out, int n, int r)
{
    __shared__ float left[256], own[256], right[256];
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank();
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float mine = i < n ? x[i] : 0.0f;
    own[t] = mine;
    cluster.sync();  // all four blocks run, so their memory is there
    if (rank > 0 && t < r)
        cluster.map_shared_rank(right, rank - 1)[t] = mine;
    if (rank < 3 && t >= 256 - r)
        cluster.map_shared_rank(left, rank + 1)[t] = mine;
    if (rank == 0 && t >= 256 - r)
        left[t] = i >= 256 && i - 256 < n ? x[i - 256] : 0.0f;
    if (rank == 3 && t < r)
        right[t] = i + 256 < n ? x[i + 256] : 0.0f;
    cluster.sync();
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int place = t - r; place <= t + r; place++)
        sum += place < 0 ? left[256 + place] : place < 256 ? own[place] : right[place - 256];
    out[i] = sum;
}
"""
smooth = warplab.cuda_kernel(source, "smooth")
