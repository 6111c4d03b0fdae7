"""The same kernels, same inputs: the engine's results against a real GPU's. Runs on a
bare CUDA machine (make gpu-test).
"""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest

import warplab

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench_engine import cases

pytestmark = pytest.mark.gpu
CASES = cases()
EXACT = {"add", "transpose", "histogram", "collatz", "mandelbrot", "saxpy_strided", "reduce_tree"}


@pytest.mark.parametrize("number", range(len(CASES)), ids=[c[0].py_func.__name__ for c in CASES])
def test_results_agree(number):
    kernel, grid, block, args = CASES[number]
    on_gpu, on_engine = copy.deepcopy(args), copy.deepcopy(args)
    kernel[grid, block](*on_gpu)
    warplab.profile(kernel[grid, block], *on_engine)
    for a, b in zip(on_gpu, on_engine, strict=True):
        if isinstance(a, np.ndarray):
            if kernel.py_func.__name__ in EXACT:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


SAXPY = """
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
"""


def test_cuda_cpp_agrees():
    kernel = warplab.cuda_kernel(SAXPY, "saxpy")
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    a, b = np.ones(1000, np.float32), np.ones(1000, np.float32)
    kernel[4, 256](1000, 2.5, x, a)
    warplab.profile(kernel[4, 256], 1000, 2.5, x, b)
    np.testing.assert_array_equal(a, b)
