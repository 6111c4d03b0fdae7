"""What the engine does with torch's CPU tensors, done by CUDA with its own."""

import pytest
import torch
from numba import cuda

import warplab

pytestmark = pytest.mark.gpu

BFLOAT = """#include <cuda_bf16.h>
__global__ void doubled(const __nv_bfloat16* x, __nv_bfloat16* out) {
    int i = threadIdx.x;
    out[i] = x[i] + x[i];
}"""


@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + x[i]


def test_cpp_takes_bfloat16_and_a_views_first_element():
    kernel = warplab.cuda_kernel(BFLOAT, "doubled")
    x = torch.arange(16, device="cuda").to(torch.bfloat16)
    out = torch.zeros(8, dtype=torch.bfloat16, device="cuda")
    kernel[1, 7](x[2::2], out)
    assert out.tolist() == [*(2.0 * i for i in range(2, 9)), 0]
    with pytest.raises(warplab.InvalidLaunch, match="reads __nv_bfloat16"):
        kernel[1, 8](torch.zeros(8, device="cuda"), out)
    with pytest.raises(warplab.InvalidLaunch, match="requires a gradient"):
        kernel[1, 8](torch.zeros(8, dtype=torch.bfloat16, device="cuda", requires_grad=True), out)


def test_numba_takes_views_by_their_strides_and_shares_memory_with_torch():
    x, out = torch.arange(16.0, device="cuda"), torch.zeros(8, device="cuda")
    doubled[1, 32](x[::2], out)
    assert out.tolist() == [4.0 * i for i in range(8)]
    there = cuda.as_cuda_array(x[1::2])
    doubled[1, 32](there, there)
    assert x.tolist()[:4] == [0, 2, 2, 6] and torch.as_tensor(there).data_ptr() == x[1:].data_ptr()


def test_a_profile_takes_tensors_wherever_they_lie():
    there = warplab.profile(doubled[1, 8], torch.ones(8, device="cuda"), out := torch.zeros(8, device="cuda"))
    here = warplab.profile(doubled[1, 8], torch.ones(8), torch.zeros(8))
    assert there.as_dict() == here.as_dict() and out.tolist() == [2.0] * 8
