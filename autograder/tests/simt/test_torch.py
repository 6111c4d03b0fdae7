"""torch on the engine: its types and views, memory shared both ways, operations with kernels of one's own."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import torch
from numba import cuda
from torch.autograd.gradcheck import GradcheckError

import warplab
from warplab.simt.frontends import torch_hook
from warplab.simt.frontends.space import SPACE
from warplab.simt.frontends.symbols import parameter_types

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the hook is not installed where there is CUDA"
)


@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + x[i]


BFLOAT = """#include <cuda_bf16.h>
__global__ void doubled(const __nv_bfloat16* x, __nv_bfloat16* out) {
    int i = threadIdx.x;
    out[i] = x[i] + x[i];
}"""
EIGHT = """#include <cuda_fp8.h>
template <int N> __global__ void scaled(const __nv_fp8_e4m3* x, float* out) {
    out[threadIdx.x] = N * float(x[threadIdx.x]);
}"""


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64", "int8", "uint16", "complex64"])
def test_numba_takes_torchs_types_and_writes_into_the_tensor(kind):
    x = torch.arange(8).to(getattr(torch, kind))
    out = torch.zeros_like(x)
    doubled[1, 32](x, out)
    assert out.dtype == x.dtype and out.to(torch.complex64).tolist() == [2 * i for i in range(8)]


def test_numba_takes_views_by_their_strides():
    base, out = torch.arange(16.0), torch.zeros(2, 8)
    doubled[1, 32](base[::2], out[1])
    assert out.tolist() == [[0] * 8, [4.0 * i for i in range(8)]]
    across = torch.zeros(8, 2)
    doubled[1, 32](base[::2], across[:, 1])
    out = across.T
    assert out.tolist() == [[0] * 8, [4.0 * i for i in range(8)]]
    wide = torch.zeros(8)
    doubled[1, 32](torch.full((1,), 3.0).expand(8), wide)
    assert wide.tolist() == [6.0] * 8


def test_cpp_takes_a_views_first_element_as_on_cuda():
    x = torch.arange(16).to(torch.bfloat16)
    out = torch.zeros(8, dtype=torch.bfloat16)
    warplab.cuda_kernel(BFLOAT, "doubled")[1, 7](x[2::2], out)
    assert out.tolist() == [*(2.0 * i for i in range(2, 9)), 0]  # neighbours in memory: strides stay behind
    with pytest.raises(warplab.OutOfBounds, match=r"element \[3\]"):  # the view ends with its last element
        warplab.cuda_kernel(BFLOAT, "doubled")[1, 8](x[:3], out)


def test_a_view_is_aligned_as_its_storage_is():
    """64 floats from byte 12: bytes 12-139 and 140-267, 5 sectors of 32 bytes each; from byte 0 it is 4."""
    x, out = torch.arange(100.0), torch.zeros(64)
    assert warplab.profile(doubled[1, 64], x[3:67], out).global_load.sectors == 10
    assert warplab.profile(doubled[1, 64], x[:0], torch.zeros(0)).global_load.sectors == 0
    assert warplab.profile(doubled[1, 64], torch.arange(200.0)[64:128], out).global_load.sectors == 8


def test_past_the_end_of_a_slice_the_index_is_the_slices():
    with pytest.raises(warplab.OutOfBounds, match=r"reads element \[5\] of argument 'x' \(float32\[5\]\)"):
        doubled[1, 8](torch.arange(16.0)[3:8], torch.zeros(8))


def test_cpp_takes_bfloat16_and_8_bit_floats_and_their_bits():
    x = torch.arange(8).to(torch.bfloat16)
    out = torch.zeros_like(x)
    warplab.cuda_kernel(BFLOAT, "doubled")[1, 8](x, out)
    assert torch.equal(out, x + x)
    scaled, small = (
        warplab.cuda_kernel(EIGHT, "scaled<3>"),
        torch.tensor([0.5, -2, 448]).to(torch.float8_e4m3fn),
    )
    for given in (
        small,
        small.view(torch.uint8),
        small.view(torch.uint8).numpy().view(ml_dtypes.float8_e4m3fn),
    ):
        result = torch.zeros(3)
        scaled[1, 3](given, result)
        assert result.tolist() == [1.5, -6, 1344]


@pytest.mark.parametrize(
    "source, name, given, told",
    [
        (BFLOAT, "doubled", torch.zeros(8), "number 1 is float32[8], and the kernel reads __nv_bfloat16"),
        (
            EIGHT,
            "scaled<3>",
            torch.zeros(8).to(torch.float8_e5m2),
            "float8_e5m2[8], and the kernel reads __nv_fp8",
        ),
        (BFLOAT, "doubled", np.zeros(8), "number 1 is float64[8], and the kernel reads __nv_bfloat16"),
    ],
)
def test_floats_of_another_type_than_the_kernels_are_refused(source, name, given, told):
    with pytest.raises(warplab.InvalidLaunch) as refused:
        warplab.cuda_kernel(source, name)[1, 8](given, torch.zeros(8))
    assert told in str(refused.value) and "an array of " in refused.value.hint


def test_a_mangled_name_tells_the_types_of_the_parameters():
    assert parameter_types("_Z5scaleIfLi16EEvPT_PKS0_i") == ["float*", "float const*", "int"]
    assert parameter_types("_Z1kPK13__nv_bfloat16PFiiE") == ["__nv_bfloat16 const*", "int (*)(int)"]
    assert parameter_types("plain_name") == []


def test_numba_has_no_8_bit_floats_and_says_what_to_pass():
    with pytest.raises(
        warplab.InvalidLaunch, match=r"'x' is a tensor of float8_e4m3fn.*a type that numba does not have"
    ) as no:
        doubled[1, 8](torch.zeros(8).to(torch.float8_e4m3fn), torch.zeros(8))
    assert "x.view(torch.uint8)" in no.value.hint


@pytest.mark.parametrize("run", [doubled[1, 8], lambda *args: warplab.profile(doubled[1, 8], *args)])
def test_a_tensor_that_requires_a_gradient_is_refused(run):
    with pytest.raises(warplab.InvalidLaunch, match="'x' is a tensor that requires a gradient") as refused:
        run(torch.zeros(8, requires_grad=True), torch.zeros(8))
    assert "x.detach()" in refused.value.hint.replace("tensor.", "x.")
    with pytest.raises(warplab.InvalidLaunch, match="is a tensor on meta"):
        run(torch.zeros(8, device="meta"), torch.zeros(8))


@pytest.mark.parametrize(
    "view, told, instead",
    [
        (torch.ones(4, dtype=torch.complex64).conj(), "a view that torch conjugates", "resolve_conj()"),
        (torch.ones(4, dtype=torch.complex64).conj().imag, "a view that torch negates", "resolve_neg()"),
        (torch.eye(3).to_sparse(), "a tensor that is sparse_coo", "tensor.values()"),
        (torch.eye(3).to_mkldnn(), "a tensor that is _mkldnn", "its parts"),
    ],
)
def test_a_tensor_whose_memory_has_other_numbers_is_refused(view, told, instead):
    source = "__global__ void copied(void* x, float* out) { out[threadIdx.x] = ((float*)x)[threadIdx.x]; }"
    for call in (doubled[1, 8], warplab.cuda_kernel(source, "copied")[1, 4]):
        with pytest.raises(warplab.InvalidLaunch, match=told) as refused:
            call(view, torch.zeros(4))
        assert instead in refused.value.hint


# torch.compile


@pytest.mark.slow
def test_torch_compile_goes_around_a_launch():
    twice = warplab.cuda_kernel(
        "__global__ void twice(const float* x, float* out) { out[threadIdx.x] = 2 * x[threadIdx.x]; }",
        "twice",
    )

    def both(x):
        out, again = torch.empty_like(x), torch.empty_like(x)
        doubled[1, 32](x + 1, out)
        twice[1, 8](out, again)
        return again - 1

    x = torch.arange(8.0)
    assert torch.compile(both, backend="eager")(x).tolist() == [4 * i + 3 for i in range(8)]
    torch.compiler.reset()
    with pytest.raises(Exception, match="a kernel is launched"):
        torch.compile(both, backend="eager", fullgraph=True)(x)


# memory shared both ways


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_tensor_is_a_device_array_on_the_same_memory(kind):
    x = torch.arange(12).to(kind)
    there = cuda.as_cuda_array(x[2::2])
    assert cuda.is_cuda_array(x) and there.shape == (5,) and there.strides == (2 * x.itemsize,)
    doubled[1, 32](there, there)
    assert x.tolist() == [0, 1, 4, 3, 8, 5, 12, 7, 16, 9, 20, 11]
    interface = there.__cuda_array_interface__
    assert interface["shape"] == (5,) and SPACE.find(interface["data"][0]) is not None


def test_the_memory_is_unmapped_when_nobody_needs_it():
    x = torch.arange(4.0)
    there = cuda.as_cuda_array(x)
    address = there.__cuda_array_interface__["data"][0]
    part = there[1:3]
    del there, x
    assert SPACE.find(address) is not None and part.copy_to_host().tolist() == [1, 2]
    del part
    assert SPACE.find(address) is None


def test_a_device_array_is_a_tensor_on_the_same_memory():
    there = cuda.to_device(np.arange(8, dtype=np.float32))
    tensors = torch.as_tensor(there), torch.from_dlpack(there), torch.from_numpy(np.from_dlpack(there))
    doubled[1, 8](there, there)
    assert all(tensor.tolist() == [0, 2, 4, 6, 8, 10, 12, 14] for tensor in tensors)
    tensors[0][0] = 5
    assert there.copy_to_host()[0] == 5
    assert torch.as_tensor(there[1::2]).tolist() == [2, 6, 10, 14]
    bits = cuda.as_cuda_array(torch.arange(3).to(torch.bfloat16))
    assert torch.equal(torch.as_tensor(bits), torch.from_dlpack(bits))
    assert torch.as_tensor(there, dtype=torch.float64).dtype == torch.float64


# an operation of torch's made of kernels

SWISH = """__global__ void forward(const double* x, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] / (1 + exp(-x[i]));
}
__global__ void backward(const double* x, const double* grad, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { double s = 1 / (1 + exp(-x[i])); out[i] = grad[i] * (s + x[i] * s * (1 - s)); }
}"""


def an_operation(name, wrong=1.0):
    """A torch operation whose forward and backward are kernels; ``wrong`` scales its gradient."""
    forward, backward = (warplab.cuda_kernel(SWISH, one) for one in ("forward", "backward"))

    @torch.library.custom_op(f"warplab_test::{name}", mutates_args=())
    def swish(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        forward[1, 32](x.detach(), out, x.numel())
        return out

    @torch.library.custom_op(f"warplab_test::{name}_backward", mutates_args=())
    def swish_backward(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        backward[1, 32](x.detach(), grad.contiguous(), out, x.numel())
        return out * wrong

    swish.register_autograd(
        lambda ctx, grad: swish_backward(ctx.saved_tensors[0], grad),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return swish


@pytest.mark.slow
def test_gradcheck_passes_an_operation_made_of_kernels_and_fails_a_wrong_one():
    x = torch.linspace(-2, 2, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(an_operation("swish"), x)
    with pytest.raises(GradcheckError):
        torch.autograd.gradcheck(an_operation("wrong", 1.1), x)


# device="cuda"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.zeros(3, device="cuda"),
        lambda: torch.zeros(3).cuda(),
        lambda: torch.zeros(3).to("cuda:0"),
        lambda: torch.nn.Linear(2, 2).to("cuda"),
        lambda: torch.as_tensor(np.zeros(3), device="cuda"),
        lambda: torch.cuda.get_device_properties(0),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="here torch has CUDA, and the engine was asked for")
def test_who_asks_torch_for_cuda_is_told_what_to_write(ask):
    with pytest.raises((AssertionError, RuntimeError)) as refused:
        ask()
    told = str(refused.value)
    assert told.endswith(torch_hook.INSTEAD) and told.count("warplab.torch_device") == 1
    assert len(told) > len(torch_hook.INSTEAD) + 20  # torch's own words stand before it


@pytest.mark.parametrize(
    "ask",
    [
        lambda: torch.cuda.synchronize(),
        lambda: torch.cuda.Event(enable_timing=True),
        lambda: torch.cuda.Stream(),
        lambda: torch.cuda.CUDAGraph(),
        lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.device(0).__enter__(),
        lambda: torch.cuda.memory_summary(),
        lambda: torch.cuda.nvtx.range_push("part"),
        lambda: torch.zeros(3).pin_memory(),
    ],
)
@pytest.mark.skipif(torch.cuda.is_available(), reason="here torch has CUDA, and the engine was asked for")
def test_what_only_cuda_has_is_told_to_be_left_out(ask):
    with pytest.raises((AssertionError, RuntimeError)) as refused:
        ask()
    assert str(refused.value).startswith("torch.") and str(refused.value).endswith(torch_hook.LEAVE_OUT)
    with pytest.raises(ValueError):  # a mistake of another kind stays what it is
        torch.cuda.set_device("cpu")


ORDERS = {
    "warplab first": "import warplab, torch",
    "torch first": "import torch, warplab",
    "looked for first": "import warplab, importlib.util; importlib.util.find_spec('torch'); import torch",
}


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_the_order_of_the_imports_does_not_matter(order):
    code = (
        f"{order}\ntry: torch.zeros(1, device='cuda')\nexcept (AssertionError, RuntimeError) as e: print(e)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "warplab.torch_device" in run.stdout, run.stderr
