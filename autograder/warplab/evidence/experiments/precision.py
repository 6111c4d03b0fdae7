"""Number formats on Tensor Cores: the book's WMMA kernel, eight-bit products of the
library, and training a transformer by format.
"""

import torch

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment
from warplab.models.networks import Transformer

int8_product, fp8_product = torch._int_mm, torch._scaled_mm  # pyright: ignore[reportPrivateImportUsage]

WMMA = """
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void matmul(const half* A, const half* B, float* C, int n)
{
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, row_major> b;
    fragment<accumulator, 16, 16, 16, float> sums;
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    fill_fragment(sums, 0.0f);
    for (int k = 0; k < n; k += 16) {
        load_matrix_sync(a, A + row * n + k, n);
        load_matrix_sync(b, B + k * n + col, n);
        mma_sync(sums, a, b, sums);
    }
    store_matrix_sync(C + row * n + col, sums, n, mem_row_major);
}
"""


@experiment(
    question="How fast are eight-bit products, and a WMMA kernel without tiling?",
    chapter="07-precision",
    x="side",
)
def matmul_in_eight_bits(where):
    """Beside matmul_by_size, which has the wider formats: FP8 (E4M3, compute capability
    8.9 or later), INT8, and chapter 7's kernel.
    """
    from warplab.simt.frontends.cuda_cpp import cuda_kernel

    kernel = cuda_kernel(WMMA, "matmul")
    for n in (512, 1024, 2048, 4096, 8192):
        flops = 2 * n**3
        a, b = torch.randn(2, n, n, device=where)
        if n <= 4096:
            x, y, z = a.half(), b.half(), torch.empty(n, n, device=where)
            launch = kernel[(n // 16, n // 16), 32]
            yield Workload(
                "course: WMMA, fp16",
                n,
                lambda launch=launch, x=x, y=y, z=z, n=n: launch(x, y, z, n),
                "cuda",
                flops=flops,
                roof="fp16",
            )
        x, y = (t.mul(20).round().clamp(-127, 127).to(torch.int8) for t in (a, b.T.contiguous()))
        yield Workload(
            "torch int8", n, lambda x=x, y=y: int8_product(x, y.T), "cuda", flops=flops, roof="int8"
        )
        if torch.cuda.get_device_capability() >= (8, 9):
            x, y = a.to(torch.float8_e4m3fn), b.T.contiguous().to(torch.float8_e4m3fn)
            one = torch.ones((), device=where)

            def call(x=x, y=y, one=one):
                return fp8_product(x, y.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

            yield Workload("torch fp8", n, call, "cuda", flops=flops, roof="fp8")


@experiment(
    question="How much faster does a transformer train in fewer bits?", chapter="07-precision", x="width"
)
def training_by_format(where):
    """One step (forward, loss, backward, AdamW) on 16 x 512 tokens, 8 layers, by width;
    weights in FP32, products as named.
    """
    for width in (256, 512, 1024, 2048):
        model = Transformer(vocabulary=1024, width=width, heads=width // 64, layers=8, context=512).to(where)
        rows = torch.randint(1024, (16, 513), device=where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        scaler = torch.amp.GradScaler(where)

        @torch.enable_grad()
        def step(kind, model=model, rows=rows, optimizer=optimizer, scaler=scaler):
            torch.backends.cuda.matmul.fp32_precision = "tf32" if kind == "tf32" else "ieee"
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(
                where, torch.float16 if kind == "fp16" else torch.bfloat16, enabled=kind in ("bf16", "fp16")
            ):
                loss = model.loss(rows)
            if kind == "fp16":
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                loss.backward()
                optimizer.step()

        for kind in ("fp32", "tf32", "bf16", "fp16"):
            yield Workload(kind, width, lambda kind=kind, step=step: step(kind), "cuda")
    torch.backends.cuda.matmul.fp32_precision = "ieee"
