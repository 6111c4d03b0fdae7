"""Copies by TMA on a GPU of compute capability 9.0: the engine's own tests, run on CUDA."""

import sys
from pathlib import Path

import pytest

import warplab

sys.path.insert(0, str(Path(__file__).parents[1] / "simt"))
from test_tma import (  # noqa: F401
    test_a_block_passes_a_row_on_to_its_neighbour,
    test_a_box_comes_as_the_model_has_it,
    test_a_box_goes_back_as_the_model_has_it,
    test_a_box_is_combined_with_what_is_there,
    test_a_ring_of_stages,
    test_a_row_comes_is_doubled_and_goes_back,
    test_an_element_beyond_the_edge_is_a_nan_where_that_is_asked_for,
    test_one_copy_reaches_both_blocks,
    test_the_wrappers_of_cuda,
    test_where_an_h200_put_short_rows,
)

DEVICE = warplab.device()
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE.kind != "cuda" or DEVICE.arch < "sm_90", reason="TMA comes with sm_90"),
]
