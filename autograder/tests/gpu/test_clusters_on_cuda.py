"""Clusters on a GPU that has them: the engine's own tests, run on CUDA: ranks, results and refusals."""

import sys
from pathlib import Path

import numpy as np
import pytest

import warplab

sys.path.insert(0, str(Path(__file__).parents[1] / "simt"))
from test_clusters import (  # noqa: F401
    REFUSED,
    kernel,
    test_a_barrier_of_another_block_is_arrived_at,
    test_a_block_reads_and_writes_its_neighbours_shared_memory,
    test_a_fence_orders_what_a_relaxed_arrival_does_not,
    test_a_flag_in_another_blocks_memory,
    test_a_generic_pointer_means_the_same_in_all_blocks_of_a_cluster,
    test_a_launch_may_say_how_large_its_clusters_are,
    test_a_store_completes_at_a_barrier_of_the_block_that_it_goes_to,
    test_blocks_of_a_cluster_are_ranked_with_x_first,
    test_ptx_reaches_other_blocks_by_both_kinds_of_addresses,
    test_sixteen_blocks_by_consent,
    test_what_blocks_of_a_cluster_count_together,
    test_work_between_arrival_and_wait,
)

from warplab.hardware.device import device

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def with_clusters():
    if device().target.capability < (9, 0):
        pytest.skip("this GPU has no thread block clusters")


@pytest.mark.parametrize("dims, grid, more, said", REFUSED)
def test_cuda_refuses_what_the_engine_refuses(dims, grid, more, said):
    launcher = kernel("", dims)[(grid, 32, *more)]
    with pytest.raises(Exception, match="CLUSTER|INVALID|NOT_PERMITTED|UNSUPPORTED"):
        launcher(np.zeros(1, np.int32))
    assert warplab.cuda_kernel  # the context lives on: the launch was refused, not run
