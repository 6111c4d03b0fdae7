"""A launch that replays an earlier one of its kind does what the whole launch would do: the same results,
faults and warnings.

Each kernel is launched several times on fresh numbers. Here a kind's second launch is traced, even where the
program has just started; its third launch is the first that can replay.
"""

import math
import sys
import warnings
from random import Random

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
def shifted(x, out):
    i = cuda.grid(1)
    out[i] = x[i + 1]


@cuda.jit
def gather(x, index, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]


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
    return compiled.library.warplab_program[1]


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


@pytest.mark.parametrize("limit, most", [("BYTES", 100), ("STEPS", 2)])
def test_a_trace_that_grows_too_large_is_not_kept(replays, monkeypatch, limit, most):
    monkeypatch.setattr(tracing, limit, most)
    kernel = cuda.jit(gather.py_func)
    for _ in range(6):
        kernel[1, 32](numbers(32), (7 * np.arange(32)) % 32, numbers(32))
    assert not replays


def test_another_grid_or_block_is_another_kind(replays):
    kernel = cuda.jit(add.py_func)
    for grid, block in ((1, 32), (2, 32), (1, 64)) * 4:
        a, b, out = numbers(64), numbers(64), np.zeros(64, F)
        kernel[grid, block](a, b, out)
        np.testing.assert_array_equal(out, np.where(np.arange(64) < grid * block, a + b, 0))
    assert len(replays) == 6


def test_more_dynamic_shared_memory_is_another_kind(replays):
    kernel = ptx_kernel("u64 out", "mov.u32 %r1, %dynamic_smem_size; st.global.u32 [%out], %r1;")
    for size in (64, 128) * 4:
        out = np.zeros(1, np.uint32)
        kernel[1, 1, 0, size](out)
        assert out[0] == size
    assert len(replays) == 4


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


def shapes_of(*shape):
    return np.array(shape, np.int32)


def some_order(n):
    return np.random.default_rng().permutation(n)


EXACT = [  # kernel, grid, block, makes the arguments, whether launches are replayed
    (row_sums, 2, 32, lambda: (numbers(50, 3), numbers(50)), True),
    (gather, 2, 32, lambda: (numbers(64), some_order(64), numbers(64)), False),
    (gather, 2, 32, lambda: (numbers(64), (7 * np.arange(64)) % 64, numbers(64)), True),
    (broadcast, 1, 32, lambda: (numbers(24), shapes_of(2, 3, 4), numbers(24), shapes_of(1, 8, 2)), True),
    (warp_sums, 2, 64, lambda: (numbers(128), numbers(128)), True),
    (zipped_strides, 1, 32, lambda: (numbers(24), shapes_of(2, 3, 4), numbers(24), shapes_of(1, 8, 2)), True),
    (tile_products, 1, (8, 8), lambda: (numbers(25), numbers(25), numbers(25), 5), True),
    (counted_in_shared, 1, 64, lambda: (10 * numbers(64), numbers(4)), True),
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


def outcome(kernel, grid, block, given, whole: bool):
    """The bits of all arrays after a launch, what it raised and what it warned of."""
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
    error = ""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "Could not find source")
        patch.setattr(repeats, "WHOLE", sys.maxsize if whole else 0)
        try:
            kernel[grid, block](*arrays)
        except warplab.LaunchError as found:
            error = str(found)
    return [np.asarray(a).tobytes() for a in arrays], error, [str(warning.message) for warning in seen]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kernel, grid, block, make, replayed", EXACT)
def test_a_replay_gives_the_bits_that_the_whole_launch_gives(replays, kernel, grid, block, make, replayed):
    for number in range(9):
        given = [with_special_values(a) for a in make()] if number > 5 else make()
        whole = outcome(kernel, grid, block, given, whole=True)
        assert outcome(kernel, grid, block, given, whole=False) == whole
    assert bool(replays) == replayed


def statements(random, depth: int) -> list[str]:
    """Some lines of a kernel with floats a, b and c and an index m below 64. Barriers and shuffles stand only
    where no lanes diverge.
    """
    lines: list[str] = []
    for _ in range(random.randint(1, 6 - depth)):
        u, v, w = (random.choice("abc") for _ in range(3))
        body = ["    " + line for line in statements(random, depth + 1)] if depth < 2 else ["    c += a"]
        other = ["    " + line for line in statements(random, depth + 1)] if depth < 2 else ["    b -= c"]
        choices = [
            [f"{u} = {v} * {w} + s"],
            [f"{u} = min({v}, {w}) - float32(m)"],
            [f"{u} = float32(index[m % 8]) + {v} / (1 + abs({w}))"],
            [f"m = (m * {random.choice([3, 5, 7])} + index[(m + t) % 8]) % 64"],
            [f"{u} += x[m + cuda.blockIdx.x]"],
            [f"own[m % 4] = {u}", f"{v} += own[(m + 1) % 4]"],
            [f"if t % {random.choice([2, 3, 5])} == 1:", *body, "else:", *other],
            [f"if {u} > {v}:", f"    {w} = {u} / 2"],
            [f"for _ in range({random.choice(['n', 'm % 3', 'index[0] % 3'])}):", *body],
            [f"cuda.atomic.add(counts, m % 8, int32({u}) % 100)"],
            [f"out[i] = {u}"],
            [f"y[i] = {u}"],
        ]
        if depth == 0:
            step, lane = random.randrange(64), random.choice([1, 2, 4, 8, 16])
            barrier = "cuda.syncthreads()"
            choices += [
                [f"tile[t] = {u}", barrier, f"{v} = tile[(t + {step}) % 64]", barrier],
                [f"{u} = cuda.shfl_xor_sync(0xFFFFFFFF, {v}, {lane})"],
            ]
        lines += random.choice(choices)
    return lines


def random_kernel(seed: int):
    body = "\n    ".join(statements(Random(seed), 0))
    source = f"""
def kernel(x, y, index, counts, out, n, s):
    tile, own = cuda.shared.array(64, float32), cuda.local.array(4, float32)
    for k in range(4):
        own[k] = k
    t, i = cuda.threadIdx.x, cuda.grid(1)
    a, b, c, m = x[i], y[i], float32(0), int32(t)
    {body}
    out[i] = a + b * c + m
"""
    namespace = {"cuda": cuda, "float32": float32, "int32": int32}
    exec(source, namespace)
    return cuda.jit(namespace["kernel"])


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.full)], ids=str)
def test_random_kernels_compute_the_same_bits_replayed_and_whole(replays, seeds):
    for seed in seeds:
        kernel, random = random_kernel(seed), np.random.default_rng(seed)
        for number in range(8):
            x, y = random.standard_normal((2, 128)).astype(F)
            index = random.permutation(8) if number == 7 else 7 * np.arange(8) % 64
            given = x, y, np.int32(index), np.zeros(8, np.int32), np.zeros(128, F), np.int32(2), F(number % 3)
            whole = outcome(kernel, 2, 64, given, whole=True)
            assert outcome(kernel, 2, 64, given, whole=False)[:2] == whole[:2], (
                f"seed {seed}, launch {number}"
            )
    assert len(replays) > 4 * len(seeds)


def ptx_kernel(parameters: str, body: str):
    """A kernel of PTX. Its parameters ("u64 x, f32 s") are in registers of their names, the thread's number
    is in %r0, and four times that in %rd0.
    """
    declared = [item.split() for item in parameters.split(", ")]
    loads = "\n".join(f".reg .{kind} %{name}; ld.param.{kind} %{name}, [{name}];" for kind, name in declared)
    return warplab.ptx_kernel(
        f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k({", ".join(f".param .{kind} {name}" for kind, name in declared)})
{{
.reg .pred %p<2>; .reg .b32 %r<9>; .reg .f32 %f<2>; .reg .b64 %rd<9>;
{loads}
mov.u32 %r0, %tid.x; mul.wide.u32 %rd0, %r0, 4;
{body}
ret;
}}""",
        "k",
    )


TWO_MEMORIES = """
.local .align 4 .b8 own[4];
mov.u64 %rd1, own; cvta.local.u64 %rd2, %rd1;
add.s64 %rd3, %x, %rd0; add.s64 %rd4, %y, %rd0;
ld.global.u32 %r1, [%rd3]; st.local.u32 [%rd1], %r1;
setp.eq.u32 %p1, %which, 0;
mov.u64 %rd5, %rd2;
@%p1 bra READ;
mov.u64 %rd5, %rd4;
READ:
ld.u32 %r2, [%rd5]; add.u32 %r3, %r2, 1; st.global.u32 [%rd4], %r3;
"""


@pytest.mark.parametrize("in_array", [0, 1])
def test_a_generic_address_may_lie_in_local_memory_or_in_an_array(replays, in_array):
    """A parameter says which."""
    kernel = ptx_kernel("u64 x, u64 y, u32 which", TWO_MEMORIES)
    for _ in range(4):
        x, y = (np.random.default_rng().integers(0, 99, 32).astype(np.uint32) for _ in range(2))
        right = (y if in_array else x) + 1
        kernel[1, 32](x, y, np.uint32(in_array))
        np.testing.assert_array_equal(y, right)
    assert len(replays) == 2


def test_launches_that_add_two_pointers_are_not_replayed(replays):
    kernel = ptx_kernel("u64 x, u64 y, u32 which", "add.s64 %rd8, %x, %y;" + TWO_MEMORIES)
    for _ in range(6):
        x, y = (np.arange(32, dtype=np.uint32) for _ in range(2))
        kernel[1, 32](x, y, np.uint32(0))
        np.testing.assert_array_equal(y, x + 1)
    assert not replays


CHOSEN = """
.shared .align 4 .b8 tile[256];
add.s64 %rd1, %x, %rd0; add.s64 %rd2, %out, %rd0;
ld.global.u32 %r1, [%rd1];
mov.u32 %r2, tile; shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3;
st.shared.u32 [%r4], %r1;
bar.sync 0;
ld.shared.u32 %r5, [%r4+4];
CHOICE
selp.b32 %r6, %r5, %r1, %p1;
st.global.u32 [%rd2], %r6;
"""  # the last thread's %r5 is uninitialised


def test_an_uninitialised_value_that_loaded_numbers_discard_is_looked_for_at_every_launch(replays):
    kernel = ptx_kernel("u64 x, u64 out", CHOSEN.replace("CHOICE", "setp.gt.u32 %p1, %r1, 0;"))
    x = np.arange(32, dtype=np.uint32)[::-1].copy()
    for _ in range(4):
        kernel[1, 32](x, x.copy())
    with pytest.raises(warplab.UninitialisedRead):
        kernel[1, 32](np.ones(32, np.uint32), x.copy())
    assert not replays


def test_an_uninitialised_value_that_thread_numbers_discard_is_looked_for_once(replays):
    kernel = ptx_kernel("u64 x, u64 out", CHOSEN.replace("CHOICE", "setp.lt.u32 %p1, %r0, 31;"))
    for _ in range(5):
        x, out = np.random.default_rng().integers(0, 99, 32).astype(np.uint32), np.zeros(32, np.uint32)
        kernel[1, 32](x, out)
        assert out.tolist() == [*x[1:], x[31]]
    assert len(replays) == 3


def test_an_uninitialised_value_that_a_float_parameter_discards_is_looked_for_at_every_launch():
    text = CHOSEN.replace("CHOICE", "setp.gt.f32 %p1, %s, 0f00000000;")
    kernel, x = ptx_kernel("u64 x, u64 out, f32 s", text), np.arange(32, dtype=np.uint32)
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
add.s64 %rd1, %out, %rd0;
setp.lt.u32 %p1, %r0, 10;
@%p1 bra FIRST;
ld.global.f32 %f1, [%y];
bra.uni STORE;
FIRST:
ld.global.f32 %f1, [%x];
STORE:
st.global.f32 [%rd1], %f1;
"""


def test_two_groups_of_lanes_that_loaded_one_number_may_load_two_the_next_time(replays):
    kernel, out = ptx_kernel("u64 x, u64 y, u64 out", ONE_OF_TWO), np.zeros(32, F)
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
    for _ in range(6):
        ours.step()
        with monkeypatch.context() as patch:
            patch.setattr(repeats, "WHOLE", sys.maxsize)
            whole.step()
    assert [w.numpy().tobytes() for w in ours.weights] == [w.numpy().tobytes() for w in whole.weights]
    assert len(replays) > 60  # of the last 3 steps; each has 22 launches


@pytest.mark.parametrize(
    "statement, number",
    [
        ("mov.u64 %rd1, %rd4;", lambda at: at),
        ("shr.u64 %rd1, %rd4, 4;", lambda at: at >> 4),
        ("mul.lo.u64 %rd1, %rd4, 3;", lambda at: at * 3),
        ("and.b64 %rd1, %rd4, 0xFFFFFFFFFFFF;", lambda at: at & (1 << 48) - 1),
        ("sub.u64 %rd1, 0, %rd4;", lambda at: (1 << 64) - at),
        ("add.u64 %rd1, %rd4, %x;", None),
    ],
)
def test_an_address_used_as_a_number_is_that_of_the_launch_s_own_array(statement, number):
    addresses = "mul.wide.u32 %rd2, %r0, 8; add.s64 %rd3, %out, %rd2; add.s64 %rd4, %x, %rd2;"
    kernel = ptx_kernel("u64 x, u64 out", f"{addresses} {statement} st.global.u64 [%rd3], %rd1;")
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
