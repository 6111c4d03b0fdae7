"""Constant memory that nobody set gives a warning, once for a variable."""

import warnings

import numpy as np
from numba import cuda

import warplab

SOURCE = r"""
__constant__ float scale;
__constant__ float table[4] = {1, 2, 3, 4};
__constant__ int never_read;
extern "C" __global__ void k(float* x, int which) {
    if (which) x[threadIdx.x] = scale;
    else x[threadIdx.x] = table[threadIdx.x % 4];
}
"""


def warned(launch) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        launch()
    return [str(w.message) for w in seen if w.category is warplab.UnsetConstant]


def test_a_constant_that_the_host_never_set_is_said_to_be_zero_where_it_is_read():
    kernel = warplab.cuda_kernel(SOURCE, "k")
    x = np.ones(32, np.float32)
    (text,) = warned(lambda: kernel[1, 32](x, np.int32(1)))
    assert text.startswith("constant memory in kernel k, k.cu:6: scale is read") and (x == 0).all()


def test_a_constant_with_an_initialiser_or_that_is_not_read_gives_no_warning():
    kernel = warplab.cuda_kernel(SOURCE, "k")
    x = np.zeros(32, np.float32)
    assert warned(lambda: kernel[1, 32](x, np.int32(0))) == []
    np.testing.assert_array_equal(x, np.tile([1, 2, 3, 4], 8))


def test_a_constant_that_was_set_by_name_gives_no_warning():
    kernel = warplab.cuda_kernel(SOURCE.replace("scale", "factor"), "k")
    kernel.symbol("factor").set(np.float32(3))
    x = np.zeros(32, np.float32)
    assert warned(lambda: kernel[1, 32](x, np.int32(1))) == [] and (x == 3).all()


def test_numba_s_constant_arrays_have_values_even_where_these_are_zero():
    zeros = np.zeros(4, np.float32)

    @cuda.jit
    def copies(x):
        table = cuda.const.array_like(zeros)
        x[cuda.threadIdx.x] = table[cuda.threadIdx.x % 4]

    x = np.ones(32, np.float32)
    assert warned(lambda: copies[1, 32](x)) == [] and (x == 0).all()
