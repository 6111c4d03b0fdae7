"""Small kernels for what teaching code uses and no other test touches: numba's intrinsics and host calls."""

import math

import numpy as np
import pytest
from numba import cuda

import warplab

SIXTEEN_BITS = """
#include <cuda_fp16.h>
__global__ void k(unsigned short* won, half* sum, half2* pair) {
    atomicCAS(won + 1, (unsigned short)0, (unsigned short)(7 + threadIdx.x));
    atomicAdd(sum + 1, __float2half(0.5f));
    atomicAdd(pair, __floats2half2_rn(1.0f, 2.0f));
}
"""


def test_atomics_on_16_bits_leave_their_neighbours_alone():
    won, sums, pair = np.full(4, 9, np.uint16), np.full(3, 3, np.float16), np.zeros(4, np.float16)
    won[1] = 0
    warplab.cuda_kernel(SIXTEEN_BITS, "k")[1, 32](won, sums, pair)
    assert won.tolist() == [9, 7, 9, 9]  # the first lane wins
    assert sums.tolist() == [3, 19, 3] and pair.tolist() == [32, 64, 0, 0]


@cuda.jit
def seven_atomics(word):
    t = np.uint32(cuda.threadIdx.x)
    cuda.atomic.sub(word, 0, t)
    cuda.atomic.and_(word, 1, 0x7FFFFFFF ^ t)
    cuda.atomic.or_(word, 2, t)
    cuda.atomic.xor(word, 3, t)
    cuda.atomic.exch(word, 4, 77)
    cuda.atomic.inc(word, 5, 9)
    cuda.atomic.dec(word, 6, 9)


def test_the_atomics_of_numba():
    word = np.full(7, 127, np.uint32)
    word[5:] = 5
    seven_atomics[1, 64](word)
    assert word.tolist() == [(127 - 2016) & 0xFFFFFFFF, 64, 127, 127, 77, (5 + 64) % 10, (5 - 64) % 10]


@cuda.jit
def extremes(x, most, least):
    cuda.atomic.nanmax(most, 0, x[cuda.grid(1)])
    cuda.atomic.nanmin(least, 0, x[cuda.grid(1)])


def test_atomic_extremes_pass_over_nan():
    x = np.array([3, np.nan, -7, 11] * 8)
    most, least = np.full(1, np.nan), np.full(1, np.nan)
    extremes[1, 32](x, most, least)
    assert (most[0], least[0]) == (11, -7)


# numba's intrinsics, by what NumPy or Python say
@cuda.jit
def bits(out):
    t = cuda.grid(1)
    out[t, 0] = cuda.popc(t) + 100 * cuda.ffs(t)
    out[t, 1] = cuda.clz(np.int32(t))
    out[t, 2] = cuda.brev(np.uint32(t)) >> 24
    out[t, 3] = cuda.laneid + 1000 * cuda.warpsize
    out[t, 4] = cuda.selp(t % 2 == 0, t, -t)
    out[t, 5] = cuda.activemask() & 1
    out[t, 6] = cuda.any_sync(0xFFFFFFFF, t == 3) + 2 * cuda.all_sync(0xFFFFFFFF, t >= 0)
    out[t, 7] = cuda.gridsize(1)
    cuda.nanosleep(5)


def test_intrinsics_of_numba():
    out = np.zeros((32, 8), np.int64)
    bits[1, 32](out)
    for t in range(32):
        reverse = int(f"{t:032b}"[::-1], 2) >> 24
        ffs = (t & -t).bit_length()
        assert out[t].tolist() == [
            t.bit_count() + 100 * ffs,
            32 - t.bit_length(),
            reverse,
            t + 32000,
            t if t % 2 == 0 else -t,
            1,
            3,
            32,
        ]


@cuda.jit(device=True)
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@cuda.jit
def recursion_and_complex(out, z):
    t = cuda.grid(1)
    out[t] = factorial(t % 10)
    z[t] = (z[t] + 1j) * (2 - 1j) / abs(z[t])


def test_recursion_and_complex_numbers():
    out, z = np.zeros(32, np.int64), np.arange(1, 33) + 2j
    expected = (z + 1j) * (2 - 1j) / abs(z)
    recursion_and_complex[1, 32](out, z)
    assert out.tolist() == [math.factorial(t % 10) for t in range(32)]
    np.testing.assert_allclose(z, expected, rtol=1e-14)


# the host's side
@cuda.jit
def number_them(a):
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        a[row, col] = 10 * row + col


@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_of_host_and_device_arrays(order):
    expected = 10 * np.arange(5)[:, None] + np.arange(7)
    host = np.zeros((5, 7), order=order)
    number_them[1, (8, 8)](host)
    device = cuda.device_array((5, 7), np.float64, order=order)
    number_them[1, (8, 8)](device)
    np.testing.assert_array_equal(host, expected)
    np.testing.assert_array_equal(device.copy_to_host(), expected)


def test_views_of_device_arrays_share_their_memory():
    a = cuda.to_device(np.zeros((4, 8), np.int32))
    number_them[1, (8, 8)](a[1:3, 2:6])
    number_them[1, (8, 8)](a[::3, 7:])  # column 7 of rows 0 and 3
    b = a.copy_to_host()
    assert (
        b[1, 2:6].tolist() == [0, 1, 2, 3]
        and b[2, 2:6].tolist() == [10, 11, 12, 13]
        and b[:, 7].tolist() == [0, 0, 0, 10]
    )
    assert a.reshape(32).ravel().copy_to_host()[31] == 10 and a.reshape(32)[19] == 11
    assert (a.T.copy_to_host() == b.T).all()
    assert a.view(np.float32).dtype == np.float32


def test_the_cuda_array_interface_goes_both_ways():
    a = cuda.to_device(np.arange(12.0).reshape(3, 4))

    class Elsewhere:
        __cuda_array_interface__ = a.__cuda_array_interface__

    assert a.__cuda_array_interface__["shape"] == (3, 4)
    number_them[1, (8, 8)](Elsewhere())
    assert a.copy_to_host()[2, 3] == 23
    assert cuda.as_cuda_array(Elsewhere())[1, 2] == 12 and cuda.is_cuda_array(Elsewhere())


def test_arrays_made_like_others_and_pinned_memory():
    like = cuda.device_array_like(np.zeros((2, 3), np.int16))
    pinned, ordinary = cuda.pinned_array(8, np.float32), np.full(8, 4, np.float32)
    pinned[:] = 3
    with cuda.pinned(ordinary), cuda.defer_cleanup():
        there = [cuda.to_device(a, stream=cuda.stream()).copy_to_host() for a in (pinned, ordinary)]
    assert like.shape == (2, 3) and like.dtype == np.int16 and (there[0] == 3).all() and (there[1] == 4).all()
    with pytest.raises(cuda.cudadrv.driver.CudaAPIError, match="pinned already"), cuda.pinned(pinned):
        pass  # as CUDA refuses it
    assert (pinned == 3).all()
