"""Resources and occupancy against the CUDA occupancy calculator's arithmetic, by hand."""

import numpy as np
import pytest
from bench_engine import add

import warplab
from warplab.hardware import specs
from warplab.hardware.target import Target
from warplab.simt.toolchain.ptxas import ToolchainError, assemble, blocks_per_sm


@pytest.mark.parametrize(
    "registers, shared, threads, expected",
    [
        # 65,536 / (32 x 256) = 8 blocks
        (32, 0, 256, {"warps": 8, "blocks": 32, "registers": 8, "shared memory": 228}),
        (64, 0, 256, {"warps": 8, "registers": 4}),
        # 33 x 32 = 1,056 -> 1,280 a warp; 16,384 / 1,280 = 12 warps a quarter, 48 an SM
        (33, 0, 256, {"registers": 6}),
        (16, 48 * 1024, 1024, {"warps": 2, "shared memory": 4}),  # 228 / (48 + 1) = 4
        (16, 0, 32, {"warps": 64, "blocks": 32}),
    ],
)
def test_blocks_that_fit_an_sm_90(registers, shared, threads, expected):
    fits = blocks_per_sm(registers, shared, threads, Target.of("sm_90").limits)
    assert {k: fits[k] for k in expected} == expected


def test_what_does_not_fit_in_registers_is_stored_and_loaded_again_and_both_count_as_spills():
    for_all, v = "for (int i = 0; i < 64; i++)", "x[i * 1024 + threadIdx.x]"
    text = f"{{ float v[64]; {for_all} v[i] = {v}; __syncthreads(); {for_all} {v} = v[63 - i]; }}"
    head = 'extern "C" __global__ void __launch_bounds__(1024, 2) many(float* x)'
    p = warplab.profile(warplab.cuda_kernel(head + text, "many")[1, 1024], np.zeros(65536, np.float32))
    assert p.registers == 32 and p.spill_bytes >= 2 * assemble(p.ptx, "many").stack_bytes > 0


def test_profile_reports_what_the_assembler_says():
    p = warplab.profile(add[1, 32], *np.zeros((3, 32), np.float32))
    assert 4 <= p.registers <= 32 and p.spill_bytes == 0 and p.shared_bytes == 0
    assert (p.occupancy, p.occupancy_limit) == (0.5, "blocks")  # 32 blocks of one warp in 64 warps


@pytest.mark.parametrize("arch", [name for name in specs.archs() if name != "sm_70"])
def test_every_architecture_of_the_registry_has_resources_and_an_occupancy_with_its_limit(arch):
    p = warplab.profile(add[1, 256], *np.zeros((3, 256), np.float32), arch=arch)
    limit = Target.of(arch).limits
    assert p.arch == arch and f".target {arch}" in p.ptx and 4 <= p.registers <= 32
    assert (p.occupancy, p.occupancy_limit) == (1.0, "warps")
    assert blocks_per_sm(p.registers, 0, 256, limit)["warps"] == limit.max_warps_per_sm // 8
    # two blocks take all of an SM's shared memory
    half = blocks_per_sm(16, limit.shared_per_sm // 2 - 4096, 32, limit)
    assert min(half, key=half.get) == "shared memory" and half["shared memory"] == 2
    many = blocks_per_sm(255, 0, 256, limit)
    assert min(many, key=many.get) == "registers"
    assert many["registers"] == limit.registers_per_sm // (256 * 256)


def test_an_architecture_that_cudas_compiler_has_left_behind_is_refused_by_name():
    with pytest.raises(Exception, match="compute capability 7.0 is not supported"):
        warplab.profile(add[1, 32], *np.zeros((3, 32), np.float32), arch="sm_70")


def test_ptx_that_the_assembler_refuses_is_an_error_with_its_message():
    with pytest.raises(ToolchainError, match="ptxas refused"):
        assemble(".version 9.0\n.target sm_90\n.address_size 64\nnonsense", "k")
