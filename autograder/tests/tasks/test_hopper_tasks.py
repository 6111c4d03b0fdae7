"""Problem set 15: its references against loops, and what its rows count, by hand."""

import numpy as np
import pytest
from corpus_files import all_entries, solution_of
from numba import cuda

import warplab
from warplab.tasks import registry
from warplab.tasks.feedback import report_on

SMOOTH, ENERGY, PRODUCT = (registry.get(f"ps15/{name}") for name in ("smooth", "row_energy", "wgmma_product"))


def test_a_window_beyond_the_ends_is_cut_off():
    x = np.array([1, 2, 4, 8], np.float32)
    assert SMOOTH.windows(x, 1).tolist() == [3, 7, 14, 12] and SMOOTH.windows(x, 9).tolist() == [15] * 4


def test_a_halo_costs_what_was_counted_by_hand():
    kernel, (x, out) = solution_of("ps15/smooth")[0], np.zeros((2, 2048), np.float32)
    p = warplab.profile(kernel[8, 256], x, out, 2048, 64)
    # two clusters, each with three borders; 64 samples across the one between them, either way
    assert p.distributed_load.bytes == 2 * 3 * 2 * 64 * 4
    assert p.global_read.sectors == (2048 + 2 * 64) // 8 and p.global_read.bytes == 4 * (2048 + 2 * 64)


@pytest.mark.slow
@pytest.mark.parametrize("name, steps_alone", [("", 1), ("wrong_one_stage", 10), ("correct_two_stages", 1)])
def test_a_product_is_alone_while_nothing_is_under_way(name, steps_alone):
    kernel = solution_of("ps15/wgmma_product")[0]
    if name:
        entry = next(one for one in all_entries() if one.id == f"ps15/wgmma_product/{name}")
        kernel = entry.namespace()["wgmma_product"]
    a, b, c = (np.zeros((64, n), np.float16) for n in (640, 640, 32))
    maps = warplab.tensor_map(a, (64, 64), swizzle=128), warplab.tensor_map(b, (32, 64), swizzle=128)
    p = warplab.profile(kernel[(1, 1), 128], *maps, c.astype(np.float32), 64, 32, 640)
    assert p.operand_bytes == 10 * (64 + 32) * 64 * 2
    assert p.operand_bytes_alone == steps_alone * (64 + 32) * 64 * 2


def test_a_kernel_of_numba_gets_no_tensor_map():
    @cuda.jit
    def row_energy(tiles, out, rows, cols):
        out[cuda.grid(1)] = tiles[0]

    told = report_on("ps15/row_energy", row_energy).lines[0].reason
    assert "row_energy gets a tensor map, which only CUDA C++ takes: warplab.cuda_kernel" in told
