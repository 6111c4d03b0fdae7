"""The child of test_against_ncu.py: launches each of the benchmark's kernels once on
CUDA, in a fixed order, under ncu; with "caches" or "large", those of warplab/figures/profiled.py.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench_engine import cases  # noqa: E402
from numba import cuda  # noqa: E402

import warplab  # noqa: E402, F401
from warplab.figures.profiled import CASES, LARGE  # noqa: E402

LISTS = {"caches": {name: launch for name, (_, launch) in CASES.items()}, "large": LARGE}
if sys.argv[1:]:
    for name, launch in LISTS[sys.argv[1]].items():
        launcher, args = launch()
        try:
            launcher(*args)
        except Exception as problem:  # noqa: BLE001 - a device that has less shared memory, say: the others still run
            print(f"{name}: {problem}", file=sys.stderr)
else:
    for kernel, grid, block, args in cases():
        kernel[grid, block](*args)
cuda.synchronize()
