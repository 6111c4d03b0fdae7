"""numba.cuda's host side on the engine: what it says of arguments that do not fit and of what it has not,
linked code, views, managed and pinned memory, streams, occupancy, `cuda.close()`.

What else a kernel takes, numba's intrinsics, atomics, reductions and ufuncs are in numba-cuda's own suite,
which `make full` runs.
"""

import enum
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from numba import cuda, int32, types
from numba.cuda import CUSource
from numba.cuda.core import config
from numba.cuda.core.errors import NumbaPerformanceWarning
from numba.cuda.memory_management import rtsys

import warplab
from warplab.simt.frontends import numba_hook
from warplab.simt.frontends.space import SPACE

pytestmark = pytest.mark.skipif(
    warplab.device().kind == "cuda", reason="the engine stands in only where there is no CUDA"
)


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit("void(float32[:, ::1], int32)")
def declared(x, n):
    x[0, 1] = n


@pytest.mark.parametrize(
    "arguments, told, instead",
    [
        ((np.zeros((2, 2)), 1), "'x' is array(float64, 2d, C), and the", "x.astype(np.float32)"),
        ((torch.zeros(2, 2).double(), 1), "'x' is array(float64, 2d, C), and the", "x.astype(np.float32)"),
        ((np.zeros((2, 2), np.int32), 1), "'x' is array(int32, 2d, C), and the", "x.astype(np.float32)"),
        ((np.zeros((2, 2), "f4", "F"), 1), "'x' is array(float32, 2d, F)", "np.ascontiguousarray(x)"),
        ((np.zeros(4, np.float32), 1), "'x' is array(float32, 1d, C)", "leave the signature out"),
        ((1.5, 1), "'x' is float64, and the kernel's signature says array", "leave the signature out"),
        ((np.zeros((2, 2), np.float32),), "1 arguments for a kernel that takes 2", ""),
        (([[0.0, 0.0]], 1), "argument 'x' is a list, and a kernel takes arrays", "np.array(values"),
    ],
)
def test_what_does_not_fit_the_one_signature_is_refused_and_not_read_as_other_bytes(arguments, told, instead):
    for call in (declared[1, 1], lambda *given: warplab.profile(declared[1, 1], *given)):
        with pytest.raises(warplab.InvalidLaunch) as refused:
            call(*arguments)
        assert told in str(refused.value) and instead in refused.value.hint


def test_what_fits_the_one_signature_runs():
    for x in (np.zeros((2, 2), np.float32), cuda.to_device(np.zeros((2, 2), np.float32)), torch.zeros(2, 2)):
        declared[1, 1](x, True)
        assert x[0, 1] == 1
    x = np.zeros((2, 2), np.float32)
    declared[1, 1](cuda.InOut(x), np.uint8(7))
    assert x[0, 1] == 7

    @cuda.jit(types.void(types.CPointer(types.float32), types.UniTuple(types.int32, 2)))
    def by_address(p, pair):
        p[0] = pair[0] - pair[1]

    there = cuda.to_device(x)
    by_address[1, 1](there.device_ctypes_pointer, (9, 4))
    assert there[0, 0] == 5


POINT = np.dtype([("x", np.float32), ("corner", np.int16, (2,))], align=True)


class Colour(enum.IntEnum):
    RED, BLUE = 3, 5


@cuda.jit
def takes(points, one, colour, when, then, z, pair, arrays, out):
    i = cuda.grid(1)
    if i < points.size:
        points[i].x += points[i].corner[1] + i
    if i == 0:
        one.x = 7
        out[0] = colour + pair[0] + pair[1][1]
        out[1] = z.real * z.imag
        out[2] = when > then
        out[3] = arrays[0].size + arrays[1][2]
        out[4] = cuda.warpsize


def test_a_kernel_takes_records_enums_dates_complex_numbers_and_tuples():
    points, one, out = np.zeros(4, POINT), np.zeros(1, POINT)[0], np.zeros(5)
    points["corner"] = 1, 2
    days = np.datetime64("2021-01-02"), np.datetime64("2021-01-01")
    arrays = np.zeros(0, np.float32), np.ones(5, np.float32)
    takes[1, 32](points, one, Colour.BLUE, *days, 2 + 3j, (1, (2, 3)), arrays, out)
    assert points["x"].tolist() == [2, 3, 4, 5] and one["x"] == 7
    assert out.tolist() == [9, 6, 1, 1, 32]


def test_mapped_arrays_and_those_of_other_libraries_are_arguments():
    mapped, there = cuda.mapped_array(4, np.float32), cuda.to_device(np.ones(4, np.float32))

    class Elsewhere:
        __cuda_array_interface__ = there.__cuda_array_interface__

    mapped[:] = 3
    double[1, 32](mapped)
    double[1, 32](Elsewhere())
    assert (mapped == 6).all() and (there.copy_to_host() == 2).all()


@cuda.jit(debug=True, opt=False)
def raises(x):
    i = cuda.grid(1)
    if x[i] < 0:
        raise ValueError("a negative number")


def test_an_exception_in_a_debug_kernel_names_its_thread():
    raises[1, 4](np.ones(4))
    with pytest.raises(ValueError, match=r"tid=\[0, 0, 2\] ctaid=\[0, 0, 0\]: a negative number"):
        raises[1, 4](np.array([1.0, 2, -3, 4]))


def test_lists_names_and_fractions_of_blocks_are_refused_in_words():
    with pytest.raises(warplab.InvalidLaunch, match="argument 'x' is a list, and a kernel takes arrays"):
        double[1, 4]([1.0, 2.0])
    with pytest.raises(warplab.InvalidLaunch, match="arguments by their places, and x is given by name"):
        double[1, 4](x=np.zeros(4))
    with pytest.raises(TypeError, match="griddim must be a sequence of integers") as refused:
        double[10 / 4, 4](np.zeros(10))
    led, told = refused.value._render_traceback_()
    assert "double[10 / 4, 4]" in led and told.endswith("-(-n // 256) is n / 256 rounded up, a whole number")


def test_a_device_says_what_its_architecture_has_and_where_a_cards_numbers_are():
    device, limits = cuda.get_current_device(), numba_hook.numba_driver.driver.target.limits
    assert device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR == limits.shared_per_sm
    assert device.compute_capability == (device.COMPUTE_CAPABILITY_MAJOR, device.COMPUTE_CAPABILITY_MINOR)
    assert device.TOTAL_CONSTANT_MEMORY == 65536
    with pytest.raises(AttributeError, match=r"attribute CLOCK_RATE.*warplab\.specs\.get"):
        device.CLOCK_RATE  # noqa: B018


def test_freed_device_memory_is_given_back():
    pending = cuda.current_context().memory_manager.deallocations
    pending.clear()
    before = len(SPACE.regions)
    d = cuda.to_device(np.zeros(1000))
    assert len(SPACE.regions) == before + 1
    del d
    pending.clear()
    assert len(SPACE.regions) == before


def test_streams_synchronise():
    stream = cuda.stream()
    d = cuda.to_device(np.ones(4, np.float32), stream=stream)
    double[1, 32, stream](d)
    stream.synchronize()
    cuda.synchronize()
    assert (d.copy_to_host(stream=stream) == 2).all()


def test_events_order_work_but_have_no_times():
    start, end = cuda.event(), cuda.event()
    start.record()
    end.record()
    end.synchronize()
    with pytest.raises(NotImplementedError, match="no event times"):
        start.elapsed_time(end)


def test_memory_that_nobody_wrote_is_not_zero():
    assert np.isnan(cuda.device_array(4, np.float32).copy_to_host()).all()


def test_what_the_engine_has_not_says_that_it_needs_a_gpu():
    with pytest.raises(NotImplementedError, match="cuIpcGetMemHandle is not available on the SIMT engine"):
        cuda.to_device(np.zeros(4)).get_ipc_handle()


@cuda.jit
def lengths(out, nested):
    out[0] = len(nested)
    out[1] = len(nested[0])


def test_a_tuple_of_empty_tuples_is_an_argument_although_line_information_is_asked_for():
    out = np.full(2, 9)
    lengths[1, 1](out, ((), (), ()))
    assert out.tolist() == [3, 0]


@cuda.jit
def not_written_yet(out):
    """A stub, with nothing but what it should do."""


def test_a_kernel_that_is_only_a_docstring_runs_and_does_nothing():
    out = np.full(4, 9)
    not_written_yet[1, 4](out)
    assert out.tolist() == [9, 9, 9, 9]


def test_copies_of_host_arrays_are_warned_of_only_where_somebody_asks(monkeypatch, recwarn):
    host, there = np.ones(4, np.int64), cuda.to_device(np.ones(4, np.int64))
    lengths[1, 1](host, ((1,),))
    assert not [w for w in recwarn if "Host array" in str(w.message)]
    monkeypatch.setattr(config, "CUDA_WARN_ON_IMPLICIT_COPY", 1)
    lengths[1, 1](there, ((1,),))
    assert not [w for w in recwarn if "Host array" in str(w.message)]
    with pytest.warns(
        NumbaPerformanceWarning, match="Host array used in CUDA kernel will incur copy overhead"
    ):
        lengths[1, 1](host, ((1,),))


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
    blocks = context.get_active_blocks_per_multiprocessor(loaded._codelibrary.get_cufunc(), 128, 0)
    assert blocks == 16  # 2,048 threads of 128


def test_detect_and_gpus_name_the_engine(capsys):
    assert cuda.detect() and "SIMT" in capsys.readouterr().out and len(cuda.gpus) == 1
    cuda.select_device(0)
    assert cuda.get_current_device().WARP_SIZE == 32 and cuda.current_context().get_memory_info().total > 0


@cuda.jit
def number_them(a):
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        a[row, col] = 10 * row + col


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
def test_both_orders_of_host_and_device_arrays_and_strides_of_neither(order):
    host, there = np.zeros((5, 7), order=order), cuda.device_array((5, 7), np.float64, order=order)
    turned = torch.zeros(7, 10)[:, ::2].T
    for array in (host, there, turned):
        number_them[1, (8, 8)](array)
    for array in (host, there.copy_to_host(), turned.numpy()):
        np.testing.assert_array_equal(array, 10 * np.arange(5)[:, None] + np.arange(7))


def test_views_of_device_arrays_share_their_memory():
    a = cuda.to_device(np.zeros((4, 8), np.int32))
    number_them[1, (8, 8)](a[1:3, 2:6])
    number_them[1, (8, 8)](a[::3, 7:])  # column 7 of rows 0 and 3
    b = a.copy_to_host()
    assert b[1:3, 2:6].tolist() == [[0, 1, 2, 3], [10, 11, 12, 13]] and b[:, 7].tolist() == [0, 0, 0, 10]
    assert a.reshape(32).ravel().copy_to_host()[31] == 10 and a.reshape(32)[19] == 11
    assert (a.T.copy_to_host() == b.T).all()
    assert a.view(np.float32).dtype == np.float32


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


PROGRAM = """
import numpy as np
import warplab
from numba import cuda

@cuda.jit
def fills(x):
    x[cuda.grid(1)] = 3

for _ in range(2):
    x = cuda.to_device(np.zeros(32, np.float32))
    fills[1, 32](x)
    assert (x.copy_to_host() == 3).all()
    with cuda.gpus[0]:
        fills[1, 32](np.zeros(32, np.float32))
    cuda.close()
    assert cuda.cudadrv.driver.driver.pop_active_context() is None

print(cuda.reduce(lambda a, b: a + b)(np.ones(9)))  # a kernel without a source
"""


@pytest.mark.slow
def test_after_close_kernels_run_again_and_nothing_is_warned_of():
    """In a process of its own: pytest has filters of warnings of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=240)
    assert done.stdout == "9.0\n" and "Warning" not in done.stderr, done.stderr


def test_each_thread_pops_as_many_contexts_as_it_pushed():
    driver = object.__new__(numba_hook.EngineDriver)
    numba_hook.EngineDriver.__init__(driver, warplab.device().target)
    driver.cuCtxPushCurrent(None)
    driver.cuCtxPushCurrent(None)
    seen = []
    other = threading.Thread(target=lambda: seen.append(int(driver.cuCtxGetCurrent())))
    other.start()
    other.join()
    assert seen == [0]
    assert [int(driver.cuCtxPopCurrent()) for _ in range(3)] == [1, 1, 0]


def test_memory_that_threads_allocate_is_counted_where_numba_asks(monkeypatch):
    monkeypatch.setattr(config, "CUDA_ENABLE_NRT", True)

    @cuda.jit
    def sum_of_a_copy(x, out):
        mine = x.copy()
        out[cuda.threadIdx.x] = mine.sum()

    before, out = rtsys.get_allocation_stats(), np.zeros(4)
    sum_of_a_copy[1, 4](np.ones(3), out)
    after = rtsys.get_allocation_stats()
    assert out.tolist() == [3] * 4
    assert (after.alloc - before.alloc, after.free - before.free) == (4, 4)
