"""The child of test_against_ncu.py: launches each of the benchmark's kernels once on
CUDA, in a fixed order, under ncu.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_engine import cases  # noqa: E402
from numba import cuda  # noqa: E402

import warplab  # noqa: E402, F401

for kernel, grid, block, args in cases():
    kernel[grid, block](*args)
cuda.synchronize()
