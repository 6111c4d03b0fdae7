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
from bench_engine import add
from numba import cuda, float32, int32

import warplab
from warplab.simt.engine import repeats, tracing

F = np.float32


@pytest.fixture(autouse=True)
def traced_early(monkeypatch):
    monkeypatch.setattr(repeats, "FULL_RUNS", 0)


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


RANDOM = np.random.default_rng()


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(F)


GUARDED = """
extern "C" __global__ void guarded(const float4* x, float4* out, int n) {
    int i = threadIdx.x;
    float4 v = make_float4(1, 1, 1, 1);
    if (i < n) v = x[i];
    out[i] = make_float4(v.x + v.y, v.y * v.z, v.z - v.w, v.w);
}"""


NEXT = """
extern "C" __global__ void next(const float* x, float* out) {
    out[threadIdx.x] = x[threadIdx.x + 1];
}"""


@cuda.jit
def returns_before_the_barrier(x):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
        x[cuda.threadIdx.x] = 2


@pytest.mark.slow
def test_a_profile_of_a_launch_that_could_replay_counts_all_of_it(replays):
    arguments = numbers(50), numbers(50), numbers(50)
    first = warplab.profile(add[2, 32], *arguments)
    for _ in range(4):
        add[2, 32](*arguments)
    assert replays
    again = warplab.profile(add[2, 32], *arguments)
    assert (str(again), again.lines) == (str(first), first.lines)


def test_launches_are_traced_only_of_a_kernel_that_is_launched_often(replays, monkeypatch):
    monkeypatch.setattr(repeats, "FULL_RUNS", 10)
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
    monkeypatch.setattr(repeats, "MOST_KINDS", 4)
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
    monkeypatch.setattr(repeats, "MOST_BYTES", alike.bytes)
    launch_sizes(kernel, [2, 2, 2])
    assert not replays
    launch_sizes(kernel, [2] * 11)
    assert len(replays) > 2


@pytest.mark.parametrize("limit, most", [("BYTES", 100), ("STEPS", 2)])
def test_a_trace_that_grows_too_large_is_not_kept(replays, monkeypatch, limit, most):
    monkeypatch.setattr(tracing, limit, most)
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


def shapes_of(*shape):
    return np.array(shape, np.int32)


def some_order(n):
    return RANDOM.permutation(n)


def with_special_values(given):
    """An array of floats with NaNs of all payloads, infinities and zeros of both signs among its numbers."""
    random, shape = RANDOM, given.shape
    nan = random.integers(0x7F800001, 0x7FFFFFFF, shape, np.uint32) | random.integers(0, 2, shape) << 31
    bits = np.where(random.random(shape) < 0.5, nan, given.view(np.uint32)).astype(np.uint32)
    other = random.choice(np.array([0.0, -0.0, np.inf, -np.inf], F), shape)
    return np.where(random.random(shape) < 0.3, other.view(np.uint32), bits).astype(np.uint32).view(F)


def outcome(kernel, configuration, arguments, whole: bool):
    """The bits of all arrays after a launch, what it raised and what it warned of."""
    error = ""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "Could not find source")
        patch.setattr(repeats, "FULL_RUNS", sys.maxsize if whole else 0)
        try:
            kernel[configuration](*arguments)
        except warplab.LaunchError as found:
            error = str(found)
    after = [a.copy_to_host() if cuda.is_cuda_array(a) else np.asarray(a) for a in arguments]
    return [a.tobytes() for a in after], error, [str(warning.message) for warning in seen]


def copies(given):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in given]


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
            ["cuda.atomic.add(cells, m % 4, int32(1))"],
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
    cells = cuda.shared.array(4, int32)
    if cuda.threadIdx.x < 4:
        cells[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for k in range(4):
        own[k] = k
    t, i = cuda.threadIdx.x, cuda.grid(1)
    a, b, c, m = x[i], y[i], float32(0), int32(t)
    {body}
    cuda.syncthreads()
    out[i] = a + b * c + m + cells[t % 4]
"""
    namespace = {"cuda": cuda, "float32": float32, "int32": int32}
    exec(source, namespace)
    return cuda.jit(namespace["kernel"])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.full)], ids=str)
def test_random_kernels_compute_the_same_bits_replayed_and_whole(replays, seeds):
    for seed in seeds:
        kernel, random = random_kernel(seed), np.random.default_rng(seed)
        for number in range(8):
            x, y = random.standard_normal((2, 128)).astype(F)
            if number in (4, 5):
                x, y = with_special_values(x), with_special_values(y)
            index = random.permutation(8) if number == 7 else 7 * np.arange(8) % 64
            given = x, y, np.int32(index), np.zeros(8, np.int32), np.zeros(128, F), np.int32(2), F(number % 3)
            whole = outcome(kernel, (2, 64), copies(given), whole=True)
            assert outcome(kernel, (2, 64), copies(given), whole=False)[:2] == whole[:2], (
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


VOTES = """
extern "C" __global__ void votes(const float* x, int* out) {
    out[threadIdx.x] = __syncthreads_count(x[threadIdx.x] > 0) + __syncthreads_count(threadIdx.x < 5);
}"""


@cuda.jit
def summed_often(x, times, out):
    total = float32(0)
    for _ in range(times[0]):
        total += x[cuda.grid(1)]
    out[cuda.grid(1)] = total


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


@cuda.jit
def rectified(x, out):
    i = cuda.grid(1)
    if x[i] > 0:
        out[i] = math.exp(x[i])
    else:
        out[i] = 0


@cuda.jit
def adds_and_looks(x, total, out):
    i = cuda.grid(1)
    total[i] += x[i]
    if total[i] > 0:
        out[i] = total[i]


@cuda.jit
def all_write(x, out):
    cell = cuda.shared.array(1, float32)
    cell[0] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    out[cuda.threadIdx.x] = cell[0]


@cuda.jit
def same_word(x, out):
    out[0] = x[cuda.grid(1)]


@cuda.jit
def beyond_the_tile(x, mask, out):
    """The last thread reads uninitialised memory, and discards it where the mask says so."""
    tile = cuda.shared.array(33, int32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t + 1] & mask[t]


@cuda.jit
def beyond_the_warp(x, mask, out):
    """The last thread takes the value of a lane that the block does not have, and discards it likewise."""
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_down_sync(0xFFFFFFFF, x[t], 1) & mask[t]


@cuda.jit
def from_lane(x, lane, out):
    """An array says from which lane each thread takes its value."""
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_sync(0xFFFFFFFF, x[t], lane[t])


SERIES = {}
on_device = cuda.to_device
UNSET = "uninitialised read"


def series(kernel, launches, replays, said=""):
    """The function below gives the configuration and the arguments of launch 0, 1, ... of a kernel: so many
    of these (one of some numbers) are ``replays``, and of the last one something is ``said``.
    """

    def register(make):
        SERIES[make.__name__] = kernel, launches, make, replays, said

    return register


def of_ptx(parameters, body):
    return lambda: ptx_kernel(parameters, body)


def of_cpp(source, name):
    """Compiled alone for each series, for kinds of one program would know each other."""
    alone = f"{source} // {len(SERIES)}"
    return lambda: warplab.cuda_kernel(alone, name)


def twice(array):
    return array, array


def integers():
    return RANDOM.integers(0, 99, 32).astype(np.uint32)


@series(saxpy_strided, 6, {4})
def a_float_parameter_and_an_array_on_the_device_may_differ(n):
    return (1, 32), F(n), on_device(numbers(100)), on_device(numbers(100))


@series(of_cpp(GUARDED, "guarded"), 9, {3})
def a_guarded_load_of_vectors(n):
    return (1, 32), numbers(128), numbers(128), (0, 20, 32)[n % 3]


@series(of_cpp(NEXT, "next"), 7, {3}, "element [32] of argument 'number 1'")
def an_array_may_be_shorter(n):
    return (1, 32), numbers(33 if n < 4 or n % 2 else 32), numbers(32)


@series(of_cpp(NEXT, "next"), 8, {4})
def a_pointer_into_the_middle_of_an_array_is_another_kind(n):
    return (1, 32), on_device(numbers(99))[n % 2 * 5 :][:40], on_device(numbers(32))


@series(of_cpp(GUARDED, "guarded"), 5, {2}, "read-only")
def a_read_only_array_is_not_written(n):
    out = numbers(128)
    out.flags.writeable = n < 4
    return (1, 32), numbers(128), out, 32


@series(shifted, 8, {2}, "global-memory conflict")
def two_arrays_may_be_one(n):
    return (2, 32), *(twice(on_device(numbers(65))) if n > 3 else (numbers(65), numbers(65)))


@series(returns_before_the_barrier, 4, {0}, "barrier in kernel")
def threads_that_miss_a_barrier(n):
    return (1, 64), numbers(64)


@series(add, 12, {6})
def another_grid_or_block_is_another_kind(n):
    return ((1, 32), (2, 32), (1, 64))[n % 3], numbers(64), numbers(64), numbers(64)


@series(of_ptx("u64 out", "mov.u32 %r1, %dynamic_smem_size; st.global.u32 [%out], %r1;"), 8, {4})
def more_dynamic_shared_memory_is_another_kind(n):
    return (1, 1, 0, 64 + 64 * (n % 2)), np.zeros(1, np.uint32)


@series(of_ptx("u64 x, u64 y, u32 which", TWO_MEMORIES), 8, {4})
def a_generic_address_in_local_memory_or_in_an_array(n):
    return (1, 32), integers(), integers(), np.uint32(n % 2)


@series(of_ptx("u64 x, u64 y, u32 which", "add.s64 %rd8, %x, %y;" + TWO_MEMORIES), 6, {0})
def the_sum_of_two_pointers(n):
    return (1, 32), integers(), integers(), np.uint32(0)


def chosen(how):
    return CHOSEN.replace("CHOICE", f"setp.{how};")


@series(of_ptx("u64 x, u64 out", chosen("gt.u32 %p1, %r1, 0")), 5, {0}, UNSET)
def an_uninitialised_value_that_loaded_numbers_discard(n):
    return (1, 32), np.arange(32, dtype=np.uint32)[::-1] * (n < 4) + np.uint32(n == 4), integers()


@series(of_ptx("u64 x, u64 out", chosen("lt.u32 %p1, %r0, 31")), 5, {3})
def an_uninitialised_value_that_thread_numbers_discard(n):
    return (1, 32), integers(), integers()


@series(of_ptx("u64 x, u64 out, f32 s", chosen("gt.f32 %p1, %s, 0f00000000")), 5, {0}, UNSET)
def an_uninitialised_value_that_a_float_parameter_discards(n):
    return (1, 32), integers(), integers(), F(n == 4)


@series(beyond_the_tile, 4, {0}, UNSET)
def an_uninitialised_value_that_a_loaded_mask_discards(n):
    return (1, 32), np.arange(32), np.where(np.arange(32) < 31, -1, n == 3), np.zeros(32, int)


@series(beyond_the_warp, 4, {0}, UNSET)
def an_absent_lane_s_value_that_a_loaded_mask_discards(n):
    return (1, 16), np.arange(16), np.where(np.arange(16) < 15, -1, n == 3), np.zeros(16, int)


@series(from_lane, 4, {0})
def lanes_of_a_shuffle_from_an_array(n):
    return (1, 32), np.arange(32), (31 - np.arange(32) + n) % 32, np.zeros(32, int)


@series(of_cpp(VOTES, "votes"), 5, {0})
def votes_of_a_block(n):
    return (1, 64), numbers(64), np.zeros(64, np.int32)


@series(broadcast, 32, range(13, 33))
def other_shapes_and_strides_are_another_kind(n):
    shape, strides = (((2, 12), (1, 2)), ((12, 2), (1, 12)), ((24,), (1,)), ((2, 12), (0, 1)))[n % 4]
    return (1, 32), numbers(24), shapes_of(*shape), numbers(24), shapes_of(*strides)


@series(gather, 9, {0})
def other_indices(n):
    return (2, 32), numbers(64), some_order(64), numbers(64)


@series(zipped_strides, 9, {7})
def an_array_of_shapes_in_local_memory(n):
    return (1, 32), numbers(24), shapes_of(2, 3, 4), with_special_values(numbers(24)), shapes_of(1, 8, 2)


@series(tile_products, 9, {7})
def tiles_of_which_a_part_is_written(n):
    return (1, (8, 8)), numbers(25), with_special_values(numbers(25)), numbers(25), 5


@series(summed_often, 12, range(6, 13))
def loops_that_depend_on_arrays_of_integers(n):
    return (1, 32), numbers(32), shapes_of(2 + n % 2), numbers(32)


@series(gather, 10, {4})
def long_arrays_of_indices_are_not_compared(n):
    size = 64 if n < 6 else 1024
    return (size // 32, 32), numbers(size), np.arange(size)[::-1].copy(), numbers(size)


@series(of_ptx("u64 x, u64 y, u64 out", ONE_OF_TWO), 5, range(1, 4))
def two_groups_of_lanes_that_loaded_one_number_may_load_two(n):
    x, y = ((5, 5), (5, 5), (6, 6), (7, 8), (9, 9))[n]
    return (1, 32), np.full(1, x, F), np.full(1, y, F), np.zeros(32, F)


@series(overwrites, 16, {0})
def a_launch_that_changes_its_own_indices(n):
    place = on_device if n % 2 else np.copy
    return (1, 32), *twice(place(np.arange(32))), some_order(32), numbers(32), numbers(32)


@series(overwrites, 22, range(8, 17))
def a_launch_that_changes_other_indices_and_then_its_own(n):
    """Those are of the same kind on the host, but their memory is one."""
    place = on_device if n % 2 else np.copy
    two = (place(np.arange(32)), place(np.arange(32))) if n < 16 else twice(place(np.arange(32)))
    return (1, 32), *two, some_order(32), numbers(32), numbers(32)


@series(rectified, 10, {2, 8})  # 8: the compiler made no branch of it
def branches_may_go_another_way(n):
    flipped = (1, 1, 1, 1, -1, 1, 1, -1, -1, 1)[n]
    return (1, 32), flipped * np.where(np.arange(32) % 3, F(1), F(-1)) * np.abs(numbers(32)), numbers(32)


@series(adds_and_looks, 5, {0})
def a_branch_on_loaded_values_behind_a_write(n):
    return (1, 32), np.abs(numbers(32)) * F(-1 if n == 3 else 1), np.zeros(32, F), np.zeros(32, F)


@series(all_write, 4, {0}, "shared-memory race")
def threads_that_stored_the_same_value_together(n):
    return (1, 32), numbers(32) if n == 3 else np.full(32, 5, F), numbers(32)


@series(same_word, 4, {0}, "global-memory conflict")
def threads_that_left_a_word_as_it_was(n):
    return (2, 32), numbers(64) if n == 3 else np.full(64, 5, F), np.full(1, 5, F)


@pytest.mark.parametrize("what", SERIES)
def test_a_series_of_launches_does_what_whole_launches_do(replays, what):
    """Their arrays, faults and warnings are those of launches that cannot replay."""
    made, launches, make, replayed, said = SERIES[what]
    kernel = cuda.jit(made.py_func) if hasattr(made, "py_func") else made()
    for number in range(launches):
        found = []
        for whole in (True, False):
            RANDOM.bit_generator.state = np.random.default_rng(number).bit_generator.state
            configuration, *arguments = make(number)
            found.append(outcome(kernel, configuration, arguments, whole))
        assert found[0] == found[1], f"launch {number}"
    _, error, warned = found[0]
    told = " ".join([error, *warned])
    assert said in told if said else not told
    assert len(replays) in replayed


@pytest.mark.slow
def test_a_student_s_network_learns_the_same_bits_from_replays(replays, monkeypatch):
    ours, whole = tensor_library.Network(), tensor_library.Network()
    for _ in range(6):
        ours.step()
        with monkeypatch.context() as patch:
            patch.setattr(repeats, "FULL_RUNS", sys.maxsize)
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
