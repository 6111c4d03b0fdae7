"""A launch that replays an earlier one of its kind does what the whole launch would do: the same results,
faults and warnings.

Each kernel is launched several times on fresh numbers. Here a kind's second launch is traced, even where the
program has just started; its third launch is the first that can replay.
"""

import math
import sys
import warnings

import numpy as np
import pytest
import tensor_library
from numba import cuda, float32, int32

import warplab
from warplab.simt.engine import repeats, tracing

F = np.float32


@pytest.fixture(autouse=True)
def traced_early(monkeypatch):
    monkeypatch.setattr(repeats, "WHOLE", 0)


@pytest.fixture
def replays(monkeypatch):
    """An item for each launch that was replayed."""
    runs = []
    plain = repeats.KeptLaunch.replay

    def replay(kept, regions, params):
        ran = plain(kept, regions, params)
        runs.extend([1] * ran)
        return ran

    monkeypatch.setattr(repeats.KeptLaunch, "replay", replay)
    return runs


@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@cuda.jit
def saxpy_strided(a, x, y):
    i = cuda.grid(1)
    while i < y.size:
        y[i] = a * x[i] + y[i]
        i += cuda.gridsize(1)


@cuda.jit
def row_sums(x, out):
    row = cuda.grid(1)
    if row < x.shape[0]:
        total = float32(0)
        for k in range(x.shape[1]):
            total += x[row, k]
        out[row] = total


@cuda.jit
def one_of_two(x, y, out, first):
    i = cuda.grid(1)
    if i % 3 < first:
        value = x[i]
    else:
        value = y[i]
    out[i] = 2 * value


@cuda.jit
def weighted(x, out):
    """A loaded value meets one that follows from the thread's number."""
    i = cuda.grid(1)
    out[i] = x[i] * float32(i) + float32(cuda.blockIdx.x)


@cuda.jit
def shifted(x, out):
    i = cuda.grid(1)
    out[i] = x[i + 1]


@cuda.jit
def numbered(out):
    i = cuda.grid(1)
    out[i] = i * i


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


@cuda.jit
def only_positive(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[i] = x[i]


def numbers(*shape):
    return np.random.default_rng().standard_normal(shape).astype(F)


def test_a_float_parameter_and_the_array_on_the_device_may_differ(replays):
    for a in range(6):
        x, y = numbers(100), numbers(100)
        there = cuda.to_device(y)
        saxpy_strided[1, 32](F(a), cuda.to_device(x), there)
        np.testing.assert_allclose(there.copy_to_host(), a * x + y, rtol=1e-5, atol=1e-6)
    assert len(replays) == 4


GUARDED = """
extern "C" __global__ void guarded(const float4* x, float4* out, int n) {
    int i = threadIdx.x;
    float4 v = make_float4(1, 1, 1, 1);
    if (i < n) v = x[i];
    out[i] = make_float4(v.x + v.y, v.y * v.z, v.z - v.w, v.w);
}"""


@pytest.mark.parametrize("n", [0, 20, 32])
def test_a_guarded_load_of_vectors_is_replayed(replays, n):
    kernel = warplab.cuda_kernel(GUARDED, "guarded")
    for _ in range(5):
        x, out = numbers(32, 4), numbers(32, 4)
        kernel[1, 32](x.reshape(-1), out.reshape(-1), n)
        v = np.where(np.arange(32)[:, None] < n, x, 1).T
        right = np.stack([v[0] + v[1], v[1] * v[2], v[2] - v[3], v[3]], axis=1)
        np.testing.assert_allclose(out, right, rtol=1e-6)
    assert len(replays) == 3


NEXT = """
extern "C" __global__ void next(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x + 1];
}"""


def test_an_access_past_a_shorter_array_is_found_after_replays_on_longer_ones(replays):
    kernel = warplab.cuda_kernel(NEXT, "next")
    for _ in range(4):
        kernel[1, 32](numbers(33), numbers(32))
    assert len(replays) == 2
    for _ in range(3):
        with pytest.raises(warplab.OutOfBounds, match=r"element \[32\] of argument 'number 1'"):
            kernel[1, 32](numbers(32), numbers(32))
        kernel[1, 32](numbers(33), numbers(32))


def test_a_pointer_into_the_middle_of_an_array_is_another_kind(replays):
    kernel, x, out = warplab.cuda_kernel(NEXT, "next"), numbers(99), cuda.to_device(numbers(32))
    there = cuda.to_device(x)
    for start in (0, 5) * 4:
        kernel[1, 32](there[start : start + 40], out)
        np.testing.assert_array_equal(out.copy_to_host(), x[start + 1 : start + 33])
    assert len(replays) == 4


def test_a_read_only_array_is_not_written_after_launches_on_writable_ones():
    kernel = warplab.cuda_kernel(GUARDED, "guarded")
    for _ in range(4):
        kernel[1, 32](numbers(128), numbers(128), 32)
    fixed = numbers(128)
    fixed.flags.writeable = False
    with pytest.raises(warplab.OutOfBounds, match="read-only"):
        kernel[1, 32](numbers(128), fixed, 32)


def test_a_race_is_reported_at_every_launch(replays):
    for _ in range(4):
        shifted[2, 32](numbers(65), numbers(64))
    alone = len(replays)
    assert alone
    for _ in range(4):
        x = cuda.to_device(numbers(65))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            shifted[2, 32](x, x)
        assert any(issubclass(w.category, warplab.GlobalConflict) for w in seen)
    assert len(replays) == alone


@cuda.jit
def returns_before_the_barrier(x):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
        x[cuda.threadIdx.x] = 2


def test_threads_that_miss_a_barrier_are_reported_at_every_launch(replays):
    for _ in range(4):
        with pytest.warns(warplab.BarrierWarning):
            returns_before_the_barrier[1, 64](numbers(64))
    assert not replays


def test_a_profile_of_a_launch_that_could_replay_counts_all_of_it(replays):
    arguments = numbers(50), numbers(50), numbers(50)
    first = warplab.profile(add[2, 32], *arguments)
    for _ in range(4):
        add[2, 32](*arguments)
    assert replays
    again = warplab.profile(add[2, 32], *arguments)
    assert (str(again), again.lines) == (str(first), first.lines)


def test_launches_are_traced_only_of_a_kernel_that_is_launched_often(replays, monkeypatch):
    monkeypatch.setattr(repeats, "WHOLE", 10)
    kernel = cuda.jit(add.py_func)
    for launch in range(1, 16):
        kernel[1, 32](numbers(32), numbers(32), numbers(32))
        assert len(replays) == max(0, launch - 12)  # ten, then the two first of the kind


def program_of(kernel):
    (compiled,) = kernel.overloads.values()
    return compiled._warplab_program[1]


def launch_sizes(kernel, sizes):
    for n in sizes:
        kernel[1, 64](numbers(n), numbers(n), numbers(n))


def test_traces_stay_when_more_kinds_come_in_turn_than_there_is_room_for(replays, monkeypatch):
    monkeypatch.setattr(repeats, "KINDS", 4)
    kernel = cuda.jit(add.py_func)
    for _ in range(5):
        launch_sizes(kernel, range(1, 7))
    assert len(replays) == 3 * 4
    assert len(program_of(kernel).repeats.kept) == 4


def test_traces_make_room_when_none_was_replayed_for_long(replays, monkeypatch):
    monkeypatch.setattr(repeats, "IDLE", 10)
    kernel = cuda.jit(add.py_func)
    launch_sizes(kernel, [1, 1])
    alike = program_of(kernel).repeats
    monkeypatch.setattr(repeats, "ALL_BYTES", alike.bytes)
    launch_sizes(kernel, [2, 2, 2])
    assert not replays
    launch_sizes(kernel, [2] * 10)
    assert len(replays) > 2


def test_a_trace_with_too_many_constants_is_not_kept(replays, monkeypatch):
    monkeypatch.setattr(tracing, "BYTES", 100)
    kernel = cuda.jit(gather.py_func)
    for _ in range(6):
        kernel[1, 32](numbers(32), (7 * np.arange(32)) % 32, numbers(32))
    assert not replays


@cuda.jit
def broadcast(out, shape, x, strides):
    """A map of a small tensor library: shapes and strides are arrays that the kernel reads."""
    i = cuda.grid(1)
    if i < out.size:
        index = cuda.local.array(4, int32)
        rest, at = i, 0
        for d in range(len(shape) - 1, -1, -1):
            index[d] = rest % shape[d]
            rest //= shape[d]
        for d in range(len(shape)):
            at += index[d] * strides[d]
        out[i] = -x[at]


@cuda.jit
def block_sums(x, out):
    partial = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    stride = 32
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@cuda.jit
def warp_sums(x, out):
    """A loaded value lives in a register across a divergent branch."""
    total = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if cuda.threadIdx.x % 32 < 8:
        total = 3 * total + x[cuda.threadIdx.x]
    if cuda.any_sync(0xFFFFFFFF, total > -1e9):
        out[cuda.grid(1)] = total


@cuda.jit
def zipped_strides(out, shape, x, strides):
    """The same with ``zip``, which uses generic addresses and reads one uninitialised index."""
    i = cuda.grid(1)
    if i < out.size:
        index = cuda.local.array(4, int32)
        rest = i
        for d in range(len(shape) - 1, -1, -1):
            index[d] = rest % shape[d]
            rest //= shape[d]
        at = 0
        for k, stride in zip(index, strides):
            at += k * stride
        out[i] = -x[at]


@cuda.jit
def tile_products(a, b, out, n):
    """A product of tiles that are only filled in part."""
    tile_a = cuda.shared.array((8, 8), float32)
    tile_b = cuda.shared.array((8, 8), float32)
    row, col = cuda.threadIdx.x, cuda.threadIdx.y
    if row < n and col < n:
        tile_a[row, col] = a[row * n + col]
        tile_b[row, col] = b[row * n + col]
    cuda.syncthreads()
    total = float32(0)
    for k in range(n):
        total += tile_a[row, k] * tile_b[k, col]
    if row < n and col < n:
        out[row * n + col] = total


@cuda.jit
def block_and_warp_sums(x, out):
    part = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    total = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
    if t % 32 == 0:
        part[t // 32] = total
    cuda.syncthreads()
    if t < 32:
        total = part[t] if t < cuda.blockDim.x // 32 else float32(0)
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
        if t == 0:
            out[cuda.blockIdx.x] = total


@cuda.jit
def in_place(x, y):
    """A loaded value is stored after its own element was overwritten."""
    i = cuda.grid(1)
    a, b = x[i], y[i]
    x[i] = b
    y[i] = a


@cuda.jit
def counted_in_shared(x, out):
    cell = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        cell[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(cell, t % 4, int32(x[t]))
    cuda.syncthreads()
    if t < 4:
        out[t] = cell[t]


@cuda.jit
def counted(x, total):
    cuda.atomic.add(total, cuda.threadIdx.x % 2, x[cuda.grid(1)])


@cuda.jit
def running(x, out):
    """Local memory that holds what was loaded."""
    kept = cuda.local.array(4, float32)
    for k in range(4):
        kept[k] = x[4 * cuda.grid(1) + k]
    total = float32(0)
    for k in range(4):
        total += kept[3 - k]
        out[4 * cuda.grid(1) + k] = total


def shapes_of(*shape):
    return np.array(shape, np.int32)


def some_order(n):
    return np.random.default_rng().permutation(n)


EXACT = [  # kernel, grid, block, makes the arguments, whether launches are replayed
    (add, 2, 32, lambda: (numbers(50), numbers(50), numbers(50)), True),
    (row_sums, 2, 32, lambda: (numbers(50, 3), numbers(50)), True),
    (one_of_two, 2, 32, lambda: (numbers(64), numbers(64), numbers(64), 2), False),  # it selects a pointer
    (weighted, 2, 32, lambda: (numbers(64), numbers(64)), True),
    (numbered, 2, 32, lambda: (numbers(64),), True),
    (gather, 2, 32, lambda: (numbers(64), some_order(64), numbers(64)), False),
    (gather, 2, 32, lambda: (numbers(64), (7 * np.arange(64)) % 64, numbers(64)), True),
    (only_positive, 2, 32, lambda: (numbers(64), numbers(64)), False),
    (broadcast, 1, 32, lambda: (numbers(24), shapes_of(2, 3, 4), numbers(24), shapes_of(1, 8, 2)), True),
    (block_sums, 3, 64, lambda: (numbers(192), numbers(3)), True),
    (warp_sums, 2, 64, lambda: (numbers(128), numbers(128)), True),
    (counted, 2, 64, lambda: (numbers(128), numbers(2)), True),
    (zipped_strides, 1, 32, lambda: (numbers(24), shapes_of(2, 3, 4), numbers(24), shapes_of(1, 8, 2)), True),
    (tile_products, 1, (8, 8), lambda: (numbers(25), numbers(25), numbers(25), 5), True),
    (block_and_warp_sums, 2, 128, lambda: (numbers(256), numbers(2)), True),
    (in_place, 1, 64, lambda: (numbers(64), numbers(64)), True),
    (counted_in_shared, 1, 64, lambda: (10 * numbers(64), numbers(4)), True),
    (running, 2, 32, lambda: (numbers(256), numbers(256)), True),
]


def with_special_values(given):
    """An array of floats with NaNs of all payloads, infinities and zeros of both signs among its numbers."""
    if not isinstance(given, np.ndarray) or given.dtype != F:
        return given
    random, shape = np.random.default_rng(), given.shape
    nan = random.integers(0x7F800001, 0x7FFFFFFF, shape, np.uint32) | random.integers(0, 2, shape) << 31
    bits = np.where(random.random(shape) < 0.5, nan, given.view(np.uint32)).astype(np.uint32)
    other = random.choice(np.array([0.0, -0.0, np.inf, -np.inf], F), shape)
    return np.where(random.random(shape) < 0.3, other.view(np.uint32), bits).astype(np.uint32).view(F)


@pytest.mark.parametrize("kernel, grid, block, make, replayed", EXACT)
def test_a_replay_gives_the_bits_that_the_whole_launch_gives(
    replays, monkeypatch, kernel, grid, block, make, replayed
):
    for number in range(9):
        given = make()
        if number > 5:
            given = [with_special_values(a) for a in given]
        whole, again = ([a.copy() if isinstance(a, np.ndarray) else a for a in given] for _ in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(repeats, "WHOLE", sys.maxsize)
            kernel[grid, block](*whole)
        kernel[grid, block](*again)
        for got, right in zip(again, whole):
            assert np.asarray(got).tobytes() == np.asarray(right).tobytes()
    assert bool(replays) == replayed


TWO_MEMORIES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{
.local .align 4 .b8 own[4];
.reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<12>;
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd2, [k_param_1];
ld.param.u32 %r1, [k_param_2];
mov.u64 %rd3, own;
cvta.local.u64 %rd4, %rd3;
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd5, %r2, 4;
add.s64 %rd6, %rd1, %rd5;
add.s64 %rd7, %rd2, %rd5;
ld.global.u32 %r3, [%rd6];
st.local.u32 [%rd3], %r3;
setp.eq.u32 %p1, %r1, 0;
mov.u64 %rd8, %rd4;
@%p1 bra READ;
mov.u64 %rd8, %rd7;
READ:
ld.u32 %r4, [%rd8];
add.u32 %r5, %r4, 1;
st.global.u32 [%rd7], %r5;
ret;
}
"""


@pytest.mark.parametrize("in_array", [0, 1])
def test_a_generic_address_may_lie_in_local_memory_or_in_an_array(replays, in_array):
    """A parameter says which."""
    kernel = warplab.ptx_kernel(TWO_MEMORIES, "k")
    for _ in range(4):
        x, y = (np.random.default_rng().integers(0, 99, 32).astype(np.uint32) for _ in range(2))
        right = (y if in_array else x) + 1
        kernel[1, 32](x, y, np.uint32(in_array))
        np.testing.assert_array_equal(y, right)
    assert len(replays) == 2


def test_launches_that_add_two_pointers_are_not_replayed(replays):
    kernel = warplab.ptx_kernel(TWO_MEMORIES.replace("READ:", "READ: add.s64 %rd9, %rd1, %rd2;"), "k")
    for _ in range(6):
        x, y = (np.arange(32, dtype=np.uint32) for _ in range(2))
        kernel[1, 32](x, y, np.uint32(0))
        np.testing.assert_array_equal(y, x + 1)
    assert not replays


CHOSEN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{
.shared .align 4 .b8 tile[256];
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd2, [k_param_1];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.u32 %r2, [%rd4];
mov.u32 %r3, tile;
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r3, %r4;
st.shared.u32 [%r5], %r2;
bar.sync 0;
ld.shared.u32 %r6, [%r5+4];
setp.gt.u32 %p1, WHO, 0;
selp.b32 %r7, %r6, %r2, %p1;
st.global.u32 [%rd5], %r7;
ret;
}
"""


def test_an_uninitialised_value_that_loaded_numbers_discard_is_looked_for_at_every_launch(replays):
    kernel = warplab.ptx_kernel(CHOSEN.replace("WHO", "%r2"), "k")
    x = np.arange(32, dtype=np.uint32)[::-1].copy()
    for _ in range(4):
        kernel[1, 32](x, x.copy())
    with pytest.raises(warplab.UninitialisedRead):
        kernel[1, 32](np.ones(32, np.uint32), x.copy())
    assert not replays


def test_an_uninitialised_value_that_thread_numbers_discard_is_looked_for_once(replays):
    text = CHOSEN.replace("setp.gt.u32 %p1, WHO, 0", "setp.lt.u32 %p1, %r1, 31")
    kernel = warplab.ptx_kernel(text, "k")
    for _ in range(5):
        x, out = np.random.default_rng().integers(0, 99, 32).astype(np.uint32), np.zeros(32, np.uint32)
        kernel[1, 32](x, out)
        assert out.tolist() == [*x[1:], x[31]]
    assert len(replays) == 3


def test_an_uninitialised_value_that_a_float_parameter_discards_is_looked_for_at_every_launch():
    text = CHOSEN.replace("k_param_1)", "k_param_1, .param .f32 a)").replace(
        ".reg .b32", ".reg .f32 %f<2>; .reg .b32"
    )
    text = text.replace(
        "setp.gt.u32 %p1, WHO, 0;", "ld.param.f32 %f1, [a]; setp.gt.f32 %p1, %f1, 0f00000000;"
    )
    kernel, x = warplab.ptx_kernel(text, "k"), np.arange(32, dtype=np.uint32)
    for _ in range(4):
        kernel[1, 32](x, x.copy(), F(-1))
    with pytest.raises(warplab.UninitialisedRead):
        kernel[1, 32](x, x.copy(), F(1))


VOTES = """
extern "C" __global__ void votes(const float* x, int* out) {
    out[threadIdx.x] = __syncthreads_count(x[threadIdx.x] > 0) + __syncthreads_count(threadIdx.x < 5);
}"""


def test_votes_of_a_block_count_the_values_of_their_launch():
    kernel, out = warplab.cuda_kernel(VOTES, "votes"), np.zeros(64, np.int32)
    for _ in range(5):
        x = numbers(64)
        kernel[1, 64](x, out)
        assert (out == np.count_nonzero(x > 0) + 5).all()


def test_other_shapes_and_strides_are_another_kind(replays):
    kernel = cuda.jit(broadcast.py_func)
    for _ in range(8):
        for shape, strides in (((2, 12), (1, 2)), ((12, 2), (1, 12)), ((24,), (1,)), ((2, 12), (0, 1))):
            x, out = numbers(24), numbers(24)
            kernel[1, 32](out, shapes_of(*shape), x, shapes_of(*strides))
            right = np.lib.stride_tricks.as_strided(x, shape, [4 * stride for stride in strides])
            np.testing.assert_array_equal(out, -right.reshape(-1))
    assert len(replays) > 4 * 3


@cuda.jit
def summed_often(x, times, out):
    total = float32(0)
    for _ in range(times[0]):
        total += x[cuda.grid(1)]
    out[cuda.grid(1)] = total


def test_kinds_differ_where_loops_depend_on_arrays_of_integers(replays):
    for n in (2, 3) * 6:
        x, out = numbers(32), numbers(32)
        summed_often[1, 32](x, shapes_of(n), out)
        np.testing.assert_allclose(out, n * x, rtol=1e-6)
    assert len(replays) >= 6


def test_long_arrays_of_indices_are_not_compared(replays):
    kernel = cuda.jit(gather.py_func)
    for n in [64] * 6 + [1024] * 4:
        index, x, out = np.arange(n)[::-1].copy(), numbers(n), numbers(n)
        kernel[n // 32, 32](x, index, out)
        np.testing.assert_array_equal(out, x[::-1])
    assert len(replays) == 4


ONE_OF_TWO = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out)
{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [y];
ld.param.u64 %rd3, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd4, %r1, 4;
add.s64 %rd5, %rd3, %rd4;
setp.lt.u32 %p1, %r1, 10;
@%p1 bra FIRST;
ld.global.f32 %f1, [%rd2];
bra.uni STORE;
FIRST:
ld.global.f32 %f1, [%rd1];
STORE:
st.global.f32 [%rd5], %f1;
ret;
}
"""


def test_two_groups_of_lanes_that_loaded_one_number_may_load_two_the_next_time(replays):
    kernel, out = warplab.ptx_kernel(ONE_OF_TWO, "k"), np.zeros(32, F)
    for x, y in ((5, 5), (5, 5), (6, 6), (7, 8), (9, 9)):
        kernel[1, 32](np.full(1, x, F), np.full(1, y, F), out)
        assert out.tolist() == 10 * [x] + 22 * [y]
    assert replays


def test_strides_that_change_on_the_device_are_seen(replays):
    kernel = cuda.jit(broadcast.py_func)
    shape, strides = cuda.to_device(shapes_of(24)), cuda.to_device(shapes_of(1))
    for step in (1, 1, 0, 0) * 4:
        strides.copy_to_device(shapes_of(step))
        x, out = numbers(24), numbers(24)
        kernel[1, 32](out, shape, x, strides)
        np.testing.assert_array_equal(out, -x if step else np.full(24, -x[0]))
    assert len(replays) >= 4


@cuda.jit
def overwrites(index, x, y, z, out):
    """Where each thread reads may be what it has just written."""
    i = cuda.grid(1)
    x[i] = y[i]
    out[i] = z[index[i]]


@pytest.mark.parametrize("place", [cuda.to_device, lambda array: array], ids=["device", "host"])
def test_a_launch_that_changes_its_own_indices_is_not_replayed(replays, place):
    for _ in range(8):
        old, new = np.arange(32), some_order(32)
        index, z, out = place(old), numbers(32), numbers(32)
        overwrites[1, 32](index, index, new, z, out)
        np.testing.assert_array_equal(out, z[new])
    assert not replays


@pytest.mark.parametrize("place", [cuda.to_device, lambda array: array], ids=["device", "host"])
def test_a_launch_that_changes_other_indices_is_replayed(replays, place):
    kernel = cuda.jit(overwrites.py_func)
    for _ in range(8):
        new, z, out = some_order(32), numbers(32), numbers(32)
        kernel[1, 32](place(np.arange(32)), place(np.arange(32)), new, z, out)
        np.testing.assert_array_equal(out, z[:32])
    assert len(replays) >= 4
    for _ in range(3):  # the same kind, if host arrays; but their memory is one
        index, new, z, out = place(np.arange(32)), some_order(32), numbers(32), numbers(32)
        kernel[1, 32](index, index, new, z, out)
        np.testing.assert_array_equal(out, z[new])


@cuda.jit
def rectified(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[i] = math.exp(x[i])
    else:
        out[i] = 0


def test_a_launch_whose_branches_go_another_way_runs_as_a_whole(replays):
    sign = np.where(np.arange(32) % 3, F(1), F(-1))
    for flipped in (1, 1, 1, 1, -1, 1, 1, -1, -1, 1):
        x, out = flipped * sign * np.abs(numbers(32)), numbers(32)
        rectified[1, 32](x, out)
        np.testing.assert_allclose(out, np.where(x > 0, np.exp(x), 0), rtol=1e-5)
    assert len(replays) in (2, 8)  # 8: the compiler made no branch of it


@cuda.jit
def adds_and_looks(x, total, out):
    i = cuda.grid(1)
    total[i] += x[i]
    if total[i] > 0:
        out[i] = total[i]


def test_a_launch_is_not_replayed_where_a_branch_on_loaded_values_comes_behind_a_write(replays):
    for sign in (1, 1, 1, -1, 1):
        x, total, out = sign * np.abs(numbers(32)), np.zeros(32, F), np.zeros(32, F)
        adds_and_looks[1, 32](x, total, out)
        np.testing.assert_array_equal(total, x)
        np.testing.assert_array_equal(out, np.maximum(x, 0))
    assert not replays


@cuda.jit
def all_write(x, out):
    cell = cuda.shared.array(1, float32)
    cell[0] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    out[cuda.threadIdx.x] = cell[0]


def test_threads_that_stored_the_same_value_are_checked_at_every_launch(replays):
    """Writing one value together is no race; writing two is."""
    for _ in range(3):
        all_write[1, 32](np.full(32, 5, F), numbers(32))
    with pytest.raises(warplab.SharedRace):
        all_write[1, 32](numbers(32), numbers(32))
    assert not replays


@cuda.jit
def same_word(x, out):
    out[0] = x[cuda.grid(1)]


def test_threads_that_left_a_word_as_it_was_are_checked_at_every_launch(replays):
    for _ in range(3):
        same_word[2, 32](np.full(64, 5, F), np.full(1, 5, F))
    with pytest.warns(warplab.GlobalConflict):
        same_word[2, 32](numbers(64), numbers(1))
    assert not replays


@cuda.jit
def beyond_the_tile(x, mask, out):
    """The last thread reads uninitialised memory, and discards it where the mask says so."""
    tile = cuda.shared.array(33, int32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t + 1] & mask[t]


def test_an_uninitialised_value_that_a_loaded_mask_discards_is_looked_for_at_every_launch(replays):
    x, mask = np.arange(32, dtype=np.int32), np.full(32, -1, np.int32)
    mask[31] = 0
    for _ in range(3):
        beyond_the_tile[1, 32](x, mask, x.copy())
    mask[31] = 1
    with pytest.raises(warplab.UninitialisedRead):
        beyond_the_tile[1, 32](x, mask, x.copy())
    assert not replays


@cuda.jit
def beyond_the_warp(x, mask, out):
    """The last thread takes the value of a lane that the block does not have, and discards it likewise."""
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_down_sync(0xFFFFFFFF, x[t], 1) & mask[t]


def test_an_absent_lane_whose_value_a_loaded_mask_discards_is_looked_for_at_every_launch(replays):
    x, mask = np.arange(16, dtype=np.int32), np.full(16, -1, np.int32)
    mask[15] = 0
    for _ in range(3):
        beyond_the_warp[1, 16](x, mask, x.copy())
    mask[15] = 1
    with pytest.raises(warplab.UninitialisedRead):
        beyond_the_warp[1, 16](x, mask, x.copy())
    assert not replays


@cuda.jit
def from_lane(x, lane, out):
    """An array says from which lane each thread takes its value."""
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_sync(0xFFFFFFFF, x[t], lane[t])


def test_lanes_that_a_shuffle_takes_from_an_array_may_change(replays):
    x, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    lane = x[::-1].copy()
    for _ in range(4):
        from_lane[1, 32](x, lane, out)
        assert out.tolist() == x[lane].tolist()
        lane += 1
        lane %= 32


def test_a_student_s_network_learns_the_same_bits_from_replays(replays, monkeypatch):
    ours, whole = tensor_library.Network(), tensor_library.Network()
    x, y = ours.x.numpy(), ours.y.numpy()
    w1, b1, w2, b2 = (w.numpy() for w in ours.weights)
    for _ in range(6):
        ours.step()
        with monkeypatch.context() as patch:
            patch.setattr(repeats, "WHOLE", sys.maxsize)
            whole.step()
        before = x @ w1 + b1
        hidden = np.maximum(before, 0)
        error = 1 / (1 + np.exp(-(hidden @ w2 + b2))) - y
        back = error @ w2.T * (before > 0)
        gradients = x.T @ back, back.sum(0), hidden.T @ error, error.sum(0)
        w1, b1, w2, b2 = (w - g / len(x) for w, g in zip((w1, b1, w2, b2), gradients))
    assert [w.numpy().tobytes() for w in ours.weights] == [w.numpy().tobytes() for w in whole.weights]
    for got, right in zip(ours.weights, (w1, b1, w2, b2)):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-9)
    assert len(replays) > 60  # of the last 3 steps; each has 22 launches


ADDRESS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry told(.param .u64 x, .param .u64 out)
{
    .reg .b64 %rd<7>; .reg .b32 %r<2>;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 8; add.s64 %rd3, %rd1, %rd2; add.s64 %rd4, %rd0, %rd2;
    NUMBER
    st.global.u64 [%rd3], %rd5;
    ret;
}
"""


@pytest.mark.parametrize(
    "statement, number",
    [
        ("mov.u64 %rd5, %rd4;", lambda at: at),
        ("shr.u64 %rd5, %rd4, 4;", lambda at: at >> 4),
        ("mul.lo.u64 %rd5, %rd4, 3;", lambda at: at * 3),
        ("and.b64 %rd5, %rd4, 0xFFFFFFFFFFFF;", lambda at: at & (1 << 48) - 1),
        ("sub.u64 %rd5, 0, %rd4;", lambda at: (1 << 64) - at),
        ("add.u64 %rd5, %rd4, %rd0;", None),
    ],
)
def test_an_address_used_as_a_number_is_that_of_the_launch_s_own_array(statement, number):
    kernel = warplab.ptx_kernel(ADDRESS.replace("NUMBER", statement), "told")
    arrays = [cuda.to_device(np.zeros(32, np.uint64)) for _ in range(4)]
    starts = [array.__cuda_array_interface__["data"][0] for array in arrays]
    assert len(set(starts)) == 4
    for start, array in zip(starts, arrays):
        out = np.zeros(32, np.uint64)
        kernel[1, 32](array, out)
        at = [start + 8 * lane for lane in range(32)]
        assert out.tolist() == [number(a) if number else a + start for a in at]


def test_messages_name_an_array_as_its_last_launch_did(replays):
    """The name of a device array is kept with it until a launch gives it another."""
    x, out = cuda.to_device(numbers(6, 6)), cuda.to_device(numbers(36))
    part = x.ravel()
    for _ in range(3):
        add[1, 36](part, part, out)
        row_sums[1, 6](part.reshape(6, 6), out)
    with pytest.raises(warplab.OutOfBounds, match=r"element \[36\] of argument 'x' \(float32\[36\]\)"):
        shifted[1, 36](part, out)
    row_sums[1, 6](part.reshape(6, 6), out)
    with pytest.raises(warplab.OutOfBounds, match=r"element \[36\] of argument 'x' \(float32\[36\]\)"):
        shifted[1, 36](part, out)
