"""Bugs sown on purpose, each found at its line, and legal code that looks like them, which passes in silence.

The line that must be named carries the mark ``bug`` in a comment.
"""

import inspect
import warnings

import numpy as np
import pytest
from numba import cuda, float32, int32

import warplab

F, N, B, D = np.float32, np.int32, np.uint8, np.float64


def of(dtype, *shape):
    """An argument: a new array of ones."""
    return lambda: np.ones(shape, dtype)


BUGS, LEGAL = [], []


def bug(kind, grid, block, *args):
    """The kernel below has a bug of this kind, which a launch with new arrays must find."""

    def register(function):
        BUGS.append((cuda.jit(function), kind, grid, block, args))

    return register


def legal(grid, block, *args):
    """The kernel below looks like one with a bug and has none."""

    def register(function):
        LEGAL.append((cuda.jit(function), grid, block, args))

    return register


# bugs in numba kernels
@bug(warplab.OutOfBounds, 4, 256, of(F, 1), of(F, 1000))
def no_bounds_check(x, out):
    i = cuda.grid(1)
    out[i] = x[0]  # bug


@bug(warplab.OutOfBounds, 4, 256, of(F, 1000), of(F, 1000))
def one_too_far(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + x[i + 1]  # bug


@bug(warplab.OutOfBounds, (2, 1), (32, 8), of(F, 8, 64), of(F, 8, 64))
def swapped_indices(x, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = x[col, row]  # bug


@bug(warplab.OutOfBounds, 4, 256, of(F, 1000), of(F, 1000))
def wrong_stride(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[2 * i]  # bug


@bug(warplab.OutOfBounds, 1, 64, of(F, 64))
def shared_overrun(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t + 1] = x[t]  # bug
    cuda.syncthreads()
    x[t] = s[t + 1]


@bug(warplab.OutOfBounds, 1, 32, of(N, 32))
def local_overrun(out):
    mine = cuda.local.array(4, int32)
    for k in range(out[0] + 4):
        mine[k] = k  # bug
    out[cuda.grid(1)] = mine[out[0]]


@bug(warplab.SharedRace, 1, 64, of(F, 64))
def missing_barrier(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    x[t] = s[63 - t]  # bug


@bug(warplab.SharedRace, 1, 64, of(F, 64))
def missing_second_barrier(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    for k in range(3):
        s[t] = x[t] + k  # bug
        cuda.syncthreads()
        x[t] += s[63 - t]


@bug(warplab.SharedRace, 1, 128, of(F, 128), of(F, 1))
def reduction_without_barrier(x, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]  # bug
        step //= 2
    if t == 0:
        out[0] = s[0]


@bug(warplab.SharedRace, 1, 64, of(F, 64))
def reduction_in_place_of_a_scan(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    if t > 0:
        s[t] += s[t - 1]  # bug
    cuda.syncthreads()
    x[t] = s[t]


@bug(warplab.SharedRace, 1, 32, of(F, 32))
def warp_without_syncwarp(x):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    x[t] = s[t ^ 1]  # bug


@bug(warplab.SharedRace, 1, 64, of(F, 64))
def syncwarp_for_two_warps(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    x[t] = s[63 - t]  # bug


@bug(warplab.SharedRace, 1, 64, of(N, 64))
def all_write_their_own_number(out):
    s = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    s[0] = t  # bug
    cuda.syncthreads()
    out[t] = s[0]


@bug(warplab.BarrierDivergence, 1, 64, of(F, 64))
def barrier_in_a_branch(out):
    t = cuda.threadIdx.x
    if t < 20:
        cuda.syncthreads()
        out[t] = 1
    cuda.syncthreads()  # bug
    out[t] += 1


@bug(warplab.BarrierDivergence, 1, 64, of(F, 64))
def barrier_in_an_uneven_loop(out):
    t = cuda.threadIdx.x
    for _ in range(t % 3):
        cuda.syncthreads()
        out[t] += 1
    cuda.syncthreads()  # bug
    out[t] += 1


@bug(warplab.UninitialisedRead, 1, 64, of(F, 64), of(F, 64))
def sum_from_nothing(x, out):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] += x[t]  # bug
    cuda.syncthreads()
    out[t] = s[t]


@bug(warplab.UninitialisedRead, 1, 64, of(F, 64), of(F, 64))
def halo_not_loaded(x, out):
    s = cuda.shared.array(66, float32)
    t = cuda.threadIdx.x
    s[t + 1] = x[t]
    cuda.syncthreads()
    out[t] = s[t] + s[t + 2]  # bug


@bug(warplab.NoProgress, 1, 32, of(N, 32))
def never_ends(x):
    i = cuda.grid(1)
    while x[i] > 0:  # bug
        x[i] += 1


@bug(warplab.GlobalConflict, 4, 64, of(F, 256))
def stencil_in_place(x):
    i = cuda.grid(1)
    if 0 < i < x.size - 1:
        x[i] = x[i - 1] + i * x[i + 1]  # bug


@bug(warplab.GlobalConflict, 4, 64, of(F, 256), of(F, 1))
def sum_without_atomics(x, total):
    i = cuda.grid(1)
    total[0] += x[i]  # bug


@bug(warplab.GlobalConflict, 4, 64, of(F, 256), of(F, 1))
def zeroed_while_others_add(x, total):
    i = cuda.grid(1)
    if i == 0:
        total[0] = 0
    cuda.atomic.add(total, 0, x[i])  # bug


@bug(warplab.GlobalConflict, 8, 1, of(F, 8), of(F, 8), lambda: np.zeros(1, N), of(F, 1))
def last_block_without_fence(x, part, done, out):
    b = cuda.blockIdx.x
    part[b] = 2 * x[b]
    if cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1:
        for k in range(cuda.gridDim.x):
            out[0] += part[k]  # bug


@bug(warplab.GlobalConflict, 4, 64, of(F, 256))
def reverse_in_place(x):
    i = cuda.grid(1)
    x[i] = 2 * x[x.size - 1 - i]  # bug


@bug(warplab.GlobalConflict, 4, 64, of(F, 256))
def neighbours_across_blocks(x):
    i = cuda.grid(1)
    v = x[(i + 1) % x.size]
    cuda.syncthreads()
    x[i] = v + 1  # bug


@bug(warplab.SharedRace, 4, 64, of(N, 256), of(N, 8))
def histogram_read_too_early(x, counts):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, x[cuda.grid(1)] % 8, 1)
    if t < 8:
        cuda.atomic.add(counts, t, s[t])  # bug


@bug(warplab.SharedRace, 4, 64, of(N, 256), of(N, 8))
def histogram_not_cleared_in_time(x, counts):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        s[t] = 0
    cuda.atomic.add(s, x[cuda.grid(1)] % 8, 1)  # bug
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(counts, t, s[t])


@bug(warplab.GlobalConflict, 4, 64, of(F, 256), lambda: np.zeros(1, F), of(F, 4))
def total_read_before_all_have_added(x, total, mean):
    i = cuda.grid(1)
    cuda.atomic.add(total, 0, x[i])
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        mean[cuda.blockIdx.x] = total[0] / x.size  # bug


@bug(warplab.SharedRace, 1, 64, of(N, 1))
def lock_not_cleared_in_time(out):
    s = cuda.shared.array(2, int32)
    t = cuda.threadIdx.x
    if t == 0:
        s[0] = 0
    while cuda.atomic.cas(s, 0, 0, 1) != 0:  # bug
        pass
    cuda.threadfence_block()
    out[0] += 1
    cuda.threadfence_block()
    cuda.atomic.exch(s, 0, 0)


@bug(warplab.GlobalConflict, 4, 64, lambda: np.arange(256, dtype=F), of(F, 1))
def atomics_and_a_plain_look(x, best):
    i = cuda.grid(1)
    if x[i] > best[0]:
        cuda.atomic.max(best, 0, x[i])  # bug


def read_only():
    x = np.ones(32, F)
    x.setflags(write=False)
    return x


# bugs in CUDA C++
CPP = {
    "half_of_a_float4": """
extern "C" __global__ void half_of_a_float4(const float* x, float4* out) {
    out[threadIdx.x] = *(const float4*)(x + 2 + 4 * threadIdx.x);  // bug
}""",
    "floats_from_odd_bytes": """
extern "C" __global__ void floats_from_odd_bytes(const char* x, float* out) {
    out[threadIdx.x] = *(const float*)(x + 1 + 4 * threadIdx.x);  // bug
}""",
    "writes_its_input": """
extern "C" __global__ void writes_its_input(float* x) {
    x[threadIdx.x] = 0;  // bug
}""",
    "local_array_half_filled": """
extern "C" __global__ void local_array_half_filled(const int* x, int* out) {
    int mine[8];
    for (int k = 0; k < x[0]; k += 2) mine[k] = x[k];
    int sum = 0;
    for (int k = 0; k < x[0]; k++)
        sum += mine[k];  // bug
    out[threadIdx.x] = sum;
}""",
    "no_dynamic_memory": """
extern "C" __global__ void no_dynamic_memory(float* out) {
    extern __shared__ float s[];
    s[threadIdx.x] = out[threadIdx.x];  // bug
    __syncthreads();
    out[threadIdx.x] = s[31 - threadIdx.x];
}""",
    "copy_not_waited_for": """
#include <cuda_pipeline.h>
extern "C" __global__ void copy_not_waited_for(const float* x, float* out) {
    __shared__ float s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4);
    __pipeline_commit();
    out[threadIdx.x] = s[threadIdx.x];  // bug
}""",
    "half_a_warp_multiplies": """
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void half_a_warp_multiplies(const half* a, float* c) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 1.0f);
    if (threadIdx.x < 16)
        wmma::store_matrix_sync(c, acc, 16, wmma::mem_row_major);  // bug
}""",
    "barrier_for_too_many": """
extern "C" __global__ void barrier_for_too_many(float* out) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;");  // bug
    out[threadIdx.x] = 1;
}""",
    "recursion_without_end": """
__device__ __noinline__ int down(int n) {
    return n == 0x7fffffff ? 0 : 1 + down(n + 1) % 7;  // bug
}
extern "C" __global__ void recursion_without_end(int* out) {
    out[threadIdx.x] = down(out[threadIdx.x]);
}""",
    "assertion": """
#include <assert.h>
extern "C" __global__ void assertion(int* out) {
    assert(out[threadIdx.x] == 2);  // bug
}""",
    "waits_for_nobody": """
extern "C" __global__ void waits_for_nobody(volatile int* flag, float* out) {
    while (*flag != 7) {}  // bug
    out[threadIdx.x] = 1;
}""",
}
CPP_BUGS = [
    ("half_of_a_float4", warplab.MisalignedAccess, [of(F, 256), of(F, 128)]),
    ("floats_from_odd_bytes", warplab.MisalignedAccess, [of(B, 256), of(F, 32)]),
    ("writes_its_input", warplab.OutOfBounds, [read_only]),
    ("local_array_half_filled", warplab.UninitialisedRead, [lambda: np.full(8, 8, N), of(N, 32)]),
    ("no_dynamic_memory", warplab.OutOfBounds, [of(F, 32)]),
    ("copy_not_waited_for", warplab.UnfinishedCopy, [of(F, 32), of(F, 32)]),
    ("half_a_warp_multiplies", warplab.WarpWide, [of(np.float16, 256), of(F, 256)]),
    ("barrier_for_too_many", warplab.BarrierDivergence, [of(F, 32)]),
    ("recursion_without_end", warplab.StackOverflow, [of(N, 32)]),
    ("assertion", warplab.KernelAssertion, [of(N, 32)]),
    ("waits_for_nobody", warplab.NoProgress, [of(N, 1), of(F, 32)]),
]


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    from warplab.simt.engine import machine

    monkeypatch.setattr(machine, "STEP_BUDGET", 20_000)


@pytest.fixture
def traced_early(monkeypatch):
    """The second launch of a kind is traced, and later ones are replayed where they may be."""
    from warplab.simt.engine import repeats

    monkeypatch.setattr(repeats, "FULL_RUNS", 0)


def marked(source: str) -> int:
    """Offset of the line with the mark."""
    return next(i for i, line in enumerate(source.splitlines()) if line.endswith(" bug"))


def finds(kind, place: str, name: str, run) -> None:
    """``run()`` must raise or warn with ``kind`` at ``place``, naming the kernel,
    a thread and what to look at.
    """
    if kind is warplab.GlobalConflict:
        with pytest.warns(kind) as seen:
            run()
        text = str(seen[0].message)
    else:
        with pytest.raises(kind) as caught:
            run()
        text = str(caught.value)
    assert place in text.split(": ")[0]
    assert f"in kernel {name}" in text and "Look at: " in text
    assert "thread" in text and "block (" in text


@pytest.mark.sampled(15)
@pytest.mark.parametrize("kernel, kind, grid, block, args", BUGS, ids=[b[0].__name__ for b in BUGS])
def test_a_bug_is_found_at_its_line_at_every_launch(traced_early, kernel, kind, grid, block, args):
    lines, first = inspect.getsourcelines(kernel.py_func)
    place = f"test_seeded_bugs.py:{first + marked(''.join(lines))}"
    for _ in range(4):
        finds(kind, place, kernel.__name__, lambda: kernel[grid, block](*(make() for make in args)))


@pytest.mark.parametrize("name, kind, args", CPP_BUGS, ids=[b[0] for b in CPP_BUGS])
def test_a_bug_in_cuda_cpp_is_found_at_its_line_at_every_launch(traced_early, name, kind, args):
    kernel = warplab.cuda_kernel(CPP[name], name)
    place = f"{name}.cu:{1 + marked(CPP[name])}"
    for _ in range(4):
        finds(kind, place, name, lambda: kernel[1, 32](*(make() for make in args)))


def test_an_array_that_was_freed_is_known_by_its_name():
    source = """
extern "C" __global__ void reads(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x];  // bug
}"""
    kernel = warplab.cuda_kernel(source, "reads")
    x = cuda.to_device(np.ones(32, F))
    stale = int(x.device_ctypes_pointer.value)
    del x
    cuda.current_context().memory_manager.deallocations.clear()
    finds(warplab.UseAfterFree, "reads.cu:3", "reads", lambda: kernel[1, 32](stale, np.zeros(32, F)))


# legal; barriers that threads have left, named barriers and copies that are waited for are legal in
# test_barrier_places.py, test_barriers.py and test_cuda_cpp_more.py
@legal(1, 64, of(F, 64))
def warp_synchronous(x):
    s = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    x[t] = s[t ^ 1]
    cuda.syncwarp()
    s[t ^ 3] = x[t]
    cuda.syncwarp()
    x[t] = s[t]


@legal(1, 64, of(F, 64))
def shuffles(x):
    t = cuda.threadIdx.x
    v = x[t]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, step)
    if t % 32 == 0:
        x[t] = v


@legal(1, 64, of(F, 64))
def same_value_in_shared(x):
    s = cuda.shared.array(1, float32)
    s[0] = 5
    cuda.syncthreads()
    x[cuda.threadIdx.x] = s[0]


@legal(4, 64, of(F, 256), of(F, 1))
def same_value_in_global(x, found):
    if x[cuda.grid(1)] == 1:
        found[0] = 7


@legal((2, 2), (32, 32), of(F, 64, 64), of(F, 64, 64))
def padded_transpose(x, out):
    tile = cuda.shared.array((32, 33), float32)
    c, r = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[r, c]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 32 + cuda.threadIdx.y, cuda.blockIdx.y * 32 + cuda.threadIdx.x] = tile[
        cuda.threadIdx.x, cuda.threadIdx.y
    ]


@legal(4, 64, of(N, 256), of(N, 8))
def histogram(x, counts):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        s[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(s, x[cuda.grid(1)] % 8, 1)
    cuda.syncthreads()
    if t < 8:
        cuda.atomic.add(counts, t, s[t])


@legal(4, 64, of(F, 256))
def across_a_grid_barrier(x):
    i = cuda.grid(1)
    v = x[x.size - 1 - i]
    cuda.cg.this_grid().sync()
    x[i] = v + i
    cuda.cg.this_grid().sync()
    x[x.size - 1 - i] += 1


@legal(1, 64, of(F, 64))
def double_buffer(x):
    s = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    s[0, t] = x[t]
    for k in range(6):
        cuda.syncthreads()
        s[(k + 1) % 2, t] = s[k % 2, t] + s[k % 2, (t + 1) % 64]
    x[t] = s[0, t]


@legal(8, 1, of(F, 8), of(F, 8), lambda: np.zeros(1, N), of(F, 1))
def last_block(x, part, done, out):
    b = cuda.blockIdx.x
    part[b] = 2 * x[b]
    cuda.threadfence()
    if cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1:
        for k in range(cuda.gridDim.x):
            out[0] += part[k]
        done[0] = 0


@legal(8, 32, lambda: np.zeros(1, N), of(F, 1))
def lock(mutex, total):
    if cuda.threadIdx.x == 0:
        while cuda.atomic.cas(mutex, 0, 0, 1) != 0:
            pass
        total[0] += 1
        cuda.threadfence()
        cuda.atomic.exch(mutex, 0, 0)


@legal(1, 64, of(B, 64), of(B, 128))
def neighbouring_bytes(x, out):
    s = cuda.shared.array(64, np.uint8)
    t = cuda.threadIdx.x
    s[t] = x[t]
    s[t] = s[t] + 1
    out[2 * t] = s[t]
    out[2 * t + 1] = s[t]


@legal(4, 64, of(D, 768))
def own_elements(x):
    i = cuda.grid(1)
    for k in range(3):
        x[3 * i + k] += 1
        x[3 * i + k] *= x[3 * i + (k + 1) % 3]


@legal(4, 64, of(F, 256))
def in_place_within_a_block(x):
    i = cuda.grid(1)
    v = x[cuda.blockIdx.x * 64 + 63 - cuda.threadIdx.x]
    cuda.syncthreads()
    x[i] = v + i


@legal((3, 9), (32, 8), of(F, 70, 90))
def image_in_place(x):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        x[row, col] = 2 * x[row, col] + row


CPP_LEGAL = {
    "spin_that_finishes": (
        """
extern "C" __global__ void spin_that_finishes(volatile int* flag, float* x) {
    if (blockIdx.x == 0) { x[1] = 42; __threadfence(); *flag = 7; }
    else { while (*flag != 7) {} __threadfence(); x[0] = x[1]; }
}""",
        (2, 1),
        [of(N, 1), of(F, 2)],
    ),
    "bytes_through_a_char_pointer": (
        """
extern "C" __global__ void bytes_through_a_char_pointer(const char* x, char* out) {
    out[threadIdx.x] = x[threadIdx.x + 1];
}""",
        (1, 32),
        [of(B, 33), of(B, 32)],
    ),
}


@pytest.mark.parametrize("kernel, grid, block, args", LEGAL, ids=[case[0].__name__ for case in LEGAL])
def test_legal_code_that_looks_like_a_bug_passes_in_silence(kernel, grid, block, args):
    with warnings.catch_warnings():
        warnings.simplefilter("error", warplab.GlobalConflict)
        kernel[grid, block](*(make() for make in args))


@pytest.mark.parametrize("name", CPP_LEGAL)
def test_legal_cuda_cpp_passes_in_silence(name):
    source, (grid, block), args = CPP_LEGAL[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error", warplab.GlobalConflict)
        warplab.cuda_kernel(source, name)[grid, block](*(make() for make in args))
