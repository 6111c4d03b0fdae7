"""Whole `.cu` files, variables by name and structs by value on a GPU: the engine's own tests, run on CUDA."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simt"))
from test_cu_files import (  # noqa: F401
    test_convolution_with_a_mask_that_the_host_sets,
    test_cooperative_groups,
    test_locks_and_atomics,
    test_sparse_matrix_times_vector,
    test_stencil_with_tables_of_constants_and_of_functions,
    test_tiled_matrix_product_of_structs_by_value,
    test_vector_add,
)
from test_cuda_source import (  # noqa: F401
    test_a_struct_goes_by_value,
    test_a_vector_goes_by_value_as_a_record_or_a_complex_number,
    test_addresses_in_initialisers_and_virtual_functions,
    test_variables_are_set_and_read_by_name,
)

pytestmark = pytest.mark.gpu
