"""Barriers that not all threads of a block reach at one place: what PTX lets pass, and with what warning."""

import functools
import warnings

import numpy as np
import pytest
import told
from numba import cuda
from told import line_of

import warplab

warned = functools.partial(told.warned, warplab.BarrierWarning)


@cuda.jit
def early_return(x):
    t = cuda.threadIdx.x
    if t >= 40:
        return
    cuda.syncthreads()  # line
    x[t] = 2


@cuda.jit
def only_one_warp(x):
    t = cuda.threadIdx.x
    if t < 32:
        cuda.syncthreads()  # line
        x[t] = 2


@cuda.jit
def whole_blocks_leave(x):
    if cuda.blockIdx.x > 0:
        return
    cuda.syncthreads()
    x[cuda.threadIdx.x] = 2


@pytest.mark.parametrize("kernel, written", [(early_return, 40), (only_one_warp, 32)])
def test_a_barrier_that_threads_skip_by_leaving_passes_with_a_warning_that_names_its_line(kernel, written):
    x = np.zeros(64, np.float32)
    (text,) = warned(lambda: kernel[1, 64](x))
    assert (x == np.where(np.arange(64) < written, 2, 0)).all()
    place = line_of(kernel, "# line")
    assert text.startswith(f"barrier in kernel {kernel.py_func.__name__}, test_barrier_places.py:{place}: ")
    assert "threads of a block have left the kernel before this barrier" in text and "Look at: " in text


def test_the_warning_comes_once_for_a_kernel_and_a_line():
    @cuda.jit
    def leaves(x):
        if cuda.threadIdx.x >= 40:
            return
        for _ in range(3):
            cuda.syncthreads()
        x[0] = 2

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for blocks in (1, 2, 3):
            leaves[blocks, 64](np.zeros(1, np.float32))
    assert [w.category for w in seen].count(warplab.BarrierWarning) == 1


def test_blocks_that_leave_as_a_whole_are_no_matter():
    assert warned(lambda: whole_blocks_leave[3, 64](np.zeros(64, np.float32))) == []


TWO_PLACES = r"""
extern "C" __global__ void k(const int* x, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    if (t < SPLIT) asm volatile("ONE" ::: "memory");
    else asm volatile("OTHER" ::: "memory");
    out[t] = s[63 - t];
}"""


def meets(split: int, one: str, other: str) -> list[str]:
    source = TWO_PLACES.replace("SPLIT", str(split)).replace("ONE", one).replace("OTHER", other)
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    texts = warned(lambda: warplab.cuda_kernel(source, "k")[1, 64](x, out))
    np.testing.assert_array_equal(out, x[::-1])
    return texts


def test_warps_at_barriers_of_one_number_meet_wherever_these_stand():
    (text,) = meets(32, "bar.sync 0;", "bar.sync 0;")
    assert text.startswith("barrier in kernel k, k.cu:7: ") and "another barrier, k.cu:6" in text


def test_barriers_that_are_not_aligned_meet_within_a_warp_too():
    (text,) = meets(20, "barrier.sync 3;", "barrier.sync 3;")
    assert "another barrier" in text


@pytest.mark.parametrize(
    "split, one, other",
    [
        (20, "bar.sync 0;", "bar.sync 0;"),  # one warp at two places
        (20, "barrier.sync.aligned 0;", "barrier.sync.aligned 0;"),
        (32, "bar.sync 0;", "bar.sync 1;"),  # two barriers, each waiting for all
        (32, "barrier.sync 0;", "barrier.sync 1;"),
    ],
)
def test_what_cannot_meet_is_barrier_divergence(split, one, other):
    with pytest.raises(warplab.BarrierDivergence, match="wait at two different barriers"):
        meets(split, one, other)


TURNS = """
extern "C" __global__ void k(const int* x, int* turn, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    if (t == 0) { while (atomicAdd(turn, 0) != blockIdx.x) {} __threadfence(); }
    MEET;
    out[t] += s[63 - t];
    MEET;
    if (t == 0) { __threadfence(); atomicExch(turn, blockIdx.x + 1); }
}"""


@pytest.mark.slow
@pytest.mark.parametrize("meet", ["__syncthreads()", 'asm volatile("bar.sync 1, 64;" ::: "memory")'])
def test_a_block_passes_its_barrier_while_others_spin_until_it_has_done_its_work(meet):
    x, out = np.arange(256, dtype=np.int32), np.zeros(64, np.int32)
    warned(
        lambda: warplab.cuda_kernel(TURNS.replace("MEET", meet), "k")[4, 64](x, np.zeros(1, np.int32), out)
    )
    np.testing.assert_array_equal(out, x.reshape(4, 64)[:, ::-1].sum(axis=0))


SYNCWARPS = """
extern "C" __global__ void branches(int* out, unsigned mask) {
    __shared__ int s[64];
    int t = threadIdx.x, x = 0;
    s[t] = -1;
    __syncwarp();
    for (int i = 0; i < 3; ++i) {
        if (t & 1) { s[t] = i + t; __syncwarp(mask); x += s[t - 1]; }
        else { s[t] = i * t; __syncwarp(mask); x += s[t + 1]; }
        __syncwarp();
    }
    out[t] = x;
}
extern "C" __global__ void halves(int* out, int* flag) {
    int t = threadIdx.x, half = t % 32 / 16;
    __shared__ int s[64];
    if (half) { while (atomicAdd(flag + t / 32, 0) < 16) {} __threadfence(); }
    s[t] = t;
    __syncwarp(0xffffu << half * 16);
    out[t] = s[t ^ 1];
    if (!half) { __threadfence(); atomicAdd(flag + t / 32, 1); }
}
extern "C" __global__ void leaves(int* out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t % 32 < 8) { s[t] = t; __syncwarp(); out[t] = s[t ^ 1]; return; }
    if (t % 32 < 16) return;
    s[t] = 2 * t;
    __syncwarp();
    out[t] = s[t ^ 1];
}
extern "C" __global__ void never(int* out) {
    int t = threadIdx.x;
    if (t < 48) __syncwarp(); else __syncthreads();
    out[t] = 1;
}
extern "C" __global__ void two_masks(int* out) {
    int t = threadIdx.x;
    __syncwarp(t % 32 < 16 ? 0xffffffffu : 0xffff0000u);
    __syncthreads();
    out[t] = 1;
}"""


def test_lanes_at_two_places_wait_for_each_other_at_a_barrier_of_their_warp():
    t = np.arange(64)
    kernel = warplab.cuda_kernel(SYNCWARPS, "branches")
    for _ in range(40):  # whole, then what launches have in common, then as one function
        out = np.zeros(64, np.int32)
        kernel[1, 64](out, 0xFFFFFFFF)
        np.testing.assert_array_equal(out, sum(np.where(t & 1, i * (t - 1), i + t + 1) for i in range(3)))


def test_lanes_that_a_mask_does_not_name_are_not_waited_for_and_no_others_are_ordered():
    out = np.zeros(64, np.int32)
    warplab.cuda_kernel(SYNCWARPS, "halves")[1, 64](out, np.zeros(2, np.int32))
    np.testing.assert_array_equal(out, np.arange(64) ^ 1)
    with pytest.raises(warplab.SharedRace):
        warplab.cuda_kernel(SYNCWARPS.replace("16);", "16 & 0x55555555);", 1), "halves")[1, 64](
            out, np.zeros(2, np.int32)
        )


def test_a_barrier_of_a_warp_does_not_wait_for_lanes_that_have_left():
    out, t = np.zeros(64, np.int32), np.arange(64)
    warplab.cuda_kernel(SYNCWARPS, "leaves")[1, 64](out)
    np.testing.assert_array_equal(out, np.where(t % 32 < 8, t ^ 1, np.where(t % 32 < 16, 0, 2 * (t ^ 1))))


def test_a_barrier_of_a_warp_whose_mask_names_lanes_that_wait_elsewhere_is_told_with_both_lines():
    with pytest.raises(warplab.BarrierDivergence) as found:
        warplab.cuda_kernel(SYNCWARPS, "never")[1, 64](np.zeros(64, np.int32))
    text = str(found.value)
    assert "thread (32, 0, 0) of block (0, 0, 0) and 15 more at a syncwarp" in text
    assert "0xffffffff, names thread (48, 0, 0)" in text and text.count("never.cu:") == 2


def test_lanes_whose_masks_differ_do_not_meet_at_one_barrier_of_their_warp():
    with pytest.raises(warplab.BarrierDivergence, match=r"0xffffffff, names thread \(16, 0, 0\)"):
        warplab.cuda_kernel(SYNCWARPS, "two_masks")[1, 64](np.zeros(64, np.int32))


EXCHANGES = """
extern "C" __global__ void k(unsigned* out, unsigned mask, int n) {
    int t = threadIdx.x; unsigned x = 7, y = 1;
    BODY
    __syncthreads();
    out[t] = x + y - 1;
}"""


@pytest.mark.parametrize(
    "exchange, expected, what",
    [
        ("x = __ballot_sync(mask, t & 1);", 0xAAAA, "vote"),
        ("x = __any_sync(mask, t == 20);", 0, "vote"),
        ("x = __reduce_add_sync(mask, t);", 120, "reduction"),
        ("x = __match_any_sync(mask, t / 8);", [255] * 8 + [255 << 8] * 8, "match"),
        ("x = __shfl_xor_sync(mask, t, 1);", np.arange(16) ^ 1, "shuffle"),
    ],
)
def test_an_exchange_without_lanes_that_its_mask_names_is_told_and_goes_on(exchange, expected, what):
    source = EXCHANGES.replace("BODY", f"if (t < n)\n{exchange}")
    expected = np.concatenate([np.broadcast_to(expected, 16), np.full(16, 7)])

    def runs(mask: int, n: int) -> list[str]:
        out = np.zeros(32, np.uint32)
        texts = warned(lambda: kernel[1, 32](out, mask, n))
        if n == 16:
            np.testing.assert_array_equal(out, expected)
        return texts

    kernel = warplab.cuda_kernel(source, "k")
    for _ in range(20):  # the first few as a whole, the others by what launches have in common
        (text,) = runs(0xFFFFFFFF, 16)
        assert text.startswith(f"{what} in kernel k, k.cu:5: the mask of thread (0, 0, 0) of block ")
        assert "0xffffffff, names thread (16, 0, 0) of block (0, 0, 0)" in text and "goes on at k.cu:" in text
        assert runs(0xFFFF, 16) == [] and runs(0xFFFFFFFF, 32) == []


@pytest.mark.parametrize(
    "body, lines",
    [
        # both halves of a branch: neither is whole
        ("if (t < 16)\nx = __ballot_sync(mask, 1);\nelse x = __ballot_sync(mask, t & 1);", [5, 6]),
        # lanes that have left, or do nothing but leave
        ("if (t >= n) return;\nx = __ballot_sync(mask, 1);", []),
        ("if (t < n) {\nout[t] = __ballot_sync(mask, 1); } return;", []),
        ("for (int i = t; i < 40; i += 32)\nout[i % 32] = __ballot_sync(mask, 1);\nreturn;", []),
        # the last round of a loop, while the others wait behind it
        ("for (int i = t; i < 40; i += 32)\nx = __ballot_sync(mask, 1);\n__syncthreads();", [5]),
        # lanes that have something to do before they leave
        ("if (t < n)\nx = __ballot_sync(mask, 1);\nelse { out[t] = 3; return; }", [5]),
        # of a mask that names all in every launch the engine knows: it lets the others come, or leave
        ("if (t < n)\nx = __ballot_sync(~0u, 1);\nelse { out[t] = 3; return; }", []),
        # who asks who is here, and warps that do not come at all
        ("if (t < 16)\nx = __ballot_sync(__activemask(), 1);", []),
        ("if (t < 32)\nx = __ballot_sync(mask, 1);", []),
    ],
)
def test_who_is_missing_from_an_exchange(body, lines):
    kernel = warplab.cuda_kernel(EXCHANGES.replace("BODY", body), "k")
    texts = warned(lambda: kernel[1, 64 if "< 32)" in body else 32](np.zeros(64, np.uint32), 0xFFFFFFFF, 16))
    of_exchanges = [text for text in texts if not text.startswith("barrier ")]
    assert [int(text.split("k.cu:")[1].split(":")[0]) for text in of_exchanges] == lines


GATHERED = """
extern "C" __global__ void while_any(int* out, int* box) {
    int t = threadIdx.x, v = t * 5 % 8, turns = 0;
    while (__any_sync(0xffffffffu, v > 0)) {
        if (v > 0) v--;
        turns++;
    }
    out[t] = turns;
}
extern "C" __global__ void cold_path(int* out, int* box) {
    int t = threadIdx.x;
    if (__builtin_expect(t % 7 == 0, 0)) { box[t] = sqrtf(t); out[t] = 1; }
    out[t] = __popc(__ballot_sync(0xffffffffu, out[t] & 1));
}
extern "C" __global__ void queue(int* out, int* box) {
    int t = threadIdx.x, v = t * 5 % 8, turns = 0;
    while (__any_sync(0xffffffffu, v > 0)) {
        if (v > 0) {
            unsigned mask = __activemask();
            int leader = __ffs(mask) - 1, base = 0;
            if (t % 32 == leader) base = atomicAdd(box, __popc(mask));
            base = __shfl_sync(mask, base, leader);
            if (base >= 0) v--;
        }
        turns++;
    }
    out[t] = turns;
}"""


@pytest.mark.parametrize("name, expected", [("while_any", 7), ("cold_path", [5, 5]), ("queue", 7)])
def test_lanes_on_other_ways_come_before_their_warp_votes(name, expected):
    out, box = np.zeros(64, np.int32), np.zeros(64, np.int32)
    assert warned(lambda: warplab.cuda_kernel(GATHERED, name)[1, 64](out, box)) == []
    np.testing.assert_array_equal(out, np.repeat(np.broadcast_to(expected, 2), 32))
    if name == "queue":
        assert box[0] == 8 * sum(range(8))


BY_MASK = {
    "vote": "out[t] = __ballot_sync(MASK, 1);",
    "match": "out[t] = __match_any_sync(MASK, t / 2);",
    "reduction": "out[t] = __reduce_add_sync(MASK, t);",
    "election": 'asm volatile("{.reg .pred p; elect.sync %0|p, %1;}" : "=r"(out[t]) : "r"(MASK));',
    "syncwarp": "__syncwarp(MASK);",
    "shuffle": "unsigned v = __shfl_sync(MASK, t, 3); if (t > 0 && t < 8) out[t] = v;",
}


@pytest.mark.parametrize("what", BY_MASK)
@pytest.mark.parametrize("mask, lanes, outside", [(0xFF, 32, 8), (0xFFFFFFFE, 32, 0), (0xFF, 8, None)])
def test_a_lane_that_its_own_mask_does_not_name_is_told_of(what, mask, lanes, outside):
    kernel = warplab.cuda_kernel(
        'extern "C" __global__ void k(unsigned* out, unsigned lanes) { unsigned t = threadIdx.x;\n'
        f"if (t < lanes) {{ {BY_MASK[what].replace('MASK', hex(mask))} }} }}",
        "k",
    )
    said = warned(lambda: kernel[1, 32](np.zeros(32, np.uint32), lanes))
    if outside is None:
        assert said == []
        return
    (text,) = said
    assert text.startswith(f"{what} in kernel k, ") and f"thread ({outside}, 0, 0)" in text
    assert f"its own mask, {mask:#010x}, does not name it" in text


def test_a_syncwarp_whose_mask_names_nobody_is_told_and_passes():
    @cuda.jit
    def nobody(x):
        cuda.syncwarp(0)
        x[cuda.threadIdx.x] = 2

    x = np.zeros(64, np.float32)
    (text,) = warned(lambda: nobody[1, 64](x))
    assert "its own mask, 0x00000000, does not name it" in text and (x == 2).all()
