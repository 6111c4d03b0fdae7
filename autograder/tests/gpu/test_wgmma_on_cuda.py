"""wgmma on a GPU of compute capability 9.0: the engine's own tests, run on CUDA.

They decide whether the layouts that the engine has from the manual and from CUTLASS are the hardware's: where
each element of an operand lies in shared memory or in registers, and which thread holds which sums.
"""

import sys
from pathlib import Path

import pytest

import warplab

sys.path.insert(0, str(Path(__file__).parents[1] / "simt"))
from test_wgmma import (  # noqa: F401
    test_each_type,
    test_negation_and_a_fresh_start,
    test_where_operands_lie,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(warplab.device().arch != "sm_90", reason="wgmma is of compute capability 9.0 alone"),
]
