"""Small kernels for what teaching code uses and no other test touches: every atomic, warp and bit intrinsic,
memory space, host call.
"""

import math

import numpy as np
import pytest
from numba import cuda, guvectorize, vectorize

import warplab


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


STRUCT = """
struct Particle { float x, y; int cell; double mass; };
extern "C" __global__ void k(Particle p, Particle* out, short n) {
    p.x += threadIdx.x; p.cell *= n;
    out[threadIdx.x] = p;
}"""
PARTICLE = np.dtype([("x", "f4"), ("y", "f4"), ("cell", "i4"), ("mass", "f8")], align=True)


def test_a_struct_travels_by_value_and_an_array_of_structs_by_address():
    out = np.zeros(32, PARTICLE)
    one = np.array((1.5, 2.5, 3, 4.5), PARTICLE)[()]
    warplab.cuda_kernel(STRUCT, "k")[1, 32](one, out, 7)
    assert (
        out["x"].tolist() == [1.5 + t for t in range(32)]
        and (out["cell"] == 21).all()
        and (out["mass"] == 4.5).all()
    )
    with pytest.raises(warplab.InvalidLaunch, match="has 16 bytes .*and the kernel wants 24"):
        warplab.cuda_kernel(STRUCT, "k")[1, 32](np.zeros((), "i8,i8")[()], out, 7)


def test_a_launch_from_the_device_is_refused_when_it_is_compiled():
    with pytest.raises(warplab.CompileError, match="device-side kernel launch"):
        warplab.cuda_kernel(
            '__global__ void child() {}\nextern "C" __global__ void k() { child<<<1, 1>>>(); }', "k"
        )


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


@cuda.jit(fastmath=True)
def fast(x):
    i = cuda.grid(1)
    x[i] = math.sin(x[i]) / math.sqrt(x[i])


def test_fast_math_is_close():
    x = np.linspace(0.1, 3, 32, dtype=np.float32)
    expected = np.sin(x) / np.sqrt(x)
    fast[1, 32](x)
    np.testing.assert_allclose(x, expected, rtol=1e-5)


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


def test_ufuncs_and_generalised_ufuncs_run_on_the_engine():
    @vectorize(["float32(float32, float32)"], target="cuda")
    def larger(a, b):
        return a if a > b else b

    @guvectorize(["void(float32[:], float32[:])"], "(n)->()", target="cuda")
    def total(row, out):
        out[0] = 0
        for v in row:
            out[0] += v

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(larger(x, np.float32(5)), np.maximum(x, 5))
    assert larger.reduce(x.ravel()) == 11
    np.testing.assert_array_equal(total(x), x.sum(axis=1))


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
