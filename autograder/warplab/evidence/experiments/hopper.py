"""One product climbed on Hopper, from copies by all threads to roles in a cluster. The kernels are in
hopper_ladder.cu, for sm_90a alone.
"""

import ctypes
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue] - compiled, no stubs

from warplab.evidence.clocks import Workload
from warplab.evidence.declare import experiment

LADDER = Path(__file__).with_name("hopper_ladder.cu").read_text(encoding="utf-8")
BOX = (64, 128)  # of k and of rows: what one request of TMA brings, 16 KiB
#: How the fifth kernel arrives at the other block's barrier, and how its first version did.
ARRIVES, RELEASES = "mbarrier.arrive.shared::cluster", "mbarrier.arrive.release.cluster.shared::cluster"
#: Kernel: rows and columns of a block's tile, its threads, its stages, whether it takes tensor maps.
RUNGS = {
    "threads_copy": (128, 128, 256, 2, False),
    "one_thread_copies": (128, 128, 256, 2, True),
    "warpgroup_multiplies": (128, 128, 128, 2, True),
    "roles_apart": (128, 256, 384, 4, True),
    "a_cluster_shares": (128, 256, 384, 4, True),
}


def configuration(name: str, m: int, n: int) -> tuple[int, int, int]:
    """Blocks, threads and bytes of shared memory of a rung's launch: its stages, and room for barriers."""
    rows, cols, threads, stages, _ = RUNGS[name]
    return m // rows * (n // cols), threads, stages * (rows + cols) * BOX[0] * 2 + 128


def _done(result) -> Any:
    """What a call of the driver gives beside its status."""
    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"CUDA says {status.name}")
    return values[0] if values else None


def tensor_map(matrix: torch.Tensor) -> bytes:
    """The map of a BF16 matrix on the GPU by which TMA brings boxes of 64 x 128, swizzled by 128 bytes."""
    rows, cols = matrix.shape
    wide, narrow = driver.cuuint64_t, driver.cuuint32_t
    made = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        2,
        matrix.data_ptr(),
        [wide(cols), wide(rows)],
        [wide(cols * 2)],
        [narrow(side) for side in BOX],
        [narrow(1), narrow(1)],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    return ctypes.string_at(_done(made).getPtr(), 128)


def on_cuda(name: str, source: str = LADDER):
    """launcher(a, b, c): what makes c = a bT on the GPU when called, its arguments ready."""
    from warplab.simt.toolchain.nvrtc import compile_ptx, prepare

    torch.cuda.current_stream()
    module = _done(driver.cuModuleLoadData(compile_ptx(prepare(source, name), name, "sm_90a")[0].encode()))
    function = _done(driver.cuModuleGetFunction(module, name.encode()))

    def launcher(a, b, c):
        (m, k), n = a.shape, len(b)
        blocks, threads, shared = configuration(name, m, n)
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _done(driver.cuFuncSetAttribute(function, most, shared))
        given = [tensor_map(t) if RUNGS[name][4] else t.data_ptr().to_bytes(8, "little") for t in (a, b)]
        given += [c.data_ptr().to_bytes(8, "little")] + [side.to_bytes(4, "little") for side in (m, n, k)]
        kept = [ctypes.create_string_buffer(value, len(value)) for value in given]
        pointers = (ctypes.c_void_p * len(kept))(*map(ctypes.addressof, kept))
        size = (blocks, 1, 1, threads, 1, 1, shared)

        def launch(kept=kept):
            _done(driver.cuLaunchKernel(function, *size, 0, ctypes.addressof(pointers), 0))

        return launch

    return launcher


@experiment(
    question="What does each step of Hopper's machinery bring to one product?",
    chapter="14-tomorrow",
    x="side",
)
def hopper_ladder(where):
    """c = a bT in BF16, sums in FP32, beside the library; the kernels run on compute capability 9.0 alone."""
    hopper = torch.cuda.get_device_capability() == (9, 0)
    launchers = {name: on_cuda(name) for name in RUNGS} if hopper else {}
    if hopper:
        name = "a_cluster_shares"
        launchers[f"{name}, release.cluster"] = on_cuda(name, LADDER.replace(ARRIVES, RELEASES))
    for n in (2048, 4096, 8192):
        a, b = torch.randn(2, n, n, device=where, dtype=torch.bfloat16)
        expected, c = a @ b.T, torch.empty(n, n, device=where, dtype=torch.bfloat16)
        what = {"clock": "cuda", "flops": 2 * n**3, "roof": "bf16"}
        for name, launcher in launchers.items():
            launch = launcher(a, b, c.fill_(torch.nan))
            launch()
            torch.testing.assert_close(c, expected, rtol=0.016, atol=0.05)
            yield Workload(f"course: {name}", n, launch, **what)
        yield Workload("torch bf16", n, lambda a=a, b=b, c=c: torch.mm(a, b.T, out=c), **what)
