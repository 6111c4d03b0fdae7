"""Small kernels for what teaching code uses and no other test touches: every atomic, warp and bit intrinsic,
memory space, host call.
"""

import math

import numpy as np
import pytest
from numba import cuda, float32, guvectorize, int32, vectorize

import warplab

# atomics: 64 threads on one word that starts at 5, thread t gives t; what is there afterwards
ATOMICS = [
    ("atomicAdd(p, t)", np.int32, 5 + 2016),
    ("atomicSub(p, t)", np.int32, 5 - 2016),
    ("atomicMin(p, t)", np.int32, 0),
    ("atomicMax(p, t)", np.int32, 63),
    ("atomicAnd(p, ~t)", np.int32, 5 & ~63),
    ("atomicOr(p, t)", np.int32, 63),
    ("atomicXor(p, t)", np.int32, 5),  # every bit is turned an even number of times
    ("atomicExch(p, 77)", np.int32, 77),
    ("atomicCAS(p, 5, 40 + 0 * t)", np.int32, 40),
    ("atomicInc((unsigned*)p, 9u)", np.int32, (5 + 64) % 10),
    ("atomicDec((unsigned*)p, 9u)", np.int32, (5 - 64) % 10),
    ("atomicAdd((unsigned long long*)p, (unsigned long long)t << 33)", np.int64, 5 + (2016 << 33)),
    ("atomicMax((long long*)p, -(long long)t)", np.int64, 5),
    ("atomicAdd(p, (float)t)", np.float32, 5 + 2016),
    ("atomicAdd(p, (double)t / 2)", np.float64, 5 + 1008),
    ("atomicAdd(p, __int2half_rn(t % 2))", np.float16, 5 + 32),
]
POINTER = {"int32": "int", "int64": "long long", "float32": "float", "float64": "double", "float16": "__half"}


@pytest.mark.parametrize("statement, dtype, after", ATOMICS, ids=[a[0] for a in ATOMICS])
def test_an_atomic_of_cuda_cpp(statement, dtype, after):
    kind = POINTER[np.dtype(dtype).name]
    body = f"{{ int t = threadIdx.x; {statement}; }}"
    source = f'#include <cuda_fp16.h>\nextern "C" __global__ void k({kind}* p) {body}'
    word = np.full(1, 5, dtype)
    warplab.cuda_kernel(source, "k")[1, 64](word)
    assert word[0] == after


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


# bits, warps, memories of CUDA C++: an expression of int t = 0..31
EXPRESSIONS = [
    ("__byte_perm(t, 0x44332211, 0x7650)", lambda t: (0x443322 << 8) | (t & 0xFF)),
    ("__ffs(t)", lambda t: (t & -t).bit_length()),
    ("__ffsll((long long)t << 40)", lambda t: (t << 40 & -(t << 40)).bit_length()),
    ("__clzll((long long)t)", lambda t: 64 - t.bit_length()),
    ("__popcll(((long long)t << 32) | t)", lambda t: 2 * t.bit_count()),
    ("(int)(__brevll((unsigned long long)t) >> 32)", lambda t: int(f"{t:032b}"[::-1], 2)),
    ("(int)__funnelshift_l(0x80000000u, t, 1)", lambda t: 2 * t + 1),
    ("__any_sync(0xffffffff, t == 3)", lambda t: 1),
    ("__all_sync(0xffffffff, t < 31)", lambda t: 0),
    ("(int)__ballot_sync(0xffffffff, t < 4)", lambda t: 15),
    ("(int)__match_any_sync(0xffffffff, t / 16)", lambda t: 0xFFFF << t // 16 * 16),
    ("(int)__reduce_or_sync(0xffffffff, t)", lambda t: 31),
    ("(int)__reduce_min_sync(0xffffffff, t + 7)", lambda t: 7),
    ("t < 5 ? (int)__activemask() & 0x1f : 0", lambda t: 0x1F if t < 5 else 0),
    ("__shfl_xor_sync(0xffffffff, t, 5)", lambda t: t ^ 5),
    ("__ldg(table + t)", lambda t: 3 * t),
    ("constants[t % 4]", lambda t: (10, 20, 30, 40)[t % 4]),
    ("counter[0] + t", lambda t: 9 + t),
    ("(int)__vadd4(t, 0x01010101)", lambda t: 0x01010100 | ((t + 1) & 0xFF)),
    ("__mul24(t, 3) + __sad(t, 5, 1u)", lambda t: 3 * t + abs(t - 5) + 1),
    ("(int)__umulhi(t, 0x80000000u)", lambda t: t // 2),
    ("__float_as_int((float)t)", lambda t: int(np.float32(t).view(np.int32))),
    ("__double2int_rn(t + 0.5)", lambda t: round(t + 0.5)),  # ties go to even
    ("__float2int_ru(t + 0.25f)", lambda t: t + 1),
    ("(__nanosleep(20), t)", lambda t: t),
]
CODE = """
__constant__ int constants[4] = {{10, 20, 30, 40}};
__device__ int counter[2] = {{9, 8}};
extern "C" __global__ void k(const int* table, int* out) {{ int t = threadIdx.x; out[t] = {}; }}"""


@pytest.mark.parametrize("expression, value", EXPRESSIONS, ids=[e[0] for e in EXPRESSIONS])
def test_an_expression_of_cuda_cpp(expression, value):
    out = np.zeros(32, np.int32)
    warplab.cuda_kernel(CODE.format(expression), "k")[1, 32](3 * np.arange(32, dtype=np.int32), out)
    np.testing.assert_array_equal(out, np.array([value(t) for t in range(32)], np.int64).astype(np.int32))


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


@pytest.mark.parametrize(
    "statement, name",
    [
        ("x[0] = clock64();", "clock64"),
        ('unsigned s; asm volatile("mov.u32 %0, %%smid;" : "=r"(s)); x[0] = s;', "smid"),
    ],
)
def test_what_the_engine_cannot_know_or_do_is_refused_by_name(statement, name):
    kernel = warplab.cuda_kernel(f'extern "C" __global__ void k(long long* x) {{ {statement} }}', "k")
    with pytest.raises(warplab.UnsupportedInstruction, match=name):
        kernel[1, 32](np.zeros(32, np.int64))


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


FUNCTIONS = ["erf", "erfc", "gamma", "lgamma", "expm1", "log1p", "asinh", "atanh", "tan"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_precision_functions_agree_with_the_host_library(name):
    function = getattr(math, name)

    @cuda.jit
    def k(x):
        x[cuda.grid(1)] = function(x[cuda.grid(1)])

    x = np.linspace(0.05, 0.95, 32)
    expected = [function(v) for v in x]
    k[1, 32](x)
    np.testing.assert_allclose(x, expected, rtol=1e-14)


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


def test_contexts_and_devices():
    assert len(cuda.gpus) == 1 and len(list(cuda.list_devices())) == 1
    with cuda.gpus[0]:
        assert cuda.current_context().get_memory_info().total > 0
    cuda.select_device(0)
    assert cuda.get_current_device().WARP_SIZE == 32 and cuda.is_available()


@cuda.jit
def spends_resources(x):
    s = cuda.shared.array(100, float32)
    mine = cuda.local.array(16, int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    for k in range(x.size % 17):
        mine[k] = t
    cuda.syncthreads()
    x[t] = s[31 - t] + mine[x.size % 16]


def test_a_kernel_tells_its_resources():
    x = np.ones(32, np.float32)
    spends_resources[1, 32](x)
    k = spends_resources
    resources = (
        k.get_shared_mem_per_block(),
        k.get_local_mem_per_thread(),
        k.get_regs_per_thread(),
        k.get_max_threads_per_block(),
    )
    (shared,), (local,), (registers,), (threads,) = (r.values() for r in resources)
    assert shared == 400 and local >= 64 and 4 < registers < 128 and threads == 1024
