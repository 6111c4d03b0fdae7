"""numba.cuda's host side on the engine.

What a kernel takes, linked code, managed memory, streams, occupancy, ufuncs.
"""

import enum

import numpy as np
import pytest
from numba import cuda, guvectorize, int32, types, vectorize
from numba.cuda import CUSource

import warplab

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the engine stands in only where there is no CUDA"
)

POINT = np.dtype([("x", np.float32), ("y", np.int64), ("corner", np.int16, (2,))], align=True)


@cuda.jit
def moves(points, one, out):
    i = cuda.grid(1)
    if i < points.size:
        out[i] = points[i].x + points[i].y + points[i].corner[1]
        points[i].y = i
    if i == 0:
        one.x = 7


def test_a_kernel_reads_and_writes_arrays_of_records_and_one_record():
    points, out = np.zeros(4, POINT), np.zeros(4)
    points["x"], points["y"], points["corner"] = 0.5, 10, (1, 2)
    one = np.zeros(1, POINT)[0]
    moves[1, 32](points, one, out)
    assert (out == 12.5).all() and (points["y"] == np.arange(4)).all() and one["x"] == 7


class Colour(enum.IntEnum):
    RED, BLUE = 3, 5


@cuda.jit
def takes(colour, when, then, z, flag, pair, out):
    out[0] = colour + pair[0] + pair[1][1]
    out[1] = z.real * z.imag
    out[2] = flag
    out[3] = pair[1][0] if when > then else 0


def test_a_kernel_takes_enums_dates_complex_numbers_booleans_and_nested_tuples():
    out = np.zeros(4)
    takes[1, 1](
        Colour.BLUE, np.datetime64("2021-01-02"), np.datetime64("2021-01-01"), 2 + 3j, True, (1, (2, 3)), out
    )
    np.testing.assert_array_equal(out, [9, 6, 1, 2])


@cuda.jit
def sums(arrays, out):
    for a in arrays:
        for i in range(a.size):
            out[0] += a[i]
    out[1] = arrays[0].shape[0]


def test_a_tuple_of_arrays_and_an_empty_array_are_arguments():
    out = np.zeros(2, np.float32)
    sums[1, 1]((np.zeros(0, np.float32), np.ones(5, np.float32)), out)
    np.testing.assert_array_equal(out, [5, 0])


def test_a_fraction_for_an_integer_parameter_is_refused_as_numba_does():
    @cuda.jit("void(int32, float32[::1])")
    def kernel(n, out):
        out[0] = n

    with pytest.raises(TypeError):
        kernel[1, 1](1.5, np.zeros(1, np.float32))


SOURCE = CUSource("""
extern "C" __device__ int scaled(int *out, int x, int n) { *out = x * n; return 0; }
__device__ int counter = 5;
extern "C" __device__ int next_ticket(int *out) { *out = atomicAdd(&counter, 1); return 0; }
""")
scaled = cuda.declare_device("scaled", int32(int32, int32), link=SOURCE)
next_ticket = cuda.declare_device("next_ticket", int32(), link=SOURCE)


@cuda.jit
def calls_cuda_cpp(x, out, tickets):
    i = cuda.grid(1)
    out[i] = scaled(x[i], 3)
    tickets[i] = next_ticket()


def test_a_numba_kernel_calls_linked_cuda_cpp_which_has_globals_of_its_own():
    x, out, tickets = np.arange(32, dtype=np.int32), np.zeros(32, np.int32), np.zeros(32, np.int32)
    calls_cuda_cpp[1, 32](x, out, tickets)
    np.testing.assert_array_equal(out, 3 * x)
    np.testing.assert_array_equal(np.sort(tickets), 5 + np.arange(32))


def test_a_linked_function_s_error_names_the_line_in_its_own_file():
    bad = CUSource(
        'extern "C" __device__ int reaches(int *out, int *x) {\n  *out = x[100];\n  return 0;\n}',
        name="reaches.cu",
    )
    reaches = cuda.declare_device("reaches", int32(types.CPointer(int32)), link=bad)
    ffi = pytest.importorskip("cffi").FFI()

    @cuda.jit
    def kernel(x, out):
        out[0] = reaches(ffi.from_buffer(x))

    with pytest.raises(
        warplab.OutOfBounds, match=r"kernel kernel, reaches.cu:2: .* element \[100\] of argument 'x'"
    ):
        kernel[1, 1](np.zeros(4, np.int32), np.zeros(1, np.int32))


@cuda.jit(debug=True, opt=False)
def raises(x):
    i = cuda.grid(1)
    if x[i] < 0:
        raise ValueError("a negative number")


def test_an_exception_in_a_debug_kernel_names_its_thread():
    raises[1, 4](np.ones(4))
    with pytest.raises(ValueError, match=r"tid=\[0, 0, 2\] ctaid=\[0, 0, 0\]: a negative number"):
        raises[1, 4](np.array([1.0, 2, -3, 4]))


def test_managed_memory_has_one_address_for_host_and_kernels():
    @cuda.jit
    def doubles(x):
        x[cuda.grid(1)] *= 2

    x, y = cuda.managed_array(8, np.float32), cuda.managed_array(8, np.float32)
    x[:], y[:] = 1.5, 2.5
    doubles[1, 8](x)
    assert (x == 3).all() and (y == 2.5).all()


def test_streams_call_back_and_synchronise():
    stream, said = cuda.stream(), []
    with stream.auto_synchronize():
        stream.add_callback(lambda stream, status, arg: said.append((status, arg)), "done")
    assert said == [(0, "done")]


def test_a_kernel_knows_its_resources_and_the_device_its_occupancy():
    @cuda.jit("void(float32[::1])", launch_bounds=128)
    def kernel(x):
        tile, own = cuda.shared.array(256, np.float32), cuda.local.array(16, np.float32)
        tile[cuda.threadIdx.x] = x[0]
        for k in range(16):
            own[k] = x[k]
        for k in range(x.size):  # no compiler keeps these in registers
            own[k % 16] += own[(k + 5) % 16]
        x[1] = tile[0] + own[x.size % 16]

    loaded = next(iter(kernel.overloads.values()))
    assert (loaded.shared_mem_per_block, loaded.max_threads_per_block) == (1024, 128)
    assert 4 < loaded.regs_per_thread <= 255 and loaded.local_mem_per_thread >= 64
    context = cuda.current_context()
    assert (
        context.get_active_blocks_per_multiprocessor(loaded._codelibrary.get_cufunc(), 128, 0) == 16
    )  # 2,048 threads of 128


def test_detect_and_gpus_name_the_engine(capsys):
    assert cuda.detect() and "SIMT" in capsys.readouterr().out and len(cuda.gpus) == 1
    cuda.select_device(0)
    assert cuda.get_current_device().WARP_SIZE == 32 and cuda.current_context().get_memory_info().total > 0


@pytest.mark.slow
def test_reduce_forall_and_ufuncs():
    total = cuda.reduce(lambda a, b: a + b)
    assert total(np.arange(1000.0)) == 499500

    @cuda.jit
    def fills(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = i

    x = np.zeros(100, np.float32)
    fills.forall(100)(x)
    np.testing.assert_array_equal(x, np.arange(100))

    @vectorize(["float32(float32, float32)"], target="cuda")
    def larger(a, b):
        return a if a > b else b

    @guvectorize(["void(float32[:], float32[:])"], "(n)->()", target="cuda")
    def row_sum(row, out):
        out[0] = 0
        for v in row:
            out[0] += v

    x = x[:12].reshape(3, 4)
    np.testing.assert_array_equal(larger(x, np.float32(5)), np.maximum(x, 5))
    assert larger.reduce(x.ravel()) == 11
    np.testing.assert_array_equal(row_sum(x), x.sum(axis=1))


@cuda.jit
def draws(states, out):
    i = cuda.grid(1)
    out[i] = cuda.random.xoroshiro128p_uniform_float32(states, i)


@pytest.mark.slow
def test_random_numbers_are_uniform_and_differ_between_threads():
    from numba.cuda.random import create_xoroshiro128p_states

    out = np.zeros(4096, np.float32)
    draws[16, 256](create_xoroshiro128p_states(4096, seed=1), out)
    assert 0 <= out.min() and out.max() < 1 and abs(out.mean() - 0.5) < 0.03 and np.unique(out).size > 4000
